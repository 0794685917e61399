// Batches writes to many objects: each object (key) has one writer, and what arrives during a write goes into the next one.
// Podseidon's retrybatch (util/retrybatch), with enforced deadlines and a pace. Pure: time comes from `now` and `schedule`.

import { BatchKey, type BatchKeyDeps } from './key.ts'
import type { BatchAnswer, BatchRequest, RetryBatchDeps } from './request.ts'
import { WriteSlots } from './slots.ts'
import type { Waiting } from './waiting.ts'

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

  /** They go into the same write. Each promise gets exactly one answer, and never rejects. */
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

  /** Answers all requests at once and starts nothing more. A running write may still complete late. */
  stop(): void {
    this.#stopped = true
    for (const key of this.#keys.values()) key.stop()
    this.#keys.clear()
  }
}
