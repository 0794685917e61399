// The work queue of statuses: a cluster that was added several times gets one turn. Few turns run at a time, and writes of one cluster
// keep the spacing.

import type { Clock } from '../../api/ports/ports.ts'

/**
 * The outcome of a turn. `nothing` = nothing was written, so the next turn need not keep the spacing; `again` = retry soon after a
 * conflict; `failed` = retry with a growing backoff.
 */
export type TurnOutcome = 'written' | 'nothing' | 'again' | 'failed'

export interface QueueDeps {
  turn(cluster: string): Promise<TurnOutcome>
  /** A turn has thrown, which is a bug; it counts as failed. Default: ignored. */
  onError?(cluster: string, error: unknown): void
  readonly clock: Clock
  /** In [0, 1). */
  random(): number
  /** Turns at a time. */
  readonly limit: number
  /** Between two writes of one cluster. */
  readonly spacingMs: number
}

interface QueueEntry {
  readonly cluster: string
  timer: NodeJS.Timeout | undefined
  /** When the timer ends, monotonic. */
  dueMs: number
  state: 'idle' | 'waiting' | 'ready' | 'running'
  /** Added again while it ran. */
  again: boolean
  /** When the last turn that wrote something began; monotonic. */
  lastMs: number
  failures: number
}

const AGAIN_MS = 200
const FIRST_BACKOFF_MS = 1_000
const MAX_BACKOFF_MS = 30_000
/** The longest delay that setTimeout takes. */
const MAX_DELAY_MS = 2 ** 31 - 1

export class StatusQueue {
  readonly #deps: QueueDeps
  readonly #entries = new Map<string, QueueEntry>()
  #ready: QueueEntry[] = []
  #running = 0
  #stopped = false
  #onIdle: (() => void) | undefined

  constructor(deps: QueueDeps) {
    this.#deps = deps
  }

  /** Clusters that are ready or waiting. */
  get size(): number {
    let size = 0
    for (const { state } of this.#entries.values()) if (state === 'ready' || state === 'waiting') size++
    return size
  }

  /** Queues a turn as soon as possible, or after `delayMs`; a turn that is due earlier stays. */
  add(cluster: string, delayMs = 0): void {
    if (this.#stopped) return
    const entry = this.#entryOf(cluster)
    if (entry.state === 'ready') return
    if (entry.state === 'running' && delayMs === 0) {
      entry.again = true
      return
    }
    const nowMs = this.#deps.clock.monotonic()
    const soonestMs = entry.failures > 0 && delayMs === 0 ? entry.dueMs : entry.lastMs + this.#deps.spacingMs
    const dueMs = Math.max(nowMs + delayMs, soonestMs)
    if (entry.timer !== undefined && entry.dueMs <= dueMs) return
    this.#arm(entry, dueMs, nowMs)
  }

  /** The cause of failures is gone: failed turns are retried at once. */
  retry(): void {
    for (const entry of this.#entries.values()) {
      if (entry.failures === 0) continue
      entry.failures = 0
      clearTimeout(entry.timer)
      entry.timer = undefined
      this.add(entry.cluster)
    }
  }

  forget(cluster: string): void {
    const entry = this.#entries.get(cluster)
    if (entry === undefined) return
    clearTimeout(entry.timer)
    this.#entries.delete(cluster)
    this.#ready = this.#ready.filter((other) => other !== entry)
  }

  /** Starts no more turns; resolves when the running ones are done. */
  stop(): Promise<void> {
    this.#stopped = true
    for (const entry of this.#entries.values()) clearTimeout(entry.timer)
    this.#ready = []
    if (this.#running === 0) return Promise.resolve()
    return new Promise((resolve) => {
      this.#onIdle = resolve
    })
  }

  #entryOf(cluster: string): QueueEntry {
    const known = this.#entries.get(cluster)
    if (known !== undefined) return known
    const entry: QueueEntry = {
      cluster,
      timer: undefined,
      dueMs: 0,
      state: 'idle',
      again: false,
      lastMs: Number.NEGATIVE_INFINITY,
      failures: 0,
    }
    this.#entries.set(cluster, entry)
    return entry
  }

  #arm(entry: QueueEntry, dueMs: number, nowMs: number): void {
    clearTimeout(entry.timer)
    entry.dueMs = dueMs
    if (entry.state === 'idle') entry.state = 'waiting'
    entry.timer = setTimeout(() => this.#onDue(entry), Math.min(Math.max(dueMs - nowMs, 0), MAX_DELAY_MS))
    entry.timer.unref()
  }

  #onDue(entry: QueueEntry): void {
    entry.timer = undefined
    if (entry.state === 'running') {
      entry.again = true
      return
    }
    entry.state = 'ready'
    this.#ready.push(entry)
    this.#pump()
  }

  #pump(): void {
    while (!this.#stopped && this.#running < this.#deps.limit) {
      const entry = this.#ready.shift()
      if (entry === undefined) return
      void this.#run(entry)
    }
  }

  async #run(entry: QueueEntry): Promise<void> {
    entry.state = 'running'
    entry.again = false
    const before = entry.lastMs
    entry.lastMs = this.#deps.clock.monotonic()
    this.#running++
    const turn = await this.#turnOf(entry.cluster)
    if (turn === 'nothing') entry.lastMs = before
    this.#running--
    if (entry.state === 'running') entry.state = entry.timer === undefined ? 'idle' : 'waiting'
    this.#settle(entry, turn)
    if (this.#running === 0) this.#onIdle?.()
    this.#pump()
  }

  /** Never rejects: one bad object must not end the process. */
  async #turnOf(cluster: string): Promise<TurnOutcome> {
    try {
      return await this.#deps.turn(cluster)
    } catch (error) {
      this.#deps.onError?.(cluster, error)
      return 'failed'
    }
  }

  #settle(entry: QueueEntry, turn: TurnOutcome): void {
    if (this.#stopped || this.#entries.get(entry.cluster) !== entry) return
    const nowMs = this.#deps.clock.monotonic()
    if (turn === 'failed') {
      const backoffMs = Math.min(FIRST_BACKOFF_MS * 2 ** entry.failures, MAX_BACKOFF_MS)
      entry.failures++
      this.#arm(entry, nowMs + backoffMs * (0.5 + this.#deps.random() / 2), nowMs)
      return
    }
    entry.failures = 0
    if (turn === 'again') this.#arm(entry, nowMs + AGAIN_MS * (0.25 + this.#deps.random()), nowMs)
    else if (entry.again) this.add(entry.cluster)
  }
}
