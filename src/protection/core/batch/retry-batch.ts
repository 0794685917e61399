// Batches writes to many objects: each object (key) has one writer, and what arrives during a write goes into the next one. Like
// Podseidon's retrybatch (util/retrybatch), with enforced deadlines and a pace. Pure: time comes from `now` and `schedule`.

import type { BatchAnswer, BatchOutcome, BatchRequest, RetryBatchDeps } from './request.ts'

export class RetryBatch<Operation, Result> {
  readonly #deps: BatchKeyDeps<Operation, Result>
  readonly #keys = new Map<string, BatchKey<Operation, Result>>()
  #stopped = false

  constructor(deps: RetryBatchDeps<Operation, Result>) {
    const slots = new WriteSlots(deps.pace.writesAtOnce)
    this.#deps = { ...deps, slots, onIdle: (key) => void this.#keys.delete(key) }
  }

  /** Keys that have work or are not yet idle. */
  get size(): number {
    return this.#keys.size
  }

  /** Submits requests for the same write. Each promise gets exactly one answer, and never rejects. */
  submit(key: string, requests: readonly BatchRequest<Operation>[]): Promise<BatchAnswer<Result>>[] {
    if (this.#stopped) return requests.map(() => Promise.resolve({ type: 'stopped', retries: 0 }))
    const nowMs = this.#deps.now()
    const answers: Promise<BatchAnswer<Result>>[] = []
    const added = requests.map((request): Waiting<Operation, Result> => {
      const { promise, resolve } = Promise.withResolvers<BatchAnswer<Result>>()
      answers.push(promise)
      const { operation, deadlineMs, waitMs = 0, persistent = false } = request
      return { operation, deadlineMs, persistent, dueMs: nowMs + waitMs, retries: 0, answer: resolve }
    })
    let batchKey = this.#keys.get(key)
    if (batchKey === undefined) {
      batchKey = new BatchKey(key, this.#deps, nowMs)
      this.#keys.set(key, batchKey)
    }
    batchKey.add(added)
    return answers
  }

  /** Resolves when nothing is waiting or being written; later submissions prolong it. */
  async settled(): Promise<void> {
    for (const key of this.#keys.values()) await key.settled()
  }

  /** Answers all requests immediately and starts nothing more. A running write may still complete late. */
  stop(): void {
    this.#stopped = true
    for (const key of this.#keys.values()) key.stop()
    this.#keys.clear()
  }
}

interface BatchKeyDeps<Operation, Result> extends RetryBatchDeps<Operation, Result> {
  /** Shared by all keys. */
  readonly slots: WriteSlots
  /** The key had no work for idleMs. */
  onIdle(key: string): void
}

/** A running write. */
interface Flight<Operation, Result> {
  readonly items: readonly Waiting<Operation, Result>[]
  readonly giveUpMs: number
}

/** Maximum backoff after failures. */
const MAX_BACKOFF_MS = 5_000
const MAX_DOUBLINGS = 16

/** One key: its running write, and the next deadline. */
class BatchKey<Operation, Result> implements SlotWaiter {
  readonly #key: string
  readonly #deps: BatchKeyDeps<Operation, Result>
  readonly #waiting = new WaitingLine<Operation, Result>()
  #flight: Flight<Operation, Result> | undefined
  /** No write starts before this: cold start, pace, or backoff. */
  #readyMs: number
  #idleSinceMs: number
  #failures = 0
  /** Ready, and queued for a write slot. */
  #inLine = false
  /** When the current batch started, and its failed attempts; undefined = no batch is in progress. */
  #batch: { readonly sinceMs: number; retries: number } | undefined
  #cancel: (() => void) | undefined
  #wakeMs = NEVER
  #onSettled: (() => void)[] = []

  constructor(key: string, deps: BatchKeyDeps<Operation, Result>, nowMs: number) {
    this.#key = key
    this.#deps = deps
    this.#readyMs = nowMs + deps.pace.coldStartDelayMs
    this.#idleSinceMs = nowMs
  }

  add(items: readonly Waiting<Operation, Result>[]): void {
    this.#waiting.add(items)
    this.#turn()
  }

  slotFree(): void {
    this.#inLine = false
    this.#turn()
  }

  settled(): Promise<void> {
    if (this.#isIdle()) return Promise.resolve()
    return new Promise((resolve) => this.#onSettled.push(resolve))
  }

  stop(): void {
    this.#cancel?.()
    this.#cancel = undefined
    const { items = [] } = this.#flight ?? {}
    this.#leaveLine()
    this.#flight = undefined
    for (const item of [...items, ...this.#waiting.takeAll()]) {
      answer(item, { type: 'stopped', retries: item.retries })
    }
    this.#tellSettled()
  }

  /** Does what is due, and sets the timer for the next step. */
  #turn(): void {
    const nowMs = this.#deps.now()
    this.#expire(nowMs)
    if (this.#waiting.isEmpty) this.#leaveLine()
    else if (this.#flight === undefined && !this.#inLine && this.#startMs() <= nowMs) {
      if (this.#deps.slots.take(this)) this.#start(nowMs)
      else this.#inLine = true
    }
    this.#tellSettled()
    if (this.#isIdle() && this.#idleSinceMs + this.#deps.pace.idleMs <= nowMs) {
      this.#cancel?.()
      this.#cancel = undefined
      this.#deps.onIdle(this.#key)
      return
    }
    this.#arm(nowMs)
  }

  #leaveLine(): void {
    if (!this.#inLine) return
    this.#inLine = false
    this.#deps.slots.leave(this)
  }

  /** Ends the flight after its requests were settled: the next key may start at once. */
  #land(): void {
    this.#flight = undefined
    this.#deps.slots.giveBack()
  }

  #startMs(): number {
    return this.#inLine ? NEVER : Math.max(this.#readyMs, this.#waiting.soonestDueMs)
  }

  #isIdle(): boolean {
    return this.#waiting.isEmpty && this.#flight === undefined
  }

  #arm(nowMs: number): void {
    const wakeMs = this.#isIdle()
      ? this.#idleSinceMs + this.#deps.pace.idleMs
      : Math.min(this.#flight === undefined ? this.#startMs() : this.#flightWakeMs(), this.#waiting.soonestDeadlineMs)
    if (this.#cancel !== undefined && wakeMs === this.#wakeMs) return
    this.#cancel?.()
    this.#wakeMs = wakeMs
    this.#cancel = this.#deps.schedule(Math.max(0, wakeMs - nowMs), () => {
      this.#cancel = undefined
      this.#turn()
    })
  }

  #flightWakeMs(): number {
    let wakeMs = this.#flight?.giveUpMs ?? NEVER
    for (const item of this.#flight?.items ?? []) {
      if (item.answer !== undefined) wakeMs = Math.min(wakeMs, item.deadlineMs)
    }
    return wakeMs
  }

  #expire(nowMs: number): void {
    const flight = this.#flight
    if (flight !== undefined) {
      for (const item of flight.items) expireAt(item, nowMs)
      if (flight.giveUpMs <= nowMs) this.#giveUp(flight, nowMs)
    }
    if (!this.#waiting.expire(nowMs)) return
    this.#idleSinceMs = nowMs
    if (this.#isIdle()) this.#endBatch(nowMs)
  }

  /** Requests that still have time are retried; the write may still succeed, and is then late for all of them. */
  #giveUp({ items }: Flight<Operation, Result>, nowMs: number): void {
    this.#waiting.addAgain(items)
    this.#attemptEnded(items, nowMs)
    this.#land()
  }

  #attemptEnded(items: readonly Waiting<Operation, Result>[], nowMs: number): void {
    if (items.every((item) => item.answer === undefined)) this.#endBatch(nowMs)
    else if (this.#batch !== undefined) this.#batch.retries++
  }

  #endBatch(nowMs: number): void {
    if (this.#batch === undefined) return
    const { sinceMs, retries } = this.#batch
    this.#batch = undefined
    this.#deps.onBatch(this.#key, nowMs - sinceMs, retries)
  }

  #start(nowMs: number): void {
    const items = this.#waiting.takeAll()
    const { pace } = this.#deps
    this.#batch ??= { sinceMs: nowMs, retries: 0 }
    this.#readyMs = nowMs + pace.batchIntervalMs
    let longestMs = 0
    for (const { persistent, deadlineMs } of items) if (!persistent) longestMs = Math.max(longestMs, deadlineMs)
    const timeoutMs = nowMs + pace.writeTimeoutMs
    const flight = { items, giveUpMs: longestMs === 0 ? timeoutMs : Math.min(longestMs, timeoutMs) }
    this.#flight = flight
    const operations = items.map(({ operation }) => operation)
    void outcomeOf(this.#deps, this.#key, operations).then((outcome) => this.#settle(flight, outcome))
  }

  #settle(flight: Flight<Operation, Result>, outcome: BatchOutcome<Result>): void {
    const current = this.#flight === flight
    if (outcome.type === 'done') this.#deliver(flight, outcome.results, current)
    if (!current) return
    const nowMs = this.#deps.now()
    this.#idleSinceMs = nowMs
    if (outcome.type === 'done') this.#failures = 0
    else if (outcome.type === 'conflict') this.#onConflict(flight, nowMs)
    else this.#onFailure(flight, outcome.error, nowMs)
    this.#attemptEnded(flight.items, nowMs)
    this.#land()
    this.#turn()
  }

  #deliver({ items }: Flight<Operation, Result>, results: readonly Result[], current: boolean): void {
    for (const [index, item] of items.entries()) {
      const result = results[index]
      if (result === undefined) answer(item, { type: 'failed', error: new Error('no result'), retries: item.retries })
      else if (current && item.answer !== undefined) answer(item, { type: 'done', result, retries: item.retries })
      else this.#deps.onLate(this.#key, item.operation, result)
    }
  }

  #onConflict({ items }: Flight<Operation, Result>, nowMs: number): void {
    const { retryBackoffMs, retryJitterMs } = this.#deps.pace
    this.#readyMs = Math.max(this.#readyMs, nowMs + retryBackoffMs + this.#deps.random() * retryJitterMs)
    this.#waiting.addAgain(items)
  }

