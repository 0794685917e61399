// What preferences ask about the nodes of pods: whether they take pods, where they are, and how many pods keep them from being empty.

import { type JsonObject, nameOf } from '../../../api/kube/json-object.ts'
import { isRecord, recordOf, recordsOf, textOf } from '../../../api/kube/object-shape.ts'
import type { VictimPreference } from '../../../api/scale-down-policy/scale-down-policy.ts'
import type { NodeFacts } from './choose-victims.ts'
import { type ClusterReads, forEachAtOnce, UnavailableError } from './cluster-reads.ts'

/** Nodes that are looked at. */
const MAX_NODES = 100
/** Pods of one node: more do not run on one (kubelet's --max-pods is 110). */
const MAX_PODS_OF_NODE = 1_000

/** Of nodes of these pods, what the preferences ask for. @throws {UnavailableError} */
export async function nodesOf(
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

/** Those that keep it from being empty: as the cluster-autoscaler sees it, all but pods of DaemonSets and mirrors of static ones. */
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
