// Which pods a ScaleDownPolicy gives a cost, among those of the one ReplicaSet that shrinks; reads what its preferences need from the cluster. The request
// path acts on the result, and forecasts of leaving pods use the same.

import type { ControllerManager } from '../../../gateway/api/upstream-cluster/controller-manager.ts'
import type { ScalableKind } from '../../../gateway/core/request/scale-target.ts'
import { type JsonObject, nameOf } from '../../../kit/api/json/json-object.ts'
import { isRecord, recordOf, recordsOf, textOf } from '../../../kit/api/json/object-shape.ts'
import type { VictimPreference } from '../../api/scale-down-policy.ts'
import { deploymentSizes } from '../rank/deployment-sizes.ts'
import {
  podSelector,
  type ReplicaSetFacts,
  relatedPods,
  replicaPodsOf,
  replicaSetFacts,
  siblings,
} from '../rank/replica-set-pods.ts'
import { isActive, scalePod } from '../rank/scale-pod.ts'
import { type ChoiceInput, chooseVictims, type NodeFacts, type VictimChoice } from './choose-victims.ts'
import { type ClusterReads, forEachAtOnce, UnavailableError } from './cluster-reads.ts'
import { withCost, withoutOwnCost } from './own-cost.ts'
import type { CompiledScaleDownPolicy } from './policy.ts'

export interface ScaledPods {
  /** Active pods of the shrinking ReplicaSet. */
  readonly pods: readonly JsonObject[]
  /** Pods of all ReplicaSets of its owner. */
  readonly related: readonly JsonObject[]
  /** How many of `pods` are surplus. */
  readonly count: number
  /** Selector of the workload, as text. */
  readonly selector: string
}

/** Costs decide nothing here; the reason is for people. */
export interface Unsteerable {
  readonly unsteerable: string
}

/** The workload and its related objects in the namespace. */
export interface ReadScaled {
  readonly kind: ScalableKind
  readonly workload: JsonObject
  readonly replicaSets: readonly JsonObject[]
  readonly pods: readonly JsonObject[]
}

export const STATEFUL: Unsteerable = {
  unsteerable: 'a StatefulSet deletes the highest ordinals, whatever they cost',
}
const ROLLOUT: Unsteerable = {
  unsteerable: 'a rollout is in progress, which deletes pods of its own accord',
}

/** @throws {UnavailableError} */
export function scaledPods({ kind, workload, replicaSets, pods }: ReadScaled, to: number): ScaledPods | Unsteerable {
  if (kind === 'StatefulSet') return STATEFUL
  const selector = podSelector(workload)
  if (selector === undefined) throw new UnavailableError('spec.selector cannot be read')
  const shrinks = kind === 'Deployment' ? activeReplicaSet(workload, replicaSets, to) : replicaSetFacts(workload)
  if ('unsteerable' in shrinks) return shrinks
  const read = pods.map(scalePod)
  const byUid = new Map<string, JsonObject>(read.map(({ uid }, index) => [uid, pods[index] ?? {}]))
  const own = replicaPodsOf(shrinks, read)
  const related = relatedPods(siblings(shrinks, replicaSets.map(replicaSetFacts)), read)
  const objectsOf = (some: typeof read): JsonObject[] => some.map(({ uid }) => byUid.get(uid) ?? {})
  const count = own.length - to
  return { pods: objectsOf(own), related: objectsOf(related.filter(isActive)), count, selector: selector.text }
}

function activeReplicaSet(
  deployment: JsonObject,
  replicaSets: readonly JsonObject[],
  to: number,
): ReplicaSetFacts | Unsteerable {
  const { sizes, rollout } = deploymentSizes(deployment, replicaSets, to)
  const [only, ...others] = sizes
  if (only === undefined) return { unsteerable: 'it has no ReplicaSet with pods' }
  return rollout || others.length > 0 ? ROLLOUT : only.replicaSet
}

/** What a ScaleDownPolicy does with one scale-down. */
export type VictimFinding = { readonly policy: CompiledScaleDownPolicy; readonly workloadName: string } & (
  | { readonly kind: 'chosen'; readonly choice: VictimChoice; readonly leftMs: number }
  /** The write of the Deployment already chose for its ReplicaSet; or a rollout lowers this one, which does not count as a scale-down. */
  | { readonly kind: 'done' }
  | { readonly kind: 'unsteerable'; readonly why: string }
  | { readonly kind: 'unavailable'; readonly why: string }
)

/** Pod costs at the time the controller compares. */
export type Costs =
  | (Pick<VictimChoice, 'victims' | 'stale'> & {
      /** Pods found to be gone when they should have got their cost. */
      readonly gone?: readonly JsonObject[]
    })
  /** As read. */
  | 'unchanged'
  /** Victims were chosen, but which of them already have their cost is unknown. */
  | 'open'

