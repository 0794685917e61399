// Work of one request that may take long, in slices between turns of the event loop, charged to its source.

import type { Charge } from '../../../kit/api/stream.ts'
import type { Waiter } from '../../core/thread-time/accounts.ts'
import { threadScheduler } from './thread-scheduler.ts'

/** Takes all steps, each of which is short, or those until `isOver`. */
export async function takeSteps(charge: Charge, steps: Iterator<unknown>, isOver: () => boolean): Promise<void> {
  // What this is called in may be a slice itself.
  await undefined
  const startMs = performance.now()
  const account = threadScheduler.accountOf(charge, startMs)
  const work = new SlicedSteps(steps, isOver)
  const isAtOnce = threadScheduler.begin(account, startMs)
  if (isAtOnce) work.slice()
  threadScheduler.charge(account, startMs, performance.now())
  if (work.isLeft) {
    threadScheduler.wait(account, work)
    await work.done
  }
}

class SlicedSteps implements Waiter {
  isLeft = true
  readonly #steps: Iterator<unknown>
  readonly #isOver: () => boolean
  readonly #done = Promise.withResolvers<void>()

  constructor(steps: Iterator<unknown>, isOver: () => boolean) {
    this.#steps = steps
    this.#isOver = isOver
  }

  get done(): Promise<void> {
    return this.#done.promise
  }

  work(untilMs: number): boolean {
    try {
      threadScheduler.resumeSlice(performance.now(), untilMs)
      this.slice()
    } catch (error) {
      this.isLeft = false
      this.#done.reject(error)
    }
    if (!this.isLeft) this.#done.resolve()
    return this.isLeft
  }

  /** As many as the slice allows. */
  slice(): void {
    do this.isLeft = !this.#isOver() && this.#steps.next().done !== true
    while (this.isLeft && performance.now() < threadScheduler.untilMs)
  }
}
