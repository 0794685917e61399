// Pod protection on the request path: a deletion or an eviction of a pod goes on only as the ledger allows it, and then for
// exactly the pod that was evaluated. The way of one of them, top to bottom; whole collections in collection.ts.

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

/** How often a deletion is evaluated whose pod changes again and again. */
const MAX_ROUNDS = 3

/** Between two filters of admission: asks the ledger, and leaves the request with what it asks upstream for. */
export const protection: Filter<Decision, Promise<Refusal | undefined>> = {
  // It is the verdict that is in shadow mode, and not what else is refused here (verdict.ts).
  shadow: () => false,
  check(decision) {
    const settings = protectionOf(decision.cluster, decision.info)
    if (settings === undefined) return undefined
    const gate = decision.exchange.gw.protection ?? NO_GATE
    if (!gate.covers(decision.info.namespace)) return undefined
    return isPodWrite(decision.info) ? protectFromDeadline(decision, settings, gate) : protect(decision, settings, gate)
  },
}

/** Nothing has been sent upstream yet. Whatever is reserved here belongs to the exchange, which gives it back if need be. */
async function protect(
  decision: Decision,
  settings: CompiledProtection,
  gate: ProtectionGate,
): Promise<Refusal | undefined> {
  const { exchange, live, caller, info } = decision
  // An upgrade joins two sockets, and what upstream makes of the request could not be seen.
  if (exchange.upgrade !== undefined) return refuse('bad-request', 'a deletion of pods cannot be upgraded')
  const cause = info.subresource === 'eviction' ? 'EvictPod' : 'DeletePod'
  const deletion: Deletion = { exchange, decision, settings, gate, cause }
  // Before the body is read or upstream is asked about a pod: who may not delete it causes no work, and learns nothing.
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
  // A conflict with the version that the client itself set as a condition is for the client.
  const mayRecheck = rounds > 1 && asked.resourceVersion === ''
  // Upstream says so itself, to those that may know.
  if (found.kind === 'absent') {
    bindBody(deletion, asked, NO_POD_UID, '')
    if (mayRecheck && asked.uid === '') decision.recheck = recheck
    return undefined
  }
  const { value: pod } = found
  // Upstream refuses another uid: the pod that the client means is gone.
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
 * Nobody knows what the deletion is about, or whether the caller may delete: the failure policy decides.
 * @param asked undefined = the body was not read: if at all, it goes upstream as it comes
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
