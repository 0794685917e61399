// One shared limit in the main thread of a replica: checks what requests took, calls Redis, and refills the account
// that requests take from. No request waits for it; one call to Redis is in flight at a time.

import { errorMessage } from '../../../kit/api/validation/error-message.ts'
import type { CompiledSharedLimit } from '../../core/cluster/compiled-cluster.ts'
import { requestsMissed, tokensAtHand, tokensTaken } from '../../core/limits/global-account.ts'
import { changeTokens, setSlots } from '../../core/limits/global-fill.ts'
import { type ReplicaPart, type SharingMode, wholePart } from '../../core/limits/global-replicas.ts'
import { SlotLease } from '../../core/limits/global-slots.ts'
import { ReplicaTokens } from '../../core/limits/global-tokens.ts'
import { requestsInFlight } from '../../core/limits/in-flight.ts'
import type { LimitName, RedisLimits, SharedBucket } from '../../io/redis/limits.ts'
import type { SharedFlow } from '../../state/flow-tables.ts'

/** The state at one tick. */
export interface Tick {
  readonly mode: SharingMode
  readonly part: ReplicaPart
  readonly nowMs: number
}

/** The state of one limit. */
export interface SharedLimitStatus extends LimitName {
  readonly kind: 'tokenBucket' | 'maxRequestsInflight'
  /** `shared` = from the account in Redis; `parted` = this replica keeps to its part. */
  readonly mode: 'shared' | 'parted'
  /** Tokens, or slots, available to this replica now. */
  readonly atHand: number
  /** This replica's requests per second, or running requests. */
  readonly demand: number
}

export interface FlowKeeper {
  readonly name: LimitName
  readonly flow: SharedFlow
  /** Why Redis refused the last call for this limit; '' = it didn't. */
  readonly error: string
  /** The object has changed. */
  update(flow: SharedFlow): void
  tick(tick: Tick): void
  /** The limit is removed, or the replica stops: returns unused tokens or slots, if Redis is available. */
  giveBack(): Promise<void>
  status(): SharedLimitStatus
}

/** After Redis refused a call for this limit, the replica keeps to its part and retries after this. */
const RETRY_MS = 1_000

/** The calls to Redis for one limit. */
class RedisCalls {
  busy = false
  /** Since when calls have failed; -1 = the last one succeeded. */
  failedMs = -1
  error = ''

  isParted(mode: SharingMode): boolean {
    return mode === 'parted' || this.failedMs >= 0
  }

  mayAsk({ mode, nowMs }: Tick): boolean {
    if (this.busy || mode === 'parted') return false
    return this.failedMs < 0 || nowMs - this.failedMs >= RETRY_MS
  }

  /** A failure of all limits is detected by the heartbeat. */
  run(asked: Promise<void>, nowMs: number): void {
    this.busy = true
    asked
      .then(
        () => {
          this.failedMs = -1
          this.error = ''
        },
        (error: unknown) => {
          this.failedMs = nowMs
          this.error = errorMessage(error)
        },
      )
      .finally(() => {
        this.busy = false
      })
  }
}

export function createKeeper(
  name: LimitName,
  flow: SharedFlow,
  redis: RedisLimits,
  replica: string,
  tick: Tick,
): FlowKeeper {
  const shared = flow.schema.shared ?? { qps: 1, burst: 1, max: 0 }
  return flow.schema.kind === 'tokenBucket'
    ? new TokenKeeper(name, flow, shared, redis, tick)
    : new SlotKeeper(name, flow, shared, redis, replica, tick)
}

class TokenKeeper implements FlowKeeper {
  readonly name: LimitName
  flow: SharedFlow
  readonly #redis: RedisLimits
  readonly #tokens: ReplicaTokens
  readonly #calls = new RedisCalls()
  #bucket: SharedBucket
  #mode: SharingMode

