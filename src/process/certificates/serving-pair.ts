// The gateway's own certificate: from the configured files, or self-made.

import { hostname, type NetworkInterfaceInfo, networkInterfaces } from 'node:os'
import { createSecureContext } from 'node:tls'
import { ensureServingCertificate } from '../../gateway/io/listener/serving-certificate.ts'
import type { ServingPair } from '../../gateway/io/listener/tls-contexts.ts'
import { errorMessage } from '../../kit/api/validation/error-message.ts'
import { UserError } from '../../kit/api/validation/field-errors.ts'
import { canonicalIp } from '../../kit/api/validation/ip-address.ts'
import type { ListenAddress } from '../../kit/core/listen-address.ts'
import { nodePemChecks } from '../../pki/io/pem-checks.ts'
import { readNamedFile } from '../../pki/io/pki-files.ts'
import type { Config } from '../config/config.ts'
import { makesServingCertificate } from './shared-pki.ts'

/** @throws {UserError} for errors that the operator can fix */
export function loadServingPair(config: Config): ServingPair {
  const given = readServingPair(config)
  if (given !== undefined) return given
  const { certPem, keyPem } = ensureServingCertificate(
    config.dataDir,
    config.source === 'kubernetes',
    servingHosts(config),
  )
  return { cert: certPem, key: keyPem }
}

/** undefined = no files are configured: the gateway makes its own. @throws {UserError} */
export function readServingPair(config: Config): ServingPair | undefined {
  if (makesServingCertificate(config)) return undefined
  return readPairFiles(
    { flag: '--tls-cert-file', file: config.tlsCertFile },
    { flag: '--tls-private-key-file', file: config.tlsPrivateKeyFile },
  )
}

/** Hosts of the self-made certificate. */
export function servingHosts({ servingHosts: hosts, listen }: Config): readonly string[] {
  return [...new Set([...hosts, ...machineHosts(listen)])]
}

/** A file, and its flag. */
export interface NamedFile {
  readonly flag: string
  readonly file: string
}

/** @throws {UserError} if they are not a certificate and its key */
export function readPairFiles(certFile: NamedFile, keyFile: NamedFile): ServingPair {
  const cert = readPem(certFile)
  const key = readPem(keyFile)
  // Detects here what OpenSSL would reject, not in the first handshake.
  checkPem(certFile, nodePemChecks.certificatesError(cert))
  checkPem(keyFile, nodePemChecks.privateKeyError(key))
  if (!nodePemChecks.keyMatches(cert, key)) {
    const fix = 'name the key that the certificate was issued for'
    throw new UserError(`${keyFile.flag} ${keyFile.file} does not belong to ${certFile.file}`, fix)
  }
  checkTls(certFile, { cert, key })
  return { cert, key }
}

/** For example, OpenSSL's security level rejects SHA-1 signatures in the certificate and its chain. */
function checkTls({ flag, file }: NamedFile, pair: ServingPair): void {
  try {
    createSecureContext(pair)
  } catch (error) {
    const fix = 'name a certificate whose chain is signed with SHA-256 or better, by keys of 2048 bits (RSA) or more'
    throw new UserError(`${flag} ${file} cannot be used for TLS: ${errorMessage(error)}`, fix)
  }
}

function checkPem({ flag, file }: NamedFile, problem: string): void {
  if (problem !== '') throw new UserError(`${flag} ${file}: ${problem}`, 'name a PEM file')
}

function readPem({ flag, file }: NamedFile): string {
  if (file === '')
    throw new UserError(`${flag} is missing`, 'give both --tls-cert-file and --tls-private-key-file, or neither')
  return readNamedFile(flag, file)
}

// Names and addresses by which clients reach this machine, for the gateway's self-made certificate.

/** A cluster node may have one address per Service, and the certificate is sent in every handshake. */
const MOST_ADDRESSES = 32

type Interfaces = Readonly<Record<string, readonly NetworkInterfaceInfo[] | undefined>>

/**
 * localhost and the machine's name; the addresses listened on, or those of its interfaces if that is the wildcard address.
 * @param listen where clients connect to
 */
export function machineHosts(
  listen: readonly Pick<ListenAddress, 'host'>[],
  interfaces: Interfaces = networkInterfaces(),
): readonly string[] {
  const hosts = listen.map(({ host }) => host.replace(/%.*/, ''))
  const any = hosts.some((host) => ['', '0.0.0.0', '::'].includes(canonicalIp(host) ?? host))
  const named = hosts.filter((host) => !['', '0.0.0.0', '::'].includes(canonicalIp(host) ?? host))
  const addresses = any ? interfaceAddresses(interfaces) : []
  return [...new Set(['localhost', '127.0.0.1', '::1', ...machineName(), ...named, ...addresses])]
}

/** Skips link-local addresses: they are the same on every network, and no kubeconfig contains one. */
function interfaceAddresses(interfaces: Interfaces): readonly string[] {
  const all = Object.values(interfaces).flatMap((infos = []) => infos.filter(({ internal }) => !internal))
  const addresses = all.map(({ address }) => canonicalIp(address) ?? '')
  return addresses
    .filter((ip) => ip !== '' && !/^(169\.254\.|fe[89ab])/.test(ip))
    .sort((a, b) => Number(a.includes(':')) - Number(b.includes(':')))
    .slice(0, MOST_ADDRESSES)
}

/** A machine's name may be an invalid host name, which would invalidate the certificate. */
function machineName(): readonly string[] {
  const name = hostname().toLowerCase()
  return /^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/.test(name) ? [name] : []
}
