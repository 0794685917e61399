// A user who gives up requests faster than anybody who wants answers is not sent on for a moment (CVE-2023-44487, of many
// connections together): upstream still works on each of them, beside the requests of others.

import { tooManyCancelledMessage } from '../../core/policy/traffic-messages.ts'
import { type Refusal, refuse } from '../../core/refusal/refusal.ts'
import { CANCELLED_REQUESTS } from '../../state/cancel-budgets.ts'
import type { Exchange } from './exchange.ts'
import { type Authenticated, budgetKey } from './identity.ts'

const RETRY_AFTER_SECONDS = 1

/** Asked of whoever sends a request, before anything is done for it. Undefined = it may go on. */
export function refuseCancelled(exchange: Exchange, requestor: Authenticated): Refusal | undefined {
  const { gw, record, monotonicMs } = exchange
  // So that it costs nothing while nobody gives up any.
  if (gw.cancels.size === 0) return undefined
  const who = budgetKey(requestor, exchange.peer.remoteAddress)
  if (!gw.cancels.isSpent(record.cluster, who, monotonicMs)) return undefined
  const { perSecond, burst } = CANCELLED_REQUESTS
  return refuse('too-many-cancelled', tooManyCancelledMessage(record.cluster, who, perSecond, burst), {
    retryAfterSeconds: RETRY_AFTER_SECONDS,
  })
}
