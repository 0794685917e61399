// What waits in a RetryBatch: requests for the next write of their key, and keys for one of the slots to write.

import type { BatchAnswer } from './request.ts'

export interface Waiting<Operation, Result> {
  readonly operation: Operation
  readonly deadlineMs: number
  readonly persistent: boolean
  /** No write is started for it before this, but an earlier write takes it along. */
  dueMs: number
  retries: number
  /** undefined = answered. */
  answer: ((answer: BatchAnswer<Result>) => void) | undefined
}

export const NEVER: number = Number.POSITIVE_INFINITY

/** The requests that wait for the next write of one key, in the order of submission. */
export class WaitingLine<Operation, Result> {
  #items: Waiting<Operation, Result>[] = []
  #soonestDueMs = NEVER
  #soonestDeadlineMs = NEVER

  get isEmpty(): boolean {
    return this.#items.length === 0
  }

  /** The earliest of all; NEVER = the line is empty. */
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

  /** The unanswered requests of a write wait again. */
  addAgain(items: readonly Waiting<Operation, Result>[]): void {
    const unanswered = items.filter((item) => item.answer !== undefined)
    for (const item of unanswered) item.retries++
    // In front of newer ones: the order is that of submission.
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
  /** A slot is free now and may be taken once. */
  slotFree(): void
}

/**
 * Limits how many keys write at once. The others wait in line and keep gathering: a write that waited in some other queue could
 * not take later requests along.
 */
export class WriteSlots {
  #free: number
  readonly #line = new Set<SlotWaiter>()

  constructor(count: number) {
    this.#free = count
  }

  /** @returns false = none is free; `waiter` is in line */
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

  /** Takes the waiter out of the line. */
  leave(waiter: SlotWaiter): void {
    this.#line.delete(waiter)
  }
}
