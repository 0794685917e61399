// Limits that all replicas share (globalTokenBucket, globalMaxRequestsInflight), kept in Redis. Runs in the main thread. Requests take
// prefetched tokens from shared memory and never wait for Redis.
//
// While Redis is unreachable, each replica keeps to its part: the limit divided by the replicas that were alive when Redis last
// answered. Error bounds: src/gateway/core/limits/global-tokens.ts and global-slots.ts. Beyond them:
//   - If only one replica has lost Redis, it keeps to its part while the others share the whole: one part more in total.
//   - After a crash of a replica its slots are free within LEASE_MS, and its tokens are lost.
//   - A replica that doesn't know how many there are (`expectedReplicas`), and has no saved part in its data directory, assumes
//     that it is alone until it has reached Redis.

import type { Clock, Logger } from '../../../kit/api/ports.ts'
import { type ReplicaPart, ReplicaView, type SharingMode } from '../../core/limits/global-replicas.ts'
import { TOKENS_EVERY_MS } from '../../core/limits/global-tokens.ts'
import { LASTING } from '../../io/redis/errors.ts'
import type { LimitName, RedisLimits } from '../../io/redis/limits.ts'
import type { ClusterTable } from '../../state/clusters.ts'
import type { SharedFlow } from '../../state/flow-tables.ts'
import { createKeeper, type FlowKeeper, type SharedLimitStatus, type Tick } from './global-limit-flows.ts'

interface GlobalLimitsDeps {
  readonly clusters: ClusterTable
  readonly redis: RedisLimits
  /** Unique name of this process among all replicas; different after a restart. */
  readonly replica: string
  /** Replicas to assume until Redis has answered. Default 1. */
  readonly expectedReplicas?: number
  /** Where this replica's part is saved for a start without Redis. Default: nowhere. */
  readonly kept?: KeptPart | undefined
  readonly clock: Clock
  random(): number
  readonly log: Logger
}

/** This replica's part when Redis last answered. */
export interface KeptPart {
  /** From the previous process; undefined = unknown. */
  restore(): ReplicaPart | undefined
  keep(part: ReplicaPart): void
  /** Whether Redis answers. */
  current(current: boolean): void
}

interface GlobalLimitsStatus {
  /** Address of Redis, as configured. */
  readonly redis: string
  /** The master that takes the commands, `host:port`; '' = unknown. */
  readonly node: string
  /** Last error of Redis or of a limit there, until everything works again; '' = none. */
  readonly lastError: string
  /** `parted` = Redis is unreachable, and each replica keeps to its part; `returning` = it is back, but others may not know yet. */
  readonly mode: SharingMode
  /** Since when, wall clock. */
  readonly sinceMs: number
  /** Why Redis is unreachable; '' = it is reachable. */
  readonly message: string
  /** Replicas that are alive or, while Redis is unreachable, were alive last. */
  readonly replicas: readonly string[]
  /** This replica's part while Redis is unreachable. */
  readonly part: ReplicaPart
  readonly limits: readonly SharedLimitStatus[]
}

const BEAT_MS = 250
/** Interval while no limit is shared. */
const IDLE_MS = 100
/** Redis counts as unreachable if a heartbeat was unanswered for this long and over several ticks: a pause of this process alone doesn't count. */
const AWAY_MS = 500
const AWAY_TICKS = 4
/** Jitter of checks, so that no replica always comes first. */
const JITTER = 0.4
export function startGlobalLimits(deps: GlobalLimitsDeps): GlobalLimits {
  return new GlobalLimits(deps)
}

export class GlobalLimits {
  readonly #deps: GlobalLimitsDeps
  readonly #view: ReplicaView
  readonly #keepers = new Map<string, FlowKeeper>()
  #generation = -1
  #timer: NodeJS.Timeout | undefined
  #stopped = false
  #beatMs = Number.NEGATIVE_INFINITY
  #beating = false
  #ticksSinceBeat = 0
  #sinceMs: number
  #kept: ReplicaPart | undefined
  #keeping = false
  readonly #startMs: number
  readonly #logged = new Set<string>()

  constructor(deps: GlobalLimitsDeps) {
    this.#deps = deps
    this.#view = new ReplicaView(deps.replica, deps.expectedReplicas ?? 1, deps.kept?.restore())
    this.#sinceMs = deps.clock.now()
    this.#startMs = deps.clock.monotonic()
    this.#tick()
  }

