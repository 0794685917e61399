// Keys, certificates, CA bundles and tokens: inline or by reference, readable, and fitting together.

import { childPath, type ProblemList } from './field-errors.ts'
import { REDACTED_TEXT } from './inline-secrets.ts'
import { isServerName } from './name-syntax.ts'
import type { Loose } from './object-shape.ts'
import type { PemChecks } from './ports.ts'
import type { ClientConfig, SecretReference, SecureServing } from './upstream-cluster.ts'

/** The fields of secret bytes, each with the field of its reference. */
export const CLIENT_SECRETS = {
  bearerToken: 'bearerTokenRef',
  keyData: 'keyRef',
  certData: 'certRef',
  caData: 'caRef',
} as const
export const SERVING_SECRETS = { keyData: 'keyRef', certData: 'certRef', clientCAData: 'clientCARef' } as const

/** How secret bytes are judged. */
export interface MaterialChecks {
  readonly pem: PemChecks
  /** Whether references may name files. */
  readonly fileReferences: boolean
}

/** Bytes given inline; a reference is a promise of bytes; `broken` has been reported. */
type Material =
  | { readonly kind: 'absent' | 'reference' | 'broken' }
  | { readonly kind: 'inline'; readonly text: string }

/** `https`: whether the servers are asked over TLS, so that credentials and a CA are needed. */
export function checkClientConfig(
  config: Loose<ClientConfig>,
  https: boolean,
  path: string,
  { pem, fileReferences }: MaterialChecks,
  out: ProblemList,
): void {
  const secrets = new SecretFields(path, fileReferences, out)
  const token = secrets.read('bearerToken', config.bearerToken, CLIENT_SECRETS.bearerToken, config.bearerTokenRef)
  const key = secrets.read('keyData', config.keyData, CLIENT_SECRETS.keyData, config.keyRef)
  const cert = secrets.read('certData', config.certData, CLIENT_SECRETS.certData, config.certRef)
  const ca = secrets.read('caData', config.caData, CLIENT_SECRETS.caData, config.caRef)
  checkToken(token, `${path}.bearerToken`, out)
  checkPair(key, cert, path, pem, out)
  checkBundle(ca, `${path}.caData`, pem, out)
  if (https && token.kind === 'absent' && key.kind === 'absent' && cert.kind === 'absent') {
    out.error(path, 'names no credentials for the servers', 'add bearerToken, or certData and keyData')
  }
  if (https && ca.kind === 'absent' && config.insecure !== true) {
    out.error(`${path}.caData`, 'is required for https servers', 'add the CA of the servers, or set insecure: true')
  }
  // client-go refuses this pair, and a CA that verifies nothing would look like safety.
  if (ca.kind !== 'absent' && config.insecure === true) {
    out.error(`${path}.caData`, 'verifies nothing beside insecure: true', 'remove insecure, or remove the CA')
  }
  checkRate(config, path, out)
  const { serverName = '' } = config
  if (serverName !== '' && (serverName.startsWith('*') || !isServerName(serverName))) {
    out.error(`${path}.serverName`, 'is no DNS name', "write a name that the servers' certificates carry")
  }
}

export function checkSecureServing(
  serving: Loose<SecureServing>,
  path: string,
  { pem, fileReferences }: MaterialChecks,
  out: ProblemList,
): void {
  const secrets = new SecretFields(path, fileReferences, out)
  const key = secrets.read('keyData', serving.keyData, SERVING_SECRETS.keyData, serving.keyRef)
  const cert = secrets.read('certData', serving.certData, SERVING_SECRETS.certData, serving.certRef)
  const ca = secrets.read('clientCAData', serving.clientCAData, SERVING_SECRETS.clientCAData, serving.clientCARef)
  checkPair(key, cert, path, pem, out)
  checkBundle(ca, `${path}.clientCAData`, pem, out)
  for (const [index, name] of (serving.serverNames ?? []).entries()) {
    if (name === undefined || isServerName(name)) continue
    const fix = name === '*' ? 'use spec.default: true' : 'write a DNS name; * only as the whole first label; addresses'
    const message = `${JSON.stringify(name.slice(0, 100))} is no host name`
    out.error(`${path}.serverNames[${index}]`, message, name === '*' ? fix : `${fix} go to spec.addresses.ips`)
  }
}

/** As KubeGateway: a limit needs a burst that is not below it. */
function checkRate({ qps = 0, burst = 0 }: Loose<ClientConfig>, path: string, out: ProblemList): void {
  if (qps > 0 && burst >= 0 && burst < qps) {
    out.error(`${path}.burst`, `${burst} is below qps, ${qps}`, `write at least ${qps}, or remove qps`)
  }
}

