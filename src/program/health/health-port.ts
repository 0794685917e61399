// The health listener (--health-listen) with its certificate and the /metrics token, which are reread when their files change, and access to
// /metrics.

import { accessReviews, type PostReview, refusal } from '../../admin/app/access/review-access.ts'
import type { AdminState, MetricsText } from '../../admin/io/server/routes.ts'
import { type MetricsAccess, startHealthServer } from '../../admin/io/server/server.ts'
import type { PlainServer } from '../../gateway/io/listener/http-plain.ts'
import { tlsPolicy } from '../../gateway/io/listener/tls-policy.ts'
import type { Logger } from '../../kit/api/ports.ts'
import { errorMessage } from '../../kit/api/validation/error-message.ts'
import { formatListenAddress, isLoopback, type ListenAddress } from '../../kit/core/listen-address.ts'
import { systemClock } from '../../kit/io/world/clock.ts'
import { cannotListen } from '../../kit/io/world/free-port.ts'
import { bearerOf, isSameToken } from '../../process/certificates/bearer-token.ts'
import type { OwnCertificate } from '../../process/certificates/own-certificates.ts'
import { PortFiles } from '../../process/certificates/port-files.ts'
import type { Config } from '../../process/config/config.ts'

const FLAG = '--health-listen'

interface HealthPortOptions {
  readonly config: Config
  readonly state: Pick<AdminState, 'live' | 'ready'>
  readonly metrics: MetricsText
  /** Sends reviews to the API server that holds the objects; undefined = there is none that reviews. */
  readonly post: PostReview | undefined
  readonly log: Logger
}

/** @throws {UserError} if a file is unusable */
export function healthFiles(config: Config, log: Logger): PortFiles {
  return new PortFiles({
    name: 'health-serving',
    cert: { flag: '--health-tls-cert-file', file: config.healthTlsCertFile },
    key: { flag: '--health-tls-private-key-file', file: config.healthTlsPrivateKeyFile },
    token: { flag: '--metrics-token-file', file: config.metricsTokenFile },
    log,
  })
}

export class HealthPort {
  readonly #options: HealthPortOptions
  readonly #listen: ListenAddress
  readonly #files: PortFiles
  #server: PlainServer | undefined

  /** @throws {UserError} for errors that the operator can fix */
  static async open(options: HealthPortOptions): Promise<HealthPort | undefined> {
    const { healthListen } = options.config
    if (healthListen === undefined) return undefined
    const port = new HealthPort(options, healthListen)
    await port.#start()
    return port
  }

  private constructor(options: HealthPortOptions, listen: ListenAddress) {
    const { config, log } = options
    this.#options = options
    this.#listen = listen
    this.#files = healthFiles(config, log)
  }

  get port(): number {
    return this.#server?.port ?? 0
  }

  get certificates(): readonly OwnCertificate[] {
    return this.#files.certificates
  }

  /** Keyed by file flag: whether its content is in force. */
  get reloads(): ReadonlyMap<string, boolean> {
    return this.#files.reloads
  }

  async stop(): Promise<void> {
    this.#files.stop()
    await this.#server?.stop()
  }

  async #start(): Promise<void> {
    const { config, state, metrics } = this.#options
    const { serving } = this.#files
    const policy = tlsPolicy(config.tlsMinVersion, config.tlsCipherSuites)
    const tls = serving && { serving, policy }
    const listen = this.#listen
    const parts = { listen, state, metrics, access: this.#access(), ...(tls !== undefined && { tls }) }
    this.#server = await startHealthServer(parts).catch((error: unknown) => {
      const message = errorMessage(error)
      throw cannotListen(listen, message, String(Reflect.get(Object(error), 'code')), FLAG)
    })
    this.#files.follow((pair) => this.#server?.setServing(pair))
    this.#options.log.info('health listener open', { address: formatListenAddress({ ...listen, port: this.port }) })
  }

  #access(): MetricsAccess {
    const { config, post, log } = this.#options
    if (config.metricsTokenFile !== '') return tokenAccess(() => this.#files.token)
    if (isLoopback(this.#listen.host)) return OPEN_ACCESS
    return post === undefined ? NO_ACCESS : reviewAccess(post, () => systemClock.monotonic(), log)
  }
}

// Access to /metrics on the health listener: clients on this machine, holders of the token from a file, or users allowed to `get /metrics` by the API
// server that holds the objects.

const NEEDED = { path: '/metrics', verb: 'get' } as const

const OPEN_ACCESS: MetricsAccess = () => Promise.resolve(undefined)

/** Refuses everything until access is configured. */
const NO_ACCESS: MetricsAccess = () => {
  const message =
    '/metrics is not shown to other machines: start with --metrics-token-file, or read it from --admin-listen'
  return Promise.resolve(refusal(403, message))
}

/** @param expected the token in force, read each time */
function tokenAccess(expected: () => string): MetricsAccess {
  return (authorization) => {
    const given = bearerOf(authorization)
    const same = given !== undefined && isSameToken(given, expected())
    return Promise.resolve(same ? undefined : refusal(401, 'needs the bearer token of --metrics-token-file'))
  }
}

/** Results are cached; reviews are rate-limited, and addresses take turns. */
export function reviewAccess(post: PostReview, monotonic: () => number, log: Logger): MetricsAccess {
  const reviews = accessReviews(post, monotonic, log, NEEDED.path)
  return async (authorization, remoteAddress) => {
    const token = bearerOf(authorization)
    if (token === undefined) return refusal(401, 'needs a bearer token that the cluster of the objects accepts')
    const user = await reviews.who(token, remoteAddress)
    return 'code' in user ? user : reviews.may(user, NEEDED, remoteAddress)
  }
}
