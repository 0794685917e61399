// The embedded control plane's PKI, in one directory: its CA, serving certificate, token signing key, and the first administrator's credentials.
// Created if missing; only certificates issued by our own CA are replaced, if they expire soon or no longer match the host names.

import { createPrivateKey, X509Certificate } from 'node:crypto'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { parse, stringify } from 'yaml'
import { UserError } from '../../kit/api/validation/field-errors.ts'
import { canonicalIp } from '../../kit/api/validation/ip-address.ts'
import { toBase64 } from '../../kit/core/text/base64.ts'
import { ADMIN_GROUP } from '../../kube/api/own-names.ts'
import { caBundleError, certificatesOf, isIssuedByOneOf } from './ca-bundle.ts'
import { generateTokenKey } from './control-tokens.ts'
import {
  canSign,
  coversHost,
  createCA,
  hostsOf,
  isIssuedBy,
  issueCertificate,
  issueServingCertificate,
  type KeyPair,
  MOST_HOSTS,
} from './pki.ts'
import { makePrivateDirectory, readKeyPair, readTextFile, replaceFile, writeKeyPair } from './pki-files.ts'

export interface ControlPki {
  /** PEM; clients verify the server with it, and the server its clients. The first one signs, the others overlap with it. */
  readonly caPem: string
  readonly servingCert: string
  readonly servingKey: string
  /** PEM of the token signing key (control-tokens.ts). */
  readonly tokenKey: string
  readonly adminKubeconfigFile: string
}

interface ControlPkiOptions {
  /** `https://HOST:PORT`: the server in admin.kubeconfig. Default: the first host, port 9443. */
  readonly server?: string
  /** PEM of the previous CAs: certificates issued by them are reissued. Default: none. */
  readonly formerCaPem?: string
}

interface ControlUser {
  readonly user: string
  readonly groups: readonly string[]
  /** Default 365. */
  readonly days?: number
}

const CONTROL_PORT = 9443
const ADMIN_USER = 'portcullis-admin'
/** Common name of a new CA. */
export const CONTROL_CA_NAME = 'portcullis control plane CA'
const CA_NAME = 'ca'
const SERVING_NAME = 'tls'
const ADMIN_NAME = 'admin'
export const TOKEN_KEY_FILE = 'token.key'
const KUBECONFIG_FILE = 'admin.kubeconfig'
const MS_PER_DAY = 24 * 60 * 60 * 1000
/** A certificate that expires within this time is replaced. */
const RENEW_BEFORE_MS = 30 * MS_PER_DAY
/** First line of a kubeconfig that may be overwritten; without it the file belongs to the user. */
const OURS = '# Written by portcullis, and again when it changes; remove this line to keep the file as it is.'

/**
 * Creates what is missing, renews what expires soon. Call it periodically: the serving certificate lasts a year.
 * @param hosts names and addresses by which clients reach the server; at least one
 * @throws {UserError} if a file cannot be read or written, is damaged, or the CA has expired
 */
export function ensureControlPki(dir: string, hosts: readonly string[], options: ControlPkiOptions = {}): ControlPki {
  const [first] = hosts
  if (first === undefined) throw new UserError('the control plane has no host name', 'name at least one')
  checkHosts(hosts)
  makePrivateDirectory(dir)
  // Detect damaged files before replacing any.
  const [knownServing, knownAdmin] = [readKeyPair(dir, SERVING_NAME), readKeyPair(dir, ADMIN_NAME)]
  const ca = ensureCA(dir)
  const former = [...certificatesOf(ca.certPem).slice(1), ...certificatesOf(options.formerCaPem ?? '')]
  const serving = ensureServing(dir, knownServing, ca, former, hosts)
  const tokenKey = ensureTokenKey(dir)
  const admin = ensureAdmin(dir, knownAdmin, ca, former)
  const server = options.server ?? `https://${canonicalIp(first)?.includes(':') ? `[${first}]` : first}:${CONTROL_PORT}`
  const file = join(dir, KUBECONFIG_FILE)
  const text = controlKubeconfig({ server, caPem: ca.certPem, user: ADMIN_USER, credential: admin })
  if (mayWrite(file, text)) replaceFile(file, text, 0o600)
  const { certPem, keyPem } = serving
  return { caPem: ca.certPem, servingCert: certPem, servingKey: keyPem, tokenKey, adminKubeconfigFile: file }
}

/**
 * Issues a client certificate for the control plane in `dir`.
 * @throws {UserError} if there is no CA in `dir`
 */
export function issueControlCertificate(dir: string, { user, groups, days }: ControlUser): KeyPair {
  if (user === '') throw new UserError('no user given', 'name one')
  return issueCertificate(signing(dir, readCA(dir)), {
    commonName: user,
    organizations: groups,
    usage: 'client',
    ...(days !== undefined && { days }),
  })
}

/**
 * The token signing key of a control plane that has been started before.
 * @throws {UserError}
 */
export function readControlTokenKey(dir: string): string {
  return readTextFile(join(dir, TOKEN_KEY_FILE))
}

/** The address of the control plane in `dir`, which its last start wrote into the administrator's kubeconfig; '' = unknown. */
export function readControlServer(dir: string): string {
  const file = join(dir, KUBECONFIG_FILE)
  if (!existsSync(file)) return ''
  try {
    const server: unknown = parse(readTextFile(file))?.clusters?.[0]?.cluster?.server
    return typeof server === 'string' ? server : ''
  } catch {
    return ''
  }
}

