// The connection in use, and one being tried with new credentials. Credentials that Redis does not accept never replace accepted ones: the new
// connection must be ready first.

import type { Logger } from '../../../kit/api/ports.ts'
import { connectRedis, type OpenRedis, type RedisConnection, type RedisOptions } from './client.ts'

interface ConnectionEvents {
  /** Called for each connection before it is used. */
  prepare(connection: RedisConnection): void
  /** Only for the connection in use. */
  onError(message: string): void
}

/** Commands pending on the previous connection are answered within this time, or not at all (`COMMAND_TIMEOUT_MS`). */
const LINGER_MS = 2_000

export class RenewableConnection {
  readonly #random: () => number
  readonly #log: Logger
  readonly #events: ConnectionEvents
  #options: RedisOptions
  #inUse: OpenRedis
  #tried: OpenRedis | undefined
  #problem = ''
  #closed = false

  /** @throws {UserError} for an invalid URL */
  constructor(options: RedisOptions, random: () => number, log: Logger, events: ConnectionEvents) {
    this.#options = options
    this.#random = random
    this.#log = log
    this.#events = events
    this.#inUse = this.#connect(options)
  }

  get inUse(): RedisConnection {
    return this.#inUse.redis
  }

  /** Why the last given credentials are not in use; '' = they are. */
  get problem(): string {
    return this.#problem
  }

  /** Tries new credentials for as long as it takes, while the previous connection stays in use. */
  renew(options: RedisOptions): void {
    this.#tried?.close()
    this.#tried = undefined
    if (this.#closed) return
    if (isSame(options, this.#options)) {
      this.#problem = ''
      return
    }
    this.#problem = 'Redis has not answered yet'
    const tried = this.#connect(options)
    this.#tried = tried
    tried.redis.once('ready', () => {
      if (this.#tried === tried) this.#take(tried, options)
    })
  }

  close(): void {
    this.#closed = true
    this.#inUse.close()
    this.#tried?.close()
  }

  #connect(options: RedisOptions): OpenRedis {
    const connection = connectRedis(options, this.#random)
    const { redis } = connection
    this.#events.prepare(redis)
    let ofSentinel = ''
    redis.on('sentinelError', ({ message }: Error) => {
      if (ofSentinel === '' || !message.includes('Connection is closed')) ofSentinel = message
    })
    redis.on('error', (error: Error) => {
      // From a Cluster none of whose nodes has returned the slot map.
      const ofNode: unknown = Reflect.get(error, 'lastNodeError')
      const { message } = ofNode instanceof Error ? ofNode : error
      this.#failed(connection, message.startsWith('All sentinels') && ofSentinel !== '' ? ofSentinel : message)
    })
    // From one node of a Cluster.
    redis.on('node error', (error: Error) => this.#failed(connection, error.message))
    redis.on('close', () => this.#failed(connection, ''))
    return connection
  }

  #failed(connection: OpenRedis, message: string): void {
    if (connection === this.#inUse) this.#events.onError(message)
    else if (connection === this.#tried && message !== '' && message !== this.#problem) {
      this.#problem = message
      this.#log.warn('Redis does not accept the changed credentials; the previous ones stay in use', { error: message })
    }
  }

  #take(connection: OpenRedis, options: RedisOptions): void {
    const before = this.#inUse
    this.#inUse = connection
    this.#options = options
    this.#tried = undefined
    this.#problem = ''
    this.#log.info('Redis has accepted the changed credentials')
    setTimeout(() => before.close(), LINGER_MS).unref()
  }
}

function isSame(a: RedisOptions, b: RedisOptions): boolean {
  const names: readonly (keyof RedisOptions)[] = [
    'url',
    'password',
    'ca',
    'cert',
    'key',
    'serverName',
    'sentinelUser',
    'sentinelPassword',
  ]
  return names.every((name) => (a[name] ?? '') === (b[name] ?? ''))
}
