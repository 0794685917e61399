// A gateway thread's view of the pod protection ledger: questions to the main thread, and its answers. A main thread that does not answer in time counts
// as an error.

import { errorMessage } from '../../kit/api/validation/error-message.ts'
import { CallError } from '../../kit/core/topics/call-error.ts'
import type { AsksMain } from '../../kit/core/topics/questions.ts'
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

/** One in each thread. */
export class ThreadProtection extends ThreadScaleDowns implements ProtectionGate {
  readonly #line: LedgerLine

  constructor(line: LedgerLine) {
    super(line)
    this.#line = line
    // Verdicts that arrive too late.
    line.questions.onLate(DELETIONS, (verdicts) => {
      const reservations = verdicts.flatMap(({ reservation }) => reservation ?? [])
      if (reservations.length > 0) this.release(reservations)
    })
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

/** Continues "the ledger of pod protection". */
function failureOf(error: unknown, timeoutMs: number): string {
  const failure = error instanceof CallError ? error.failure : 'failed'
  if (failure === 'late') return `did not answer within ${timeoutMs} ms`
  return failure === 'ended' ? 'is shutting down' : `cannot answer: ${errorMessage(error)}`
}
