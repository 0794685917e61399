// Pod protection on the request path: a deletion or an eviction of a pod passes only if the ledger allows it, and then only for
// the exact pod that was evaluated. Follows one of them from top to bottom, then a write that ends a pod; collections are in collection.ts.

import { isPodWrite, protectionOf } from '../../gateway/core/admission/pod-deletion.ts'
import type { CompiledProtection } from '../../gateway/core/cluster/compiled-cluster.ts'
import { isDryRunQuery } from '../../gateway/core/policy/disruption.ts'
import { deadlineSeconds, type WriteEffect } from '../../gateway/core/policy/ending-writes.ts'
import { reviewRight } from '../../gateway/request/calls/kube-review.ts'
import { answerAsTried, writeEffect } from '../../gateway/request/calls/write-effect.ts'
import type { Decision, Recheck, RequestFilter } from '../../gateway/request/exchange/decision.ts'
import { isRefusal, type Refusal, refuse } from '../../kit/core/refusal/refusal.ts'
import type { PodFacts, ProtectionGate, ProtectionVerdict } from '../api/protection.ts'
import { isGuarded } from '../core/quota/pod-facts.ts'
import { protectCollection } from './collection.ts'
import {
  type AskedDeletion,
  bindBody,
  type Deletion,
  findPod,
  follow,
  followUnread,
  NO_POD_UID,
  passUnreviewed,
  readAsked,
  reviewDeletion,
} from './deletion.ts'

/**
 * How far ahead a pod's end may be. Its reservation lasts --protection-reservation-timeout, two minutes by default, and
 * a kubelet takes up to the pod's grace period to end it.
 */
const MAX_AHEAD_MS = 30_000

/** Evaluations per deletion, if its pod keeps changing. */
const MAX_ROUNDS = 3

/** The admission filter of one thread: asks the ledger, and binds the request to the evaluated pod. */
export class PodProtectionFilter implements RequestFilter {
  readonly #gate: ProtectionGate

  constructor(gate: ProtectionGate) {
    this.#gate = gate
  }

  /** Shadow mode applies to the verdict (verdict.ts), not to the other refusals here. */
  shadow(): boolean {
    return false
  }

  check(decision: Decision): Promise<Refusal | undefined> | undefined {
    const settings = protectionOf(decision.cluster, decision.info)
    const gate = this.#gate
    if (settings === undefined || !gate.covers(decision.info.namespace)) return undefined
    return isPodWrite(decision.info) ? protectFromDeadline(decision, settings, gate) : protect(decision, settings, gate)
  }
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
  if (right.kind === 'unknown') return passUnreviewed(deletion, undefined, right)
  const asked = await readAsked(deletion)
  if (isRefusal(asked)) return asked
  if (exchange.gone) return undefined
  return info.name === '' ? await protectCollection(deletion, asked) : await protectOne(deletion, asked, MAX_ROUNDS)
}

async function protectOne(deletion: Deletion, asked: AskedDeletion, rounds: number): Promise<Refusal | undefined> {
  const { exchange, decision, settings } = deletion
  const { warnings } = decision
  const found = await findPod(deletion, decision.info.name)
  if (found.kind === 'unknown' || found.kind === 'limited') return passUnreviewed(deletion, asked, found)
  const pod = found.kind === 'found' ? found.value : undefined
  // The pod that the client means is gone: upstream refuses a different uid.
  const isAnother = asked.uid !== '' && asked.uid !== pod?.uid
  let version = ''
  if (pod?.terminating === true && !isAnother) exchange.record.protection = 'AlreadyTerminating'
  else if (pod !== undefined && !isAnother && isGuarded(settings, pod.labels)) {
    if (exchange.gone) return undefined
    const verdict = await reviewDeletion(deletion, asked, pod)
    const refused = follow(deletion, pod.name, verdict)
    if (refused !== undefined) return refused
    if (verdict.freePass) version = pod.resourceVersion
  }
  // That there is no pod, upstream reports itself, to callers that may know.
  bindBody(deletion, asked, pod?.uid ?? NO_POD_UID, version)
  // If the client set a resourceVersion itself, the conflict is its own to handle.
  if (rounds > 1 && asked.resourceVersion === '' && !isAnother) {
    const check: Recheck['check'] = () => {
      decision.warnings = warnings
      return protectOne(deletion, asked, rounds - 1)
    }
    decision.recheck = { filter: 'protection', check }
  }
  return undefined
}

