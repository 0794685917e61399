// The gateway's own certificate at run time: reread when its files change, replaced before it expires. An unusable one leaves the previous one in
// force, and is reported.

import { existsSync } from 'node:fs'
import { isServingOutdated, servingPkiDir } from '../../gateway/io/listener/serving-certificate.ts'
import type { ServingPair } from '../../gateway/io/listener/tls-contexts.ts'
import type { Logger } from '../../kit/api/ports.ts'
import { UserError } from '../../kit/api/validation/field-errors.ts'
import { type FollowedFiles, followFiles } from '../../kit/io/world/follow-files.ts'
import { keyPairFiles } from '../../pki/io/pki-files.ts'
import type { Config } from '../config/config.ts'
import type { OwnCertificate } from './own-certificates.ts'
import { loadServingPair, servingHosts } from './serving-pair.ts'
import { makesServingCertificate } from './shared-pki.ts'

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
