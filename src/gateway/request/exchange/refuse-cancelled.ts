// Throttles a user who cancels requests faster than any legitimate client would (CVE-2023-44487, over many
// connections together): upstream still works on each of them, next to other users' requests.

import { type Refusal, refuse } from '../../../kit/core/refusal/refusal.ts'
import { tooManyCancelledMessage } from '../../core/policy/traffic-messages.ts'
import type { Exchange } from './exchange.ts'

const RETRY_AFTER_SECONDS = 1

/** Checked for every sender before any other work. Undefined = not throttled. */
export function refuseCancelled(exchange: Exchange): Refusal | undefined {
  const { gw, record, monotonicMs } = exchange
  const { cancelledRequests, cancelledLongRunning } = gw.budgets
  // Fast path: no recent cancellations.
  if (cancelledRequests.users === 0 && cancelledLongRunning.users === 0) return undefined
  const { cluster, longRunning } = record
  const who = exchange.charge.source
  let budget = cancelledRequests
  if (!budget.isSpent(cluster, who, monotonicMs)) {
    // A user who ends many watches at once may still send other requests.
    if (!longRunning) return undefined
    budget = cancelledLongRunning
    if (!budget.isSpent(cluster, who, monotonicMs)) return undefined
  }
  return refuse('too-many-cancelled', tooManyCancelledMessage(who, budget.size, budget === cancelledLongRunning), {
    retryAfterSeconds: RETRY_AFTER_SECONDS,
  })
}
