// The ledger of pod protection between threads: what a gateway thread asks the main thread, and what that answers. A main thread that does not answer
// in time counts as an error.

import type { Logger } from '../../kit/api/ports.ts'
import { errorMessage } from '../../kit/api/validation/error-message.ts'
import { CallError } from '../../kit/core/topics/call-error.ts'
import type { AnswersThreads, AsksMain } from '../../kit/core/topics/questions.ts'
import type { TopicChannel } from '../../kit/core/topics/topics.ts'
import type {
  ProtectionGate,
  ProtectionRequest,
  ProtectionVerdict,
  Reservation,
  ScaleDownAnswer,
  ScaleDownGate,
  ScaleDownQuestion,
} from '../api/protection.ts'
import { unansweredVerdict } from '../core/ledger/verdicts.ts'
import { DELETIONS, PROTECTED_NAMESPACES, RELEASED_RESERVATIONS, SCALE_DOWN } from './topics.ts'

/** Fallback: the ledger has its own timeout, with a better message. */
const GRACE_MS = 500

/** Provided by the thread. */
export interface LedgerLine {
  readonly topics: TopicChannel
  readonly questions: AsksMain
}

/** For filters of other subjects: reserves nothing, so there may be several in a thread. */
export class ThreadScaleDowns implements ScaleDownGate {
  readonly #questions: AsksMain
  #namespaces: ReadonlySet<string> | undefined

  constructor({ topics, questions }: LedgerLine) {
    this.#questions = questions
    topics.subscribe(PROTECTED_NAMESPACES, (namespaces) => {
      this.#namespaces = namespaces
    })
  }

  covers(namespace: string): boolean {
    return this.#namespaces?.has(namespace) ?? true
  }

  async reviewScaleDown(question: ScaleDownQuestion): Promise<ScaleDownAnswer> {
    const { timeoutMs } = question
    try {
      return await this.#questions.ask(SCALE_DOWN, question, timeoutMs)
    } catch (error) {
      return { protectors: [], unknown: `the ledger of pod protection ${failureOf(error, timeoutMs)}` }
    }
  }
}

/** A gateway thread's end; one in each. */
export class ThreadProtection extends ThreadScaleDowns implements ProtectionGate {
  readonly #line: LedgerLine

  constructor(line: LedgerLine) {
    super(line)
    this.#line = line
    // Verdicts that arrive too late.
    line.questions.onLate(DELETIONS, (verdicts) => releaseAll(this, verdicts))
  }

  async review(requests: readonly ProtectionRequest[]): Promise<readonly ProtectionVerdict[]> {
    const timeoutMs = Math.max(0, ...requests.map((request) => request.timeoutMs))
    try {
      return await this.#line.questions.ask(DELETIONS, requests, timeoutMs + GRACE_MS)
    } catch (error) {
      const why = failureOf(error, timeoutMs)
      const message =
        why === 'is shutting down' ? 'the gateway is shutting down' : `the ledger of pod protection ${why}`
      return requests.map((request) => unansweredVerdict(request, message))
    }
  }

  release(reservations: readonly Reservation[]): void {
    this.#line.topics.publish(RELEASED_RESERVATIONS, reservations)
  }
}

function releaseAll(gate: ProtectionGate, verdicts: readonly ProtectionVerdict[]): void {
  const reservations = verdicts.flatMap(({ reservation }) => reservation ?? [])
  if (reservations.length > 0) gate.release(reservations)
}

/** Continues "the ledger of pod protection". */
function failureOf(error: unknown, timeoutMs: number): string {
  const failure = error instanceof CallError ? error.failure : 'failed'
  if (failure === 'late') return `did not answer within ${timeoutMs} ms`
  return failure === 'ended' ? 'is shutting down' : `cannot answer: ${errorMessage(error)}`
}

/** Used by a gateway without a ledger. */
const NO_GATE: ProtectionGate = {
  covers: () => true,
  review: (requests: readonly ProtectionRequest[]) =>
    Promise.resolve(
      requests.map((request) =>
        unansweredVerdict(request, 'this gateway has no pod protection: the deletion cannot be evaluated'),
      ),
    ),
  reviewScaleDown: () => Promise.resolve({ protectors: [], unknown: 'this gateway has no pod protection' }),
  release: () => undefined,
}

interface ThreadDeletionsDeps {
  /** The current gate; undefined = none. */
  gate(): ProtectionGate | undefined
  /** To the gateway threads. */
  readonly topics: TopicChannel
  readonly questions: AnswersThreads
  readonly log: Logger
}

/** The main thread's end: answers by the ledger, and releases a thread's reservations when that has died. */
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
      // Verdicts for a thread that died together with its deletions: none was sent.
      (verdicts) => releaseAll(this.#gate, verdicts),
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

  get #gate(): ProtectionGate {
    return this.#deps.gate() ?? NO_GATE
  }
}
