// Insight in a gateway thread: what it hears of requests, and what it answers the main thread.

import { setImmediate as yieldToEventLoop } from 'node:timers/promises'
import type { IdentitySeen } from '../../gateway/api/identity-seen.ts'
import type { RequestObserver } from '../../gateway/api/request-observer.ts'
import type { RequestRecord } from '../../gateway/api/request-record.ts'
import type { Budget } from '../../kit/api/limits/budget.ts'
import type { Clock } from '../../kit/api/ports.ts'
import type { AnswersMain } from '../../kit/core/topics/questions.ts'
import type { StreamsToMain } from '../../kit/core/topics/streams.ts'
import type { Config } from '../../process/config/config.ts'
import { type TapPlace, tapLine } from '../core/tap/tap-event.ts'
import { type CompiledTapFilter, compileTapFilter, type TapPhase, tapMatches } from '../core/tap/tap-filter.ts'
import { TAPPED, type TapQuestion, type TapThreadEvent } from '../core/tap/tap-messages.ts'
import { tapBudget } from '../core/tap/tap-query.ts'
import { Traffic, type TrafficSketch } from '../core/top/traffic.ts'
import { USERS_SEEN } from './sessions/sessions-route.ts'
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

// The thread's side of taps: shows matching requests live, never faster than the tap allows. Without taps, a request costs one comparison.

interface Tap {
  readonly filter: CompiledTapFilter
  readonly rate: Budget
  readonly place: TapPlace
  /** False: there is no room for it. */
  readonly emit: (event: TapThreadEvent) => boolean
  seen: number
  matched: number
  aboveRate: number
  unread: number
}

/** How often the counts are sent. */
const COUNTS_MS = 1000

export class ThreadTaps implements RequestObserver {
  readonly #thread: number
  readonly #now: () => number
  #taps: readonly Tap[] = []

  /** @param now monotonic milliseconds */
  constructor(thread: number, now: () => number) {
    this.#thread = thread
    this.#now = now
  }

  /** Shows requests from now on, until the returned function is called. */
  tap({ filter, maxRps, replica }: TapQuestion, emit: (event: TapThreadEvent) => boolean): () => void {
    const tap: Tap = {
      filter: compileTapFilter(filter),
      rate: tapBudget(maxRps, this.#now()),
      place: { replica, thread: this.#thread },
      emit,
      seen: 0,
      matched: 0,
      aboveRate: 0,
      unread: 0,
    }
    this.#taps = [...this.#taps, tap]
    const counting = setInterval(sendCounts(tap), COUNTS_MS)
    counting.unref()
    return () => {
      clearInterval(counting)
      this.#taps = this.#taps.filter((one) => one !== tap)
    }
  }

  requestIdentified(record: RequestRecord): void {
    if (this.#taps.length !== 0) this.#show(record, 'started')
  }

  responseStarted(record: RequestRecord): void {
    if (this.#taps.length !== 0 && record.longRunning) this.#show(record, 'responding')
  }

  requestEnded(record: RequestRecord): void {
    if (this.#taps.length !== 0) this.#show(record, 'ended')
  }

  #show(record: RequestRecord, phase: TapPhase): void {
    for (const tap of this.#taps) {
      if (phase === 'ended') tap.seen++
      if (!tapMatches(tap.filter, record, phase)) continue
      tap.matched++
      if (!tap.rate.take(this.#now())) tap.aboveRate++
      else if (!tap.emit(tapLine(record, phase, tap.place))) tap.unread++
    }
  }
}

/** Sends the counts if they have changed. */
function sendCounts(tap: Tap): () => void {
  let sent = 0
  return () => {
    if (tap.seen + tap.matched === sent) return
    const { seen, matched, aboveRate, unread } = tap
    if (tap.emit({ seen, matched, aboveRate, unread })) sent = seen + matched
  }
}
