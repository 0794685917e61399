// Evaluates pod deletions for gateway threads with the main thread's ledger, and releases a thread's reservations when it has died.

import type { Logger } from '../../kit/api/ports.ts'
import type { AnswersThreads } from '../../kit/core/topics/questions.ts'
import type { TopicChannel } from '../../kit/core/topics/topics.ts'
import type {
  ProtectionGate,
  ProtectionRequest,
  ProtectionVerdict,
  ScaleDownAnswer,
  ScaleDownQuestion,
} from '../api/protection.ts'
import { unansweredVerdict } from '../core/ledger/verdicts.ts'
import { NO_GATE } from '../request/verdict.ts'
import { DELETIONS, RELEASED_RESERVATIONS, SCALE_DOWN } from './topics.ts'

interface ThreadDeletionsDeps {
  /** The current gate; undefined = none. */
  gate(): ProtectionGate | undefined
  /** To the gateway threads. */
  readonly topics: TopicChannel
  readonly questions: AnswersThreads
  readonly log: Logger
}

export class ThreadDeletions {
  readonly #deps: ThreadDeletionsDeps

  constructor(deps: ThreadDeletionsDeps) {
    this.#deps = deps
  }

  /** Begins to answer. */
  start(): void {
    const { topics, questions } = this.#deps
    questions.answer(
      DELETIONS,
      (requests) => this.evaluate(requests),
      (verdicts) => this.#unclaimed(verdicts),
    )
    questions.answer(SCALE_DOWN, (question) => this.#evaluateScaleDown(question))
    topics.subscribe(RELEASED_RESERVATIONS, (reservations) => this.#gate.release(reservations))
  }

  /** One verdict each. Never rejects. */
  evaluate(requests: readonly ProtectionRequest[]): Promise<readonly ProtectionVerdict[]> {
    return this.#gate.review(requests).catch((error: unknown) => {
      this.#deps.log.error('deletions cannot be evaluated', { error })
      return requests.map((request) => unansweredVerdict(request, "an internal error; see the gateway's log"))
    })
  }

  /** Likewise. Reserves nothing. */
  #evaluateScaleDown(question: ScaleDownQuestion): Promise<ScaleDownAnswer> {
    return this.#gate.reviewScaleDown(question).catch((error: unknown) => {
      this.#deps.log.error('a scale-down cannot be evaluated', { error })
      return { protectors: [], unknown: "an internal error; see the gateway's log" }
    })
  }

  /** Verdicts for a thread that died together with its deletions: none was sent. */
  #unclaimed(verdicts: readonly ProtectionVerdict[]): void {
    const reservations = verdicts.flatMap(({ reservation }) => reservation ?? [])
    if (reservations.length > 0) this.#gate.release(reservations)
  }

  get #gate(): ProtectionGate {
    return this.#deps.gate() ?? NO_GATE
  }
}