  /**
   * Limits of these clusters were added, removed or changed. Call before the gateway threads are told; otherwise it is noticed at
   * the next tick, and requests under a new limit are refused until then.
   */
  changed(names: readonly string[]): void {
    if (this.#stopped) return
    const { clusters, clock } = this.#deps
    const tick: Tick = { mode: this.#view.mode, part: this.#view.part, nowMs: clock.monotonic() }
    for (const name of names) {
      const live = clusters.get(name)
      if (live !== undefined) for (const flow of live.flows.shared()) this.#take(name, flow, tick)
    }
  }

  status(): GlobalLimitsStatus {
    const { redis } = this.#deps
    const { mode, members } = this.#view
    return {
      redis: redis.address,
      node: redis.node,
      lastError: redis.error || ([...this.#keepers.values()].find(({ error }) => error !== '')?.error ?? ''),
      mode,
      sinceMs: this.#sinceMs,
      message: mode === 'parted' ? redis.error || 'not connected yet' : '',
      replicas: members,
      part: this.#view.part,
      limits: [...this.#keepers.values()].map((keeper) => keeper.status()),
    }
  }

  /** Returns unused tokens and slots, if Redis is available. */
  async stop(): Promise<void> {
    const { redis, replica } = this.#deps
    this.#stopped = true
    clearTimeout(this.#timer)
    const keepers = [...this.#keepers.values()]
    this.#keepers.clear()
    if (redis.ready) {
      const leases = keepers.filter(({ flow }) => flow.schema.kind !== 'tokenBucket').map(({ name }) => name)
      await Promise.allSettled([...keepers.map((keeper) => keeper.giveBack()), redis.leave(replica, leases)])
    }
    redis.close()
  }

  #tick(): void {
    const { clusters, clock, random } = this.#deps
    const nowMs = clock.monotonic()
    this.#beat(nowMs)
    const tick: Tick = { mode: this.#view.mode, part: this.#view.part, nowMs }
    if (clusters.generation !== this.#generation) this.#follow(tick)
    for (const keeper of this.#keepers.values()) {
      keeper.tick(tick)
      if (keeper.error !== '' && LASTING.test(keeper.error)) this.#logRefused(keeper)
    }
    const everyMs = this.#keepers.size === 0 ? IDLE_MS : TOKENS_EVERY_MS
    this.#timer = setTimeout(() => this.#tick(), everyMs * (1 + JITTER * (random() - 0.5)))
    this.#timer.unref()
  }

  /** Adopts new limits, and drops those no longer shared. */
  #follow(tick: Tick): void {
    const { clusters } = this.#deps
    const gone = new Set(this.#keepers.keys())
    this.#generation = clusters.generation
    for (const { compiled, flows } of clusters.values()) {
      for (const flow of flows.shared()) gone.delete(this.#take(compiled.name, flow, tick))
    }
    for (const key of gone) {
      void this.#keepers
        .get(key)
        ?.giveBack()
        .catch(() => undefined)
      this.#keepers.delete(key)
    }
  }

  /** @returns the key of the limit */
  #take(cluster: string, flow: SharedFlow, tick: Tick): string {
    const { redis, replica } = this.#deps
    const name: LimitName = { cluster, schema: flow.schema.name }
    const key = `${name.cluster}/${name.schema}`
    const keeper = this.#keepers.get(key)
    if (keeper !== undefined && isSame(keeper.flow, flow)) keeper.update(flow)
    else this.#keepers.set(key, createKeeper(name, flow, redis, replica, tick))
    return key
  }

  #beat(nowMs: number): void {
    const { redis, replica } = this.#deps
    this.#ticksSinceBeat++
    if (!redis.ready) {
      this.#onDisconnect(nowMs)
      return
    }
    if (this.#beating) {
      if (nowMs - this.#beatMs >= AWAY_MS && this.#ticksSinceBeat >= AWAY_TICKS) this.#onDisconnect(nowMs)
      return
    }
    if (nowMs - this.#beatMs < BEAT_MS) return
    this.#beatMs = nowMs
    this.#beating = true
    this.#ticksSinceBeat = 0
    redis
      .beat(replica)
      .then(
        ({ members, redisMs }) => {
          if (this.#stopped) return
          this.#update(() => this.#view.onMembers(members, redisMs, this.#deps.clock.monotonic()))
          this.#keep()
        },
        () => this.#onDisconnect(this.#deps.clock.monotonic()),
      )
      .finally(() => {
        this.#beating = false
      })
  }

  #update(take: () => void): void {
    const { clock, log, redis } = this.#deps
    const before = this.#view.mode
    take()
    const { mode, members } = this.#view
    if (mode === before) return
    this.#sinceMs = clock.now()
    if (before !== 'parted') return
    log.info('Redis answers: the shared limits are kept there again', {
      redis: redis.address,
      replicas: members.length,
    })
    this.#logged.clear()
  }

  #keep(): void {
    const { kept } = this.#deps
    if (kept === undefined || this.#view.mode !== 'shared') return
    const { replicas, rank } = this.#view.part
    if (this.#kept?.replicas !== replicas || this.#kept.rank !== rank) {
      this.#kept = { replicas, rank }
      kept.keep(this.#kept)
    }
    if (!this.#keeping) kept.current(true)
    this.#keeping = true
  }

  /** Redis answers heartbeats, but refuses a limit. */
  #logRefused({ name, error }: FlowKeeper): void {
    if (this.#logged.has(error)) return
    this.#logged.add(error)
    const message = 'Redis refuses a shared limit: this replica keeps to its part of it'
    this.#deps.log.warn(message, { redis: this.#deps.redis.address, ...name, error })
  }

  /** Logs once each time that Redis becomes unreachable, and once for each error that an operator must fix. */
  #onDisconnect(nowMs: number): void {
    const { redis, clock, log } = this.#deps
    if (this.#view.mode !== 'parted') {
      this.#view.onDisconnect()
      this.#keeping = false
      this.#deps.kept?.current(false)
      this.#sinceMs = clock.now()
    }
    const { error } = redis
    const kind = LASTING.test(error) ? error : 'away'
    // At startup there is no connection for a moment.
    if (this.#stopped || this.#logged.has(kind) || (error === '' && nowMs - this.#startMs < AWAY_MS)) return
    this.#logged.add(kind)
    log.warn('Redis is away: each replica keeps to its part of the shared limits', {
      redis: redis.address,
      error,
      replicas: this.#view.part.replicas,
    })
  }
}

/** Whether both are the same limit: same memory, same kind. */
function isSame(a: SharedFlow, b: SharedFlow): boolean {
  return a.account === b.account && a.schema.kind === b.schema.kind
}
