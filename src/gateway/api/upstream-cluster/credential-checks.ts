// Checks keys, certificates, CA bundles and tokens: inline or by reference, readable, and matching each other.

import type { Loose } from '../../../kit/api/json/object-shape.ts'
import { childPath, type FieldErrors, shown } from '../../../kit/api/validation/field-errors.ts'
import { canonicalIp } from '../../../kit/api/validation/ip-address.ts'
import { isServerName } from '../../../kit/api/validation/name-syntax.ts'
import type { PemChecks } from '../../../kit/api/validation/pem-checks.ts'
import { REDACTED_TEXT } from '../../../kit/api/validation/redacted.ts'
import type { ClientConfig, SecretReference, SecureServing } from './upstream-cluster.ts'

/** The fields with secret bytes, each with its reference field. */
export const CLIENT_SECRETS = {
  bearerToken: 'bearerTokenRef',
  keyData: 'keyRef',
  certData: 'certRef',
  caData: 'caRef',
} as const
export const SERVING_SECRETS = { keyData: 'keyRef', certData: 'certRef', clientCAData: 'clientCARef' } as const

/** Scheme of spec.servers; all of them share it. */
export type ServerScheme = '' | 'http' | 'https'

/** How secret bytes are checked. */
interface MaterialChecks {
  readonly pem: PemChecks
  /** Whether references may name files. */
  readonly fileReferences: boolean
}

/** `reference` promises bytes that are not here; `broken` has already been reported. */
type Material =
  | { readonly kind: 'absent' }
  /** `at`: the field it comes from. */
  | { readonly kind: 'reference' | 'broken'; readonly at: string }
  | { readonly kind: 'inline'; readonly at: string; readonly text: string }

/** @param scheme of the servers; '' = unknown. TLS requires credentials and a CA; without TLS no credential is sent */
export function checkClientConfig(
  config: Loose<ClientConfig>,
  scheme: ServerScheme,
  path: string,
  { pem, fileReferences }: MaterialChecks,
  out: FieldErrors,
): void {
  const secrets = new SecretFields(path, fileReferences, out)
  const token = secrets.read('bearerToken', config.bearerToken, CLIENT_SECRETS.bearerToken, config.bearerTokenRef)
  const key = secrets.read('keyData', config.keyData, CLIENT_SECRETS.keyData, config.keyRef)
  const cert = secrets.read('certData', config.certData, CLIENT_SECRETS.certData, config.certRef)
  const ca = secrets.read('caData', config.caData, CLIENT_SECRETS.caData, config.caRef)
  checkToken(token, `${path}.bearerToken`, out)
  const hasToken = token.kind !== 'absent'
  checkPair({ key, cert }, path, hasToken ? 'the gateway signs in with its token' : '', pem, out)
  checkBundle(ca, `${path}.caData`, pem, out)
  if (scheme === 'https') {
    if (!hasToken && key.kind === 'absent' && cert.kind === 'absent') {
      out.invalid(path, 'names no credentials for the servers', 'add bearerToken, or certData and keyData')
    }
    if (ca.kind === 'absent' && config.insecure !== true) {
      out.required(
        `${path}.caData`,
        'is required for https servers',
        'add the CA of the servers, or set insecure: true',
      )
    }
  }
  if (scheme === 'http') checkInClear(token, [cert, key], out)
  // client-go rejects this pair. A CA that verifies nothing would only look safe.
  if (ca.kind !== 'absent' && config.insecure === true) {
    const message = 'has no effect with a CA: the certificates of the servers are verified with it'
    out.warning(`${path}.insecure`, message, 'remove insecure, or remove the CA')
  }
  checkRate(config, path, out)
  const { serverName = '' } = config
  if (serverName !== '' && (serverName.startsWith('*') || !isServerName(serverName))) {
    out.invalid(`${path}.serverName`, 'is not a valid DNS name', "write a name that the servers' certificates carry")
  }
}

/** Anything sent in clear text can be read on the way and is no longer secret. */
function checkInClear(token: Material, pair: readonly Material[], out: FieldErrors): void {
  if (token.kind !== 'absent') {
    const fix = 'use https:// servers, or remove the token'
    out.invalid(token.at, 'would be sent in clear: the servers are http://', fix)
  }
  for (const one of pair) {
    if (one.kind === 'absent') continue
    const message = 'has no effect: http:// servers ask for no certificate, so the gateway is anonymous to them'
    out.warning(one.at, message, 'use https:// servers, or remove the certificate and its key')
  }
}

export function checkSecureServing(
  serving: Loose<SecureServing>,
  path: string,
  { pem, fileReferences }: MaterialChecks,
  out: FieldErrors,
): void {
  const secrets = new SecretFields(path, fileReferences, out)
  const key = secrets.read('keyData', serving.keyData, SERVING_SECRETS.keyData, serving.keyRef)
  const cert = secrets.read('certData', serving.certData, SERVING_SECRETS.certData, serving.certRef)
  const ca = secrets.read('clientCAData', serving.clientCAData, SERVING_SECRETS.clientCAData, serving.clientCARef)
  checkPair({ key, cert }, path, "clients are shown the gateway's own certificate", pem, out)
  checkBundle(ca, `${path}.clientCAData`, pem, out)
  for (const [index, name] of (serving.serverNames ?? []).entries()) {
    if (name === undefined) continue
    if (canonicalIp(name) !== undefined) {
      const message = `${shown(name)} is an address: clients that connect without a server name (SNI) are not served by this entry`
      out.warning(`${path}.serverNames[${index}]`, message, 'write it into spec.addresses.ips')
      continue
    }
    if (isServerName(name)) continue
    const fix = name === '*' ? 'use spec.default: true' : 'write a DNS name; * only as the whole first label; addresses'
    const message = `${JSON.stringify(name.slice(0, 100))} is not a valid host name`
    out.invalid(`${path}.serverNames[${index}]`, message, name === '*' ? fix : `${fix} go to spec.addresses.ips`)
  }
}

