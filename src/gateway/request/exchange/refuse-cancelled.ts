// A user who gives up requests faster than anybody who wants answers is not sent on for a moment (CVE-2023-44487, of many
// connections together): upstream still works on each of them, beside the requests of others.

import { type Refusal, refuse } from '../../../kit/core/refusal/refusal.ts'
import { tooManyCancelledMessage } from '../../core/policy/traffic-messages.ts'
import type { Exchange } from './exchange.ts'

const RETRY_AFTER_SECONDS = 1

/** Asked of whoever sends a request, before anything is done for it. Undefined = it may go on. */
export function refuseCancelled(exchange: Exchange): Refusal | undefined {
  const { gw, record, monotonicMs } = exchange
  const { cancelledRequests, cancelledLongRunning } = gw.budgets
  // So that it costs nothing while nobody gives up any.
  if (cancelledRequests.users === 0 && cancelledLongRunning.users === 0) return undefined
  const { cluster, longRunning } = record
  const who = exchange.charge.source
  let budget = cancelledRequests
  if (!budget.isSpent(cluster, who, monotonicMs)) {
    // Who ends many watches at once goes on with everything else.
    if (!longRunning) return undefined
    budget = cancelledLongRunning
    if (!budget.isSpent(cluster, who, monotonicMs)) return undefined
  }
  return refuse('too-many-cancelled', tooManyCancelledMessage(who, budget.size, budget === cancelledLongRunning), {
    retryAfterSeconds: RETRY_AFTER_SECONDS,
  })
}