  /** Only persistent requests are retried after the backoff: they join the next write and delay no other request. */
  #onFailure({ items }: Flight<Operation, Result>, error: unknown, nowMs: number): void {
    const { retryBackoffMs, retryJitterMs } = this.#deps.pace
    const backoffMs = Math.min(retryBackoffMs * 2 ** Math.min(this.#failures++, MAX_DOUBLINGS), MAX_BACKOFF_MS)
    const dueMs = nowMs + backoffMs + this.#deps.random() * retryJitterMs
    for (const item of items) {
      if (item.persistent) item.dueMs = dueMs
      else answer(item, { type: 'failed', error, retries: item.retries })
    }
    this.#waiting.addAgain(items)
  }

  #tellSettled(): void {
    if (!this.#isIdle() || this.#onSettled.length === 0) return
    const listeners = this.#onSettled
    this.#onSettled = []
    for (const listener of listeners) listener()
  }
}

/** An adapter that throws counts as failed. */
async function outcomeOf<Operation, Result>(
  { execute }: RetryBatchDeps<Operation, Result>,
  key: string,
  operations: readonly Operation[],
): Promise<BatchOutcome<Result>> {
  try {
    return await execute(key, operations)
  } catch (error) {
    return { type: 'failed', error }
  }
}

interface Waiting<Operation, Result> {
  readonly operation: Operation
  readonly deadlineMs: number
  readonly persistent: boolean
  /** No write is started for it before this, but an earlier write includes it. */
  dueMs: number
  retries: number
  /** undefined = answered. */
  answer: ((answer: BatchAnswer<Result>) => void) | undefined
}

const NEVER = Number.POSITIVE_INFINITY

/** Requests for the next write of one key, in the order of submission. */
class WaitingLine<Operation, Result> {
  #items: Waiting<Operation, Result>[] = []
  #soonestDueMs = NEVER
  #soonestDeadlineMs = NEVER

