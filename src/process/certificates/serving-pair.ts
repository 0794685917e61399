// The gateway's own certificate: from the configured files, or self-made.

import { existsSync } from 'node:fs'
import { hostname, type NetworkInterfaceInfo, networkInterfaces } from 'node:os'
import { createSecureContext } from 'node:tls'
import {
  ensureServingCertificate,
  isServingOutdated,
  servingPkiDir,
} from '../../gateway/io/listener/serving-certificate.ts'
import type { ServingPair } from '../../gateway/io/listener/tls-contexts.ts'
import type { Logger } from '../../kit/api/ports.ts'
import { errorMessage } from '../../kit/api/validation/error-message.ts'
import { UserError } from '../../kit/api/validation/field-errors.ts'
import { canonicalIp } from '../../kit/api/validation/ip-address.ts'
import type { ListenAddress } from '../../kit/core/listen-address.ts'
import { type FollowedFiles, followFiles } from '../../kit/io/world/follow-files.ts'
import { nodePemChecks } from '../../pki/io/pem-checks.ts'
import { keyPairFiles, readNamedFile } from '../../pki/io/pki-files.ts'
import type { Config } from '../config/config.ts'
import type { OwnCertificate } from './own-certificates.ts'
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

// The gateway's own certificate at run time: reread when its files change, replaced before it expires. An unusable one leaves the previous one in
// force, and is reported.

/** How often a self-made certificate is checked: the machine may get an address, or a VIP, at any time. */
const RENEWAL_CHECK_MS = 60_000

export class ServingReload {
  readonly name = 'serving-certificate'
  readonly #config: Config
  readonly #log: Logger
  readonly #inForce: (pair: ServingPair) => void
  #pair: ServingPair
  #followed: FollowedFiles | undefined
  #renewal: NodeJS.Timeout | undefined
  #problem = ''
  #lacksNames = false

  /** @param inForce puts another certificate in force */
  constructor(config: Config, pair: ServingPair, log: Logger, inForce: (pair: ServingPair) => void) {
    this.#config = config
    this.#pair = pair
    this.#log = log
    this.#inForce = inForce
  }

  get certificates(): readonly OwnCertificate[] {
    return [{ name: 'serving', pem: this.#pair.cert }]
  }

  /** Keyed by file flag: whether its content is in force. Empty if the gateway makes its own. */
  get reloads(): ReadonlyMap<string, boolean> {
    const file = makesServingCertificate(this.#config) ? 'serving-pki' : 'tls-cert-file'
    return new Map(this.#followed === undefined ? [] : [[file, this.#problem === '']])
  }

  start(): void {
    if (makesServingCertificate(this.#config)) {
      // The gateway's own files: if they were missing, the check would create another CA, unknown to clients.
      const ca = keyPairFiles(servingPkiDir(this.#config.dataDir), 'ca')
      const read = (): void => {
        if (ca.every((file) => existsSync(file))) this.#read()
      }
      const look = (): void => {
        const hosts = servingHosts(this.#config)
        if (isServingOutdated(this.#pair.cert, hosts)) read()
        this.#warnOfNames(hosts)
      }
      look()
      this.#renewal = setInterval(look, RENEWAL_CHECK_MS).unref()
      this.#followed = followFiles(ca, read)
      return
    }
    const { tlsCertFile, tlsPrivateKeyFile } = this.#config
    this.#followed = followFiles([tlsCertFile, tlsPrivateKeyFile], () => this.#read())
  }

  stop(): void {
    this.#followed?.stop()
    clearInterval(this.#renewal)
  }

  /** Once, until it has them. */
  #warnOfNames(hosts: readonly string[]): void {
    const lacks = isServingOutdated(this.#pair.cert, hosts)
    if (lacks && !this.#lacksNames) {
      this.#log.warn(
        'the serving certificate lacks names of this machine or expires soon, and cannot be issued again',
        {
          hosts,
          fix: `can ${servingPkiDir(this.#config.dataDir)} be written, and is ca.key there an RSA or an ECDSA key?`,
        },
      )
    }
    this.#lacksNames = lacks
  }

  #read(): void {
    let pair: ServingPair
    try {
      pair = loadServingPair(this.#config)
    } catch (error) {
      const why = error instanceof UserError ? `${error.message}; ${error.fix}` : String(error)
      this.#problem = why
      this.#log.error('the serving certificate cannot be replaced; the one before stays in force', { error: why })
      return
    }
    const same = pair.cert === this.#pair.cert && pair.key === this.#pair.key
    if (!same) this.#inForce(pair)
    if (!same || this.#problem !== '') this.#log.info('the files of the serving certificate are in force')
    this.#pair = pair
    this.#problem = ''
  }
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
