// Issues certificates for the demo, for `portcullis certs` and for tests. Keys and signatures come from OpenSSL (node:crypto), which is fast;
// node-forge assembles certificates, because node:crypto cannot. Nothing is verified here: OpenSSL does that, through node:tls.

import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  randomBytes,
  sign,
  X509Certificate,
} from 'node:crypto'
import { isIP } from 'node:net'
import forge from 'node-forge'
import { canonicalIp } from '../../kit/api/validation/ip-address.ts'
import { UID_OID } from '../core/user-from-cert.ts'

/** A certificate and its private key, both PEM. */
export interface KeyPair {
  readonly certPem: string
  readonly keyPem: string
}

interface CAOptions {
  readonly commonName: string
  /** Validity from now. Default 3650. */
  readonly days?: number
  /** A private key to use instead of a new one: RSA, or ECDSA on any curve. */
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
  /** A private key to use instead of a new one: RSA, or ECDSA on any curve. */
  readonly keyPem?: string
}

/** A self-signed CA. */
export function createCA(options: CAOptions): KeyPair {
  const keyPem = options.keyPem ?? generateKey()
  const name = nameOf([attribute(OID_COMMON_NAME, options.commonName)])
  const spki = publicKeyOf(keyPem)
  const extensions = [...CA_EXTENSIONS, subjectKeyIdentifier(spki)]
  const dates = validity({ days: options.days ?? 3650 })
  return { certPem: signed({ subject: name, issuer: name, spki, dates, extensions }, keyPem), keyPem }
}