  get isEmpty(): boolean {
    return this.#items.length === 0
  }

  /** The earliest due time; NEVER = the line is empty. */
  get soonestDueMs(): number {
    return this.#soonestDueMs
  }

  get soonestDeadlineMs(): number {
    return this.#soonestDeadlineMs
  }

  add(items: readonly Waiting<Operation, Result>[]): void {
    for (const item of items) {
      this.#items.push(item)
      this.#soonestDueMs = Math.min(this.#soonestDueMs, item.dueMs)
      this.#soonestDeadlineMs = Math.min(this.#soonestDeadlineMs, item.deadlineMs)
    }
  }

  /** Requeues the unanswered requests of a write. */
  addAgain(items: readonly Waiting<Operation, Result>[]): void {
    const unanswered = items.filter((item) => item.answer !== undefined)
    for (const item of unanswered) item.retries++
    // In front of newer ones, to keep the order of submission.
    this.add([...unanswered, ...this.takeAll()])
  }

  takeAll(): readonly Waiting<Operation, Result>[] {
    const items = this.#items
    this.#items = []
    this.#soonestDueMs = NEVER
    this.#soonestDeadlineMs = NEVER
    return items
  }

  /** Answers expired requests. @returns whether there were any */
  expire(nowMs: number): boolean {
    if (this.#soonestDeadlineMs > nowMs) return false
    this.add(this.takeAll().filter((item) => !expireAt(item, nowMs)))
    return true
  }
}

function answer<Operation, Result>(item: Waiting<Operation, Result>, given: BatchAnswer<Result>): void {
  const { answer: resolve } = item
  item.answer = undefined
  resolve?.(given)
}

/** Answers the request if it has expired. @returns whether it has */
function expireAt<Operation, Result>(item: Waiting<Operation, Result>, nowMs: number): boolean {
  if (item.deadlineMs > nowMs) return false
  answer(item, { type: 'expired', retries: item.retries })
  return true
}

/** A key that is ready to write. */
interface SlotWaiter {
  /** A slot is free and may be taken once. */
  slotFree(): void
}

/**
 * Limits how many keys write concurrently. The others wait in line and keep gathering requests: a write queued elsewhere could not include
 * later ones.
 */
class WriteSlots {
  #free: number
  readonly #line = new Set<SlotWaiter>()

  constructor(count: number) {
    this.#free = count
  }

  /** @returns false = none is free; `waiter` was queued */
  take(waiter: SlotWaiter): boolean {
    if (this.#free === 0) {
      this.#line.add(waiter)
      return false
    }
    this.#free--
    return true
  }

  giveBack(): void {
    this.#free++
    for (const waiter of this.#line) {
      if (this.#free === 0) return
      this.#line.delete(waiter)
      waiter.slotFree()
    }
  }

  /** Removes the waiter from the line. */
  leave(waiter: SlotWaiter): void {
    this.#line.delete(waiter)
  }
}
