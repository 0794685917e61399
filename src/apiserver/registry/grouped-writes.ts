// Group commit for writes that need not be on disk one by one: all those of one turn of the event loop are synced together, so that the main thread
// waits for the disk once. Each is on disk before its caller hears of it.

import type { ObjectStore } from '../api/object-store.ts'

/** After this long, the batch is synced and the event loop continues. */
const SLICE_MS = 10

interface Waiting {
  /** @returns a function that settles the caller's promise */
  run(): () => void
  fail(error: unknown): void
}

/** What one group may hold. */
interface GroupLimits {
  /** Before each group. If it throws, what waits fails. */
  begin(): void
  /** Whether the next write has to wait until this group's events have been delivered. */
  isOver(): boolean
}

const UNLIMITED: GroupLimits = { begin: () => undefined, isOver: () => false }

export class GroupedWrites {
  readonly #store: Pick<ObjectStore, 'together'>
  readonly #limits: GroupLimits
  #waiting: Waiting[] = []
  #scheduled = false

  constructor(store: Pick<ObjectStore, 'together'>, limits: GroupLimits = UNLIMITED) {
    this.#store = store
    this.#limits = limits
  }

  /** Resolves, or rejects with what `write` throws, once the batch is on disk; rejects if that fails. */
  add<T>(write: () => T): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const run = (): (() => void) => {
        const value = write()
        return () => resolve(value)
      }
      this.#waiting.push({ run, fail: reject })
      this.#schedule()
    })
  }

  #schedule(): void {
    if (this.#scheduled) return
    this.#scheduled = true
    setImmediate(() => this.#flush())
  }

  #flush(): void {
    this.#scheduled = false
    const taken: Waiting[] = []
    const untilMs = performance.now() + SLICE_MS
    const waiting = this.#waiting
    const limits = this.#limits
    try {
      limits.begin()
    } catch (error) {
      this.#waiting = []
      for (const { fail } of waiting) fail(error)
      return
    }
    const tasks = function* (): Generator<() => () => void> {
      for (const one of waiting) {
        taken.push(one)
        yield one.run
        if (performance.now() >= untilMs || limits.isOver()) return
      }
    }
    const results = this.#store.together(tasks())
    this.#waiting = waiting.slice(taken.length)
    for (const [index, { fail }] of taken.entries()) {
      const result = results[index]
      if (result !== undefined && 'value' in result) result.value()
      else fail(result?.error ?? new Error('there is no result'))
    }
    if (this.#waiting.length > 0) this.#schedule()
  }
}
