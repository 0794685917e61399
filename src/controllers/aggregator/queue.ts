// Which protectors to count again, and when: each once, however often it is added, at the earliest time asked for. Several run
// at a time, one protector never twice.

import type { Clock } from '../../api/ports/ports.ts'

/** `conflict` = somebody else wrote first; `failed` = retried with a growing backoff. */
export type CountOutcome = 'done' | 'conflict' | 'failed'

export interface AggregationQueueDeps {
  /** Never rejects. */
  count(key: string): Promise<CountOutcome>
  readonly clock: Clock
  /** In [0, 1). */
  random(): number
  /** Turns at a time. */
  readonly limit: number
}

interface Due {
  readonly key: string
  /** Monotonic milliseconds. */
  readonly atMs: number
}

const CONFLICT_MS = 10
const FIRST_BACKOFF_MS = 100
const MAX_BACKOFF_MS = 60_000
/** After this much counting other work runs first: a count that needs no write never yields by itself. */
const SLICE_MS = 10
/** The longest delay that setTimeout takes. */
const MAX_DELAY_MS = 2 ** 31 - 1

export class AggregationQueue {
  readonly #deps: AggregationQueueDeps
  readonly #due = new Map<string, Due>()
  /** Everything in `#due`, and outdated entries; the earliest first. */
  readonly #heap = new DueHeap()
  readonly #running = new Set<string>()
  /** Failures in a row, and the end of the backoff. */
  readonly #failures = new Map<string, { count: number; untilMs: number }>()
  #timer: NodeJS.Timeout | undefined
  #timerAtMs = Number.POSITIVE_INFINITY
  /** Time spent counting since other work last ran, and the pending turn for it. */
  #spentMs = 0
  #others: NodeJS.Immediate | undefined
  #stopped = false
  #onIdle: (() => void) | undefined

  constructor(deps: AggregationQueueDeps) {
    this.#deps = deps
  }

  get size(): number {
    return this.#due.size
  }

  /** @returns false when it was already due at that time or earlier */
  add(key: string, delayMs: number): boolean {
    if (this.#stopped) return false
    const untilMs = this.#failures.get(key)?.untilMs ?? Number.NEGATIVE_INFINITY
    const atMs = Math.max(this.#deps.clock.monotonic() + delayMs, untilMs)
    const known = this.#due.get(key)
    if (known !== undefined && known.atMs <= atMs) return false
    const due = { key, atMs }
    this.#due.set(key, due)
    if (!this.#running.has(key)) this.#push(due)
    return known === undefined
  }

  forget(key: string): void {
    this.#due.delete(key)
    this.#failures.delete(key)
  }

  /** Starts no more counts; resolves when the running ones are done. */
  stop(): Promise<void> {
    this.#stopped = true
    clearTimeout(this.#timer)
    clearImmediate(this.#others)
    this.#due.clear()
    this.#failures.clear()
    if (this.#running.size === 0) return Promise.resolve()
    return new Promise((resolve) => {
      this.#onIdle = resolve
    })
  }

  #push(due: Due): void {
    this.#heap.push(due)
    this.#arm()
  }

  #arm(): void {
    const first = this.#heap.first
    if (this.#spentMs > SLICE_MS || this.#stopped || first === undefined || this.#running.size >= this.#deps.limit)
      return
    if (this.#timer !== undefined && this.#timerAtMs <= first.atMs) return
    clearTimeout(this.#timer)
    this.#timerAtMs = first.atMs
    const waitMs = Math.min(Math.max(Math.ceil(first.atMs - this.#deps.clock.monotonic()), 0), MAX_DELAY_MS)
    this.#timer = setTimeout(() => this.#pump(), waitMs)
    this.#timer.unref()
  }

  #pump(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    const nowMs = this.#deps.clock.monotonic()
    while (!this.#stopped && this.#running.size < this.#deps.limit && this.#spentMs <= SLICE_MS) {
      const first = this.#heap.first
      if (first === undefined || first.atMs > nowMs) break
      this.#heap.pop()
      // An entry that was moved to an earlier time or forgotten is still in the heap.
      if (this.#due.get(first.key) !== first || this.#running.has(first.key)) continue
      this.#due.delete(first.key)
      void this.#run(first.key)
    }
    this.#arm()
  }

  async #run(key: string): Promise<void> {
    this.#running.add(key)
    const beginMs = this.#deps.clock.monotonic()
    const counting = this.#deps.count(key)
    this.#spend(this.#deps.clock.monotonic() - beginMs)
    const outcome = await counting
    this.#running.delete(key)
    if (!this.#stopped) {
      this.#settle(key, outcome)
      this.#pump()
    } else if (this.#running.size === 0) this.#onIdle?.()
  }

  #spend(ms: number): void {
    this.#spentMs += ms
    this.#others ??= setImmediate(() => {
      this.#others = undefined
      this.#spentMs = 0
      this.#pump()
    })
  }

  #settle(key: string, outcome: CountOutcome): void {
    const { clock, random } = this.#deps
    // Added while it ran.
    const waiting = this.#due.get(key)
    if (outcome === 'failed') {
      const count = this.#failures.get(key)?.count ?? 0
      const backoffMs = Math.min(FIRST_BACKOFF_MS * 2 ** Math.min(count, 20), MAX_BACKOFF_MS) * (0.5 + random() / 2)
      this.#failures.set(key, { count: count + 1, untilMs: clock.monotonic() + backoffMs })
      this.#due.delete(key)
      this.add(key, backoffMs)
      return
    }
    this.#failures.delete(key)
    if (waiting !== undefined) this.#push(waiting)
    if (outcome === 'conflict') this.add(key, CONFLICT_MS * (0.5 + random()))
  }
}

/** A binary heap. */
class DueHeap {
  readonly #all: Due[] = []

  get first(): Due | undefined {
    return this.#all[0]
  }

  push(due: Due): void {
    const all = this.#all
    let at = all.length
    while (at > 0) {
      const parent = (at - 1) >> 1
      const above = all[parent]
      if (above === undefined || above.atMs <= due.atMs) break
      all[at] = above
      at = parent
    }
    all[at] = due
  }

  pop(): void {
    const all = this.#all
    const last = all.pop()
    if (last === undefined || all.length === 0) return
    let at = 0
    for (;;) {
      const child = this.#lesserChild(at)
      const below = all[child]
      if (below === undefined || last.atMs <= below.atMs) break
      all[at] = below
      at = child
    }
    all[at] = last
  }

  #lesserChild(at: number): number {
    const [left, right] = [2 * at + 1, 2 * at + 2]
    const [a, b] = [this.#all[left], this.#all[right]]
    return b !== undefined && a !== undefined && b.atMs < a.atMs ? right : left
  }
}
