// Limits that all replicas share (globalTokenBucket, globalMaxRequestsInflight), kept in Redis. Runs in the main thread; requests
// take what it has fetched ahead from shared memory and never wait for Redis.
//
// With Redis away, each replica keeps to its part: the limit divided by the replicas that were alive when Redis was last
// heard. Error bounds: src/core/limits/global-tokens.ts and global-slots.ts. Beyond them:
//   - A replica that alone has lost Redis keeps to its part while the others share the whole: one part more in all.
//   - After a crash, its slots are free within LEASE_MS, and the tokens that it held are lost.
//   - A replica that was never told how many there are (`expectedReplicas`), and has never reached Redis, is alone.

import type { Clock, Logger } from '../../api/ports/ports.ts'
import { ReplicaView, type SharingMode } from '../../core/limits/global-replicas.ts'
import { TOKENS_EVERY_MS } from '../../core/limits/global-tokens.ts'
import type { LimitName, RedisLimits } from '../../io/redis/limits.ts'
import type { ClusterTable } from '../../state/clusters.ts'
import type { SharedFlow } from '../../state/flow-tables.ts'
import { createKeeper, type FlowKeeper, type Look, type SharedLimitStatus } from './global-limit-flows.ts'

export interface GlobalLimitsDeps {
  readonly clusters: ClusterTable
  readonly redis: RedisLimits
  /** Names this process among all replicas: another one after a restart. */
  readonly replica: string
  /** How many replicas there are, as long as Redis has never said so. Default 1. */
  readonly expectedReplicas?: number
  readonly clock: Clock
  random(): number
  readonly log: Logger
}

export interface GlobalLimitsStatus {
  /** Where Redis is, `host:port`. */
  readonly redis: string
  /** `parted` = Redis is away, and each replica keeps to its part; `returning` = it is back, others may not know yet. */
  readonly mode: SharingMode
  /** Since when, wall clock. */
  readonly sinceMs: number
  /** Why Redis is away; '' = it is not. */
  readonly message: string
  /** Replicas alive; with Redis away, those that were. */
  readonly replicas: readonly string[]
  readonly limits: readonly SharedLimitStatus[]
}

export interface GlobalLimits {
  /**
   * The limits of these clusters have come, gone or changed. To be called before gateway threads hear of it: without it, that
   * is noticed at the next look, and requests under a new limit are refused until then.
   */
  changed(clusters: readonly string[]): void
  status(): GlobalLimitsStatus
  /** Gives back what this replica holds, as far as Redis is there. */
  stop(): Promise<void>
}

const BEAT_MS = 250
/** With no limit to share. */
const IDLE_MS = 100
/** A beat that is unanswered for so long, over several looks: Redis is away. A pause of this process alone is no sign. */
const AWAY_MS = 500
const AWAY_LOOKS = 4
/** Looks are spread by this much, so that no replica always comes first. */
const JITTER = 0.4
/** What only a person can mend is worth a line of its own. */
const LASTING = /^(NOAUTH|WRONGPASS|NOPERM|ERR (AUTH|invalid password|Client sent AUTH))|certificate/i

export function startGlobalLimits(deps: GlobalLimitsDeps): GlobalLimits {
  return new Limits(deps)
}

class Limits implements GlobalLimits {
  readonly #deps: GlobalLimitsDeps
  readonly #view: ReplicaView
  readonly #keepers = new Map<string, FlowKeeper>()
  #generation = -1
  #timer: NodeJS.Timeout | undefined
  #stopped = false
  #beatMs = Number.NEGATIVE_INFINITY
  #beating = false
  #looksSinceBeat = 0
  #sinceMs: number
  readonly #startMs: number
  readonly #logged = new Set<string>()

  constructor(deps: GlobalLimitsDeps) {
    this.#deps = deps
    this.#view = new ReplicaView(deps.replica, deps.expectedReplicas ?? 1)
    this.#sinceMs = deps.clock.now()
    this.#startMs = deps.clock.monotonic()
    this.#look()
  }

