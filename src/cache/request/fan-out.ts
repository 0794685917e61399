// Changes on their way to open watches. One change may be for thousands of them: they get it between turns of the event loop, as what endpoints send
// does, and what is written for some has left before the next ones are written to.

import type { Waiter } from '../../gateway/core/thread-time/accounts.ts'
import { threadScheduler } from '../../gateway/io/scheduling/thread-scheduler.ts'

interface Due {
  /** Takes what has changed, as far as its client reads. */
  proceed(): void
}

export class FanOut implements Waiter {
  /** In the order in which they became due. */
  readonly #due = new Set<Due>()
  #waits = false

  add(watch: Due): void {
    this.#due.add(watch)
    if (this.#waits) return
    this.#waits = true
    threadScheduler.waitShared(this)
  }

  delete(watch: Due): void {
    this.#due.delete(watch)
  }

  work(untilMs: number): boolean {
    const startMs = performance.now()
    threadScheduler.resumeSlice(startMs, untilMs)
    for (const watch of this.#due) {
      this.#due.delete(watch)
      watch.proceed()
      if (!threadScheduler.goOn()) break
    }
    threadScheduler.sharedDone(startMs, performance.now())
    this.#waits = this.#due.size > 0
    return this.#waits
  }
}
