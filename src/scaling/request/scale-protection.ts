// Checks writes that lower replicas: which pods would go, what PodProtectors would say to that, and what
// to tell the caller. The write itself is forwarded unmodified.

import { ALLOW_UNTIL_ANNOTATION } from '../../gateway/api/upstream-cluster/scale-protection.ts'
import { scaleProtectionOf } from '../../gateway/core/admission/scale-write.ts'
import type { CompiledScaleProtection } from '../../gateway/core/cluster/compiled-cluster.ts'
import type { ScaleChange } from '../../gateway/core/policy/scale-change.ts'
import { type ScalableKind, scalableKind, scaleName } from '../../gateway/core/request/scale-target.ts'
import { mayList } from '../../gateway/request/calls/kube-review.ts'
import { scaleChange } from '../../gateway/request/calls/scale-change.ts'
import { type Limited, refuseLimited, UpstreamReader } from '../../gateway/request/calls/upstream-reader.ts'
import type { Decision, RequestFilter } from '../../gateway/request/exchange/decision.ts'
import { type JsonObject, mapOf } from '../../kit/api/json/json-object.ts'
import { recordOf, textOf } from '../../kit/api/json/object-shape.ts'
import { isRefusal, type Refusal, refuse } from '../../kit/core/refusal/refusal.ts'
import type { ProtectorAnswer, ScaleDownGate } from '../../protection/api/protection.ts'
import { isGuarded } from '../../protection/core/quota/pod-facts.ts'
import { leavingPods, withoutTemplate } from '../core/protection/leaving-pods.ts'
import { podSelector, podSelectors } from '../core/rank/replica-set-pods.ts'
import { planScaleDown, type ScaleDownPlan } from '../core/rank/scale-down-plan.ts'
import { controllerUid } from '../core/rank/scale-pod.ts'
import {
  leavingWarnings,
  overriddenText,
  refusalCauses,
  refusalText,
  type ScaleDown,
} from '../core/scale-write/scale-messages.ts'
import { type Costs, withCosts } from '../core/victim-choice/find-victims.ts'
import type { ScaleOutcome, UncheckedReason } from '../metrics/descriptors.ts'
import type { ScaleDownPolicies } from '../state/scale-down-policies.ts'
import { chosenVictims } from './chosen-victims.ts'
import { withoutBulks } from './upstream-objects.ts'

/** Timeout for the ledger of pod protection. */
const LEDGER_TIMEOUT_MS = 5_000
/** The controller may act this much later; if pods' ages change order within that time, the victims are uncertain. */
const WINDOW_MS = 60_000

interface ScaleProtectionDeps {
  /** Asks PodProtectors about the pods that go. */
  readonly gate: ScaleDownGate
  readonly policies: ScaleDownPolicies
  /** A write of replicas was evaluated, or was not, and why. */
  counted(cluster: string, outcome: ScaleOutcome, reason: UncheckedReason | ''): void
}

/** A checked workload whose replicas are lowered. */
interface Lowered extends ScaleDown {
  readonly kind: ScalableKind
  readonly workload: JsonObject
  readonly change: ScaleChange
}

/** The filter of one thread. */
export class ScaleProtectionFilter implements RequestFilter {
  readonly #deps: ScaleProtectionDeps

  constructor(deps: ScaleProtectionDeps) {
    this.#deps = deps
  }

  /** Shadow mode applies to what PodProtectors say, not to the other refusals here: rights, the size of the body. */
  shadow(): boolean {
    return false
  }

  check(decision: Decision): Promise<Refusal | undefined> | undefined {
    const settings = scaleProtectionOf(decision.cluster, decision.info, decision.user.name)
    return settings === undefined ? undefined : this.#check(decision, settings)
  }

