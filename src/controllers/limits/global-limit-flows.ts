// One limit that replicas share, as the main thread of one of them keeps it: looks at what requests took, asks Redis, and
// fills the account that requests take from. Nothing here is waited for; one question at a time is under way.

import type { CompiledSharedLimit } from '../../core/cluster/compiled-cluster.ts'
import { requestsMissed, tokensAtHand, tokensTaken } from '../../core/limits/global-account.ts'
import { changeTokens, setSlots } from '../../core/limits/global-fill.ts'
import { type ReplicaPart, type SharingMode, wholePart } from '../../core/limits/global-replicas.ts'
import { SlotShare } from '../../core/limits/global-slots.ts'
import { TokenShare } from '../../core/limits/global-tokens.ts'
import { requestsInFlight } from '../../core/limits/in-flight.ts'
import type { LimitName, RedisLimits, SharedBucket } from '../../io/redis/limits.ts'
import type { SharedFlow } from '../../state/flow-tables.ts'

/** How things stand at one look. */
export interface Look {
  readonly mode: SharingMode
  readonly part: ReplicaPart
  readonly nowMs: number
}

/** One limit as it stands. */
export interface SharedLimitStatus extends LimitName {
  readonly kind: 'tokenBucket' | 'maxRequestsInflight'
  /** `shared` = out of the account in Redis; `parted` = this replica keeps to its part. */
  readonly mode: 'shared' | 'parted'
  /** Tokens, or slots, that this replica may use now. */
  readonly atHand: number
  /** Requests a second that ask for it here, or that run. */
  readonly demand: number
}

export interface FlowKeeper {
  readonly name: LimitName
  readonly flow: SharedFlow
  /** The object has changed. */
  update(flow: SharedFlow): void
  look(look: Look): void
  /** The limit goes, or the replica ends: what it holds goes back, if Redis is there. */
  giveBack(): Promise<void>
  status(): SharedLimitStatus
}

/** A limit that Redis alone refuses to keep is kept by parts, and asked for again this much later. */
const RETRY_MS = 1_000

/** Whether one limit can be asked about. */
class Asking {
  busy = false
  /** Since when it fails; -1 = it does not. */
  failedMs = -1

  isParted(mode: SharingMode): boolean {
    return mode === 'parted' || this.failedMs >= 0
  }

  mayAsk({ mode, nowMs }: Look): boolean {
    if (this.busy || mode === 'parted') return false
    return this.failedMs < 0 || nowMs - this.failedMs >= RETRY_MS
  }

