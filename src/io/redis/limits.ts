// Limits that replicas share, kept in Redis: buckets through rate-limiter-flexible, leases of slots, and which replicas are alive.

import type { Redis } from 'ioredis'
import { RateLimiterRedis } from 'rate-limiter-flexible'
import type { CompiledSharedLimit } from '../../core/cluster/compiled-cluster.ts'
import type { ReplicaMember } from '../../core/limits/global-replicas.ts'
import { LEASE_MS, type LeaseAnswer } from '../../core/limits/global-slots.ts'
import { pooledBurst } from '../../core/limits/global-tokens.ts'
import { connectRedis, type RedisOptions, redisAddress } from './client.ts'
import { limitName, RedisKeys } from './keys.ts'
import { BUCKET_SCRIPT, HEARTBEAT_SCRIPT, LEASE_SCRIPT } from './scripts.ts'

export interface RedisLimitsOptions extends RedisOptions {
  /** Separates several installations in one Redis. Default `portcullis`. */
  readonly keyPrefix?: string
}

/** A limit, by name. */
export interface LimitName {
  readonly cluster: string
  readonly schema: string
}

/** A bucket in Redis. */
export interface SharedBucket {
  /**
   * Takes up to `wanted` tokens, or gives back (less than 0). Returns how many were taken (or given back), and how many are left.
   * Rejects when Redis does not answer.
   */
  take(wanted: number): Promise<{ readonly change: number; readonly level: number }>
}

export interface LeaseRequest {
  readonly replica: string
  /** Requests that run. */
  readonly used: number
  readonly wanted: number
  /** Whether requests are refused for lack of slots. */
  readonly lacks: boolean
  readonly max: number
  /** The slots of each replica if all had the same. */
  readonly part: number
}

/** Everything rejects when Redis is unreachable or does not answer; nothing waits for a connection. */
export interface RedisLimits {
  /** `host:port`. */
  readonly address: string
  /** Whether there is a connection that takes commands. */
  readonly ready: boolean
  /** Why there is none, or why the last command failed; '' = no failure since Redis last answered a heartbeat. */
  readonly error: string
  /** Sends a replica's heartbeat, and returns which others are alive. */
  beat(replica: string): Promise<{ readonly members: readonly ReplicaMember[]; readonly redisMs: number }>
  bucket(name: LimitName, limit: CompiledSharedLimit): SharedBucket
  lease(name: LimitName, request: LeaseRequest): Promise<LeaseAnswer>
  /** The replica stops: it no longer counts as alive, and its leases are released. */
  leave(replica: string, leases: readonly LimitName[]): Promise<void>
  close(): void
}

/** A replica without a heartbeat for this long is dead. */
const ALIVE_MS = 3_000
/** Buckets are kept at least this long, and twice as long as they take to fill. */
const LEAST_KEPT_SECONDS = 60

/** The commands that are defined by scripts. */
interface Scripts {
  portcullisLease(key: string, ...values: (string | number)[]): Promise<[number, number, number]>
  portcullisHeartbeat(key: string, replica: string, aliveMs: number): Promise<string[]>
}

/** @throws {UserError} for an invalid URL. An unreachable Redis is not an error: see `ready` */
export function createRedisLimits(options: RedisLimitsOptions, random: () => number): RedisLimits {
  return new RedisLimitStore(
    connectRedis(options, random),
    redisAddress(options.url),
    options.keyPrefix ?? 'portcullis',
  )
}

class RedisLimitStore implements RedisLimits {
  readonly address: string
  readonly #redis: Redis & Scripts
  readonly #keys: RedisKeys
  #error = ''

  constructor(redis: Redis, address: string, prefix: string) {
    this.address = address
    this.#keys = new RedisKeys(prefix)
    redis.defineCommand('portcullisLease', { numberOfKeys: 1, lua: LEASE_SCRIPT })
    redis.defineCommand('portcullisHeartbeat', { numberOfKeys: 1, lua: HEARTBEAT_SCRIPT })
    redis.on('error', (error: Error) => {
      this.#error = error.message
    })
    redis.on('close', () => {
      if (this.#error === '') this.#error = 'the connection was closed'
    })
    // defineCommand has added them.
    this.#redis = redis as Redis & Scripts
  }

  get ready(): boolean {
    return this.#redis.status === 'ready'
  }

  get error(): string {
    return this.#error
  }

  async beat(replica: string): Promise<{ members: readonly ReplicaMember[]; redisMs: number }> {
    const answer = await this.#tracked(this.#redis.portcullisHeartbeat(this.#keys.replicas, replica, ALIVE_MS))
    this.#error = ''
    const members: ReplicaMember[] = []
    for (let i = 1; i + 1 < answer.length; i += 2) {
      members.push({ id: answer[i] ?? '', heardMs: Number(answer[i + 1]) })
    }
    return { members, redisMs: Number(answer[0]) }
  }

  bucket({ cluster, schema }: LimitName, { qps, burst }: CompiledSharedLimit): SharedBucket {
    const points = pooledBurst(burst)
    const limiter = new RateLimiterRedis({
      storeClient: this.#redis,
      keyPrefix: this.#keys.buckets,
      points,
      duration: points / qps,
      customIncrTtlLuaScript: BUCKET_SCRIPT,
      rejectIfRedisNotReady: true,
    })
    const key = limitName(cluster, schema)
    const kept = { customDuration: Math.max(LEAST_KEPT_SECONDS, Math.ceil((2 * burst) / qps)) }
    return {
      take: async (wanted) => {
        const asked = wanted < 0 ? limiter.reward(key, -wanted, kept) : limiter.consume(key, wanted, kept)
        const { consumedPoints, msBeforeNext } = await this.#tracked(asked)
        return { change: consumedPoints, level: Math.max(0, points - (msBeforeNext * qps) / 1000) }
      },
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
    this.#redis.disconnect()
  }

  async #tracked<T>(asked: Promise<T>): Promise<T> {
    try {
      return await asked
    } catch (error) {
      // The reason why there is no connection says more than that there is none.
      if (this.ready || this.#error === '') this.#error = error instanceof Error ? error.message : String(error)
      throw error
    }
  }
}
