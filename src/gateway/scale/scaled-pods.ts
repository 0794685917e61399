// What a scale-down finds in the cluster: the ReplicaSet that will delete pods, its pods, and what is to be known of their nodes.

import { type JsonObject, nameOf } from '../../api/kube/json-object.ts'
import { isRecord, recordOf, textOf } from '../../api/kube/object-shape.ts'
import type { VictimPreference } from '../../api/scale-down-policy/scale-down-policy.ts'
import { deploymentSizes } from '../../core/scale/rank/deployment-sizes.ts'
import {
  podSelector,
  type ReplicaSetFacts,
  relatedPods,
  replicaSetFacts,
  replicasOf,
  siblings,
} from '../../core/scale/rank/replica-set-pods.ts'
import { isActive, recordsOf, scalePod } from '../../core/scale/rank/scale-pod.ts'
import type { ScaleTarget } from '../../core/scale/scale-write/scale-target.ts'
import type { NodeFacts } from '../../core/scale/victim-choice/choose-victims.ts'
import { forEachAtOnce, UnavailableError, type UpstreamObjects } from './upstream-objects.ts'

export interface ScaledPods {
  /** Active ones of the ReplicaSet that shrinks. */
  readonly pods: readonly JsonObject[]
  /** Those of all ReplicaSets of its owner. */
  readonly related: readonly JsonObject[]
  /** How many of `pods` are too many. */
  readonly count: number
  /** Of the workload, as text. */
  readonly selector: string
}

/** Costs decide nothing here; why, for people. */
export interface Unsteerable {
  readonly unsteerable: string
}

const MAX_PODS = 5_000
const MAX_REPLICA_SETS = 500
/** Nodes that are looked at. */
const MAX_NODES = 100
/** Pods of one node: more do not run on one (kubelet's --max-pods is 110). */
const MAX_PODS_OF_NODE = 1_000

/**
 * @param workload as upstream has it
 * @throws {UnavailableError}
 */
export async function scaledPods(
  upstream: UpstreamObjects,
  { resource, namespace }: ScaleTarget,
  workload: JsonObject,
  to: number,
): Promise<ScaledPods | Unsteerable> {
  if (resource === 'statefulsets')
    return { unsteerable: 'a StatefulSet deletes the highest ordinals, whatever they cost' }
  const selector = podSelector(workload)
  if (selector === undefined) throw new UnavailableError('spec.selector cannot be read')
  const within = `/namespaces/${encodeURIComponent(namespace)}`
  const query = `labelSelector=${encodeURIComponent(selector.text)}`
  const isDeployment = resource === 'deployments'
  const owned = isDeployment || resource === 'replicasets'
  const [objects, replicaSets] = await Promise.all([
    upstream.list(`/api/v1${within}/pods`, query, MAX_PODS),
    owned ? upstream.list(`/apis/apps/v1${within}/replicasets`, query, MAX_REPLICA_SETS) : [],
  ])
  const shrinks = isDeployment ? activeReplicaSet(workload, replicaSets, to) : replicaSetFacts(workload)
  if ('unsteerable' in shrinks) return shrinks
  const read = objects.map(scalePod)
  const byUid = new Map<string, JsonObject>(read.map(({ uid }, index) => [uid, objects[index] ?? {}]))
  const own = replicasOf(shrinks, read)
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
  if (rollout || others.length > 0)
    return { unsteerable: 'a rollout is in progress, which deletes pods of its own accord' }
  return only.replicaSet
}

/** Of nodes of these pods, what the preferences ask for. @throws {UnavailableError} */
export async function nodesOf(
  upstream: UpstreamObjects,
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
      asksNode ? upstream.get(`/api/v1/nodes/${encodeURIComponent(name)}`) : undefined,
      asksPods ? podsOn(upstream, name) : undefined,
    ])
    found.set(name, { ...nodeFacts(node), pods: onNode })
  })
  return found
}

function nodeFacts(node: JsonObject | undefined): Omit<NodeFacts, 'pods'> {
  if (node === undefined) return { unschedulable: false, labels: {} }
  const spec = recordOf(node['spec'])
  const tainted = recordsOf(spec, 'taints').some(({ effect }) => effect === 'NoSchedule' || effect === 'NoExecute')
  const labels = recordOf(recordOf(node['metadata'])['labels'])
  const texts = Object.entries(labels).filter((entry): entry is [string, string] => typeof entry[1] === 'string')
  return { unschedulable: spec['unschedulable'] === true || tainted, labels: Object.fromEntries(texts) }
}

/** Those that keep it from being empty: as the cluster-autoscaler sees it, all but pods of DaemonSets and mirrors of static ones. */
async function podsOn(upstream: UpstreamObjects, node: string): Promise<number> {
  const running = `spec.nodeName=${node},status.phase!=Succeeded,status.phase!=Failed`
  const pods = await upstream.list('/api/v1/pods', `fieldSelector=${encodeURIComponent(running)}`, MAX_PODS_OF_NODE)
  return pods.filter((pod) => {
    const metadata = recordOf(pod['metadata'])
    const ofDaemonSet = recordsOf(metadata, 'ownerReferences').some(({ kind }) => kind === 'DaemonSet')
    const annotations = metadata['annotations']
    const mirror = isRecord(annotations) && annotations['kubernetes.io/config.mirror'] !== undefined
    return nameOf(pod) !== '' && metadata['deletionTimestamp'] === undefined && !ofDaemonSet && !mirror
  }).length
}
