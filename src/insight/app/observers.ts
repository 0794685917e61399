// Insight in a gateway thread: what it hears of requests, and what it answers the main thread.

import type { IdentitySeen } from '../../gateway/api/identity-seen.ts'
import type { RequestObserver } from '../../gateway/api/request-observer.ts'
import type { Clock } from '../../kit/api/ports.ts'
import type { AnswersMain } from '../../kit/core/topics/questions.ts'
import type { StreamsToMain } from '../../kit/core/topics/streams.ts'
import type { Config } from '../../process/config/config.ts'
import { TAPPED } from '../core/tap/tap-messages.ts'
import { USERS_SEEN } from './sessions/sessions-route.ts'
import { ThreadTaps } from './tap/thread-taps.ts'
import { ThreadTop } from './top/thread-top.ts'
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