  changed(names: readonly string[]): void {
    if (this.#stopped) return
    const { clusters, clock } = this.#deps
    const look: Look = { mode: this.#view.mode, part: this.#view.part, nowMs: clock.monotonic() }
    for (const name of names) {
      const live = clusters.get(name)
      if (live !== undefined) for (const flow of live.flows.shared()) this.#take(name, flow, look)
    }
  }

  status(): GlobalLimitsStatus {
    const { redis } = this.#deps
    const { mode, members } = this.#view
    return {
      redis: redis.address,
      mode,
      sinceMs: this.#sinceMs,
      message: mode === 'parted' ? redis.error || 'not connected yet' : '',
      replicas: members,
      limits: [...this.#keepers.values()].map((keeper) => keeper.status()),
    }
  }

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

  #look(): void {
    const { clusters, clock, random } = this.#deps
    const nowMs = clock.monotonic()
    this.#beat(nowMs)
    const look: Look = { mode: this.#view.mode, part: this.#view.part, nowMs }
    if (clusters.generation !== this.#generation) this.#follow(look)
    for (const keeper of this.#keepers.values()) keeper.look(look)
    const everyMs = this.#keepers.size === 0 ? IDLE_MS : TOKENS_EVERY_MS
    this.#timer = setTimeout(() => this.#look(), everyMs * (1 + JITTER * (random() - 0.5)))
    this.#timer.unref()
  }

  /** Takes up limits that are new, and lets go of those that are not shared any more. */
  #follow(look: Look): void {
    const { clusters } = this.#deps
    const gone = new Set(this.#keepers.keys())
    this.#generation = clusters.generation
    for (const { compiled, flows } of clusters.values()) {
      for (const flow of flows.shared()) gone.delete(this.#take(compiled.name, flow, look))
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
  #take(cluster: string, flow: SharedFlow, look: Look): string {
    const { redis, replica } = this.#deps
    const name: LimitName = { cluster, schema: flow.schema.name }
    const key = `${name.cluster}/${name.schema}`
    const keeper = this.#keepers.get(key)
    if (keeper !== undefined && isSame(keeper.flow, flow)) keeper.update(flow)
    else this.#keepers.set(key, createKeeper(name, flow, redis, replica, look))
    return key
  }

  #beat(nowMs: number): void {
    const { redis, replica } = this.#deps
    this.#looksSinceBeat++
    if (!redis.ready) {
      this.#onDisconnect(nowMs)
      return
    }
    if (this.#beating) {
      if (nowMs - this.#beatMs >= AWAY_MS && this.#looksSinceBeat >= AWAY_LOOKS) this.#onDisconnect(nowMs)
      return
    }
    if (nowMs - this.#beatMs < BEAT_MS) return
    this.#beatMs = nowMs
    this.#beating = true
    this.#looksSinceBeat = 0
    redis
      .beat(replica)
      .then(
        ({ members, redisMs }) => {
          if (!this.#stopped) this.#update(() => this.#view.onMembers(members, redisMs, this.#deps.clock.monotonic()))
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

  /** One line for each time that Redis goes away, and one for what a person has to mend. */
  #onDisconnect(nowMs: number): void {
    const { redis, clock, log } = this.#deps
    if (this.#view.mode !== 'parted') {
      this.#view.onDisconnect()
      this.#sinceMs = clock.now()
    }
    const { error } = redis
    const kind = LASTING.test(error) ? error : 'away'
    // At the start there is no connection for a moment.
    if (this.#stopped || this.#logged.has(kind) || (error === '' && nowMs - this.#startMs < AWAY_MS)) return
    this.#logged.add(kind)
    log.warn('Redis is away: each replica keeps to its part of the shared limits', {
      redis: redis.address,
      error,
      replicas: this.#view.part.replicas,
    })
  }
}

/** Whether both are one limit: of the same memory and kind. */
function isSame(a: SharedFlow, b: SharedFlow): boolean {
  return a.account === b.account && a.schema.kind === b.schema.kind
}