/** A certificate signed by `ca`. Throws if `ipAddresses` contains an invalid address. */
export function issueCertificate(ca: KeyPair, options: CertificateOptions): KeyPair {
  const keyPem = options.keyPem ?? generateKey()
  const subject = [attribute(OID_COMMON_NAME, options.commonName)]
  for (const organization of options.organizations ?? []) subject.push(attribute(OID_ORGANIZATION, organization))
  if (options.uid !== undefined) subject.push(attribute(UID_OID, options.uid))
  const issuer = new X509Certificate(ca.certPem)
  const spki = publicKeyOf(keyPem)
  const extensions = extensionsOf(issuer, spki, options)
  const unsigned = { subject: nameOf(subject), issuer: subjectOf(issuer), spki, dates: validity(options), extensions }
  return { certPem: signed(unsigned, ca.keyPem), keyPem }
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

/**
 * A new key, PKCS #8 PEM, for the `keyPem` options, so that many certificates may share one. ECDSA on P-256, which every client has: a server
 * signs each TLS handshake with it, in less than a tenth of the time that RSA of 2,048 bits takes.
 */
export function generateKey(): string {
  return generateKeyPairSync('ec', {
    namedCurve: 'P-256',
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  }).privateKey
}

/** Whether certificates can be signed with this key: RSA, or ECDSA on any curve. */
export function canSign({ asymmetricKeyType }: KeyObject): boolean {
  return asymmetricKeyType === 'rsa' || asymmetricKeyType === 'ec'
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

/** What is signed, but for the serial number. */
interface ToBeSigned {
  readonly subject: forge.asn1.Asn1
  readonly issuer: forge.asn1.Asn1
  /** SubjectPublicKeyInfo, DER. */
  readonly spki: Buffer
  readonly dates: Validity
  readonly extensions: readonly object[]
}

/** forge only knows RSA keys: it gets a placeholder, and key, issuer and algorithm are put in their places in the TBSCertificate (RFC 5280 section 4.1). */
function signed({ subject, issuer, spki, dates, extensions }: ToBeSigned, signerPem: string): string {
  const signer = createPrivateKey(signerPem)
  if (!canSign(signer)) throw new Error(`a key of type ${signer.asymmetricKeyType} cannot sign certificates`)
  const certificate = forge.pki.createCertificate()
  certificate.publicKey = PLACEHOLDER
  certificate.siginfo.algorithmOid = RSA_OID
  certificate.serialNumber = serialNumber()
  certificate.validity.notBefore = dates.notBefore
  certificate.validity.notAfter = dates.notAfter
  certificate.setExtensions([...extensions])
  const algorithm = signer.asymmetricKeyType === 'ec' ? ECDSA_WITH_SHA256 : RSA_WITH_SHA256
  const tbs = tbsCertificateOf(certificate)
  const fields = partsOf(tbs)
  fields[TBS_SIGNATURE] = algorithm
  fields[TBS_ISSUER] = issuer
  fields[TBS_SUBJECT] = subject
  fields[TBS_PUBLIC_KEY] = fromDer(spki)
  const signature = sign('sha256', toDer(tbs), signer)
  const bits = asn1Of(forge.asn1.Type.BITSTRING, false, `\0${signature.toString('latin1')}`)
  const whole = asn1Of(forge.asn1.Type.SEQUENCE, true, [tbs, algorithm, bits])
  return forge.pem.encode({ type: 'CERTIFICATE', body: toDer(whole).toString('latin1') })
}

const TBS_SIGNATURE = 2
const TBS_ISSUER = 3
const TBS_SUBJECT = 5
const TBS_PUBLIC_KEY = 6
const RSA_OID = '1.2.840.113549.1.1.11'
const PLACEHOLDER = forge.pki.setRsaPublicKey(new forge.jsbn.BigInteger('3'), new forge.jsbn.BigInteger('3'))
// RFC 5758 section 3.2: no parameters. RFC 4055 section 5: NULL.
const ECDSA_WITH_SHA256 = asn1Of(forge.asn1.Type.SEQUENCE, true, [oid('1.2.840.10045.4.3.2')])
const RSA_WITH_SHA256 = asn1Of(forge.asn1.Type.SEQUENCE, true, [oid(RSA_OID), asn1Of(forge.asn1.Type.NULL, false, '')])

function asn1Of(type: forge.asn1.Type, constructed: boolean, value: string | forge.asn1.Asn1[]): forge.asn1.Asn1 {
  return forge.asn1.create(forge.asn1.Class.UNIVERSAL, type, constructed, value)
}

function oid(text: string): forge.asn1.Asn1 {
  return asn1Of(forge.asn1.Type.OID, false, forge.asn1.oidToDer(text).getBytes())
}

function toDer(node: forge.asn1.Asn1): Buffer {
  return Buffer.from(forge.asn1.toDer(node).getBytes(), 'latin1')
}

function fromDer(der: Buffer): forge.asn1.Asn1 {
  return forge.asn1.fromDer(der.toString('latin1'), { decodeBitStrings: false } as never)
}

// Not in the declared types.
const tbsCertificateOf = Reflect.get(forge.pki, 'getTBSCertificate') as (from: forge.pki.Certificate) => forge.asn1.Asn1

/** @throws if it has none: only for what OpenSSL or forge made */
function partsOf(node: forge.asn1.Asn1 | undefined): forge.asn1.Asn1[] {
  if (!Array.isArray(node?.value)) throw new Error('not a constructed ASN.1 value')
  return node.value
}

/** SubjectPublicKeyInfo, DER. */
function publicKeyOf(keyPem: string): Buffer {
  return createPublicKey(keyPem).export({ type: 'spki', format: 'der' })
}

function isRsa(spki: Buffer): boolean {
  return createPublicKey({ key: spki, format: 'der', type: 'spki' }).asymmetricKeyType === 'rsa'
}

function nameOf(attributes: readonly forge.pki.CertificateField[]): forge.asn1.Asn1 {
  return forge.pki.distinguishedNameToAsn1({ attributes } as never)
}

/** As it stands in the certificate, byte for byte: a chain is found by it. */
function subjectOf({ raw }: X509Certificate): forge.asn1.Asn1 {
  const [tbs] = partsOf(fromDer(raw))
  const subject = partsOf(tbs)[TBS_SUBJECT]
  if (subject === undefined) throw new Error('a certificate without a subject')
  return subject
}

/** RFC 5280 section 4.2.1.2, method 1: SHA-1 of the key's bits. Names the key; nothing depends on it for security. */
function keyIdentifier(spki: Buffer): string {
  const bits = partsOf(fromDer(spki))[1]?.value
  if (typeof bits !== 'string') throw new Error('a public key without bits')
  // The first byte says how many bits of the last one are unused.
  return createHash('sha1').update(bits.slice(1), 'latin1').digest().toString('latin1')
}

function subjectKeyIdentifier(spki: Buffer): object {
  const value = asn1Of(forge.asn1.Type.OCTETSTRING, false, keyIdentifier(spki))
  return { id: '2.5.29.14', value }
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

// The declared type is Class, but forge reads a Type here (x509.js, _dnToAsn1).
const UTF8_STRING = forge.asn1.Type.UTF8 as unknown as forge.asn1.Class

function extensionsOf(issuer: X509Certificate, spki: Buffer, options: CertificateOptions): object[] {
  const list: object[] =
    options.isCA === true
      ? [...CA_EXTENSIONS]
      : [
          { name: 'basicConstraints', cA: false, critical: true },
          // RFC 8813 section 3: a key for ECDSA encrypts no keys.
          { name: 'keyUsage', digitalSignature: true, keyEncipherment: isRsa(spki), critical: true },
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
  list.push(subjectKeyIdentifier(spki))
  const issuerKey = issuer.publicKey.export({ type: 'spki', format: 'der' })
  list.push({ name: 'authorityKeyIdentifier', keyIdentifier: keyIdentifier(issuerKey) })
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
