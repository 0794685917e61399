// In-flight and long-running slots of a request, charged to the sender once authenticated, and to its address until then; and who is refused them
// for cancelling too many.

import type { Charge } from '../../../kit/api/stream.ts'
import { type Refusal, refuse } from '../../../kit/core/refusal/refusal.ts'
import { refuseShare } from '../../../kit/core/shares/refuse-share.ts'
import type { Shares, Taken } from '../../../kit/core/shares/shares.ts'
import { isExempt, isNodeHeartbeat } from '../../core/policy/degrade.ts'
import { tooManyCancelledMessage } from '../../core/policy/traffic-messages.ts'
import { isWatch } from '../../core/request/long-running.ts'
import type { RequestInfo } from '../../core/request/request-info.ts'
import type { LiveCluster } from '../../state/clusters.ts'
import type { EndableRequest } from '../../state/thread-shares.ts'
import type { Gateway } from './gateway.ts'
import type { Authenticated } from './identity.ts'

/** The subset of Exchange used here. */
interface SharingRequest extends EndableRequest {
  readonly gw: Gateway
  readonly record: { readonly userAgent: string; readonly cluster: string; readonly longRunning: boolean }
  readonly monotonicMs: number
  readonly longRunning: boolean
  /** Who is charged from now on. */
  readonly charge: Charge
  /** Who was charged for the slot taken. */
  charged: Charge | undefined
}

/**
 * Takes a slot for the source that is charged now: while the sender is being authenticated, and for a request that is for no cluster. Undefined = it
 * may go on.
 */
export function takeUnknownShare(request: SharingRequest, info: RequestInfo): Refusal | undefined {
  giveShare(request)
  const { charge } = request
  return take(request, info, charge) === 'taken' ? undefined : refused(request, charge)
}

/** Charges the requester from here on. Undefined = it may run. */
export function takeShare(
  request: SharingRequest,
  live: LiveCluster,
  info: RequestInfo,
  requester: Authenticated,
): Refusal | undefined {
  giveShare(request)
  const { charge, gw } = request
  // Its unread responses fill the memory: no more until its clients have read some of them.
  const unread = gw.shares.answers.isOver(charge)
  if (!unread && take(request, info, charge) === 'taken') return undefined
  if (!isVital(request, live, info, requester)) return unread ? refusedForUnread(request) : refused(request, charge)
  if (unread) take(request, info, charge)
  return undefined
}

/** Called at the end, or before charging another payer. */
export function giveShare(request: SharingRequest): void {
  const { charged } = request
  if (charged === undefined) return
  request.charged = undefined
  const { inflight, watches } = request.gw.shares
  if (request.longRunning) watches.of(charged).give(request)
  else inflight.give(charged, 1)
}

function take(request: SharingRequest, info: RequestInfo, charge: Charge): Taken {
  const { shares } = request.gw
  const taken = request.longRunning ? takeLong(request, isWatch(info), charge) : shares.inflight.take(charge, 1)
  if (taken === 'taken') request.charged = charge
  return taken
}

/** If capacity is exhausted, evicts a watch of a source above its share: it ends as in a drain, and reconnects elsewhere or later. */
function takeLong(request: SharingRequest, watch: boolean, charge: Charge): Taken {
  const { gw } = request
  const held = gw.shares.watches.of(charge)
  const taken = held.take(request, charge.source, charge.weight, watch)
  if (taken !== 'taken') return taken
  for (let one = held.toGiveUp(); one !== undefined; one = held.toGiveUp()) {
    gw.events.limited('watches', charge.known)
    one.finish()
  }
  return taken
}

/** Exempt from shared limits, also when the cluster's own limit is reached: nodes must not be considered dead. */
function isVital(
  { record, monotonicMs }: SharingRequest,
  { flows, compiled }: LiveCluster,
  info: RequestInfo,
  { user }: Authenticated,
): boolean {
  if (isNodeHeartbeat(info, user)) return flows.tryHeartbeat(user.name, monotonicMs)
  return isExempt(compiled.degrade, info, user, record.userAgent)
}

function refusedForUnread({ gw, charge }: SharingRequest): Refusal {
  const { buffered } = gw.shares
  gw.events.limited(buffered.limit, charge.known)
  return refuseShare(buffered.limit, buffered.of(charge), charge, gw.random())
}

function refused(request: SharingRequest, charge: Charge): Refusal {
  const { gw } = request
  const { inflight, watches } = gw.shares
  const limit = request.longRunning ? watches.limit : inflight.limit
  gw.events.limited(limit, charge.known)
  const shares: Shares = request.longRunning ? watches.of(charge).shares : inflight.of(charge)
  return refuseShare(limit, shares, charge, gw.random())
}

const CANCELLED_RETRY_SECONDS = 1

/**
 * Throttles a user who cancels requests faster than any legitimate client would (CVE-2023-44487, over many connections together): upstream still works
 * on each of them, next to other users' requests. Checked for every sender before any other work. Undefined = not throttled.
 */
export function refuseCancelled({ gw, record, charge, monotonicMs }: SharingRequest): Refusal | undefined {
  const { cancelledRequests, cancelledLongRunning } = gw.budgets
  // Fast path: no recent cancellations.
  if (cancelledRequests.users === 0 && cancelledLongRunning.users === 0) return undefined
  const { cluster, longRunning } = record
  const who = charge.source
  let budget = cancelledRequests
  if (!budget.isSpent(cluster, who, monotonicMs)) {
    // A user who ends many watches at once may still send other requests.
    if (!longRunning) return undefined
    budget = cancelledLongRunning
    if (!budget.isSpent(cluster, who, monotonicMs)) return undefined
  }
  return refuse('too-many-cancelled', tooManyCancelledMessage(who, budget.size, budget === cancelledLongRunning), {
    retryAfterSeconds: CANCELLED_RETRY_SECONDS,
  })
}