  async #check(decision: Decision, settings: CompiledScaleProtection): Promise<Refusal | undefined> {
    const change = await scaleChange(decision)
    if (change === undefined || decision.exchange.gone) return undefined
    if (isRefusal(change)) {
      const lifted = settings.shadow && change.refused === 'too-many-reviews'
      return lifted ? this.#count(decision, 'unchecked', 'limited') : change
    }
    const { target, from, to, current, unknown, unknownReason = 'not-read' } = change
    const name = scaleName(target)
    if (unknown !== undefined) return this.#unchecked(decision, settings, name, unknownReason, unknown)
    if (from === undefined || to === undefined || current === undefined || to >= from)
      return this.#count(decision, 'allowed')
    const kind = scalableKind(target)
    // We can't tell which pods of other kinds go, and a failure policy that refused them would refuse them all.
    if (kind === undefined) return this.#count(decision, 'unchecked', 'kind')
    // A Deployment resets its ReplicaSet's replicas only after the pods were deleted, so that is checked like any other write.
    if (!isGuarded(settings, mapOf(current, 'labels'))) return undefined
    return await this.#checkLowered(decision, settings, { name, kind, workload: current, from, to, change })
  }

  async #checkLowered(
    decision: Decision,
    settings: CompiledScaleProtection,
    lowered: Lowered,
  ): Promise<Refusal | undefined> {
    const { exchange, info } = decision
    const { kind, workload, name, change } = lowered
    const read = await readPods(new UpstreamReader(decision, 'scale-read'), kind, workload, info.namespace)
    if (exchange.gone) return undefined
    if (read.kind === 'limited') {
      if (settings.shadow) return this.#count(decision, 'unchecked', 'limited')
      return refuseLimited(read, 'scale-read', { kind: info.resource, name: info.name })
    }
    if (read.kind === 'unread') return this.#unchecked(decision, settings, name, read.reason, read.why, workload)
    const nowMs = exchange.gw.clock.now()
    // A ScaleDownPolicy chooses first: PodProtectors are asked about its victims.
    const finding = await chosenVictims(this.#deps.policies, decision, change)
    const choice = finding?.kind === 'chosen' && !finding.policy.shadow ? finding.choice : 'unchanged'
    const plan = planOf(decision, lowered, read, choice)
    const { against, unknown } = await askProtectors(this.#deps.gate, decision, lowered, plan, read.pods)
    if (exchange.gone) return undefined
    if (against.length > 0 && !isAllowed(workload, nowMs)) return this.#refused(decision, settings, lowered, against)
    if (unknown !== '') {
      const refusal = this.#unchecked(decision, settings, name, 'stale', unknown, workload)
      if (refusal !== undefined) return refusal
    }
    const nameLeaving = (costs: Costs): Promise<void> => {
      return warn(decision, lowered, planOf(decision, lowered, read, costs), against)
    }
    // With a policy, the costs are known only once they are set; the pods are named then.
    if (finding === undefined) await nameLeaving('unchanged')
    else change.nameLeaving = nameLeaving
    if (against.length > 0) return this.#count(decision, 'overridden')
    const names = leavingWarnings(lowered, plan, false).length > 0
    return unknown === '' ? this.#count(decision, names ? 'warned' : 'allowed') : undefined
  }

  #refused(
    decision: Decision,
    { shadow }: CompiledScaleProtection,
    lowered: Lowered,
    against: readonly ProtectorAnswer[],
  ): Refusal | undefined {
    const { info, exchange } = decision
    const message = refusalText(lowered, against)
    const rule = against[0]?.protector ?? ''
    if (!shadow) {
      this.#count(decision, 'refused')
      const object = { kind: info.resource, name: info.name }
      return refuse('scale-protected', message, { causes: refusalCauses(against), rule, object })
    }
    decision.warnings = [...decision.warnings, `scale-protection in shadow mode would refuse: ${message}`]
    decision.shadow = [...decision.shadow, `scale-protection/${rule}`]
    exchange.record.shadow = decision.shadow
    return this.#count(decision, 'shadow')
  }

  /** @param workload undefined = unknown */
  #unchecked(
    decision: Decision,
    { failurePolicy, shadow }: CompiledScaleProtection,
    name: string,
    reason: UncheckedReason,
    why: string,
    workload?: JsonObject,
  ): Refusal | undefined {
    const { exchange, info } = decision
    const { gw, record } = exchange
    this.#count(decision, 'unchecked', reason)
    gw.log.warn('a write of replicas could not be evaluated', {
      cluster: record.cluster,
      reason: why,
      auditId: record.auditId,
    })
    if (failurePolicy === 'Ignore' || (workload !== undefined && isAllowed(workload, gw.clock.now()))) return undefined
    const message = `${name} cannot be scaled now: ${why}`
    if (!shadow)
      return refuse('scale-unavailable', message, {
        rule: 'spec.scaleProtection',
        object: { kind: info.resource, name: info.name },
      })
    decision.warnings = [...decision.warnings, `scale-protection in shadow mode would refuse: ${message}`]
    decision.shadow = [...decision.shadow, 'scale-protection/spec.scaleProtection']
    record.shadow = decision.shadow
    return undefined
  }

  #count({ exchange }: Decision, outcome: ScaleOutcome, reason: UncheckedReason | '' = ''): undefined {
    this.#deps.counted(exchange.record.cluster, outcome, reason)
  }
}

function planOf(
  { cluster, exchange }: Decision,
  { kind, workload, to }: Lowered,
  { replicaSets, pods }: ReadPods,
  costs: Costs,
): ScaleDownPlan {
  const nowMs = exchange.gw.clock.now()
  const window = { fromMs: nowMs, toMs: nowMs + WINDOW_MS }
  const conditions = { ...cluster.controllerManager, window, costsOpen: costs === 'open' }
  return planScaleDown({ kind, workload, replicaSets, pods: withCosts(pods, costs), replicas: to, conditions })
}