type Ending = Extract<WriteEffect, { kind: 'ends' }>

/**
 * Writes that set or lower a pod's activeDeadlineSeconds: the kubelet then ends the pod without a deletion request. They are evaluated
 * as a deletion, except that a patch has no preconditions: it applies to whichever pod has the name, however it has changed.
 */
async function protectFromDeadline(
  decision: Decision,
  settings: CompiledProtection,
  gate: ProtectionGate,
): Promise<Refusal | undefined> {
  const { exchange, info } = decision
  const deletion: Deletion = { exchange, decision, settings, gate, cause: 'DeletePod' }
  const effect = await writeEffect(decision)
  if (effect === undefined || exchange.gone) return undefined
  if (isRefusal(effect)) {
    const { refused, message: why, retryAfterSeconds } = effect
    if (refused !== 'too-many-reviews') return effect
    return followUnread(deletion, info.name, { kind: 'limited', why, retryAfterSeconds })
  }
  switch (effect.kind) {
    case 'ends':
      return await protectEnding(deletion, effect)
    case 'refused':
      answerAsTried(decision, effect)
      return undefined
    case 'unknown':
      return followUnread(deletion, info.name, effect)
  }
}

async function protectEnding(deletion: Deletion, ending: Ending): Promise<Refusal | undefined> {
  const { exchange, decision, settings } = deletion
  const { name } = decision.info
  const found = await findPod(deletion, name)
  if (found.kind === 'unknown' || found.kind === 'limited') return followUnread(deletion, name, found)
  if (found.kind === 'absent') return undefined
  const { value: pod } = found
  if (pod.terminating || !isGuarded(settings, pod.labels) || exchange.gone) return undefined
  const because = whyNotHeld(pod, ending, exchange.gw.clock.now())
  const dryRun = isDryRunQuery(exchange.target) || because !== ''
  const given = await reviewDeletion(deletion, { criterion: undefined, dryRun }, asAvailable(pod))
  const verdict = because === '' ? given : notHeld(given, pod, because)
  return follow(deletion, name, naming(verdict, ending))
}

/** The pod may become available before it ends, so count it as available. */
function asAvailable(pod: PodFacts): PodFacts {
  return { ...pod, scheduled: true, running: true, ready: true, createdMs: 0 }
}

/** Why the reservation would not last until the pod ends; '' = it ends soon enough. */
function whyNotHeld({ startedMs }: PodFacts, { after }: Ending, nowMs: number): string {
  const seconds = after === undefined ? undefined : deadlineSeconds(after)
  if (seconds === undefined || startedMs === 0) return 'it is unknown when the pod would end'
  const aheadMs = startedMs + seconds * 1000 - nowMs
  if (aheadMs <= MAX_AHEAD_MS) return ''
  return `it would end in ${Math.ceil(aheadMs / 1000)} s, and no deletion is admitted that far ahead`
}

/** @param verdict the protectors' verdict if it ended now */
function notHeld(verdict: ProtectionVerdict, pod: PodFacts, because: string): ProtectionVerdict {
  if (!verdict.admitted || verdict.status === 'Unmatched') return verdict
  const message = `${because}; write a deadline that ends it within ${MAX_AHEAD_MS / 1000} s, or delete or evict the pod when it is to go`
  return {
    ...verdict,
    status: 'Rejected',
    admitted: false,
    overridden: pod.forceDelete ? 'force-delete' : '',
    message,
    causes: [{ reason: 'PodDeletionRefused', message, field: 'spec.activeDeadlineSeconds' }],
  }
}

function naming(verdict: ProtectionVerdict, { what }: Ending): ProtectionVerdict {
  return verdict.admitted ? verdict : { ...verdict, message: `${verdict.message}; this request ${what}` }
}