/** Reads the fields of secret bytes under one path, and reports what is wrong with them. */
class SecretFields {
  readonly #path: string
  readonly #fileReferences: boolean
  readonly #out: ProblemList

  constructor(path: string, fileReferences: boolean, out: ProblemList) {
    this.#path = path
    this.#fileReferences = fileReferences
    this.#out = out
  }

  read(
    field: string,
    data: string | undefined,
    referenceField: string,
    reference: Loose<SecretReference> | undefined,
  ): Material {
    const inline = data ?? ''
    if (reference !== undefined) {
      const at = childPath(this.#path, referenceField)
      if (inline !== '') this.#out.error(at, `stands beside ${field}`, 'remove one of the two')
      return { kind: this.#checkReference(reference, at) ? 'reference' : 'broken' }
    }
    if (inline === '') return { kind: 'absent' }
    const decoded = decodeBase64(inline)
    if (decoded?.trim() === REDACTED_TEXT) {
      const fix = `read the object with a role that sees keys, or use ${referenceField}`
      this.#out.error(childPath(this.#path, field), 'is the mark of a value that was hidden', fix)
      return { kind: 'broken' }
    }
    if (decoded !== undefined) return { kind: 'inline', text: decoded }
    const isPem = inline.includes('-----BEGIN')
    const fix = isPem ? `encode the PEM with base64, or use ${referenceField}` : 'encode with base64'
    this.#out.error(childPath(this.#path, field), 'is not base64', fix)
    return { kind: 'broken' }
  }

  #checkReference({ file = '', name = '', namespace = '', key = '' }: Loose<SecretReference>, path: string): boolean {
    if ((file === '') === (name === '')) {
      const message = file === '' ? 'names nothing' : 'names both a file and a Secret'
      this.#out.error(path, message, 'give exactly one of file and name')
      return false
    }
    if (file !== '' && !this.#fileReferences) {
      const fix = 'name a Secret: name, namespace and key'
      this.#out.error(`${path}.file`, 'is only for objects that come from files (--source files)', fix)
      return false
    }
    if (name !== '' && key === '') {
      const fix = "name the key in the Secret's data, such as tls.key"
      this.#out.error(`${path}.key`, 'is required beside name', fix)
      return false
    }
    if (file !== '' && (key !== '' || namespace !== '')) {
      const extra = key !== '' ? 'key' : 'namespace'
      this.#out.error(`${path}.${extra}`, 'means nothing beside file', 'remove it')
      return false
    }
    return true
  }
}

/** Strict, but for line breaks, as Go's decoder; Node's would pass over what it does not know. */
function decodeBase64(data: string): string | undefined {
  const compact = data.replace(/[\r\n]/g, '')
  if (compact.length % 4 !== 0 || !/^[A-Za-z0-9+/]*={0,2}$/.test(compact)) return undefined
  return Buffer.from(compact, 'base64').toString('utf8')
}

function checkToken(token: Material, path: string, out: ProblemList): void {
  if (token.kind !== 'inline') return
  const text = token.text.trim()
  if (text === '') out.error(path, 'is an empty token', 'write the token, base64')
  else if (!/^[\x21-\x7e]+$/.test(text)) {
    out.error(path, 'holds characters that no header can carry', 'write the token alone, base64')
  }
}

function checkPair(key: Material, cert: Material, path: string, pem: PemChecks, out: ProblemList): void {
  const keyError = key.kind === 'inline' ? pem.privateKeyError(key.text) : ''
  const certError = cert.kind === 'inline' ? pem.certificatesError(cert.text) : ''
  if (keyError !== '') out.error(`${path}.keyData`, keyError, 'write an unencrypted private key: PEM, base64')
  if (certError !== '') out.error(`${path}.certData`, certError, 'write the certificate and its chain: PEM, base64')
  if (key.kind === 'absent' && cert.kind !== 'absent') {
    out.error(`${path}.keyData`, 'is required beside certData', 'add the private key of the certificate')
  }
  if (cert.kind === 'absent' && key.kind !== 'absent') {
    out.error(`${path}.certData`, 'is required beside keyData', 'add the certificate of the private key')
  }
  if (key.kind !== 'inline' || cert.kind !== 'inline' || keyError !== '' || certError !== '') return
  if (pem.keyMatches(cert.text, key.text)) return
  out.error(
    `${path}.keyData`,
    'is not the key of the certificate in certData',
    'use the key and certificate of one pair',
  )
}

function checkBundle(bundle: Material, path: string, pem: PemChecks, out: ProblemList): void {
  const error = bundle.kind === 'inline' ? pem.certificatesError(bundle.text) : ''
  if (error !== '') out.error(path, error, 'write CA certificates: PEM, base64')
}