/** @param against protectors overridden by the workload's annotation */
async function warn(
  decision: Decision,
  lowered: Lowered,
  plan: ScaleDownPlan,
  against: readonly ProtectorAnswer[],
): Promise<void> {
  const named = await mayList(decision.exchange, decision.live, decision.caller, decision.info.namespace)
  const overridden = against.length > 0 ? [overriddenText(lowered, against)] : []
  decision.warnings = [...decision.warnings, ...leavingWarnings(lowered, plan, named), ...overridden]
}

interface Said {
  /** Protectors that refuse the deletion, or may: the victims can be uncertain. */
  readonly against: readonly ProtectorAnswer[]
  /** Why others can't answer; '' = all did. */
  readonly unknown: string
}

const NOTHING_SAID: Said = { against: [], unknown: '' }

async function askProtectors(
  gate: ScaleDownGate,
  { cluster, info }: Decision,
  { kind, workload, to }: Lowered,
  plan: ScaleDownPlan,
  pods: ReadPods['pods'],
): Promise<Said> {
  const { protection } = cluster
  if (protection === undefined || protection.excludedNamespaces.has(info.namespace) || !gate.covers(info.namespace))
    return NOTHING_SAID
  const sets = leavingPods(plan, pods, ({ labels }) => isGuarded(protection, labels))
  const { cell } = protection
  const question = { cell, kind, workload: withoutTemplate(workload), replicas: to, sets, timeoutMs: LEDGER_TIMEOUT_MS }
  const { protectors, unknown } = await gate.reviewScaleDown(question)
  const stale = protectors.find((answer) => answer.stale)
  const why = stale === undefined ? '' : `the pods of PodProtector ${stale.protector} have not been counted recently`
  const against = protectors.filter((answer) => !answer.stale && answer.refused.most > 0)
  return { against, unknown: unknown === '' ? why : unknown }
}

// The annotation that lets a scale-down pass against PodProtectors, for a limited time.
const RFC3339 = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})$/i

/** @param workload as it was before the write: one write can't both allow itself and lower the number */
export function isAllowed(workload: JsonObject, nowMs: number): boolean {
  const until = mapOf(workload, 'annotations')[ALLOW_UNTIL_ANNOTATION] ?? ''
  return RFC3339.test(until) && Date.parse(until) > nowMs
}

// Reads, as the gateway, the pods of a scaled workload and what determines the victims: no more than can be compared.

/** Comparing equal pods takes quadratic time. */
const MAX_PODS = 500
/** Per Deployment; its revision history has ten. */
const MAX_REPLICA_SETS = 200

interface ReadPods {
  readonly kind: 'pods'
  /** Only for a Deployment. */
  readonly replicaSets: readonly JsonObject[]
  readonly pods: readonly JsonObject[]
}

interface UnreadPods {
  readonly kind: 'unread'
  readonly reason: UncheckedReason
  /** Human-readable. */
  readonly why: string
}

async function readPods(
  upstream: UpstreamReader,
  kind: ScalableKind,
  workload: JsonObject,
  namespace: string,
): Promise<ReadPods | UnreadPods | Limited> {
  const within = `/namespaces/${encodeURIComponent(namespace)}`
  let replicaSets: readonly JsonObject[] = []
  if (kind === 'Deployment') {
    const selector = podSelector(workload)?.text ?? ''
    const found = await readList(upstream, `/apis/apps/v1${within}/replicasets`, selector, MAX_REPLICA_SETS)
    if ('kind' in found) return found
    replicaSets = found
  }
  const uid = textOf(recordOf(workload['metadata'])['uid'])
  const own = replicaSets.filter((one) => controllerUid(one) === uid)
  const pods = new Map<string, JsonObject>()
  for (const selector of podSelectors(kind, workload, own)) {
    const found = await readList(upstream, `/api/v1${within}/pods`, selector, MAX_PODS)
    if ('kind' in found) return found
    for (const pod of found) pods.set(textOf(recordOf(pod['metadata'])['uid']), pod)
    if (pods.size > MAX_PODS) return tooMany('pods', MAX_PODS)
  }
  return { kind: 'pods', replicaSets: own, pods: [...pods.values()] }
}

async function readList(
  upstream: UpstreamReader,
  path: string,
  selector: string,
  most: number,
): Promise<readonly JsonObject[] | UnreadPods | Limited> {
  const what = path.slice(path.lastIndexOf('/') + 1)
  // One more than the limit, to detect that there are more.
  const found = await upstream.list(path, `labelSelector=${encodeURIComponent(selector)}`, most + 1, withoutBulks)
  switch (found.kind) {
    case 'limited':
      return found
    case 'unknown': {
      const unlisted = found.answered === undefined ? 'the pods' : what
      return { kind: 'unread', reason: 'not-read', why: `${unlisted} cannot be listed: ${found.why}` }
    }
    case 'found':
      return found.value.items.length > most ? tooMany(what, most) : found.value.items
  }
}

function tooMany(what: string, most: number): UnreadPods {
  return { kind: 'unread', reason: 'too-many-pods', why: `there are more than ${most} ${what} to compare` }
}
