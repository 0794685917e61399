// What a ScaleDownPolicy does with a scale-down: computed once per write, by whichever filter comes first: the one that names the pods
// to be removed, or the one that sets their costs. Writes nothing.

import type { ScaleChange } from '../../gateway/core/policy/scale-change.ts'
import { type ScaleTarget, scalableKind, scaleName } from '../../gateway/core/request/scale-target.ts'
import type { Decision } from '../../gateway/request/exchange/decision.ts'
import { type JsonObject, mapOf } from '../../kit/api/json/json-object.ts'
import { recordOf, recordsOf, textOf } from '../../kit/api/json/object-shape.ts'
import { deploymentSizes } from '../core/rank/deployment-sizes.ts'
import { podSelector } from '../core/rank/replica-set-pods.ts'
import { UnavailableError } from '../core/victim-choice/cluster-reads.ts'
import {
  COSTS_ARE_OFF,
  type Costs,
  findVictims,
  type ReadScaled,
  type ScaledPods,
  STATEFUL,
  scaledPods,
  type Unsteerable,
  type VictimFinding,
} from '../core/victim-choice/find-victims.ts'
import { podCost } from '../core/victim-choice/own-cost.ts'
import type { ScaleDownPolicies } from '../state/scale-down-policies.ts'
import { UpstreamObjects } from './upstream-objects.ts'

// What the filters of this subject remember about a write that they share with others.
declare module '../../gateway/core/policy/scale-change.ts' {
  interface ScaleChange {
    /** What a ScaleDownPolicy does with it, once a filter has asked; resolves to undefined = no policy. */
    finding?: Promise<VictimFinding | undefined>
    /** Left by the filter that names the leaving pods, for the one that chooses them: called once that one has set their costs. */
    nameLeaving?: (costs: Costs) => Promise<void>
  }
}

const MAX_PODS = 5_000
const MAX_REPLICA_SETS = 500

/** @returns undefined = no ScaleDownPolicy applies, or the write lowers nothing */
export function chosenVictims(
  policies: ScaleDownPolicies,
  decision: Decision,
  change: ScaleChange,
): Promise<VictimFinding | undefined> {
  change.finding ??= find(policies, decision, change)
  return change.finding
}

async function find(
  policies: ScaleDownPolicies,
  decision: Decision,
  { target, from, to, current: workload }: ScaleChange,
): Promise<VictimFinding | undefined> {
  const { cluster, exchange } = decision
  if (!target.builtIn || workload === undefined || from === undefined || to === undefined || to >= from)
    return undefined
  const labels = mapOf(recordOf(recordOf(workload['spec'])['template']), 'labels')
  const policy = policies.match(cluster.name, target.namespace, labels)
  if (policy === undefined) return undefined
  const deployment = deploymentOf(target, workload)
  const workloadName = deployment === undefined ? scaleName(target) : `deployments/${deployment}`
  const found = { policy, workloadName }
  try {
    const upstream = new UpstreamObjects(decision, exchange.gw.clock.monotonic() + policy.maxDelayMs)
    const scaled = await readScaled(upstream, decision, { target, workload, deployment, to })
    if (scaled === 'rollout') return { ...found, kind: 'done' }
    if ('unsteerable' in scaled) return { ...found, kind: 'unsteerable', why: scaled.unsteerable }
    if (isChosenFor(scaled, workloadName, target, to)) return { ...found, kind: 'done' }
    const choice = await findVictims(upstream, scaled, policy, cluster.controllerManager)
    return { ...found, kind: 'chosen', choice, leftMs: upstream.leftMs }
  } catch (error) {
    if (error instanceof UnavailableError) return { ...found, kind: 'unavailable', why: error.message }
    throw error
  }
}

/** Name of the Deployment that owns a ReplicaSet: scaling the ReplicaSet is treated as scaling its Deployment. */
function deploymentOf({ resource }: ScaleTarget, workload: JsonObject): string | undefined {
  if (resource !== 'replicasets') return undefined
  const owners = recordsOf(recordOf(workload['metadata'])['ownerReferences'])
  const owner = owners.find(({ controller, kind }) => controller === true && kind === 'Deployment')
  return owner && textOf(owner['name'])
}

/** The Deployment controller propagates a Deployment's scale-down, whose victims have their costs already. */
function isChosenFor({ pods }: ScaledPods, workload: string, target: ScaleTarget, to: number): boolean {
  if (workload === scaleName(target)) return false
  return pods.some((pod) => {
    const cost = podCost(pod)
    return cost.kind === 'own' && cost.own.workload === workload && cost.own.to === to
  })
}

interface Asked {
  readonly target: ScaleTarget
  readonly workload: JsonObject
  /** Owner of a ReplicaSet, by name. */
  readonly deployment: string | undefined
  readonly to: number
}

/**
 * @returns `rollout`: the ReplicaSet is scaled because its Deployment is rolling out
 * @throws {UnavailableError}
 */
async function readScaled(
  upstream: UpstreamObjects,
  { cluster }: Decision,
  { target, workload, deployment = '', to }: Asked,
): Promise<ScaledPods | Unsteerable | 'rollout'> {
  const { resource, namespace } = target
  const kind = scalableKind(target)
  if (kind === undefined || kind === 'StatefulSet') return STATEFUL
  if (!cluster.controllerManager.podDeletionCost) return COSTS_ARE_OFF
  const within = `/namespaces/${encodeURIComponent(namespace)}`
  const path = `/apis/apps/v1${within}/deployments/${encodeURIComponent(deployment)}`
  const owner = deployment === '' ? undefined : await upstream.get(path)
  // For a Deployment all its ReplicaSets and pods count, whichever of them is scaled.
  const selector = podSelector(owner ?? workload)
  if (selector === undefined) throw new UnavailableError('spec.selector cannot be read')
  const query = `labelSelector=${encodeURIComponent(selector.text)}`
  const owned = resource === 'deployments' || resource === 'replicasets'
  const [pods, replicaSets] = await Promise.all([
    upstream.list(`/api/v1${within}/pods`, query, MAX_PODS),
    owned ? upstream.list(`/apis/apps/v1${within}/replicasets`, query, MAX_REPLICA_SETS) : [],
  ])
  if (owner !== undefined && deploymentSizes(owner, replicaSets, to).rollout) return 'rollout'
  const read: ReadScaled = { kind, workload, replicaSets, pods }
  return scaledPods(read, to)
}