/** Without the feature gate the controller ignores costs. */
export const COSTS_ARE_OFF: Unsteerable = {
  unsteerable: 'kube-controller-manager ignores deletion costs (spec.controllerManager.podDeletionCost is false)',
}

/** @throws {UnavailableError} */
export async function findVictims(
  reads: ClusterReads,
  found: ScaledPods,
  { prefer }: Pick<CompiledScaleDownPolicy, 'prefer'>,
  controller: ControllerManager,
): Promise<VictimChoice> {
  // Our earlier costs are taken back in any case.
  const needed = found.count <= 0 ? [] : prefer
  const nodes = await nodesOf(reads, found.pods, needed)
  const input: ChoiceInput = { ...found, prefer, nodes, controller }
  return chooseVictims(input)
}

/** The pods as the controller will find them. */
export function withCosts(pods: readonly JsonObject[], costs: Costs): readonly JsonObject[] {
  if (typeof costs === 'string') return pods
  const { victims, stale, gone = [] } = costs
  const [going, staying, absent] = [uidsOf(victims), uidsOf(stale), uidsOf(gone)]
  const there = absent.size === 0 ? pods : pods.filter((pod) => !absent.has(uidOf(pod)))
  return there.map((pod) => {
    const uid = uidOf(pod)
    if (going.has(uid)) return withCost(pod)
    return staying.has(uid) ? withoutOwnCost(pod) : pod
  })
}

function uidsOf(pods: readonly JsonObject[]): ReadonlySet<string> {
  return new Set(pods.map(uidOf))
}

function uidOf(pod: JsonObject): string {
  return textOf(recordOf(pod['metadata'])['uid'])
}

// What preferences need to know of pods' nodes: whether they accept pods, where they are, and how many pods keep them from being empty.

/** Maximum number of nodes examined. */
const MAX_NODES = 100
/** Pods per node: no node runs more (kubelet's --max-pods is 110). */
const MAX_PODS_OF_NODE = 1_000

/** Reads what the preferences need to know about the nodes of these pods. @throws {UnavailableError} */
async function nodesOf(
  reads: ClusterReads,
  pods: readonly JsonObject[],
  prefer: readonly VictimPreference[],
): Promise<ReadonlyMap<string, NodeFacts>> {
  const found = new Map<string, NodeFacts>()
  const asksNode = prefer.some(({ by }) => by === 'UnschedulableNode' || by === 'TopologyExcess')
  const asksPods = prefer.some(({ by }) => by === 'EmptiestNode')
  if (!asksNode && !asksPods) return found
  const names = [...new Set(pods.map((pod) => textOf(recordOf(pod['spec'])['nodeName'])))].filter((name) => name !== '')
  if (names.length > MAX_NODES) throw new UnavailableError(`its pods are on more than ${MAX_NODES} nodes`)
  await forEachAtOnce(names, async (name) => {
    const [node, onNode] = await Promise.all([
      asksNode ? reads.get(`/api/v1/nodes/${encodeURIComponent(name)}`) : undefined,
      asksPods ? podsOn(reads, name) : undefined,
    ])
    found.set(name, { ...nodeFacts(node), pods: onNode })
  })
  return found
}

function nodeFacts(node: JsonObject | undefined): Omit<NodeFacts, 'pods'> {
  if (node === undefined) return { unschedulable: false, labels: {} }
  const spec = recordOf(node['spec'])
  const tainted = recordsOf(spec['taints']).some(({ effect }) => effect === 'NoSchedule' || effect === 'NoExecute')
  const labels = recordOf(recordOf(node['metadata'])['labels'])
  const texts = Object.entries(labels).filter((entry): entry is [string, string] => typeof entry[1] === 'string')
  return { unschedulable: spec['unschedulable'] === true || tainted, labels: Object.fromEntries(texts) }
}

/** Pods that keep the node from being empty, by the cluster-autoscaler's rule: all but pods of DaemonSets and mirror pods. */
async function podsOn(reads: ClusterReads, node: string): Promise<number> {
  const running = `spec.nodeName=${node},status.phase!=Succeeded,status.phase!=Failed`
  const pods = await reads.list('/api/v1/pods', `fieldSelector=${encodeURIComponent(running)}`, MAX_PODS_OF_NODE)
  return pods.filter((pod) => {
    const metadata = recordOf(pod['metadata'])
    const ofDaemonSet = recordsOf(metadata['ownerReferences']).some(({ kind }) => kind === 'DaemonSet')
    const annotations = metadata['annotations']
    const mirror = isRecord(annotations) && annotations['kubernetes.io/config.mirror'] !== undefined
    return nameOf(pod) !== '' && metadata['deletionTimestamp'] === undefined && !ofDaemonSet && !mirror
  }).length
}
