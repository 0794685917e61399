// Issues certificates for the demo, for `portcullis certs` and for tests. Keys and signatures come from OpenSSL (node:crypto), which is fast;
// node-forge assembles certificates, because node:crypto cannot. Nothing is verified here: OpenSSL does that, through node:tls.

import { generateKeyPairSync, randomBytes, sign, X509Certificate } from 'node:crypto'
import { isIP } from 'node:net'
import forge from 'node-forge'
import { canonicalIp } from '../../kit/api/validation/ip-address.ts'
import { UID_OID } from '../core/user-from-cert.ts'

/** A certificate and its private key, both PEM. */
export interface KeyPair {
  readonly certPem: string
  readonly keyPem: string
}

export interface CAOptions {
  readonly commonName: string
  /** Validity from now. Default 3650. */
  readonly days?: number
  /** An RSA private key to use instead of a new one. */
  readonly keyPem?: string
}

export interface CertificateOptions {
  /** The user name of a client certificate. Any UTF-8. */
  readonly commonName: string
  /** One O attribute each: the groups of a client certificate. */
  readonly organizations?: readonly string[]
  /** kube-apiserver's UID attribute in the subject. */
  readonly uid?: string
  readonly dnsNames?: readonly string[]
  /** IPv4 or IPv6. */
  readonly ipAddresses?: readonly string[]
  /** The extended key usage; 'none' leaves the extension out. */
  readonly usage: 'client' | 'server' | 'both' | 'none'
  /** Validity from `notBefore`, unless `notAfter` is given. Default 365. */
  readonly days?: number
  /** Default: five minutes ago, so that a peer with a slightly slow clock accepts it. */
  readonly notBefore?: Date
  readonly notAfter?: Date
  /** An intermediate CA. Default false. */
  readonly isCA?: boolean
  /** An RSA private key to use instead of a new one. */
  readonly keyPem?: string
}

/** A self-signed CA. */
export function createCA(options: CAOptions): KeyPair {
  const keyPem = options.keyPem ?? generateKey()
  const key = forge.pki.privateKeyFromPem(keyPem)
  const certificate = newCertificate(key, validity({ days: options.days ?? 3650 }))
  const name = [attribute(OID_COMMON_NAME, options.commonName)]
  certificate.setSubject(name)
  certificate.setIssuer(name)
  certificate.setExtensions([...CA_EXTENSIONS, { name: 'subjectKeyIdentifier' }])
  signWith(keyPem, certificate)
  return { certPem: forge.pki.certificateToPem(certificate), keyPem }
}

/** A certificate signed by `ca`. Throws if `ipAddresses` contains an invalid address. */
export function issueCertificate(ca: KeyPair, options: CertificateOptions): KeyPair {
  const issuer = forge.pki.certificateFromPem(ca.certPem)
  const keyPem = options.keyPem ?? generateKey()
  const certificate = newCertificate(forge.pki.privateKeyFromPem(keyPem), validity(options))
  const subject = [attribute(OID_COMMON_NAME, options.commonName)]
  for (const organization of options.organizations ?? []) subject.push(attribute(OID_ORGANIZATION, organization))
  if (options.uid !== undefined) subject.push(attribute(UID_OID, options.uid))
  certificate.setSubject(subject)
  certificate.setIssuer(issuer.subject.attributes.map(decoded))
  certificate.setExtensions(extensions(issuer, options))
  signWith(ca.keyPem, certificate)
  return { certPem: forge.pki.certificateToPem(certificate), keyPem }
}

/** A serving certificate for these names and addresses; the first is its common name. */
export function issueServingCertificate(ca: KeyPair, hosts: readonly string[]): KeyPair {
  return issueCertificate(ca, {
    commonName: hosts[0] ?? '',
    usage: 'server',
    ...splitHosts(hosts),
  })
}

/** Maximum names per certificate: it is sent in every handshake. */
export const MOST_HOSTS = 100

/** Names and addresses of a certificate, as far as a new one can be issued for them. */
export function hostsOf(certPem: string): readonly string[] {
  const names = new X509Certificate(certPem).subjectAltName?.split(', ') ?? []
  return names.flatMap((name) => {
    const [, dns, ip] = /^(?:DNS:([\w.*-]+)|IP Address:([\da-fA-F.:]+))$/.exec(name) ?? []
    const host = dns ?? canonicalIp(ip ?? '')
    return host === undefined ? [] : [host]
  })
}

/** Splits into DNS names and IP addresses, as certificates do. */
export function splitHosts(hosts: readonly string[]): Required<Pick<CertificateOptions, 'dnsNames' | 'ipAddresses'>> {
  return {
    dnsNames: hosts.filter((host) => canonicalIp(host) === undefined),
    ipAddresses: hosts.filter((host) => canonicalIp(host) !== undefined),
  }
}

/** Whether clients that connect to `host`, a name or an address, accept it. A wildcard only counts if spelled identically. */
export function coversHost(certificate: X509Certificate, host: string): boolean {
  if (canonicalIp(host) !== undefined) return certificate.checkIP(host) !== undefined
  return certificate.checkHost(host.replace(/^\*\./, 'any.')) !== undefined
}

