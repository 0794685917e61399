// Sends items to another machine in batches, in the background: what it does not accept in time is dropped and counted, so that a slow or unreachable
// machine costs clients' requests nothing, and a bounded amount of memory.

import { setTimeout as sleep } from 'node:timers/promises'
import { errorMessage } from '../../api/validation/error-message.ts'

/** Result of one attempt. `again`: retry after at least `afterMs`; 0 = the receiver gave no time. */
export type Delivery =
  | { readonly kind: 'taken' }
  | { readonly kind: 'refused'; readonly message: string }
  | { readonly kind: 'again'; readonly afterMs: number; readonly message: string }

/** `P`: the payload of a batch, built once for all attempts. */
export interface BatchSenderOptions<T, P> {
  /** Maximum number of waiting items. */
  readonly maxWaiting: number
  /** Limit of the total `sizeOf`, including items in flight. Default: unlimited. */
  readonly maxHeld?: number
  /** Maximum items per batch. */
  readonly maxBatch: number
  /** Limit of the total `bytesOf` in a batch of more than one item. Default: unlimited. */
  readonly maxBatchBytes?: number
  /** Maximum batches in flight. */
  readonly maxUnderway: number
  readonly maxAttempts: number
  /** How long items wait for a batch to fill. */
  readonly waitMs: number
  sizeOf?(item: T): number
  bytesOf?(item: T): number
  encode(batch: readonly T[]): P | Promise<P>
  /** Must end when the signal aborts. */
  deliver(payload: P, batch: readonly T[], signal: AbortSignal): Promise<Delivery>
  /** Delay after this attempt, counted from 1. */
  delayMs(attempt: number): number
  /** Takes a slot for one batch, or returns the milliseconds until there is one. Default: always free. */
  takePlace?(): number
  onRetry?(why: string): void
  onUndelivered(batch: readonly T[], result: 'refused' | 'failed', why: string): void
}

/** How long the stop waits for attempts that do not end when aborted. */
const ABANDON_MS = 1_000

export class BatchSender<T, P> {
  readonly #options: BatchSenderOptions<T, P>
  #waiting: T[] = []
  #held = 0
  #underway = 0
  /** Waiting items are sent although they do not fill a batch. */
  #due = false
  #timer: NodeJS.Timeout | undefined
  #idle: PromiseWithResolvers<void> | undefined
  #stopping: Promise<void> | undefined
  /** No more waiting between attempts: each is made once. */
  readonly #ending = new AbortController()
  readonly #stopped = new AbortController()

  constructor(options: BatchSenderOptions<T, P>) {
    this.#options = options
  }

  get waiting(): number {
    return this.#waiting.length
  }

  get isStopping(): boolean {
    return this.#stopping !== undefined
  }

  /** Whether there is room for another item; cheap, because dropping must be. */
  hasRoom(size = 0): boolean {
    const { maxWaiting, maxHeld = Number.POSITIVE_INFINITY } = this.#options
    return !this.isStopping && this.#waiting.length < maxWaiting && this.#held + size <= maxHeld
  }

  /** Only after `hasRoom`; never blocks. */
  add(item: T): void {
    const { maxBatch, sizeOf } = this.#options
    this.#waiting.push(item)
    this.#held += sizeOf?.(item) ?? 0
    if (this.#waiting.length >= maxBatch) this.#sendWaiting()
    else this.#wait()
  }

  /** Resolves when nothing is waiting or in flight. */
  async flush(): Promise<void> {
    this.#due = true
    this.#sendWaiting()
    if (this.#waiting.length === 0 && this.#underway === 0) return
    this.#idle ??= Promise.withResolvers<void>()
    await this.#idle.promise
  }

  /** Sends what waits, once, within the time; the rest is dropped. */
  stop(withinMs: number): Promise<void> {
    this.#stopping ??= this.#stop(withinMs)
    return this.#stopping
  }

  async #stop(withinMs: number): Promise<void> {
    this.#ending.abort()
    await within(withinMs, this.flush())
    this.#stopped.abort()
    clearTimeout(this.#timer)
    const left = this.#waiting.splice(0)
    if (left.length > 0) this.#options.onUndelivered(left, 'failed', 'they were not taken before the gateway stopped')
    await within(ABANDON_MS, this.flush())
  }

  #wait(): void {
    this.#timer ??= setTimeout(() => {
      this.#due = true
      this.#sendWaiting()
    }, this.#options.waitMs).unref()
  }

  #sendWaiting(): void {
    const { maxBatch, maxUnderway, takePlace } = this.#options
    while (this.#waiting.length >= maxBatch || (this.#due && this.#waiting.length > 0)) {
      if (this.#underway >= maxUnderway || this.#stopped.signal.aborted) return
      const delayMs = this.#ending.signal.aborted ? 0 : (takePlace?.() ?? 0)
      if (delayMs > 0) {
        clearTimeout(this.#timer)
        this.#timer = setTimeout(() => this.#sendWaiting(), delayMs).unref()
        return
      }
      void this.#send(this.#takeBatch())
    }
    this.#due = false
    clearTimeout(this.#timer)
    this.#timer = undefined
    if (this.#waiting.length > 0) this.#wait()
    else if (this.#underway === 0) {
      this.#idle?.resolve()
      this.#idle = undefined
    }
  }

  /** At least one item. */
  #takeBatch(): T[] {
    const { maxBatch, maxBatchBytes = Number.POSITIVE_INFINITY, bytesOf } = this.#options
    let bytes = 0
    let count = 0
    for (const item of this.#waiting) {
      bytes += bytesOf?.(item) ?? 0
      if (count > 0 && (count >= maxBatch || bytes > maxBatchBytes)) break
      count++
    }
    return this.#waiting.splice(0, count)
  }

  async #send(batch: readonly T[]): Promise<void> {
    const { sizeOf, onUndelivered } = this.#options
    this.#underway++
    try {
      await this.#deliver(batch)
    } catch (error) {
      // A bug: the next batch may fare better.
      onUndelivered(batch, 'failed', errorMessage(error))
    }
    this.#underway--
    for (const item of batch) this.#held -= sizeOf?.(item) ?? 0
    this.#sendWaiting()
  }

  async #deliver(batch: readonly T[]): Promise<void> {
    const { maxAttempts, encode, deliver, delayMs, onUndelivered, onRetry } = this.#options
    const payload = await encode(batch)
    for (let attempt = 1; ; attempt++) {
      const isLast = attempt === maxAttempts || this.#ending.signal.aborted
      const delivery = await deliver(payload, batch, this.#stopped.signal)
      if (delivery.kind === 'taken') return
      if (delivery.kind === 'refused') return onUndelivered(batch, 'refused', delivery.message)
      if (isLast || this.#stopped.signal.aborted) return onUndelivered(batch, 'failed', delivery.message)
      onRetry?.(delivery.message)
      const waitMs = Math.max(delayMs(attempt), delivery.afterMs)
      await sleep(waitMs, undefined, { signal: this.#ending.signal }).catch(() => undefined)
    }
  }
}

/** Waits for it, but no longer. */
async function within(ms: number, pending: Promise<void>): Promise<void> {
  const over = new AbortController()
  await Promise.race([pending, sleep(ms, undefined, { signal: over.signal }).catch(() => undefined)])
  over.abort()
}
