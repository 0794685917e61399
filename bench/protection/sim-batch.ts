// Podseidon's retry batch in simulated time: one writer for each protector and process, and what comes while it writes goes into its
// next write.

import type { SimQueue, SimRandom } from './sim-queue.ts'

export interface SimPace {
  readonly intervalMs: number
  readonly backoffMs: number
  readonly jitterMs: number
}

export type BatchAnswer<Result> = { readonly type: 'done'; readonly result: Result } | { readonly type: 'failed' }

export type BatchOutcome<Result> =
  | { readonly type: 'done'; readonly results: readonly Result[] }
  | { readonly type: 'conflict' | 'failed' }

interface Waiting<Operation, Result> {
  readonly operation: Operation
  readonly deadlineMs: number
  readonly dueMs: number
  answered: boolean
  readonly answer: (answer: BatchAnswer<Result>) => void
}

export class SimBatch<Operation, Result> {
  private readonly queue: SimQueue
  private readonly random: SimRandom
  private readonly pace: SimPace
  private readonly execute: (operations: readonly Operation[], done: (outcome: BatchOutcome<Result>) => void) => void
  private readonly onLate: (operation: Operation, result: Result) => void
  private waiting: Waiting<Operation, Result>[] = []
  private running = false
  private notBefore = 0

  constructor(
    queue: SimQueue,
    random: SimRandom,
    pace: SimPace,
    execute: (operations: readonly Operation[], done: (outcome: BatchOutcome<Result>) => void) => void,
    onLate: (operation: Operation, result: Result) => void,
  ) {
    this.queue = queue
    this.random = random
    this.pace = pace
    this.execute = execute
    this.onLate = onLate
  }

  submit(operation: Operation, timeoutMs: number, waitMs: number, answer: (answer: BatchAnswer<Result>) => void): void {
    const { now } = this.queue
    const entry: Waiting<Operation, Result> = {
      operation,
      deadlineMs: now + timeoutMs,
      dueMs: now + waitMs,
      answered: false,
      answer,
    }
    this.waiting.push(entry)
    this.queue.after(timeoutMs, () => this.expire(entry))
    this.queue.at(Math.max(this.notBefore, entry.dueMs), () => this.start())
  }

  private expire(entry: Waiting<Operation, Result>): void {
    if (entry.answered) return
    entry.answered = true
    entry.answer({ type: 'failed' })
  }

  private start(): void {
    const { now } = this.queue
    if (this.running || now < this.notBefore) return
    this.waiting = this.waiting.filter(({ answered }) => !answered)
    if (!this.waiting.some(({ dueMs }) => dueMs <= now)) return
    const batch = this.waiting
    this.waiting = []
    this.running = true
    const startedAt = now
    this.execute(
      batch.map(({ operation }) => operation),
      (outcome) => this.finish(batch, startedAt, outcome),
    )
  }

  private finish(batch: readonly Waiting<Operation, Result>[], startedAt: number, outcome: BatchOutcome<Result>): void {
    this.running = false
    this.notBefore = startedAt + this.pace.intervalMs
    if (outcome.type === 'conflict') {
      this.waiting.unshift(...batch)
      const backoff = this.pace.backoffMs + this.random.next() * this.pace.jitterMs
      this.notBefore = Math.max(this.notBefore, this.queue.now + backoff)
    } else {
      batch.forEach((entry, index) => {
        const result = outcome.type === 'done' ? outcome.results[index] : undefined
        if (entry.answered) {
          if (result !== undefined) this.onLate(entry.operation, result)
          return
        }
        entry.answered = true
        entry.answer(result === undefined ? { type: 'failed' } : { type: 'done', result })
      })
    }
    if (this.waiting.length > 0) this.queue.at(this.notBefore, () => this.start())
    for (const { dueMs } of this.waiting) if (dueMs > this.notBefore) this.queue.at(dueMs, () => this.start())
  }
}