  /** Failures of all limits together are for the beats to judge. */
  run(asked: Promise<void>, nowMs: number): void {
    this.busy = true
    asked
      .then(
        () => {
          this.failedMs = -1
        },
        () => {
          this.failedMs = nowMs
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
  look: Look,
): FlowKeeper {
  const shared = flow.schema.shared ?? { qps: 1, burst: 1, max: 0 }
  return flow.schema.kind === 'tokenBucket'
    ? new TokenKeeper(name, flow, shared, redis, look)
    : new SlotKeeper(name, flow, shared, redis, replica, look)
}

class TokenKeeper implements FlowKeeper {
  readonly name: LimitName
  flow: SharedFlow
  readonly #redis: RedisLimits
  readonly #share: TokenShare
  readonly #asking = new Asking()
  #bucket: SharedBucket
  #mode: SharingMode

  constructor(name: LimitName, flow: SharedFlow, shared: CompiledSharedLimit, redis: RedisLimits, look: Look) {
    const { cell, account } = flow
    this.name = name
    this.flow = flow
    this.#redis = redis
    this.#mode = look.mode
    this.#bucket = redis.bucket(name, shared)
    this.#share = new TokenShare(shared, look.nowMs, tokensTaken(account), requestsMissed(account))
    changeTokens(cell, account, this.#share.seed(look.part) - tokensAtHand(account))
  }

  update(flow: SharedFlow): void {
    const { shared } = flow.schema
    this.flow = flow
    const { limit } = this.#share
    if (shared === undefined || (shared.qps === limit.qps && shared.burst === limit.burst)) return
    this.#share.limit = shared
    this.#bucket = this.#redis.bucket(this.name, shared)
  }

  look(look: Look): void {
    const { cell, account } = this.flow
    const { mode, part, nowMs } = look
    const share = this.#share
    this.#mode = mode
    share.observe(tokensTaken(account), requestsMissed(account), part, nowMs)
    const atHand = tokensAtHand(account)
    if (this.#asking.isParted(mode)) changeTokens(cell, account, share.due(atHand, part))
    if (!this.#asking.mayAsk(look)) return
    const retry = this.#asking.failedMs >= 0
    const wanted = retry ? 0 : share.wants(atHand, mode, part, nowMs)
    if (wanted !== undefined) this.#asking.run(this.#ask(wanted, nowMs), nowMs)
  }

  async #ask(wanted: number, nowMs: number): Promise<void> {
    const { cell, account } = this.flow
    // What goes back is gone here first.
    const given = wanted < 0 ? changeTokens(cell, account, wanted) : wanted
    const { change, level } = await this.#bucket.take(given)
    if (change > 0) changeTokens(cell, account, change)
    this.#share.answered(change, level, nowMs)
  }

  async giveBack(): Promise<void> {
    const { cell, account } = this.flow
    const taken = -changeTokens(cell, account, -tokensAtHand(account))
    if (taken > 0 && this.#mode === 'shared') await this.#bucket.take(-taken)
  }

  status(): SharedLimitStatus {
    const mode = this.#asking.isParted(this.#mode) ? 'parted' : 'shared'
    const atHand = tokensAtHand(this.flow.account)
    return { ...this.name, kind: 'tokenBucket', mode, atHand, demand: this.#share.demand }
  }
}

class SlotKeeper implements FlowKeeper {
  readonly name: LimitName
  flow: SharedFlow
  readonly #redis: RedisLimits
  readonly #replica: string
  readonly #share: SlotShare
  readonly #asking = new Asking()
  #mode: SharingMode
  #slots = 0

  constructor(
    name: LimitName,
    flow: SharedFlow,
    shared: CompiledSharedLimit,
    redis: RedisLimits,
    replica: string,
    look: Look,
  ) {
    this.name = name
    this.flow = flow
    this.#redis = redis
    this.#replica = replica
    this.#mode = look.mode
    this.#share = new SlotShare(shared.max, requestsMissed(flow.account))
    this.#set(wholePart(shared.max, look.part))
  }

  update(flow: SharedFlow): void {
    this.flow = flow
    this.#share.max = flow.schema.shared?.max ?? 0
  }

  look(look: Look): void {
    const { cell, account } = this.flow
    const { mode, part, nowMs } = look
    const share = this.#share
    this.#mode = mode
    share.observe(requestsMissed(account), nowMs)
    if (this.#asking.isParted(mode)) this.#set(share.parted(part, nowMs))
    if (!this.#asking.mayAsk(look)) return
    const target = share.target(requestsInFlight(cell), mode, part, nowMs)
    if (!share.isDue(target, part, nowMs)) return
    // Fewer are used before Redis is told so, and more only after it has said so.
    const running = target < share.granted ? this.#set(target) : requestsInFlight(cell)
    this.#asking.run(this.#ask(target, running, look), nowMs)
  }

  /** What is in use stays leased; those over `wanted` end by and by. */
  async #ask(wanted: number, used: number, { part, nowMs }: Look): Promise<void> {
    const { max } = this.#share
    const lacks = this.#share.lacks(nowMs)
    const request = { replica: this.#replica, used, wanted, lacks, max, part: wholePart(max, { ...part, rank: 0 }) }
    const answer = await this.#redis.lease(this.name, request)
    this.#share.answered(answer, nowMs)
    this.#set(Math.min(answer.slots, wanted))
  }

  #set(slots: number): number {
    this.#slots = slots
    return setSlots(this.flow.cell, this.flow.account, slots)
  }

  /** The lease goes with the replica. */
  giveBack(): Promise<void> {
    return Promise.resolve()
  }

  status(): SharedLimitStatus {
    const mode = this.#asking.isParted(this.#mode) ? 'parted' : 'shared'
    const demand = requestsInFlight(this.flow.cell)
    return { ...this.name, kind: 'maxRequestsInflight', mode, atHand: this.#slots, demand }
  }
}
