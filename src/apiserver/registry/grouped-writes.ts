// Group commit for the process's own writes that need not be on disk one by one: all those of one turn of the
// event loop are synced together, so that the main thread waits for the disk once.

import type { ObjectStore } from '../api/object-store.ts'

/** After this long, the batch is synced and the event loop continues. */
const SLICE_MS = 10

interface Waiting {
  /** @returns a function that settles the caller's promise */
  run(): () => void
  fail(error: unknown): void
}

export class GroupedWrites {
  readonly #store: Pick<ObjectStore, 'together'>
  #waiting: Waiting[] = []
  #scheduled = false

  constructor(store: Pick<ObjectStore, 'together'>) {
    this.#store = store
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
    const tasks = function* (): Generator<() => () => void> {
      for (const one of waiting) {
        taken.push(one)
        yield one.run
        if (performance.now() >= untilMs) return
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