/** The first administrator's files, as written at a start; the certificate is '' if there is none. */
export function readControlAdmin(dir: string): { readonly kubeconfig: string; readonly certificate: string } {
  const kubeconfig = join(dir, KUBECONFIG_FILE)
  return { kubeconfig, certificate: readKeyPair(dir, ADMIN_NAME)?.certPem ?? '' }
}

interface KubeconfigContent {
  /** `https://HOST:PORT`. */
  readonly server: string
  readonly caPem: string
  readonly user: string
  /** A client certificate and its key, or a token. */
  readonly credential: KeyPair | string
}

/** A kubeconfig with everything inline; keep it private. */
export function controlKubeconfig({ server, caPem, user, credential }: KubeconfigContent): string {
  const name = 'portcullis'
  const secret =
    typeof credential === 'string'
      ? { token: credential }
      : { 'client-certificate-data': toBase64(credential.certPem), 'client-key-data': toBase64(credential.keyPem) }
  const document = {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': name,
    clusters: [{ name, cluster: { server, 'certificate-authority-data': toBase64(caPem) } }],
    users: [{ name: user, user: secret }],
    contexts: [{ name, context: { cluster: name, user } }],
  }
  return `${OURS}\n${stringify(document, { lineWidth: 0 })}`
}

function ensureCA(dir: string): KeyPair {
  if (readKeyPair(dir, CA_NAME) === undefined) {
    // The directory is its own root of trust: a new CA next to old certificates would lock out their owners.
    writeKeyPair(dir, CA_NAME, createCA({ commonName: CONTROL_CA_NAME }))
  }
  return readCA(dir)
}

function readCA(dir: string): KeyPair {
  const ca = readKeyPair(dir, CA_NAME)
  if (ca === undefined) {
    throw new UserError(`there is no CA of the control plane in ${dir}`, 'start portcullis with this directory first')
  }
  const problem = caBundleError(ca.certPem)
  if (problem !== '') throw new UserError(`${join(dir, 'ca.crt')} ${problem}`, 'put the right file there')
  const certificate = new X509Certificate(ca.certPem)
  if (certificate.validToDate.getTime() <= Date.now()) {
    throw new UserError(
      `the CA of the control plane in ${dir} expired on ${certificate.validTo}`,
      'move the directory away, start again, and hand out new credentials',
    )
  }
  return ca
}

/** @throws {UserError} if it cannot issue certificates; existing ones remain valid */
function signing(dir: string, ca: KeyPair): KeyPair {
  if (canSign(createPrivateKey(ca.keyPem))) return ca
  throw new UserError(
    `${join(dir, 'ca.key')} is neither an RSA nor an ECDSA key, with which certificates can be issued`,
    'use an RSA or an ECDSA key',
  )
}

function ensureServing(
  dir: string,
  known: KeyPair | undefined,
  ca: KeyPair,
  former: readonly string[],
  hosts: readonly string[],
): KeyPair {
  const fits = (certificate: X509Certificate): boolean => hosts.every((host) => coversHost(certificate, host))
  if (known !== undefined && !isToRenew(known, ca, former, fits)) return known
  // Keeps existing names: clients may use them, and another process, with other hosts, may share this directory for a while. Otherwise the two would
  // keep replacing each other's certificate.
  const kept = known === undefined ? [] : hostsOf(known.certPem)
  const all = [...new Set([...hosts, ...kept])].slice(0, Math.max(MOST_HOSTS, hosts.length))
  const pair = issueServingCertificate(signing(dir, ca), all)
  writeKeyPair(dir, SERVING_NAME, pair)
  return pair
}

function ensureAdmin(dir: string, known: KeyPair | undefined, ca: KeyPair, former: readonly string[]): KeyPair {
  if (known !== undefined && !isToRenew(known, ca, former, () => true)) return known
  const pair = issueCertificate(signing(dir, ca), {
    commonName: ADMIN_USER,
    organizations: [ADMIN_GROUP],
    usage: 'client',
  })
  writeKeyPair(dir, ADMIN_NAME, pair)
  return pair
}

/** Certificates of former CAs will soon be untrusted. Those of other CAs were placed there on purpose and are kept. */
function isToRenew(
  { certPem }: KeyPair,
  ca: KeyPair,
  former: readonly string[],
  fits: (certificate: X509Certificate) => boolean,
): boolean {
  if (!isIssuedBy({ certPem }, ca)) return isIssuedByOneOf({ certPem }, former)
  const certificate = new X509Certificate(certPem)
  return certificate.validToDate.getTime() - Date.now() <= RENEW_BEFORE_MS || !fits(certificate)
}

function ensureTokenKey(dir: string): string {
  const file = join(dir, TOKEN_KEY_FILE)
  if (!existsSync(file)) replaceFile(file, generateTokenKey(), 0o600)
  return readTextFile(file)
}

function mayWrite(file: string, text: string): boolean {
  if (!existsSync(file)) return true
  const old = readTextFile(file)
  return old.startsWith(OURS) && old !== text
}

/** @throws {UserError} if one cannot appear in a certificate */
export function checkHosts(hosts: readonly string[]): void {
  for (const host of hosts) checkHost(host)
}

function checkHost(host: string): void {
  if (canonicalIp(host) !== undefined || /^[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?$/.test(host)) return
  throw new UserError(`not a host name or address: ${host}`, 'use a name by which clients reach the control plane')
}