/** Like KubeGateway: a limit needs a burst that is not below it. */
function checkRate({ qps = 0, burst = 0 }: Loose<ClientConfig>, path: string, out: FieldErrors): void {
  if (qps > 0 && burst >= 0 && burst < qps) {
    out.invalid(`${path}.burst`, `${burst} is below qps, ${qps}`, `write at least ${qps}, or remove qps`)
  }
}

/** Reads the fields with secret bytes under one path, and reports errors in them. */
class SecretFields {
  readonly #path: string
  readonly #fileReferences: boolean
  readonly #out: FieldErrors

  constructor(path: string, fileReferences: boolean, out: FieldErrors) {
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
      if (inline !== '') this.#out.forbidden(at, `may not be specified when ${field} is set`, 'remove one of the two')
      return { kind: this.#checkReference(reference, at) ? 'reference' : 'broken', at }
    }
    if (inline === '') return { kind: 'absent' }
    const at = childPath(this.#path, field)
    const decoded = decodeBase64(inline)
    if (decoded?.trim() === REDACTED_TEXT) {
      const fix = `read the object with a role that sees keys, or use ${referenceField}`
      this.#out.invalid(at, 'is the placeholder of a hidden value', fix)
      return { kind: 'broken', at }
    }
    if (decoded !== undefined) return { kind: 'inline', at, text: decoded }
    const isPem = inline.includes('-----BEGIN')
    const fix = isPem ? `encode the PEM with base64, or use ${referenceField}` : 'encode with base64'
    this.#out.invalid(at, 'is not base64', fix)
    return { kind: 'broken', at }
  }

  #checkReference({ file = '', name = '', namespace = '', key = '' }: Loose<SecretReference>, path: string): boolean {
    if ((file === '') === (name === '')) {
      const message = file === '' ? 'names nothing' : 'names both a file and a Secret'
      this.#out.invalid(path, message, 'give exactly one of file and name')
      return false
    }
    if (file !== '' && !this.#fileReferences) {
      const fix = 'name a Secret: name, namespace and key'
      this.#out.invalid(`${path}.file`, 'is only for objects that come from files (--source files)', fix)
      return false
    }
    if (name !== '' && key === '') {
      const fix = "name the key in the Secret's data, such as tls.key"
      this.#out.required(`${path}.key`, 'is required when name is set', fix)
      return false
    }
    if (file !== '' && (key !== '' || namespace !== '')) {
      const extra = key !== '' ? 'key' : 'namespace'
      this.#out.invalid(`${path}.${extra}`, 'may not be specified when file is set', 'remove it')
      return false
    }
    return true
  }
}

/** Strict except for line breaks, like Go's decoder; Node's would skip unknown characters. */
function decodeBase64(data: string): string | undefined {
  const compact = data.replace(/[\r\n]/g, '')
  if (compact.length % 4 !== 0 || !/^[A-Za-z0-9+/]*={0,2}$/.test(compact)) return undefined
  return Buffer.from(compact, 'base64').toString('utf8')
}

function checkToken(token: Material, path: string, out: FieldErrors): void {
  if (token.kind !== 'inline') return
  const text = token.text.trim()
  if (text === '') out.invalid(path, 'is an empty token', 'write the token, base64')
  else if (!/^[\x21-\x7e]+$/.test(text)) {
    out.invalid(path, 'holds characters that no header can carry', 'write the token alone, base64')
  }
}

interface Pair {
  readonly key: Material
  readonly cert: Material
}

/** @param instead what applies when only one of the two is given; '' = nothing can */
function checkPair({ key, cert }: Pair, path: string, instead: string, pem: PemChecks, out: FieldErrors): void {
  if (key.kind === 'absent' && cert.kind !== 'absent') {
    lone(cert, `${path}.keyData`, 'certData', 'the private key of the certificate', instead, out)
    return
  }
  if (cert.kind === 'absent' && key.kind !== 'absent') {
    lone(key, `${path}.certData`, 'keyData', 'the certificate of the private key', instead, out)
    return
  }
  const keyError = key.kind === 'inline' ? pem.privateKeyError(key.text) : ''
  const certError = cert.kind === 'inline' ? pem.certificatesError(cert.text) : ''
  if (keyError !== '') out.invalid(`${path}.keyData`, keyError, 'write an unencrypted private key: PEM, base64')
  if (certError !== '') out.invalid(`${path}.certData`, certError, 'write the certificate and its chain: PEM, base64')
  if (key.kind !== 'inline' || cert.kind !== 'inline' || keyError !== '' || certError !== '') return
  if (pem.keyMatches(cert.text, key.text)) return
  out.invalid(
    `${path}.keyData`,
    'is not the key of the certificate in certData',
    'use the key and certificate of one pair',
  )
}

function lone(
  { at }: { readonly at: string },
  missing: string,
  given: string,
  what: string,
  instead: string,
  out: FieldErrors,
): void {
  if (instead === '') out.required(missing, `is required when ${given} is set`, `add ${what}`)
  else out.warning(at, `has no effect alone: ${instead}`, `add ${what}, or remove it`)
}

function checkBundle(bundle: Material, path: string, pem: PemChecks, out: FieldErrors): void {
  const error = bundle.kind === 'inline' ? pem.certificatesError(bundle.text) : ''
  if (error !== '') out.invalid(path, error, 'write CA certificates: PEM, base64')
}
