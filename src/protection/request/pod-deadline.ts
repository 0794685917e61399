// Writes that set or lower a pod's activeDeadlineSeconds: the kubelet then ends the pod without a deletion request. They are evaluated
// as a deletion, except that a patch has no preconditions: it applies to whichever pod has the name, however it has changed.

import type { CompiledProtection } from '../../gateway/core/cluster/compiled-cluster.ts'
import { isDryRunQuery } from '../../gateway/core/policy/disruption.ts'
import { deadlineSeconds, type WriteEffect } from '../../gateway/core/policy/ending-writes.ts'
import { answerAsTried, writeEffect } from '../../gateway/request/calls/write-effect.ts'
import type { Decision } from '../../gateway/request/exchange/decision.ts'
import { isRefusal, type Refusal } from '../../kit/core/refusal/refusal.ts'
import type { PodFacts, ProtectionGate, ProtectionVerdict } from '../api/protection.ts'
import { isGuarded } from '../core/quota/guarded-pods.ts'
import { type Deletion, requestOf } from './deletion.ts'
import { findPod } from './find-pods.ts'
import { reviewDeletions } from './review.ts'
import { errorVerdict, follow, followUnread, hold } from './verdict.ts'

/**
 * How far ahead a pod's end may be. Its reservation lasts --protection-reservation-timeout, two minutes by default, and
 * a kubelet takes up to the pod's grace period to end it.
 */
export const MAX_AHEAD_MS = 30_000

type Ending = Extract<WriteEffect, { kind: 'ends' }>

export async function protectFromDeadline(
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
      return await review(deletion, effect)
    case 'refused':
      answerAsTried(decision, effect)
      return undefined
    case 'unknown':
      return followUnread(deletion, info.name, effect)
  }
}

async function review(deletion: Deletion, ending: Ending): Promise<Refusal | undefined> {
  const { exchange, decision, settings } = deletion
  const { name } = decision.info
  const found = await findPod(deletion, name)
  if (found.kind === 'unknown' || found.kind === 'limited') return followUnread(deletion, name, found)
  if (found.kind === 'absent') return undefined
  const { value: pod } = found
  if (pod.terminating || !isGuarded(settings, pod.labels) || exchange.gone) return undefined
  const because = whyNotHeld(pod, ending, exchange.gw.clock.now())
  const dryRun = isDryRunQuery(exchange.target) || because !== ''
  const request = requestOf(deletion, { criterion: undefined, dryRun }, asAvailable(pod))
  const [given = errorVerdict('the ledger gave no verdict')] = await reviewDeletions(deletion, [request])
  const verdict = because === '' ? given : notHeld(given, pod, because)
  hold(deletion, verdict)
  return follow(deletion, name, naming(verdict, ending))
}

/** The pod may become available before it ends, so count it as available. */
function asAvailable(pod: PodFacts): PodFacts {
  return { ...pod, scheduled: true, running: true, ready: true, createdMs: 0 }
}

/** Why the reservation would not last until the pod ends; '' = it ends soon enough. */
function whyNotHeld({ startedMs }: PodFacts, { after }: Ending, nowMs: number): string {
  const seconds = after === undefined ? undefined : deadlineSeconds(after)
  if (seconds === undefined || startedMs === 0) return 'when it would end is not known'
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
