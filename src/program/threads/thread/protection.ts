// A gateway thread's view of the pod protection ledger: calls to the main thread, and its answers. A main thread that does not answer in time counts
// as an error.

import { errorMessage } from '../../../kit/api/validation/error-message.ts'
import type {
  ProtectionGate,
  ProtectionRequest,
  ProtectionVerdict,
  Reservation,
  ScaleDownAnswer,
  ScaleDownQuestion,
} from '../../../protection/api/protection.ts'
import { unansweredVerdict } from '../../../protection/core/ledger/verdicts.ts'
import { CallError, type Calls } from '../calls.ts'
import type { GatewayCalls, MainCalls } from '../thread-calls.ts'

/** Fallback: the ledger has its own timeout, with a better message. */
const GRACE_MS = 500

export class ThreadProtection implements ProtectionGate {
  readonly #calls: Pick<Calls<GatewayCalls, MainCalls>, 'call'>
  readonly #release: (reservations: readonly Reservation[]) => void
  #namespaces: ReadonlySet<string> | undefined

  constructor(
    calls: Pick<Calls<GatewayCalls, MainCalls>, 'call'>,
    release: (reservations: readonly Reservation[]) => void,
  ) {
    this.#calls = calls
    this.#release = release
  }

  /** Namespaces in which pods may have a protector; undefined = any. */
  cover(namespaces: readonly string[] | undefined): void {
    this.#namespaces = namespaces === undefined ? undefined : new Set(namespaces)
  }

  covers(namespace: string): boolean {
    return this.#namespaces?.has(namespace) ?? true
  }

  async review(requests: readonly ProtectionRequest[]): Promise<readonly ProtectionVerdict[]> {
    const timeoutMs = Math.max(0, ...requests.map((request) => request.timeoutMs))
    try {
      return await this.#calls.call('protect', requests, { timeoutMs: timeoutMs + GRACE_MS })
    } catch (error) {
      const why = failureOf(error, timeoutMs)
      const message =
        why === 'is shutting down' ? 'the gateway is shutting down' : `the ledger of pod protection ${why}`
      return requests.map((request) => unansweredVerdict(request, message))
    }
  }

  async reviewScaleDown(question: ScaleDownQuestion): Promise<ScaleDownAnswer> {
    const { timeoutMs } = question
    try {
      return await this.#calls.call('scaleDown', question, { timeoutMs })
    } catch (error) {
      return { protectors: [], unknown: `the ledger of pod protection ${failureOf(error, timeoutMs)}` }
    }
  }

  release(reservations: readonly Reservation[]): void {
    this.#release(reservations)
  }

  /** Verdicts that arrived too late: releases their reservations. */
  unclaimed(verdicts: readonly ProtectionVerdict[]): void {
    const reservations = verdicts.flatMap(({ reservation }) => reservation ?? [])
    if (reservations.length > 0) this.release(reservations)
  }
}

/** Continues "the ledger of pod protection". */
function failureOf(error: unknown, timeoutMs: number): string {
  const failure = error instanceof CallError ? error.failure : 'failed'
  if (failure === 'late') return `did not answer within ${timeoutMs} ms`
  return failure === 'ended' ? 'is shutting down' : `cannot answer: ${errorMessage(error)}`
}
