// Pod protection on the request path: a deletion or an eviction of a pod goes on only as the ledger allows it, and then for
// exactly the pod that was judged. The way of one of them, top to bottom; whole collections in protect-collection.ts.

import type { ProtectionVerdict } from '../../api/ports/protection.ts'
import { protectionOf } from '../../core/admission/pod-deletion.ts'
import type { CompiledCluster, CompiledProtection } from '../../core/cluster/compiled-cluster.ts'
import { isGuarded } from '../../core/protection/quota/guarded-pods.ts'
import { isRefusal, type Refusal, refuse } from '../../core/refusal/refusal.ts'
import type { RequestInfo } from '../../core/request/request-info.ts'
import type { Permit } from '../exchange/admit.ts'
import type { Exchange } from '../exchange/exchange.ts'
import type { Gateway } from '../exchange/gateway.ts'
import type { Authenticated } from '../exchange/identity.ts'
import { reviewRight } from './access.ts'
import { findPod, type Limited, type Unknown } from './call.ts'
import { protectCollection } from './collection.ts'
import {
  type Asked,
  bindBody,
  type Deletion,
  FORWARD,
  keepBody,
  NO_POD_UID,
  type Protected,
  readAsked,
  requestOf,
} from './deletion.ts'
import { errorVerdict, follow, followUnread, NO_GATE } from './verdict.ts'

/** How often a deletion is judged whose pod changes again and again. */
const MAX_ROUNDS = 3

/** Whether the request is one that the ledger has to be asked about. */
export function needsProtection(gw: Gateway, cluster: CompiledCluster, info: RequestInfo): boolean {
  if (protectionOf(cluster, info) === undefined) return false
  return gw.protection?.covers(info.namespace) ?? true
}

/** Nothing has been sent upstream yet. Whatever is reserved here belongs to the exchange, which gives it back if need be. */
export async function protect(
  exchange: Exchange,
  permit: Permit,
  caller: Authenticated,
  protection: CompiledProtection,
): Promise<Protected | Refusal> {
  // An upgrade joins two sockets, and what upstream makes of the request could not be seen.
  if (exchange.upgrade !== undefined) return refuse('bad-request', 'a deletion of pods cannot be upgraded')
  const { info, live } = permit
  const cause = info.subresource === 'eviction' ? 'EvictPod' : 'DeletePod'
  const gate = exchange.gw.protection ?? NO_GATE
  const deletion: Deletion = { exchange, live, permit, caller, info, protection, gate, cause }
  // Before the body is read or upstream is asked about a pod: who may not delete it causes no work, and learns nothing.
  const right = await reviewRight(exchange, live, caller, info)
  if (exchange.gone || exchange.phase === 'over') return FORWARD
  if (right.kind === 'denied') return right.refusal
  if (right.kind === 'unknown') return unjudged(deletion, undefined, right)
  const asked = await readAsked(deletion)
  if (isRefusal(asked)) return asked
  if (exchange.gone) return FORWARD
  return info.name === '' ? await protectCollection(deletion, asked) : await protectOne(deletion, asked, MAX_ROUNDS)
}

async function protectOne(deletion: Deletion, asked: Asked, rounds: number): Promise<Protected | Refusal> {
  const { exchange, permit, info, protection, gate } = deletion
  const { warnings } = permit
  const found = await findPod(deletion, info.name)
  if (found.kind === 'unknown' || found.kind === 'limited') return unjudged(deletion, asked, found)
  // A conflict with the version that the client itself set as a condition is for the client.
  const mayJudgeAgain = rounds > 1 && asked.resourceVersion === ''
  const onward: Protected = {
    again: () => {
      permit.warnings = warnings
      return protectOne(deletion, asked, rounds - 1)
    },
  }
  // Upstream says so itself, to whom it wants to.
  if (found.kind === 'absent') {
    bindBody(deletion, asked, NO_POD_UID, '')
    return mayJudgeAgain && asked.uid === '' ? onward : FORWARD
  }
  const { pod } = found
  // Upstream refuses another uid: the pod that the client means is gone.
  const isAnother = asked.uid !== '' && asked.uid !== pod.uid
  if (isAnother || pod.terminating || !isGuarded(protection, pod.labels)) {
    if (pod.terminating && !isAnother) exchange.record.protection = 'AlreadyTerminating'
    bindBody(deletion, asked, pod.uid, '')
    return mayJudgeAgain && !isAnother ? onward : FORWARD
  }
  if (exchange.gone) return FORWARD
  const [verdict = errorVerdict('the ledger gave no verdict')] = await gate.review([requestOf(deletion, asked, pod)])
  hold(deletion, verdict)
  const refused = follow(deletion, pod.name, verdict)
  if (refused !== undefined) return refused
  bindBody(deletion, asked, pod.uid, verdict.freePass ? pod.resourceVersion : '')
  return mayJudgeAgain ? onward : FORWARD
}

/** From here on the exchange gives back what was reserved, if nothing comes of it. */
function hold({ exchange, gate }: Deletion, { reservation }: ProtectionVerdict): void {
  if (reservation === undefined) return
  // It was cut in the meantime: nothing will be sent.
  if (exchange.phase === 'over') gate.release([reservation])
  else exchange.reservation = reservation
}

/**
 * Nobody knows what the deletion is about, or whether the caller may delete: the failure policy decides.
 * @param asked undefined = the body was not read: if at all, it goes upstream as it comes
 */
function unjudged(deletion: Deletion, asked: Asked | undefined, found: Unknown | Limited): Protected | Refusal {
  const { exchange, info } = deletion
  const { gw, record } = exchange
  gw.log.warn('deletion could not be judged', {
    cluster: record.cluster,
    reason: found.message,
    auditId: record.auditId,
  })
  const refused = followUnread(deletion, info.name, found)
  if (refused === undefined && asked !== undefined) keepBody(deletion, asked)
  return refused ?? FORWARD
}
