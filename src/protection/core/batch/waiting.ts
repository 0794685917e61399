// Queues of a RetryBatch: requests for the next write of their key, and keys for one of the write slots.

import type { BatchAnswer } from './request.ts'

export interface Waiting<Operation, Result> {
  readonly operation: Operation
  readonly deadlineMs: number
  readonly persistent: boolean
  /** No write is started for it before this, but an earlier write includes it. */
  dueMs: number
  retries: number
  /** undefined = answered. */
  answer: ((answer: BatchAnswer<Result>) => void) | undefined
}

export const NEVER: number = Number.POSITIVE_INFINITY

/** Requests for the next write of one key, in the order of submission. */
export class WaitingLine<Operation, Result> {
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

export function answer<Operation, Result>(item: Waiting<Operation, Result>, given: BatchAnswer<Result>): void {
  const { answer: resolve } = item
  item.answer = undefined
  resolve?.(given)
}

/** Answers the request if it has expired. @returns whether it has */
export function expireAt<Operation, Result>(item: Waiting<Operation, Result>, nowMs: number): boolean {
  if (item.deadlineMs > nowMs) return false
  answer(item, { type: 'expired', retries: item.retries })
  return true
}

/** A key that is ready to write. */
export interface SlotWaiter {
  /** A slot is free and may be taken once. */
  slotFree(): void
}

/**
 * Limits how many keys write concurrently. The others wait in line and keep gathering requests: a write queued elsewhere could not include
 * later ones.
 */
export class WriteSlots {
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
