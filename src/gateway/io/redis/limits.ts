// Limits shared by replicas, kept in Redis: buckets with rate-limiter-flexible, leases of slots, and the list of live replicas.

import { createHash } from 'node:crypto'
import { Cluster } from 'ioredis'
import { RateLimiterMemory, RateLimiterRedis } from 'rate-limiter-flexible'
import type { Logger } from '../../../kit/api/ports.ts'
import { errorMessage } from '../../../kit/api/validation/error-message.ts'
import type { CompiledSharedLimit } from '../../core/cluster/compiled-cluster.ts'
import type { ReplicaMember } from '../../core/limits/global-replicas.ts'
import { LEASE_MS, type LeaseAnswer } from '../../core/limits/global-slots.ts'
import { pooledBurst } from '../../core/limits/global-tokens.ts'
import { parseRedisAddress, type RedisAddress, redisAddress, textOfNode } from './address.ts'
import type { RedisConnection, RedisOptions } from './client.ts'
import type { RedisCredentials } from './credentials.ts'
import { explained } from './errors.ts'
import { RenewableConnection } from './renewable-connection.ts'
import { BUCKET_SCRIPT, HEARTBEAT_SCRIPT, LEASE_SCRIPT } from './scripts.ts'

interface RedisLimitsOptions extends RedisOptions {
  /** Separates several installations in one Redis. Default `portcullis`. */
  readonly keyPrefix?: string
}

/** The name of a limit. */
export interface LimitName {
  readonly cluster: string
  readonly schema: string
}

/** A bucket in Redis. */
export interface SharedBucket {
  /**
   * Takes up to `wanted` tokens, or returns some (less than 0). Returns how many were taken (or returned), and how many are left. Rejects if Redis
   * does not respond.
   */
  take(wanted: number): Promise<{ readonly change: number; readonly level: number }>
}

interface LeaseRequest {
  readonly replica: string
  /** Running requests. */
  readonly used: number
  readonly wanted: number
  /** Whether requests are refused for lack of slots. */
  readonly lacks: boolean
  readonly max: number
  /** Slots per replica if divided equally. */
  readonly part: number
}

/** Everything rejects if Redis is unreachable or does not respond; nothing waits for a connection. */
export interface RedisLimits {
  /** Its location, for people. */
  readonly address: string
  /** The server that receives the commands, `host:port`; '' = unknown. */
  readonly node: string
  /** Whether there is a connection that accepts commands. */
  readonly ready: boolean
  /** Why there is none, or why the last command failed; '' = no failure since the last successful heartbeat. */
  readonly error: string
  /** Sends a replica's heartbeat, and returns the other live ones. */
  beat(replica: string): Promise<{ readonly members: readonly ReplicaMember[]; readonly redisMs: number }>
  bucket(name: LimitName, limit: CompiledSharedLimit): SharedBucket
  /** A counter of this process while Redis is down. @param name of what is counted */
  counter(name: string, points: number, durationSeconds: number): () => RateLimiterRedis
  lease(name: LimitName, request: LeaseRequest): Promise<LeaseAnswer>
  /** The replica stops: it no longer counts as alive, and its leases are released. */
  leave(replica: string, leases: readonly LimitName[]): Promise<void>
  /** Passwords or certificates have changed: used once Redis has accepted them. */
  renew(credentials: RedisCredentials): void
  /** Why the credentials from the last `renew` are not in use; '' = they are. */
  readonly renewalProblem: string
  close(): void
}

/** A replica without a heartbeat for this long is dead. */
const ALIVE_MS = 3_000
/** Limit of replicas: no installation has more, but any number of names could be written. */
const MAX_REPLICAS = 1_000
/** Buckets are kept at least this long, and twice as long as they take to fill. */
const LEAST_KEPT_SECONDS = 60

/** Commands defined by scripts. */
interface Scripts {
  portcullisLease(key: string, ...values: (string | number)[]): Promise<[number, number, number]>
  portcullisHeartbeat(key: string, replica: string, aliveMs: number): Promise<string[]>
}

