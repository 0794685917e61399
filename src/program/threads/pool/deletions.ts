// Evaluates pod deletions for gateway threads with the main thread's ledger, and releases a thread's reservations when it has died.

import type { Logger } from '../../../kit/api/ports.ts'
import type {
  ProtectionGate,
  ProtectionRequest,
  ProtectionVerdict,
  Reservation,
  ScaleDownAnswer,
  ScaleDownQuestion,
} from '../../../protection/api/protection.ts'
import { unansweredVerdict } from '../../../protection/core/ledger/verdicts.ts'
import { NO_GATE } from '../../../protection/request/verdict.ts'

export class ThreadDeletions {
  readonly #protection: () => ProtectionGate | undefined
  readonly #log: Logger

  /** @param protection the current gate; undefined = none */
  constructor(protection: () => ProtectionGate | undefined, log: Logger) {
    this.#protection = protection
    this.#log = log
  }

  /** One verdict each. Never rejects. */
  evaluate(requests: readonly ProtectionRequest[]): Promise<readonly ProtectionVerdict[]> {
    return this.#gate.review(requests).catch((error: unknown) => {
      this.#log.error('deletions cannot be evaluated', { error })
      return requests.map((request) => unansweredVerdict(request, "an internal error; see the gateway's log"))
    })
  }

  /** Likewise. Reserves nothing. */
  evaluateScaleDown(question: ScaleDownQuestion): Promise<ScaleDownAnswer> {
    return this.#gate.reviewScaleDown(question).catch((error: unknown) => {
      this.#log.error('a scale-down cannot be evaluated', { error })
      return { protectors: [], unknown: "an internal error; see the gateway's log" }
    })
  }

  /** Verdicts for a thread that died together with its deletions: none was sent. */
  unclaimed(verdicts: readonly ProtectionVerdict[]): void {
    const reservations = verdicts.flatMap(({ reservation }) => reservation ?? [])
    if (reservations.length > 0) this.release(reservations)
  }

  release(reservations: readonly Reservation[]): void {
    this.#gate.release(reservations)
  }

  get #gate(): ProtectionGate {
    return this.#protection() ?? NO_GATE
  }
}
