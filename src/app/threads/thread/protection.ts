// The ledger of pod protection as a gateway thread sees it: requests to the main thread, and its answers. A main thread that
// does not answer in time counts as an error.

import type {
  ProtectionGate,
  ProtectionRequest,
  ProtectionVerdict,
  Reservation,
  ScaleDownAnswer,
  ScaleDownQuestion,
} from '../../../api/ports/protection.ts'
import { unanswered } from '../../../core/protection/ledger/verdicts.ts'
import type { FromThread } from '../messages.ts'

/** The ledger has a timeout of its own with a better message; this is the fallback. */
const GRACE_MS = 500

interface Question {
  readonly requests: readonly ProtectionRequest[]
  readonly deadline: NodeJS.Timeout
  readonly resolve: (verdicts: readonly ProtectionVerdict[]) => void
}

interface AskedScaleDown {
  readonly deadline: NodeJS.Timeout
  readonly resolve: (answer: ScaleDownAnswer) => void
}

function unknownAnswer(why: string): ScaleDownAnswer {
  return { protectors: [], unknown: `the ledger of pod protection ${why}` }
}

export class ThreadProtection implements ProtectionGate {
  readonly #post: (message: FromThread) => void
  readonly #asked = new Map<number, Question>()
  readonly #scaleDowns = new Map<number, AskedScaleDown>()
  #nextId = 1
  #namespaces: ReadonlySet<string> | undefined

  constructor(post: (message: FromThread) => void) {
    this.#post = post
  }

  /** In which namespaces pods may have a protector; undefined = in any. */
  cover(namespaces: readonly string[] | undefined): void {
    this.#namespaces = namespaces === undefined ? undefined : new Set(namespaces)
  }

  covers(namespace: string): boolean {
    return this.#namespaces?.has(namespace) ?? true
  }

  review(requests: readonly ProtectionRequest[]): Promise<readonly ProtectionVerdict[]> {
    const id = this.#nextId++
    const timeoutMs = Math.max(0, ...requests.map((request) => request.timeoutMs))
    return new Promise((resolve) => {
      const deadline = setTimeout(() => {
        this.#fail(id, `the ledger of pod protection did not answer within ${timeoutMs} ms`)
      }, timeoutMs + GRACE_MS)
      this.#asked.set(id, { requests, deadline, resolve })
      this.#post({ type: 'protect', id, requests })
    })
  }

  reviewScaleDown(question: ScaleDownQuestion): Promise<ScaleDownAnswer> {
    const id = this.#nextId++
    const { timeoutMs } = question
    return new Promise((resolve) => {
      const late = (): void => this.settleScaleDown(id, unknownAnswer(`did not answer within ${timeoutMs} ms`))
      this.#scaleDowns.set(id, { deadline: setTimeout(late, timeoutMs), resolve })
      this.#post({ type: 'scale-down', id, question })
    })
  }

  /** The main thread's answer, unless it comes too late. */
  settleScaleDown(id: number, answer: ScaleDownAnswer): void {
    const asked = this.#scaleDowns.get(id)
    if (asked === undefined) return
    this.#scaleDowns.delete(id)
    clearTimeout(asked.deadline)
    asked.resolve(answer)
  }

  release(reservations: readonly Reservation[]): void {
    this.#post({ type: 'release', reservations })
  }

  /** The main thread's answer. If it comes too late, its reservations are released. */
  settle(id: number, verdicts: readonly ProtectionVerdict[]): void {
    const question = this.#asked.get(id)
    if (question !== undefined) {
      this.#asked.delete(id)
      clearTimeout(question.deadline)
      question.resolve(verdicts)
      return
    }
    const reservations = verdicts.flatMap(({ reservation }) => reservation ?? [])
    if (reservations.length > 0) this.release(reservations)
  }

  /** Answers whatever still waits: the thread is stopping. */
  end(): void {
    for (const id of [...this.#asked.keys()]) this.#fail(id, 'the gateway is shutting down')
    for (const id of [...this.#scaleDowns.keys()]) this.settleScaleDown(id, unknownAnswer('is shutting down'))
  }

  #fail(id: number, message: string): void {
    const question = this.#asked.get(id)
    if (question === undefined) return
    this.#asked.delete(id)
    clearTimeout(question.deadline)
    question.resolve(question.requests.map((request) => unanswered(request, message)))
  }
}
