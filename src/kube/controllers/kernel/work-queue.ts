// The work queue of controllers, like client-go's: a key added several times is reconciled once, at the earliest requested time. A limited
// number are reconciled at once, never one key twice. A failed key backs off exponentially, and writes of one key keep a minimum spacing.

import type { Clock } from '../../../kit/api/ports.ts'
import { TimeQueue } from '../../../kit/core/queues/time-queue.ts'

/** `done` = nothing was written, so the next run need not keep the spacing; `conflict` = another client wrote first: retried soon. */
export type ReconcileOutcome = 'done' | 'written' | 'conflict' | 'failed'

interface WorkQueueDeps {
  reconcile(key: string): Promise<ReconcileOutcome>
  /** A run has thrown, which is a bug; it counts as failed. Default: ignored. */
  onError?(key: string, error: unknown): void
  readonly clock: Pick<Clock, 'monotonic'>
  /** In [0, 1). */
  random(): number
  /** Concurrent runs. */
  readonly limit: number
  readonly pace?: Partial<WorkPace>
}

/** Milliseconds. */
export interface WorkPace {
  /** Between the starts of a run that wrote something and the next one of the same key. Default 0. */
  readonly spacingMs: number
  /** Before the run after a conflict: half of it to one and a half. Default 150. */
  readonly conflictMs: number
  /** Before the run after a failure: half of it to all; doubles with each failure in a row. Default 1 s. */
  readonly firstBackoffMs: number
  /** Default 30 s. */
  readonly longestBackoffMs: number
}

interface Item {
  readonly key: string
  /** When it is due, monotonic; NEVER = not queued. */
  dueMs: number
  /** Its entry in the queue, while it is waiting and not running. */
  slot: Slot | undefined
  running: boolean
  /** Start of the last run that wrote something, or tried to. */
  wroteMs: number
  /** Consecutive failures. */
  failures: number
  /** End of the backoff. */
  untilMs: number
  /** Forgotten while running: the outcome is ignored. */
  forgotten: boolean
}

interface Slot {
  readonly item: Item
}

const DEFAULT_PACE: WorkPace = { spacingMs: 0, conflictMs: 150, firstBackoffMs: 1_000, longestBackoffMs: 30_000 }
const NEVER = Number.POSITIVE_INFINITY
const LONG_AGO = Number.NEGATIVE_INFINITY
/** Yields to other work after this long: a run that awaits nothing never yields by itself. */
const SLICE_MS = 10
/** Maximum delay of setTimeout. */
const MAX_DELAY_MS = 2 ** 31 - 1

export class WorkQueue {
  readonly #deps: WorkQueueDeps
  readonly #pace: WorkPace
  readonly #items = new Map<string, Item>()
  /** Waiting keys, and stale slots of keys that were rescheduled or forgotten. */
  readonly #due = new TimeQueue<Slot>()
  #running = 0
  #timer: NodeJS.Timeout | undefined
  #timerAtMs = NEVER
  /** Time spent in runs since other work last ran, and the pending yield. */
  #spentMs = 0
  #others: NodeJS.Immediate | undefined
  #stopped = false
  #onIdle: (() => void) | undefined

  constructor(deps: WorkQueueDeps) {
    this.#deps = deps
    this.#pace = { ...DEFAULT_PACE, ...deps.pace }
  }