  constructor(name: LimitName, flow: SharedFlow, shared: CompiledSharedLimit, redis: RedisLimits, tick: Tick) {
    const { counter, account } = flow
    this.name = name
    this.flow = flow
    this.#redis = redis
    this.#mode = tick.mode
    this.#bucket = redis.bucket(name, shared)
    this.#tokens = new ReplicaTokens(shared, tick.nowMs, tokensTaken(account), requestsMissed(account))
    changeTokens(counter, account, this.#tokens.seed(tick.part) - tokensAtHand(account))
  }

  update(flow: SharedFlow): void {
    const { shared } = flow.schema
    this.flow = flow
    const { limit } = this.#tokens
    if (shared === undefined || (shared.qps === limit.qps && shared.burst === limit.burst)) return
    this.#tokens.limit = shared
    this.#bucket = this.#redis.bucket(this.name, shared)
  }

  tick(tick: Tick): void {
    const { counter, account } = this.flow
    const { mode, part, nowMs } = tick
    const tokens = this.#tokens
    this.#mode = mode
    tokens.observe(tokensTaken(account), requestsMissed(account), part, nowMs)
    const atHand = tokensAtHand(account)
    if (this.#calls.isParted(mode)) changeTokens(counter, account, tokens.due(atHand, part))
    if (!this.#calls.mayAsk(tick)) return
    const retry = this.#calls.failedMs >= 0
    const wanted = retry ? 0 : tokens.wants(atHand, mode, part, nowMs)
    if (wanted !== undefined) this.#calls.run(this.#ask(wanted, nowMs), nowMs)
  }

  async #ask(wanted: number, nowMs: number): Promise<void> {
    const { counter, account } = this.flow
    // Returned tokens leave the account first.
    const given = wanted < 0 ? changeTokens(counter, account, wanted) : wanted
    const { change, level } = await this.#bucket.take(given)
    if (change > 0) changeTokens(counter, account, change)
    this.#tokens.answered(change, level, nowMs)
  }

  async giveBack(): Promise<void> {
    const { counter, account } = this.flow
    const taken = -changeTokens(counter, account, -tokensAtHand(account))
    if (taken > 0 && this.#mode === 'shared') await this.#bucket.take(-taken)
  }

  get error(): string {
    return this.#calls.error
  }

  status(): SharedLimitStatus {
    const mode = this.#calls.isParted(this.#mode) ? 'parted' : 'shared'
    const atHand = tokensAtHand(this.flow.account)
    return { ...this.name, kind: 'tokenBucket', mode, atHand, demand: this.#tokens.demand }
  }
}

class SlotKeeper implements FlowKeeper {
  readonly name: LimitName
  flow: SharedFlow
  readonly #redis: RedisLimits
  readonly #replica: string
  readonly #lease: SlotLease
  readonly #calls = new RedisCalls()
  #mode: SharingMode
  #slots = 0

  constructor(
    name: LimitName,
    flow: SharedFlow,
    shared: CompiledSharedLimit,
    redis: RedisLimits,
    replica: string,
    tick: Tick,
  ) {
    this.name = name
    this.flow = flow
    this.#redis = redis
    this.#replica = replica
    this.#mode = tick.mode
    this.#lease = new SlotLease(shared.max, requestsMissed(flow.account))
    this.#set(wholePart(shared.max, tick.part))
  }

  update(flow: SharedFlow): void {
    this.flow = flow
    this.#lease.max = flow.schema.shared?.max ?? 0
  }

  tick(tick: Tick): void {
    const { counter, account } = this.flow
    const { mode, part, nowMs } = tick
    const lease = this.#lease
    this.#mode = mode
    lease.observe(requestsMissed(account), nowMs)
    if (this.#calls.isParted(mode)) this.#set(lease.parted(part, nowMs))
    if (!this.#calls.mayAsk(tick)) return
    const target = lease.target(requestsInFlight(counter), mode, part, nowMs)
    if (!lease.isDue(target, part, nowMs)) return
    // Lower the limit before telling Redis; raise it only after Redis has granted it.
    const running = target < lease.granted ? this.#set(target) : requestsInFlight(counter)
    this.#calls.run(this.#ask(target, running, tick), nowMs)
  }

  /** Slots in use stay leased; those above `wanted` are released as requests end. */
  async #ask(wanted: number, used: number, { part, nowMs }: Tick): Promise<void> {
    const { max } = this.#lease
    const lacks = this.#lease.lacks(nowMs)
    const request = { replica: this.#replica, used, wanted, lacks, max, part: wholePart(max, { ...part, rank: 0 }) }
    const answer = await this.#redis.lease(this.name, request)
    this.#lease.answered(answer, nowMs)
    this.#set(Math.min(answer.slots, wanted))
  }

  #set(slots: number): number {
    this.#slots = slots
    return setSlots(this.flow.counter, this.flow.account, slots)
  }

  /** The lease is dropped when the replica leaves. */
  giveBack(): Promise<void> {
    return Promise.resolve()
  }

  get error(): string {
    return this.#calls.error
  }

  status(): SharedLimitStatus {
    const mode = this.#calls.isParted(this.#mode) ? 'parted' : 'shared'
    const demand = requestsInFlight(this.flow.counter)
    return { ...this.name, kind: 'maxRequestsInflight', mode, atHand: this.#slots, demand }
  }
}
