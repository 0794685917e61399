// ScaleDownPolicies on the request path: before a scale-down is forwarded, the pods that should go get a deletion cost; when upstream
// refuses it, they lose it again. What is left over otherwise, the leader takes back (controllers/scale-down).

import type { JsonObject } from '../../api/kube/json-object.ts'
import { mapOf, nameOf } from '../../api/kube/json-object.ts'
import { recordOf, textOf } from '../../api/kube/object-shape.ts'
import type { ScaleDownOutcome, ScaleDownReport } from '../../api/ports/scale-down.ts'
import type { Filter } from '../../core/admission/filter.ts'
import { isRefusal, type Refusal, refuse } from '../../core/refusal/refusal.ts'
import { recordsOf } from '../../core/scale/rank/scale-pod.ts'
import { scaleName, scaleTargetOf } from '../../core/scale/scale-write/scale-target.ts'
import { chooseVictims, type VictimChoice } from '../../core/scale/victim-choice/choose-victims.ts'
import type { CompiledScaleDownPolicy } from '../../core/scale/victim-choice/policy.ts'
import { mayList } from '../calls/access.ts'
import type { Decision } from '../exchange/decision.ts'
import type { RequestOutcome } from '../exchange/exchange.ts'
import { metricsOf } from './pod-metrics.ts'
import { scaleChange } from './scale-change.ts'
import { nodesOf, type ScaledPods, scaledPods } from './scaled-pods.ts'
import { UnavailableError, UpstreamObjects } from './upstream-objects.ts'
import { seenByCaches, setCosts, takeBackCosts } from './victim-costs.ts'

/** For taking costs back: nobody waits for it. */
const TAKE_BACK_MS = 10_000
/** Pods in one warning. */
const MAX_NAMED = 5

/** A scale-down that has a policy. */
interface ScaleDown {
  readonly decision: Decision
  readonly policy: CompiledScaleDownPolicy
  readonly workload: JsonObject
  readonly workloadName: string
  readonly from: number
  readonly to: number
}

export const scaleDownPolicy: Filter<Decision, Promise<Refusal | undefined>> = {
  // Each policy has its own shadow mode.
  shadow: () => false,
  check(decision) {
    const { info, cluster, exchange } = decision
    const covered = exchange.gw.scaleDowns?.policies.covers(cluster.name, info.namespace) === true
    return covered && scaleTargetOf(info)?.builtIn === true ? steer(decision) : undefined
  },
}

async function steer(decision: Decision): Promise<Refusal | undefined> {
  const { cluster, exchange } = decision
  const change = await scaleChange(decision)
  if (change === undefined || isRefusal(change)) return change
  const { target, from, to, current: workload } = change
  if (workload === undefined || from === undefined || to === undefined || to >= from || exchange.gone) return undefined
  const labels = mapOf(recordOf(recordOf(workload['spec'])['template']), 'labels')
  const policy = exchange.gw.scaleDowns?.policies.match(cluster.name, target.namespace, labels)
  if (policy === undefined) return undefined
  const scaleDown: ScaleDown = { decision, policy, workload, workloadName: scaleName(target), from, to }
  const deadlineMs = exchange.gw.clock.monotonic() + policy.maxDelayMs
  const upstream = new UpstreamObjects(decision, deadlineMs)
  try {
    const found = await scaledPods(upstream, target, workload, to)
    if ('unsteerable' in found) return unsteerable(scaleDown, found.unsteerable)
    const choice = await choose(upstream, found, policy, exchange.gw.clock.now())
    if (policy.shadow) return await shadowed(scaleDown, choice)
    await setVictims(scaleDown, upstream, choice)
    return undefined
  } catch (error) {
    if (error instanceof UnavailableError) return unavailable(scaleDown, error.message)
    throw error
  }
}

/** @throws {UnavailableError} */
async function choose(
  upstream: UpstreamObjects,
  found: ScaledPods,
  { namespace, prefer }: CompiledScaleDownPolicy,
  nowMs: number,
): Promise<VictimChoice> {
  // Costs of ours from before are taken back all the same.
  const needed = found.count <= 0 ? [] : prefer
  const [nodes, metrics] = await Promise.all([
    nodesOf(upstream, found.pods, needed),
    metricsOf(upstream, { ...found, namespace }, needed, nowMs),
  ])
  return chooseVictims({ ...found, prefer, nodes, metrics, nowMs })
}

/** @throws {UnavailableError} when not all victims have their cost: those that have lose it again */
async function setVictims(scaleDown: ScaleDown, upstream: UpstreamObjects, choice: VictimChoice): Promise<void> {
  const { decision, policy, workloadName, from, to } = scaleDown
  const { exchange } = decision
  const { gw } = exchange
  const { namespace } = policy
  const id = gw.uuid()
  const { victims, stale } = choice
  const at = new Date(gw.clock.now()).toISOString()
  try {
    await takeBackCosts(upstream, namespace, stale, '')
    const set = await setCosts(upstream, namespace, victims, { id, workload: workloadName, to, at })
    const conflicts = [...choice.conflicts, ...set.conflicts]
    if (conflicts.length > 0) {
      warn(scaleDown, `deletion costs of others are left alone: ${await named(scaleDown, conflicts)}`)
    }
    const outcome = set.set.length === 0 ? 'Nothing' : 'Steered'
    report(scaleDown, outcome, '', set.set, conflicts)
    if (set.set.length === 0) return
    exchange.onOutcome = (became) => void revert(scaleDown, victims, id, became)
    await seenByCaches(upstream, namespace, set)
    await sleep(policy.settleMs)
    gw.log.debug('victims of a scale-down have a cost', { workload: workloadName, from, to, victims: set.set })
  } catch (error) {
    // The deadline may be the reason.
    if (exchange.onOutcome === undefined) void takeBack(scaleDown, victims, id)
    else if (error instanceof UnavailableError) return
    throw error
  }
}

