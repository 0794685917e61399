// Follows a kubeconfig that changes while the program runs: rereads it, checks it, and only then uses it. An unusable version is refused with one log
// line, and the previous one stays in use. A different server may be a different cluster, with other objects than those in force: that requires a
// restart.

import { createPrivateKey, X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { Logger } from '../../kit/api/ports.ts'
import { errorWithFix } from '../../kit/api/validation/error-message.ts'
import { UserError } from '../../kit/api/validation/field-errors.ts'
import { StatusError } from '../api/status.ts'
import { type KubeAccessSource, KubeHttp } from './client-http.ts'
import { type KubeConfigOptions, kubeConfigFiles } from './config.ts'
import { type KubeAccess, KubeCredentials } from './config-access.ts'

/** Interval between checks of the files. */
const LOOK_MS = 10_000
const CHECK_TIMEOUT_MS = 5_000

interface FollowTimes {
  /** Default 10 s. */
  readonly lookMs?: number
}

export class FollowedKubeconfig implements KubeAccessSource {
  readonly server: string
  readonly #options: KubeConfigOptions
  readonly #log: Logger
  readonly #lookMs: number
  #current: KubeCredentials
  /** Content of the files at the last check, used or refused. */
  #seen: string
  /** Content of those in use. */
  #used: string
  #problem = ''
  #certificate = ''
  #lookedAt: number
  #looking = false

  /** @throws {UserError} */
  constructor(options: KubeConfigOptions, log: Logger, { lookMs = LOOK_MS }: FollowTimes = {}) {
    this.#options = options
    this.#log = log
    this.#lookMs = lookMs
    this.#used = this.#seen = textOfFiles(options)
    this.#current = new KubeCredentials(options)
    this.server = this.#current.server
    this.#lookedAt = performance.now()
  }

  /** Why the files' current content is not in use; '' = it is. */
  get problem(): string {
    return this.#problem
  }

  /** PEM, from the last access; '' = the user authenticates by other means. */
  get clientCertificate(): string {
    return this.#certificate
  }

  access(): Promise<KubeAccess> {
    if (performance.now() - this.#lookedAt >= this.#lookMs) void this.#look()
    const access = this.#current.access()
    access.then(
      ({ tls }) => {
        this.#certificate = tls.cert
      },
      () => undefined,
    )
    return access
  }

  /** Done on every access; call it if accesses are rare: reads the client certificate, and looks for changes. */
  refresh(): void {
    this.access().catch(() => undefined)
  }

  renew(): boolean {
    // The files are unchanged, but files they name, or plugins, may have something newer. Changed files are checked first.
    if (textOfFiles(this.#options) === this.#used) return this.#current.renew()
    void this.#look()
    return false
  }

  async #look(): Promise<void> {
    if (this.#looking) return
    this.#looking = true
    this.#lookedAt = performance.now()
    try {
      await this.#take(textOfFiles(this.#options))
    } finally {
      this.#looking = false
    }
  }

  async #take(text: string): Promise<void> {
    // Retries one that was refused because its server did not respond.
    if (text === this.#used) this.#seen = text
    if (text === this.#used || (text === this.#seen && this.#problem === '')) {
      this.#problem = ''
      return
    }
    this.#seen = text
    try {
      const next = new KubeCredentials(this.#options)
      await this.#check(next)
      this.#current = next
      this.#used = text
      this.#problem = ''
      this.#log.info('the changed kubeconfig is in use', { server: this.server })
    } catch (error) {
      const why = errorWithFix(error)
      if (why !== this.#problem) {
        this.#log.error('the changed kubeconfig cannot be used; the one before stays in use', { error: why })
      }
      this.#problem = why
    }
  }

  /** @throws (rejects) why it cannot replace the one in use */
  async #check(next: KubeCredentials): Promise<void> {
    const [before, after] = await Promise.all([this.#current.access().catch(() => undefined), next.access()])
    if (after.server !== this.server) {
      throw new UserError(
        `it names another server, ${after.server} instead of ${this.server}, perhaps of another cluster`,
        'restart the gateway to use it',
      )
    }
    if (before !== undefined && before.tls.ca !== '' && after.tls.ca === '' && after.tls.insecure) {
      throw new UserError('it no longer verifies the server', 'restart the gateway to use it')
    }
    checkPems(after.tls)
    const http = new KubeHttp(
      { server: this.server, access: () => next.access(), renew: () => false },
      CHECK_TIMEOUT_MS,
    )
    try {
      // Allowed for every authenticated user, whatever the permissions.
      await http.call({ method: 'GET', path: '/api' })
    } catch (error) {
      // 403: authenticated, without this permission.
      if (!(error instanceof StatusError && error.code === 403)) throw error
    } finally {
      await http.close()
    }
  }
}

/** @throws {Error} that quotes nothing from them */
export function checkPems({ ca, cert, key }: Pick<KubeAccess['tls'], 'ca' | 'cert' | 'key'>): void {
  certificateOf('its CA', ca)
  const certificate = certificateOf('its client certificate', cert)
  if (certificate === undefined) return
  let fits = false
  try {
    fits = certificate.checkPrivateKey(createPrivateKey(key))
  } catch {
    throw new Error('its client key is not a PEM private key')
  }
  if (!fits) throw new Error('its client key does not belong to its client certificate')
}

/** The first certificate; undefined = none. */
function certificateOf(what: string, pem: string): X509Certificate | undefined {
  if (pem === '') return undefined
  try {
    return new X509Certificate(pem)
  } catch {
    throw new Error(`${what} is not a PEM certificate`)
  }
}

/** Differs after each change; an unreadable file has a text, too. */
function textOfFiles(options: KubeConfigOptions): string {
  return kubeConfigFiles(options)
    .map((file) => {
      try {
        return readFileSync(file, 'utf8')
      } catch {
        return ''
      }
    })
    .join('\0')
}
