// The Secret through which replicas share a CA, and checks of its contents before any of it is written.

import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto'
import type { JsonObject } from '../../kit/api/json/json-object.ts'
import { recordOf } from '../../kit/api/json/object-shape.ts'
import { UserError } from '../../kit/api/validation/field-errors.ts'
import { caBundleError } from './ca-bundle.ts'
import { canSign, type KeyPair } from './pki.ts'

export interface SharedCA {
  /** The Secret: kubernetes.io/tls, the CA as tls.crt and tls.key. */
  readonly namespace: string
  readonly name: string
  /** Where this replica keeps its copy: ca.crt and ca.key. */
  readonly dir: string
  /** Common name of a new CA. */
  readonly commonName: string
  /** Other files in `dir` that must be identical in all replicas. */
  readonly files?: Readonly<Record<string, SharedFile>>
  /** What an operator can do instead of granting the missing permissions. */
  readonly otherwise: string
  /** Whether a start without those permissions fails; otherwise this replica logs it and uses its own CA. */
  readonly required: boolean
}

export interface SharedFile {
  make(): string
  /** @throws {Error} if the text is not such a file */
  check(text: string): void
}

/** The contents of the Secret. */
export interface Shared {
  readonly ca: KeyPair
  readonly files: Readonly<Record<string, string>>
}

/** @throws {UserError} if it contains no CA that replicas can share */
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

/** A broken file must not replace a good one. '' = it is usable. */
function faultOf(ca: KeyPair): string {
  let certificate: X509Certificate
  let key: KeyObject
  try {
    certificate = new X509Certificate(ca.certPem)
  } catch {
    return 'tls.crt is not a certificate'
  }
  try {
    key = createPrivateKey(ca.keyPem)
  } catch {
    return 'tls.key is not a private key'
  }
  const problem = caBundleError(ca.certPem)
  if (problem !== '') return `tls.crt ${problem}`
  if (hasExpired(ca)) return `it expired on ${certificate.validTo}`
  if (!canSign(key)) return 'tls.key is neither an RSA nor an ECDSA key'
  return certificate.checkPrivateKey(key) ? '' : 'tls.key does not belong to tls.crt'
}

/** '' = it is usable. */
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
    'delete it and start again: another one is created, and clients need its tls.crt',
  )
}