  /** Keys waiting to be reconciled. */
  get size(): number {
    let size = 0
    for (const { dueMs } of this.#items.values()) if (dueMs !== NEVER) size++
    return size
  }

  /** Schedules a turn after `delayMs`, unless an earlier one is due. @returns false if one was already scheduled */
  add(key: string, delayMs = 0): boolean {
    if (this.#stopped) return false
    const item = this.#itemOf(key)
    const isNew = item.dueMs === NEVER
    this.#ask(item, Math.max(this.#deps.clock.monotonic() + delayMs, this.#soonest(item)))
    return isNew
  }

  /** The cause of failures is gone: failed keys are reconciled at once. */
  retry(): void {
    for (const item of this.#items.values()) {
      if (item.failures === 0) continue
      item.failures = 0
      this.#unask(item)
      this.add(item.key)
    }
  }

  /** Drops the key's state and pending run; a running one continues. */
  forget(key: string): void {
    const item = this.#items.get(key)
    if (item === undefined) return
    this.#unask(item)
    if (item.running) item.forgotten = true
    else this.#items.delete(key)
  }

  /** Starts no more runs; resolves when the running ones are done. */
  stop(): Promise<void> {
    this.#stopped = true
    clearTimeout(this.#timer)
    clearImmediate(this.#others)
    this.#items.clear()
    if (this.#running === 0) return Promise.resolve()
    return new Promise((resolve) => {
      this.#onIdle = resolve
    })
  }

  #itemOf(key: string): Item {
    const known = this.#items.get(key)
    if (known !== undefined) return known
    const waiting = { dueMs: NEVER, slot: undefined, running: false, forgotten: false }
    const item: Item = { key, ...waiting, wroteMs: LONG_AGO, failures: 0, untilMs: 0 }
    this.#items.set(key, item)
    return item
  }

  #soonest({ failures, untilMs, wroteMs }: Item): number {
    return failures > 0 ? untilMs : wroteMs + this.#pace.spacingMs
  }

  #ask(item: Item, atMs: number): void {
    if (item.dueMs <= atMs) return
    item.dueMs = atMs
    // If it is running, when it ends.
    if (item.running) return
    item.slot = { item }
    this.#due.add(atMs, item.slot)
    this.#arm()
  }

  #unask(item: Item): void {
    item.dueMs = NEVER
    item.slot = undefined
  }

  #arm(): void {
    const atMs = this.#due.firstMs
    if (this.#spentMs > SLICE_MS || this.#stopped || atMs === NEVER || this.#running >= this.#deps.limit) return
    if (this.#timer !== undefined && this.#timerAtMs <= atMs) return
    clearTimeout(this.#timer)
    const waitMs = Math.min(Math.max(Math.ceil(atMs - this.#deps.clock.monotonic()), 0), MAX_DELAY_MS)
    this.#timerAtMs = atMs
    this.#timer = setTimeout(() => this.#pump(waitMs === MAX_DELAY_MS ? LONG_AGO : atMs), waitMs)
    this.#timer.unref()
  }

  /** @param timerMs the time the timer was set for, which counts even if it fired slightly early */
  #pump(timerMs = LONG_AGO): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    const nowMs = Math.max(this.#deps.clock.monotonic(), timerMs)
    while (!this.#stopped && this.#running < this.#deps.limit && this.#spentMs <= SLICE_MS) {
      if (this.#due.firstMs > nowMs) break
      const slot = this.#due.takeFirst()
      if (slot !== undefined && slot.item.slot === slot) void this.#run(slot.item)
    }
    this.#arm()
  }

  async #run(item: Item): Promise<void> {
    this.#unask(item)
    item.running = true
    this.#running++
    const beganMs = this.#deps.clock.monotonic()
    const running = this.#reconcile(item.key)
    this.#spend(this.#deps.clock.monotonic() - beganMs)
    const outcome = await running
    item.running = false
    this.#running--
    if (!this.#stopped) {
      this.#settle(item, outcome, beganMs)
      this.#pump()
    } else if (this.#running === 0) this.#onIdle?.()
  }

  /** Never rejects: one bad object must not end the process. */
  async #reconcile(key: string): Promise<ReconcileOutcome> {
    try {
      return await this.#deps.reconcile(key)
    } catch (error) {
      this.#deps.onError?.(key, error)
      return 'failed'
    }
  }

  #spend(ms: number): void {
    this.#spentMs += ms
    this.#others ??= setImmediate(() => {
      this.#others = undefined
      this.#spentMs = 0
      this.#pump()
    })
  }

  #settle(item: Item, outcome: ReconcileOutcome, beganMs: number): void {
    const { clock, random } = this.#deps
    const { spacingMs, conflictMs, firstBackoffMs, longestBackoffMs } = this.#pace
    const { key, dueMs, forgotten } = item
    this.#unask(item)
    if (forgotten) {
      this.#items.delete(key)
      if (dueMs !== NEVER) this.#ask(this.#itemOf(key), dueMs)
      return
    }
    const nowMs = clock.monotonic()
    if (outcome !== 'done') item.wroteMs = beganMs
    if (outcome === 'failed') {
      const backoffMs = Math.min(firstBackoffMs * 2 ** Math.min(item.failures, 20), longestBackoffMs)
      item.failures++
      item.untilMs = nowMs + backoffMs * (0.5 + random() / 2)
      this.#ask(item, item.untilMs)
      return
    }
    item.failures = 0
    if (outcome === 'conflict') this.#ask(item, nowMs + conflictMs * (0.5 + random()))
    // Scheduled while it ran.
    else if (dueMs !== NEVER) this.#ask(item, Math.max(dueMs, this.#soonest(item)))
    else if (spacingMs === 0) this.#items.delete(key)
  }
}