function sleep(delayMs: number): Promise<void> {
  return new Promise((resolve) => void setTimeout(resolve, delayMs))
}

/** Nothing is scaled: the costs have no business there any more. What may have been scaled is for the leader to look at. */
async function revert(
  scaleDown: ScaleDown,
  victims: readonly JsonObject[],
  id: string,
  became: RequestOutcome,
): Promise<void> {
  if (became !== 'refused' || victims.length === 0) return
  if (await takeBack(scaleDown, victims, id)) report(scaleDown, 'Reverted', 'the scale-down was refused', [], [])
}

/** Never rejects; false = some may be left, for the leader. Says nothing of the scale-down, which may go on without costs. */
async function takeBack(scaleDown: ScaleDown, victims: readonly JsonObject[], id: string): Promise<boolean> {
  const { decision, policy } = scaleDown
  const { gw } = decision.exchange
  const upstream = new UpstreamObjects(decision, gw.clock.monotonic() + TAKE_BACK_MS)
  try {
    await takeBackCosts(upstream, policy.namespace, victims, id)
    return true
  } catch (error) {
    gw.log.warn('deletion costs are not taken back yet', { workload: scaleDown.workloadName, error })
    return false
  }
}

function unsteerable(scaleDown: ScaleDown, why: string): undefined {
  report(scaleDown, 'Unsteerable', why, [], [])
  warn(scaleDown, `its victims are not chosen: ${why}`)
}

async function shadowed(scaleDown: ScaleDown, { victims, conflicts }: VictimChoice): Promise<undefined> {
  const names = victims.map(nameOf)
  report(scaleDown, 'Shadow', '', names, conflicts)
  warn(scaleDown, `in shadow mode it would choose ${names.length === 0 ? 'nothing' : await named(scaleDown, names)}`)
}

function unavailable(scaleDown: ScaleDown, why: string): Refusal | undefined {
  const { decision, policy, workloadName } = scaleDown
  const { namespace, name, shadow, onUnavailable } = policy
  const message = `its victims cannot be chosen: ${why}`
  report(scaleDown, 'Unavailable', why, [], [])
  decision.exchange.gw.log.warn('victims of a scale-down cannot be chosen', {
    policy: `${namespace}/${name}`,
    workload: workloadName,
    reason: why,
  })
  if (shadow && onUnavailable === 'Reject') {
    const { record } = decision.exchange
    const warning = `scale-down-policy in shadow mode would refuse: ScaleDownPolicy ${namespace}/${name}: ${message}`
    decision.warnings = [...decision.warnings, warning]
    decision.shadow = [...decision.shadow, `scale-down-policy/${namespace}/${name}`]
    record.shadow = decision.shadow
    return undefined
  }
  warn(scaleDown, message)
  if (onUnavailable === 'Forward') return undefined
  const { info } = decision
  const object = { kind: info.resource, name: info.name }
  return refuse('scale-unavailable', `ScaleDownPolicy ${namespace}/${name}: ${message}`, {
    rule: `${namespace}/${name}`,
    object,
  })
}

function warn({ decision, policy: { namespace, name } }: ScaleDown, text: string): void {
  decision.warnings = [...decision.warnings, `ScaleDownPolicy ${namespace}/${name}: ${text}`]
}

/** To who may list pods; to others how many. */
async function named({ decision, policy }: ScaleDown, names: readonly string[]): Promise<string> {
  const { exchange, live, caller } = decision
  if (!(await mayList(exchange, live, caller, policy.namespace))) return `${names.length} pods`
  const more = names.length > MAX_NAMED ? ` and ${names.length - MAX_NAMED} more` : ''
  return `${names.slice(0, MAX_NAMED).join(', ')}${more}`
}

function report(
  { decision, policy, workload, workloadName, from, to }: ScaleDown,
  outcome: ScaleDownOutcome,
  message: string,
  victims: ScaleDownReport['victims'],
  conflicts: ScaleDownReport['conflicts'],
): void {
  const { gw } = decision.exchange
  gw.scaleDowns?.report({
    namespace: policy.namespace,
    policy: policy.name,
    cluster: decision.cluster.name,
    workload: deploymentOf(workload) ?? workloadName,
    from,
    to,
    outcome,
    message,
    victims,
    conflicts,
    atMs: gw.clock.now(),
  })
}

/** Of a ReplicaSet, which kube-controller-manager scales when somebody has scaled its Deployment. */
function deploymentOf({ metadata }: JsonObject): string | undefined {
  const owner = recordsOf(recordOf(metadata), 'ownerReferences').find(({ controller }) => controller === true)
  return owner?.['kind'] === 'Deployment' ? `deployments/${textOf(owner['name'])}` : undefined
}
