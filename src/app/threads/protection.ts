// The ledger of pod protection as a gateway thread sees it: requests to the main thread, and its answers. A main thread that
// does not answer in time counts as an error.

import type { ProtectionGate, ProtectionRequest, ProtectionVerdict, Reservation } from '../../api/ports/protection.ts'
import { unanswered } from '../../core/protection/ledger/verdicts.ts'
import type { FromThread } from './messages.ts'

/** The ledger has a timeout of its own with a better message; this is the fallback. */
const GRACE_MS = 500

interface Question {
  readonly requests: readonly ProtectionRequest[]
  readonly deadline: NodeJS.Timeout
  readonly resolve: (verdicts: readonly ProtectionVerdict[]) => void
}

export class ThreadProtection implements ProtectionGate {
  readonly #post: (message: FromThread) => void
  readonly #asked = new Map<number, Question>()
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

  review(requests: readonly ProtectionRequest[], abandoned?: AbortSignal): Promise<readonly ProtectionVerdict[]> {
    const id = this.#nextId++
    const timeoutMs = Math.max(0, ...requests.map((request) => request.timeoutMs))
    return new Promise((resolve) => {
      const deadline = setTimeout(() => {
        this.#fail(id, `the ledger of pod protection did not answer within ${timeoutMs} ms`)
      }, timeoutMs + GRACE_MS)
      this.#asked.set(id, { requests, deadline, resolve })
      this.#post({ type: 'protect', id, requests })
      abandoned?.addEventListener('abort', () => {
        if (this.#asked.has(id)) this.#post({ type: 'abandoned', id })
      })
    })
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
  }

  #fail(id: number, message: string): void {
    const question = this.#asked.get(id)
    if (question === undefined) return
    this.#asked.delete(id)
    clearTimeout(question.deadline)
    question.resolve(question.requests.map((request) => unanswered(request, message)))
  }
}
