// Sends items to another machine in batches, in the background: what it does not take in time is dropped and counted, so that a machine that is
// slow or away costs the requests of clients nothing, and a bounded amount of memory.

import { setTimeout as sleep } from 'node:timers/promises'
import { errorMessage } from '../../api/validation/error-message.ts'

/** What one attempt has come to. `again`: not before `afterMs`; 0 = the other side has not said. */
export type Delivery =
  | { readonly kind: 'taken' }
  | { readonly kind: 'refused'; readonly message: string }
  | { readonly kind: 'again'; readonly afterMs: number; readonly message: string }

/** `P`: what a batch is sent as, made once for all attempts. */
export interface BatchSenderOptions<T, P> {
  /** Items. */
  readonly maxWaiting: number
  /** By `sizeOf`, those on their way included. Default: any. */
  readonly maxHeld?: number
  /** Items. */
  readonly maxBatch: number
  /** By `bytesOf`, of a batch with more than one item. Default: any. */
  readonly maxBatchBytes?: number
  /** Batches. */
  readonly maxUnderway: number
  readonly maxAttempts: number
  /** How long items wait for others to be sent with. */
  readonly waitMs: number
  sizeOf?(item: T): number
  bytesOf?(item: T): number
  encode(batch: readonly T[]): P | Promise<P>
  /** Ends when the signal aborts. */
  deliver(payload: P, batch: readonly T[], signal: AbortSignal): Promise<Delivery>
  /** After the attempt of this number, from 1 on. */
  delayMs(attempt: number): number
  /** Takes a place for one batch, or says in how many milliseconds there is one. Default: there always is. */
  takePlace?(): number
  onRetry?(why: string): void
  onUndelivered(batch: readonly T[], result: 'refused' | 'failed', why: string): void
}

/** How long the stop waits for attempts that do not end when they are told to. */
const ABANDON_MS = 1_000

export class BatchSender<T, P> {
  readonly #options: BatchSenderOptions<T, P>
  #waiting: T[] = []
  #held = 0
  #underway = 0
  /** What waits is sent although there is not enough for a batch. */
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

  /** For another item; cheap, because dropping must be. */
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

  /** Resolves when nothing waits or is on its way. */
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

  /** One item at least. */
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
      // A bug: the next batch may be better.
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
