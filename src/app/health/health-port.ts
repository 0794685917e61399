// The health listener (--health-listen) with what belongs to it: its certificate and the token of /metrics, which are read again when their
// files change, and who may read /metrics there.

import { type MetricsAccess, startHealthServer } from '../../admin/health-server.ts'
import type { AdminState, MetricsText } from '../../admin/routes.ts'
import type { Logger } from '../../api/ports/ports.ts'
import { errorMessage } from '../../api/validation/error-message.ts'
import { formatListenAddress, isLoopback, type ListenAddress } from '../../core/cluster/listen-address.ts'
import type { PlainServer } from '../../io/listener/http-plain.ts'
import type { ServingPair } from '../../io/listener/tls-contexts.ts'
import { tlsPolicy } from '../../io/listener/tls-policy.ts'
import { systemClock } from '../../io/world/clock.ts'
import { cannotListen } from '../../io/world/free-port.ts'
import { readTokenFile } from '../access/bearer-token.ts'
import type { PostReview } from '../access/review-access.ts'
import type { OwnCertificate } from '../certificates/own-certificates.ts'
import { readPairFiles } from '../certificates/serving-pair.ts'
import type { Config } from '../config/config.ts'
import { ReloadedFiles } from '../config/reloaded-files.ts'
import { NO_ACCESS, OPEN_ACCESS, reviewAccess, tokenAccess } from './metrics-access.ts'

const FLAG = '--health-listen'
const CERT_FLAG = '--health-tls-cert-file'
const KEY_FLAG = '--health-tls-private-key-file'
const TOKEN_FLAG = '--metrics-token-file'

export interface HealthPortOptions {
  readonly config: Config
  readonly state: Pick<AdminState, 'live' | 'ready'>
  readonly metrics: MetricsText
  /** To the API server that holds the objects; undefined = there is none that reviews. */
  readonly post: PostReview | undefined
  readonly log: Logger
}

export class HealthPort {
  readonly #options: HealthPortOptions
  readonly #listen: ListenAddress
  #serving: ServingPair | undefined
  #token = ''
  #server: PlainServer | undefined
  readonly #reloaded: ReloadedFiles[] = []

  /** @throws {UserError} for what the operator can fix */
  static async open(options: HealthPortOptions): Promise<HealthPort | undefined> {
    const { healthListen } = options.config
    if (healthListen === undefined) return undefined
    const port = new HealthPort(options, healthListen)
    await port.#start()
    return port
  }

  private constructor(options: HealthPortOptions, listen: ListenAddress) {
    this.#options = options
    this.#listen = listen
  }

  get port(): number {
    return this.#server?.port ?? 0
  }

  get certificates(): readonly OwnCertificate[] {
    return this.#serving === undefined ? [] : [{ name: 'health-serving', pem: this.#serving.cert }]
  }

  /** By the flag that names the file: whether its content is in force. */
  get reloads(): ReadonlyMap<string, boolean> {
    return new Map(this.#reloaded.map(({ label, inForce }) => [label, inForce]))
  }

  async stop(): Promise<void> {
    for (const reloaded of this.#reloaded) reloaded.stop()
    await this.#server?.stop()
  }

  async #start(): Promise<void> {
    const { config, state, metrics } = this.#options
    const { healthTlsCertFile, healthTlsPrivateKeyFile, metricsTokenFile } = config
    if (healthTlsCertFile !== '') this.#serving = this.#readPair()
    if (metricsTokenFile !== '') this.#token = readTokenFile(TOKEN_FLAG, metricsTokenFile)
    const policy = tlsPolicy(config.tlsMinVersion, config.tlsCipherSuites)
    const tls = this.#serving && { serving: this.#serving, policy }
    const listen = this.#listen
    const parts = { listen, state, metrics, access: this.#access(), ...(tls !== undefined && { tls }) }
    this.#server = await startHealthServer(parts).catch((error: unknown) => {
      const message = errorMessage(error)
      throw cannotListen(listen, message, String(Reflect.get(Object(error), 'code')), FLAG)
    })
    if (healthTlsCertFile !== '') {
      this.#follow(CERT_FLAG, [healthTlsCertFile, healthTlsPrivateKeyFile], () => {
        this.#serving = this.#readPair()
        this.#server?.setServing(this.#serving)
      })
    }
    if (metricsTokenFile !== '') {
      this.#follow(TOKEN_FLAG, [metricsTokenFile], () => {
        this.#token = readTokenFile(TOKEN_FLAG, metricsTokenFile)
      })
    }
    this.#options.log.info('health listener open', { address: formatListenAddress({ ...listen, port: this.port }) })
  }

  #access(): MetricsAccess {
    const { config, post, log } = this.#options
    if (config.metricsTokenFile !== '') return tokenAccess(() => this.#token)
    if (isLoopback(this.#listen.host)) return OPEN_ACCESS
    return post === undefined ? NO_ACCESS : reviewAccess(post, () => systemClock.monotonic(), log)
  }

  #readPair(): ServingPair {
    const { healthTlsCertFile, healthTlsPrivateKeyFile } = this.#options.config
    return readPairFiles(
      { flag: CERT_FLAG, file: healthTlsCertFile },
      { flag: KEY_FLAG, file: healthTlsPrivateKeyFile },
    )
  }

  /** @param read throws when the content cannot be used */
  #follow(flag: string, files: readonly string[], read: () => void): void {
    const { log } = this.#options
    const label = flag.slice('--'.length)
    this.#reloaded.push(new ReloadedFiles({ label, what: `the file of ${flag}`, files, read, log }))
  }
}