/** Whether `ca` signed it. */
export function isIssuedBy({ certPem }: Pick<KeyPair, 'certPem'>, ca: Pick<KeyPair, 'certPem'>): boolean {
  const certificate = new X509Certificate(certPem)
  const issuer = new X509Certificate(ca.certPem)
  return certificate.checkIssued(issuer) && certificate.verify(issuer.publicKey)
}

/** A new 2048-bit RSA key, PKCS #8 PEM, for the `keyPem` options, so that many certificates may share one. */
export function generateKey(): string {
  return generateKeyPairSync('rsa', {
    modulusLength: 2048,
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  }).privateKey
}

const OID_COMMON_NAME = '2.5.4.3'
const OID_ORGANIZATION = '2.5.4.10'
const MS_PER_DAY = 24 * 60 * 60 * 1000
const CLOCK_SKEW_MS = 5 * 60 * 1000

const CA_EXTENSIONS: readonly object[] = [
  { name: 'basicConstraints', cA: true, critical: true },
  { name: 'keyUsage', keyCertSign: true, cRLSign: true, digitalSignature: true, critical: true },
]

interface Validity {
  readonly notBefore: Date
  readonly notAfter: Date
}

function validity(options: { days?: number; notBefore?: Date; notAfter?: Date }): Validity {
  const notBefore = options.notBefore ?? new Date(Date.now() - CLOCK_SKEW_MS)
  return { notBefore, notAfter: options.notAfter ?? new Date(notBefore.getTime() + (options.days ?? 365) * MS_PER_DAY) }
}

function newCertificate(key: forge.pki.rsa.PrivateKey, { notBefore, notAfter }: Validity): forge.pki.Certificate {
  const certificate = forge.pki.createCertificate()
  certificate.publicKey = forge.pki.setRsaPublicKey(key.n, key.e)
  certificate.serialNumber = serialNumber()
  certificate.validity.notBefore = notBefore
  certificate.validity.notAfter = notAfter
  return certificate
}

/** Signs with OpenSSL: the same bytes as forge's own signature, without 50 ms of JavaScript. Throws unless it is an RSA key. */
function signWith(keyPem: string, certificate: forge.pki.Certificate): void {
  const key = forge.pki.privateKeyFromPem(keyPem)
  const signature = (): string => {
    const signed = Buffer.from(forge.asn1.toDer(certificate.tbsCertificate).getBytes(), 'latin1')
    return sign('sha256', signed, keyPem).toString('latin1')
  }
  certificate.sign({ ...key, sign: signature }, forge.md.sha256.create())
}

/** Positive and at most 20 octets (RFC 5280 section 4.1.2.2). */
function serialNumber(): string {
  const bytes = randomBytes(16)
  bytes[0] = ((bytes[0] ?? 0) & 0x7f) | 0x40
  return bytes.toString('hex')
}

/** As UTF8String: forge's default, PrintableString, would mangle non-ASCII names. */
function attribute(type: string, value: string): forge.pki.CertificateField {
  return { type, value, valueTagClass: UTF8_STRING }
}

/** forge keeps a UTF8String's raw bytes when parsing and would encode them again when writing. */
function decoded(field: forge.pki.CertificateField): forge.pki.CertificateField {
  if (field.valueTagClass !== UTF8_STRING || typeof field.value !== 'string') return field
  return { ...field, value: forge.util.decodeUtf8(field.value) }
}

// The declared type is Class, but forge reads a Type here (x509.js, _dnToAsn1).
const UTF8_STRING = forge.asn1.Type.UTF8 as unknown as forge.asn1.Class

function extensions(issuer: forge.pki.Certificate, options: CertificateOptions): object[] {
  const list: object[] =
    options.isCA === true
      ? [...CA_EXTENSIONS]
      : [
          { name: 'basicConstraints', cA: false, critical: true },
          { name: 'keyUsage', digitalSignature: true, keyEncipherment: true, critical: true },
        ]
  if (options.usage !== 'none') {
    const both = options.usage === 'both'
    list.push({
      name: 'extKeyUsage',
      clientAuth: both || options.usage === 'client',
      serverAuth: both || options.usage === 'server',
    })
  }
  const altNames = subjectAltNames(options)
  if (altNames.length > 0) list.push({ name: 'subjectAltName', altNames })
  list.push({ name: 'subjectKeyIdentifier' })
  list.push({ name: 'authorityKeyIdentifier', keyIdentifier: issuer.generateSubjectKeyIdentifier().getBytes() })
  return list
}

function subjectAltNames(options: CertificateOptions): object[] {
  const names: object[] = (options.dnsNames ?? []).map((value) => ({ type: GENERAL_NAME_DNS, value }))
  for (const ip of options.ipAddresses ?? []) {
    if (isIP(ip) === 0) throw new Error(`not an IP address: ${ip}`)
    names.push({ type: GENERAL_NAME_IP, ip })
  }
  return names
}

const GENERAL_NAME_DNS = 2
const GENERAL_NAME_IP = 7
