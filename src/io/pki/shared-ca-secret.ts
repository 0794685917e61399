// What is in the Secret by which replicas share a CA, and whether it can be used: it is asked before anything of it is written.

import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto'
import type { JsonObject } from '../../api/kube/json-object.ts'
import { recordOf } from '../../api/kube/object-shape.ts'
import { UserError } from '../../api/validation/field-errors.ts'
import type { KeyPair } from './pki.ts'

export interface SharedCA {
  /** The Secret: kubernetes.io/tls, the CA as tls.crt and tls.key. */
  readonly namespace: string
  readonly name: string
  /** Where this replica keeps its copy: ca.crt and ca.key. */
  readonly dir: string
  /** Of a CA that is made. */
  readonly commonName: string
  /** Further files of `dir` that all replicas need alike. */
  readonly files?: Readonly<Record<string, SharedFile>>
  /** Where the rights to share it are missing: what else an operator can do than grant them. */
  readonly otherwise: string
  /** Whether a start without those rights is refused; else this replica goes on with a CA of its own, and says so. */
  readonly required: boolean
}

export interface SharedFile {
  make(): string
  /** @throws {Error} when the text is no such file */
  check(text: string): void
}

/** What is in the Secret. */
export interface Shared {
  readonly ca: KeyPair
  readonly files: Readonly<Record<string, string>>
}

/** @throws {UserError} when it holds nothing that replicas can share */
export function parseShared(secret: JsonObject, shared: SharedCA): Shared {
  const data = recordOf(secret['data'])
  const text = (key: string): string => {
    const value = data[key]
    if (typeof value === 'string' && value !== '') return Buffer.from(value, 'base64').toString('utf8')
    throw damaged(shared, `it has no ${key}`)
  }
  const ca = { certPem: text('tls.crt'), keyPem: text('tls.key') }
  const fault = faultOf(ca)
  if (fault !== '') throw damaged(shared, fault)
  const files = Object.entries(shared.files ?? {}).map(([file, kind]): [string, string] => {
    const content = text(file)
    const fault = fileFault(content, kind)
    if (fault !== '') throw damaged(shared, `${file}: ${fault}`)
    return [file, content]
  })
  return { ca, files: Object.fromEntries(files) }
}

/** What cannot be used must not take the place of what can. '' = it can. */
function faultOf(ca: KeyPair): string {
  let certificate: X509Certificate
  let key: KeyObject
  try {
    certificate = new X509Certificate(ca.certPem)
  } catch {
    return 'tls.crt is no certificate'
  }
  try {
    key = createPrivateKey(ca.keyPem)
  } catch {
    return 'tls.key is no private key'
  }
  if (!certificate.ca) return 'tls.crt is no CA certificate'
  if (hasExpired(ca)) return `it ended on ${certificate.validTo}`
  // issueCertificate() can sign with no other.
  if (key.asymmetricKeyType !== 'rsa') return 'tls.key is no RSA key'
  return certificate.checkPrivateKey(key) ? '' : 'tls.key does not belong to tls.crt'
}

/** '' = it can be used. */
export function fileFault(text: string, { check }: SharedFile): string {
  try {
    check(text)
    return ''
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

export function hasExpired({ certPem }: KeyPair): boolean {
  return new X509Certificate(certPem).validToDate.getTime() <= Date.now()
}

function damaged({ namespace, name }: SharedCA, why: string): UserError {
  return new UserError(
    `Secret ${namespace}/${name} holds no CA that replicas can share: ${why}`,
    'delete it and start again: another one is made, and clients need its tls.crt',
  )
}
