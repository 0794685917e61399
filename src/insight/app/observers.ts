// Insight in a gateway thread: what it hears of requests, and what it answers the main thread.

import { setImmediate as yieldToEventLoop } from 'node:timers/promises'
import type { IdentitySeen } from '../../gateway/api/identity-seen.ts'
import type { RequestObserver } from '../../gateway/api/request-observer.ts'
import type { RequestRecord } from '../../gateway/api/request-record.ts'
import type { Clock } from '../../kit/api/ports.ts'
import type { AnswersMain } from '../../kit/core/topics/questions.ts'
import type { StreamsToMain } from '../../kit/core/topics/streams.ts'
import type { Config } from '../../process/config/config.ts'
import { TAPPED } from '../core/tap/tap-messages.ts'
import { Traffic, type TrafficSketch } from '../core/top/traffic.ts'
import { USERS_SEEN } from './sessions/sessions-route.ts'
import { ThreadTaps } from './tap/thread-taps.ts'
import { TAKE_COUNTS } from './top/top-counts.ts'

interface InsightThread {
  readonly config: Pick<Config, 'top'>
  readonly thread: number
  readonly answers: AnswersMain
  readonly streams: StreamsToMain
  identitiesSeen(user: string): readonly IdentitySeen[]
  readonly clock: Pick<Clock, 'monotonic'>
}

export function insightObservers(at: InsightThread): readonly RequestObserver[] {
  const { config, thread, answers, streams, clock } = at
  const taps = new ThreadTaps(thread, () => clock.monotonic())
  streams.serve(TAPPED, (question, emit) => taps.tap(question, emit))
  answers.answer(USERS_SEEN, (user) => at.identitiesSeen(user))
  if (!config.top) return [taps]
  const top = new ThreadTop()
  answers.answer(TAKE_COUNTS, () => top.take())
  return [taps, top]
}

// The thread's side of `portcullis top`: counts its requests, and hands over the counts in steps, between which it continues serving.

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
