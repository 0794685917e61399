// Deletions of pods that gateway threads ask about: the ledger of the main thread evaluates them, and what it has reserved for a
// thread is released when the thread has died.

import type { Logger } from '../../../api/ports/ports.ts'
import type {
  ProtectionGate,
  ProtectionRequest,
  Reservation,
  ScaleDownAnswer,
  ScaleDownQuestion,
} from '../../../api/ports/protection.ts'
import { unanswered } from '../../../core/protection/ledger/verdicts.ts'
import { NO_GATE } from '../../../gateway/protect/verdict.ts'
import type { WorkerSlot } from './worker-slot.ts'

export class ThreadDeletions {
  readonly #protection: () => ProtectionGate | undefined
  readonly #log: Logger

  /** @param protection the gate that evaluates, as it is now; undefined = none */
  constructor(protection: () => ProtectionGate | undefined, log: Logger) {
    this.#protection = protection
    this.#log = log
  }

  /** Answers the thread that is in the slot now. Never rejects. */
  async evaluate(slot: WorkerSlot, id: number, requests: readonly ProtectionRequest[]): Promise<void> {
    const { threadId } = slot
    const gate = this.#gate
    const verdicts = await gate.review(requests).catch((error: unknown) => {
      this.#log.error('deletions cannot be evaluated', { error })
      return requests.map((request) => unanswered(request, "an internal error; see the gateway's log"))
    })
    if (slot.threadId === threadId && slot.state !== 'gone') {
      slot.post({ type: 'verdicts', id, verdicts })
      return
    }
    // The thread has died, and the deletions with it: none was sent.
    const reservations = verdicts.flatMap(({ reservation }) => reservation ?? [])
    if (reservations.length > 0) gate.release(reservations)
  }

  /** Likewise. Nothing is reserved for it. */
  async evaluateScaleDown(slot: WorkerSlot, id: number, question: ScaleDownQuestion): Promise<void> {
    const { threadId } = slot
    const answer = await this.#gate.reviewScaleDown(question).catch((error: unknown): ScaleDownAnswer => {
      this.#log.error('a scale-down cannot be evaluated', { error })
      return { protectors: [], unknown: "an internal error; see the gateway's log" }
    })
    if (slot.threadId === threadId && slot.state !== 'gone') slot.post({ type: 'scale-down-answer', id, answer })
  }

  release(reservations: readonly Reservation[]): void {
    this.#gate.release(reservations)
  }

  get #gate(): ProtectionGate {
    return this.#protection() ?? NO_GATE
  }
}
