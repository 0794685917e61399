// Pod protection on the request path: a deletion or an eviction of a pod passes only if the ledger allows it, and then only for
// the exact pod that was evaluated. Follows one of them from top to bottom; collections are in collection.ts.

import type { Filter } from '../../gateway/core/admission/filter.ts'
import { isPodWrite, protectionOf } from '../../gateway/core/admission/pod-deletion.ts'
import type { CompiledProtection } from '../../gateway/core/cluster/compiled-cluster.ts'
import { reviewRight } from '../../gateway/request/calls/access.ts'
import type { Limited, Unknown } from '../../gateway/request/calls/upstream-reader.ts'
import type { Decision, Recheck } from '../../gateway/request/exchange/decision.ts'
import { isRefusal, type Refusal, refuse } from '../../kit/core/refusal/refusal.ts'
import type { ProtectionGate } from '../api/protection.ts'
import { isGuarded } from '../core/quota/guarded-pods.ts'
import { protectCollection } from './collection.ts'
import { type AskedDeletion, bindBody, type Deletion, keepBody, NO_POD_UID, readAsked, requestOf } from './deletion.ts'
import { findPod } from './find-pods.ts'
import { protectFromDeadline } from './pod-deadline.ts'
import { reviewDeletions } from './review.ts'
import { errorVerdict, follow, followUnread, hold, NO_GATE } from './verdict.ts'

/** Evaluations per deletion, if its pod keeps changing. */
const MAX_ROUNDS = 3

/** An admission filter: asks the ledger, and binds the request to the evaluated pod. */
export const protection: Filter<Decision, Promise<Refusal | undefined>> = {
  // Shadow mode applies to the verdict (verdict.ts), not to the other refusals here.
  shadow: () => false,
  check(decision) {
    const settings = protectionOf(decision.cluster, decision.info)
    if (settings === undefined) return undefined
    const gate = decision.exchange.gw.protection ?? NO_GATE
    if (!gate.covers(decision.info.namespace)) return undefined
    return isPodWrite(decision.info) ? protectFromDeadline(decision, settings, gate) : protect(decision, settings, gate)
  },
}

/** Nothing has been sent upstream yet. A reservation made here belongs to the exchange, which releases it if necessary. */
async function protect(
  decision: Decision,
  settings: CompiledProtection,
  gate: ProtectionGate,
): Promise<Refusal | undefined> {
  const { exchange, live, caller, info } = decision
  // An upgrade joins two sockets, so we couldn't see what upstream makes of the request.
  if (exchange.upgrade !== undefined) return refuse('bad-request', 'a deletion of pods cannot be upgraded')
  const cause = info.subresource === 'eviction' ? 'EvictPod' : 'DeletePod'
  const deletion: Deletion = { exchange, decision, settings, gate, cause }
  // Authorize before reading the body or looking up the pod: an unauthorized caller causes no work, and learns nothing.
  const right = await reviewRight(exchange, live, caller, info)
  if (exchange.gone || exchange.phase === 'over') return undefined
  if (right.kind === 'denied') return right.refusal
  if (right.kind === 'unknown') return unreviewed(deletion, undefined, right)
  const asked = await readAsked(deletion)
  if (isRefusal(asked)) return asked
  if (exchange.gone) return undefined
  return info.name === '' ? await protectCollection(deletion, asked) : await protectOne(deletion, asked, MAX_ROUNDS)
}

async function protectOne(deletion: Deletion, asked: AskedDeletion, rounds: number): Promise<Refusal | undefined> {
  const { exchange, decision, settings } = deletion
  const { warnings } = decision
  const found = await findPod(deletion, decision.info.name)
  if (found.kind === 'unknown' || found.kind === 'limited') return unreviewed(deletion, asked, found)
  const recheck: Recheck = {
    filter: 'protection',
    check: () => {
      decision.warnings = warnings
      return protectOne(deletion, asked, rounds - 1)
    },
  }
  // If the client set a resourceVersion itself, the conflict is its own to handle.
  const mayRecheck = rounds > 1 && asked.resourceVersion === ''
  // Upstream reports that itself, to callers that may know.
  if (found.kind === 'absent') {
    bindBody(deletion, asked, NO_POD_UID, '')
    if (mayRecheck && asked.uid === '') decision.recheck = recheck
    return undefined
  }
  const { value: pod } = found
  // Upstream refuses a different uid: the pod that the client means is gone.
  const isAnother = asked.uid !== '' && asked.uid !== pod.uid
  if (isAnother || pod.terminating || !isGuarded(settings, pod.labels)) {
    if (pod.terminating && !isAnother) exchange.record.protection = 'AlreadyTerminating'
    bindBody(deletion, asked, pod.uid, '')
    if (mayRecheck && !isAnother) decision.recheck = recheck
    return undefined
  }
  if (exchange.gone) return undefined
  const [verdict = errorVerdict('the ledger gave no verdict')] = await reviewDeletions(deletion, [
    requestOf(deletion, asked, pod),
  ])
  hold(deletion, verdict)
  const refused = follow(deletion, pod.name, verdict)
  if (refused !== undefined) return refused
  bindBody(deletion, asked, pod.uid, verdict.freePass ? pod.resourceVersion : '')
  if (mayRecheck) decision.recheck = recheck
  return undefined
}

/**
 * The pod or the caller's right is unknown: the failure policy decides.
 * @param asked undefined = the body was not read: if the request passes, it is sent unmodified
 */
function unreviewed(
  deletion: Deletion,
  asked: AskedDeletion | undefined,
  found: Unknown | Limited,
): Refusal | undefined {
  const { exchange, decision } = deletion
  const { gw, record } = exchange
  gw.log.warn('deletion could not be evaluated', {
    cluster: record.cluster,
    reason: found.why,
    auditId: record.auditId,
  })
  const refused = followUnread(deletion, decision.info.name, found)
  if (refused === undefined && asked !== undefined) keepBody(deletion, asked)
  return refused
}
