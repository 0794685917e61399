// Keys, certificates, CA bundles and tokens: inline or by reference, readable, and fitting together.

import { childPath, type ProblemList } from './field-errors.ts'
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

/** Bytes given inline; a reference is a promise of bytes; `broken` has been reported. */
type Material =
  | { readonly kind: 'absent' | 'reference' | 'broken' }
  | { readonly kind: 'inline'; readonly text: string }

/** `https`: whether the servers are asked over TLS, so that credentials and a CA are needed. */
export function checkClientConfig(
  config: Loose<ClientConfig>,
  https: boolean,
  path: string,
  pem: PemChecks,
  out: ProblemList,
): void {
  const token = material(
    config.bearerToken,
    config.bearerTokenRef,
    path,
    'bearerToken',
    CLIENT_SECRETS.bearerToken,
    out,
  )
  const key = material(config.keyData, config.keyRef, path, 'keyData', CLIENT_SECRETS.keyData, out)
  const cert = material(config.certData, config.certRef, path, 'certData', CLIENT_SECRETS.certData, out)
  const ca = material(config.caData, config.caRef, path, 'caData', CLIENT_SECRETS.caData, out)
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
  pem: PemChecks,
  out: ProblemList,
): void {
  const key = material(serving.keyData, serving.keyRef, path, 'keyData', SERVING_SECRETS.keyData, out)
  const cert = material(serving.certData, serving.certRef, path, 'certData', SERVING_SECRETS.certData, out)
  const { clientCAData, clientCARef } = serving
  const ca = material(clientCAData, clientCARef, path, 'clientCAData', SERVING_SECRETS.clientCAData, out)
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

function material(
  data: string | undefined,
  reference: Loose<SecretReference> | undefined,
  path: string,
  field: string,
  referenceField: string,
  out: ProblemList,
): Material {
  const at = childPath(path, field)
  const inline = data ?? ''
  if (reference !== undefined) {
    const referencePath = childPath(path, referenceField)
    if (inline !== '') out.error(referencePath, `stands beside ${field}`, `remove one of the two`)
    return { kind: checkReference(reference, referencePath, out) ? 'reference' : 'broken' }
  }
  if (inline === '') return { kind: 'absent' }
  const decoded = decodeBase64(inline)
  if (decoded !== undefined) return { kind: 'inline', text: decoded }
  const isPem = inline.includes('-----BEGIN')
  out.error(at, 'is not base64', isPem ? `encode the PEM with base64, or use ${referenceField}` : 'encode with base64')
  return { kind: 'broken' }
}

function checkReference(reference: Loose<SecretReference>, path: string, out: ProblemList): boolean {
  const { file = '', name = '', namespace = '', key = '' } = reference
  if ((file === '') === (name === '')) {
    out.error(
      path,
      file === '' ? 'names nothing' : 'names both a file and a Secret',
      'give exactly one of file and name',
    )
    return false
  }
  if (name !== '' && key === '') {
    out.error(`${path}.key`, 'is required beside name', "name the key in the Secret's data, such as tls.key")
    return false
  }
  if (file !== '' && (key !== '' || namespace !== '')) {
    const extra = key !== '' ? 'key' : 'namespace'
    out.error(`${path}.${extra}`, 'means nothing beside file', 'remove it')
    return false
  }
  return true
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
