// Degrade modes NoDisruption and Limited on the request path. A request's effect on running workloads is in its body as often as in its
// head. Requests are never modified.

import { guardedDisruption, limitDisruption, refuseDisruption } from '../../gateway/core/admission/disruption.ts'
import type { Filter } from '../../gateway/core/admission/filter.ts'
import { isDryRunQuery, isEviction } from '../../gateway/core/policy/disruption.ts'
import type { RefusedWrite } from '../../gateway/core/policy/ending-writes.ts'
import { dependsOnMoment } from '../../gateway/core/policy/write-body.ts'
import { scaleName, scaleTargetOf } from '../../gateway/core/request/scale-target.ts'
import { UnreadableBody } from '../../gateway/core/request/write-envelope.ts'
import { reviewRight } from '../../gateway/request/calls/kube-review.ts'
import { contentTypeOf, readRemoval } from '../../gateway/request/calls/request-bodies.ts'
import { scaleChange } from '../../gateway/request/calls/scale-change.ts'
import { answerAsTried, writeEffect } from '../../gateway/request/calls/write-effect.ts'
import type { Decision } from '../../gateway/request/exchange/decision.ts'
import { isRefusal, type Refusal } from '../../kit/core/refusal/refusal.ts'

export const disruption: Filter<Decision, Promise<Refusal | undefined>> = {
  shadow: ({ cluster }) => cluster.degrade.shadow,
  check(decision) {
    const found = guardedDisruption(decision)
    if (found === undefined) return undefined
    if (found === 'removal') return mayBeDryRun(decision) ? checkRemoval(decision) : decideRemoval(decision)
    return isDryRunQuery(decision.exchange.target) ? undefined : checkWrite(decision)
  },
}

async function checkRemoval(decision: Decision): Promise<Refusal | undefined> {
  const dryRun = await isDryRunRemoval(decision)
  if (typeof dryRun !== 'boolean') return dryRun
  return dryRun || isOver(decision) ? undefined : await decideRemoval(decision)
}

/** Authorize first: a caller who may not remove it must not use up the shared rate or delay a recovery. */
function decideRemoval(decision: Decision): Refusal | undefined | Promise<Refusal | undefined> {
  const { degrade } = decision.cluster
  // In shadow mode nothing is refused, and nothing waits.
  if (degrade.shadow) return decide(decision, '')
  if (degrade.mode === 'Limited') return limitRemoval(decision)
  // Don't wait for the access review: it is refused either way, and upstream may be what is broken.
  countRemoval(decision)
  return refuseDisruption(decision, '')
}

async function limitRemoval(decision: Decision): Promise<Refusal | undefined> {
  const { exchange, live, caller, info } = decision
  const right = await reviewRight(exchange, live, caller, info, 'remove it')
  if (isOver(decision)) return undefined
  return right.kind === 'denied' ? right.refusal : decide(decision, '')
}

function countRemoval(decision: Decision): void {
  const { exchange, live, caller, info } = decision
  reviewRight(exchange, live, caller, info, 'remove it').then(
    (right) => {
      if (right.kind !== 'denied') countRefused(decision)
    },
    (error: unknown) => exchange.gw.log.error('a refused request could not be counted', { error }),
  )
}

function countRefused({ live, info, user, moment }: Decision): void {
  const { verb, apiGroup, resource, subresource, namespace, name } = info
  const request = [verb, apiGroup, resource, subresource, namespace, name].join('\0')
  live.incident.countRefused(user.name, request, moment.nowMs)
}

async function checkWrite(decision: Decision): Promise<Refusal | undefined> {
  const what =
    (await loweredText(decision)) ?? (decision.deliver === undefined ? await endingText(decision) : undefined)
  if (typeof what !== 'string') return what
  return isOver(decision) ? undefined : decide(decision, what)
}

/** The client is gone, or the exchange ended otherwise: don't count. */
function isOver({ exchange }: Decision): boolean {
  return exchange.gone || exchange.phase === 'over'
}

/** @returns undefined also if unknown: the request then passes, and is counted */
async function endingText(decision: Decision): Promise<string | Refusal | undefined> {
  const effect = await writeEffect(decision)
  if (effect === undefined || isRefusal(effect)) return effect
  if (effect.kind === 'ends') return effect.what
  return effect.kind === 'refused' ? answer(decision, effect) : countUnchecked(decision, effect.why)
}

/** See endingText. */
async function loweredText(decision: Decision): Promise<string | Refusal | undefined> {
  const change = await scaleChange(decision)
  if (change !== undefined && isRefusal(change)) return change
  const copied = copiedReplicas(decision)
  if (copied !== undefined || change === undefined) return copied
  const { target, from, to, unknown, answered } = change
  if (answered !== undefined) return answer(decision, answered)
  if (unknown !== undefined) return countUnchecked(decision, unknown)
  if (from === undefined || to === undefined || to >= from) return undefined
  return `lowers spec.replicas of ${scaleName(target)} from ${from} to ${to}`
}

const REPLICAS: readonly string[] = ['/spec/replicas']

/** Needs the body to have been read. */
function copiedReplicas({ exchange, info }: Decision): string | undefined {
  const target = scaleTargetOf(info)
  const body = exchange.body?.original
  if (target === undefined || body === undefined) return undefined
  if (!dependsOnMoment(REPLICAS, contentTypeOf(exchange), body)) return undefined
  return `may change spec.replicas of ${scaleName(target)} by a copy or a move`
}

/**
 * Don't forward a write that upstream has just refused: a patch can test for something that the client changes in between, so the
 * real one could succeed unchecked.
 */
function answer(decision: Decision, refused: RefusedWrite): undefined {
  if (decision.cluster.degrade.shadow) countUnchecked(decision, `its dry run was answered with ${refused.status}`)
  else answerAsTried(decision, refused)
}

/** The request's effect is unknown: it passes, is counted, and the log says why. */
function countUnchecked({ exchange }: Decision, reason: string): undefined {
  const { gw, record } = exchange
  gw.events.disruptionUnchecked(record.cluster)
  gw.log.warn('what a request disrupts could not be found out', {
    cluster: record.cluster,
    reason,
    auditId: record.auditId,
  })
}

/** The request is disruptive and the caller is authorized: the mode decides. */
function decide(decision: Decision, what: string): Refusal | undefined {
  const { cluster, live, moment } = decision
  const { degrade } = cluster
  if (degrade.mode === 'Limited' && live.incident.tryDisrupt(degrade.ramp, moment.nowMs)) return undefined
  if (!degrade.shadow) countRefused(decision)
  return degrade.mode === 'Limited' ? limitDisruption(decision, what) : refuseDisruption(decision, what)
}

// Whether a deletion or an eviction is a dry run, which disrupts nothing. The body decides: kube-apiserver reads the query of a deletion
// only if there is no body (apiserver/pkg/endpoints/handlers/delete.go).

/** Fast path: without a body, the query alone decides. */
function mayBeDryRun({ exchange, info }: Decision): boolean {
  return (
    isEviction(info) ||
    !exchange.requestEnded ||
    exchange.body?.original !== undefined ||
    isDryRunQuery(exchange.target)
  )
}

/** No access review first: no more is read than any request may carry. An unreadable body is not a dry run. */
async function isDryRunRemoval({ exchange, info }: Decision): Promise<boolean | Refusal> {
  if (exchange.upgrade !== undefined) return false
  try {
    const removal = await readRemoval(exchange, isEviction(info), 'in this degrade mode')
    return isRefusal(removal) ? removal : removal.dryRun
  } catch (error) {
    if (error instanceof UnreadableBody) return false
    throw error
  }
}