/** @throws {UserError} for an invalid URL. An unreachable Redis is not an error: see `ready` */
export function createRedisLimits(options: RedisLimitsOptions, random: () => number, log: Logger): RedisLimits {
  return new RedisLimitStore(options, random, log)
}

class RedisLimitStore implements RedisLimits {
  readonly address: string
  readonly #options: RedisLimitsOptions
  readonly #place: RedisAddress
  readonly #connection: RenewableConnection
  readonly #keys: RedisKeys
  #error = ''

  constructor(options: RedisLimitsOptions, random: () => number, log: Logger) {
    this.#options = options
    this.address = redisAddress(options.url)
    this.#place = parseRedisAddress(options.url)
    this.#keys = new RedisKeys(options.keyPrefix ?? 'portcullis', this.#place.topology === 'cluster')
    this.#connection = new RenewableConnection(options, random, log, {
      prepare: defineScripts,
      onError: (message) => {
        if (message !== '') this.#error = this.#explained(message)
        else if (this.#error === '') this.#error = 'the connection was closed'
      },
    })
  }

  get #redis(): RedisConnection & Scripts {
    // defineScripts has added them.
    return this.#connection.inUse as RedisConnection & Scripts
  }

  get ready(): boolean {
    return this.#connection.inUse.status === 'ready'
  }

  get node(): string {
    const { inUse } = this.#connection
    if (!this.ready) return ''
    if (inUse instanceof Cluster) return inUse.slots[slotOf(this.#keys.replicas)]?.[0] ?? ''
    const { remoteAddress = '', remotePort = 0 } = inUse.stream
    return remoteAddress === '' ? '' : textOfNode({ host: remoteAddress, port: remotePort })
  }

  get renewalProblem(): string {
    return this.#connection.problem
  }

  renew(credentials: RedisCredentials): void {
    this.#connection.renew({ ...this.#options, ...credentials })
  }

  get error(): string {
    return this.#error
  }

  async beat(replica: string): Promise<{ members: readonly ReplicaMember[]; redisMs: number }> {
    const answer = await this.#tracked(this.#redis.portcullisHeartbeat(this.#keys.replicas, replica, ALIVE_MS))
    this.#error = ''
    const members: ReplicaMember[] = []
    const end = Math.min(answer.length, 1 + 2 * MAX_REPLICAS)
    for (let i = 1; i + 1 < end; i += 2) {
      members.push({ id: answer[i] ?? '', heardMs: Number(answer[i + 1]) })
    }
    return { members, redisMs: Number(answer[0]) }
  }

  bucket({ cluster, schema }: LimitName, { qps, burst }: CompiledSharedLimit): SharedBucket {
    const points = pooledBurst(burst)
    const limiterOf = (storeClient: RedisConnection): RateLimiterRedis =>
      new RateLimiterRedis({
        storeClient,
        keyPrefix: this.#keys.buckets,
        points,
        duration: points / qps,
        customIncrTtlLuaScript: BUCKET_SCRIPT,
        rejectIfRedisNotReady: true,
      })
    let connection: RedisConnection = this.#redis
    let limiter = limiterOf(connection)
    const key = limitName(cluster, schema)
    const kept = { customDuration: Math.max(LEAST_KEPT_SECONDS, Math.ceil((2 * burst) / qps)) }
    return {
      take: async (wanted) => {
        if (connection !== this.#connection.inUse) {
          connection = this.#connection.inUse
          limiter = limiterOf(connection)
        }
        const asked = wanted < 0 ? limiter.reward(key, -wanted, kept) : limiter.consume(key, wanted, kept)
        const { consumedPoints, msBeforeNext } = await this.#tracked(asked)
        return { change: consumedPoints, level: Math.max(0, points - (msBeforeNext * qps) / 1000) }
      },
    }
  }

  counter(name: string, points: number, duration: number): () => RateLimiterRedis {
    const insuranceLimiter = new RateLimiterMemory({ keyPrefix: name, points, duration })
    const keyPrefix = this.#keys.counter(name)
    const counterOf = (storeClient: RedisConnection): RateLimiterRedis =>
      new RateLimiterRedis({ storeClient, keyPrefix, points, duration, insuranceLimiter, rejectIfRedisNotReady: true })
    let connection: RedisConnection = this.#redis
    let counter = counterOf(connection)
    return () => {
      if (connection !== this.#connection.inUse) {
        connection = this.#connection.inUse
        counter = counterOf(connection)
      }
      return counter
    }
  }

  async lease({ cluster, schema }: LimitName, request: LeaseRequest): Promise<LeaseAnswer> {
    const { replica, used, wanted, lacks, max, part } = request
    const key = this.#keys.leases(cluster, schema)
    const asked = this.#redis.portcullisLease(key, replica, used, wanted, lacks ? 1 : 0, max, LEASE_MS, part)
    const [slots, others, lacking] = await this.#tracked(asked)
    return { slots, others, lacking }
  }

  async leave(replica: string, leases: readonly LimitName[]): Promise<void> {
    const gone = leases.map(({ cluster, schema }) => this.#redis.hdel(this.#keys.leases(cluster, schema), replica))
    await Promise.all([this.#redis.zrem(this.#keys.replicas, replica), ...gone])
  }

  close(): void {
    this.#connection.close()
  }

  async #tracked<T>(asked: Promise<T>): Promise<T> {
    try {
      return await asked
    } catch (error) {
      // The reason for the missing connection says more than that it is missing.
      const message = this.#explained(errorMessage(error))
      if (this.ready || this.#error === '') this.#error = message
      // Only the text: a command's error contains its arguments.
      throw new Error(message)
    }
  }

  #explained(message: string): string {
    return explained(message, this.#place.topology === 'cluster' ? 'cluster' : 'server')
  }
}

function defineScripts(connection: RedisConnection): void {
  connection.defineCommand('portcullisLease', { numberOfKeys: 1, lua: LEASE_SCRIPT })
  connection.defineCommand('portcullisHeartbeat', { numberOfKeys: 1, lua: HEARTBEAT_SCRIPT })
}

// Key names in Redis. They include a version, so that versions that count differently share nothing.
const VERSION = 'v1'
const LONGEST = 128
const PLAIN = /^[\w./-]+$/

export class RedisKeys {
  readonly #prefix: string

  /**
   * @param prefix separates several installations in one Redis
   * @param together puts all keys in one slot of a Redis Cluster, so that limits, and the list of live replicas by which sharing is resumed, fail and
   * recover together
   */
  constructor(prefix: string, together = false) {
    this.#prefix = `${together ? `{${prefix}}` : prefix}:${VERSION}`
  }

  /** Key of the live replicas. */
  get replicas(): string {
    return `${this.#prefix}:replicas`
  }

  /** The prefix that RateLimiterRedis puts before a bucket's name. */
  get buckets(): string {
    return `${this.#prefix}:bucket`
  }

  /** The prefix that RateLimiterRedis puts before a counter's name. */
  counter(name: string): string {
    return `${this.#prefix}:${name}`
  }

  leases(cluster: string, schema: string): string {
    return `${this.#prefix}:leases:${limitName(cluster, schema)}`
  }
}

/** Cluster names contain no slash; schema names may be any text of any length. */
export function limitName(cluster: string, schema: string): string {
  const name = `${cluster}/${schema}`
  if (name.length <= LONGEST && PLAIN.test(name)) return name
  return `#${createHash('sha256').update(name).digest('hex')}`
}

/** A key's slot in a Redis Cluster: CRC16/XMODEM of the part in braces, if there is one. */
export function slotOf(key: string): number {
  const tag = /^[^{]*\{([^}]+)\}/.exec(key)?.[1] ?? key
  let crc = 0
  for (const byte of Buffer.from(tag)) {
    crc ^= byte << 8
    for (let bit = 0; bit < 8; bit++) crc = (crc & 0x8000) === 0 ? (crc << 1) & 0xffff : ((crc << 1) ^ 0x1021) & 0xffff
  }
  return crc % 16_384
}
