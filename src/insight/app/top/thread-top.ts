// The thread's side of `portcullis top`: counts its requests, and hands over the counts in steps, between which it continues serving.

import { setImmediate as yieldToEventLoop } from 'node:timers/promises'
import type { RequestObserver } from '../../../gateway/api/request-observer.ts'
import type { RequestRecord } from '../../../gateway/api/request-record.ts'
import { Traffic, type TrafficSketch } from '../../core/top/traffic.ts'

export class ThreadTop implements RequestObserver {
  readonly #traffic = new Traffic()
  #taking: Promise<unknown> = Promise.resolve()

  responseStarted(record: RequestRecord): void {
    this.#traffic.started(record)
  }

  requestEnded(record: RequestRecord): void {
    this.#traffic.count(record)
  }

  /** Counts since the last call; not concurrently. */
  take(): Promise<TrafficSketch> {
    const taken = this.#taking.then(() => this.#take())
    this.#taking = taken
    return taken
  }

  async #take(): Promise<TrafficSketch> {
    const steps = this.#traffic.takeInSteps()
    for (;;) {
      const step = steps.next()
      if (step.done) return step.value
      await yieldToEventLoop()
    }
  }
}
