// Which pods belong to a ReplicaSet, and how many of its owner's pods share a node with each (pkg/controller/replicaset/replica_set.go:
// syncReplicaSet, getIndirectlyRelatedPods, getPodsRankedByRelatedPodsOnSameNode). ReplicationControllers run the same code.

import type { ScalableKind } from '../../../gateway/core/request/scale-target.ts'
import { type JsonObject, nameOf } from '../../../kit/api/json/json-object.ts'
import { isRecord, recordOf, textOf } from '../../../kit/api/json/object-shape.ts'
import type { LabelSelector } from '../../../kit/api/validation/label-selector-schema.ts'
import { type CompiledSelector, compileSelector, selectorText } from '../../../kube/core/selectors/compile-selector.ts'
import { type Candidate, candidate, type RankConditions } from './compare-pods.ts'
import { type DeletionRank, rankDeletions } from './deletion-rank.ts'
import { controllerUid, isActive, type ScalePod, timeMs } from './scale-pod.ts'

export interface ReplicaSetFacts {
  readonly name: string
  readonly uid: string
  /** UID of its Deployment; '' = it has no controller. */
  readonly controllerUid: string
  /** undefined = unreadable: it selects no pods. */
  readonly selector: CompiledSelector | undefined
  /** spec.replicas. */
  readonly replicas: number
  readonly availableReplicas: number
  readonly createdMs: number
}

export function replicaSetFacts(object: JsonObject): ReplicaSetFacts {
  const metadata = recordOf(object['metadata'])
  const spec = recordOf(object['spec'])
  return {
    name: nameOf(object),
    uid: textOf(metadata['uid']),
    controllerUid: controllerUid(object),
    selector: podSelector(object)?.compiled,
    replicas: countOf(spec['replicas'], 1),
    availableReplicas: countOf(recordOf(object['status'])['availableReplicas'], 0),
    createdMs: timeMs(metadata['creationTimestamp']),
  }
}

export function countOf(value: unknown, preset: number): number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 ? value : preset
}

/** Pods that count as replicas: active ones that it owns, and orphans that it will adopt. */
export function replicaPodsOf({ uid, selector }: ReplicaSetFacts, pods: readonly ScalePod[]): ScalePod[] {
  return pods.filter((pod) => {
    const owned = pod.controllerUid === uid || pod.controllerUid === ''
    return owned && isActive(pod) && selector?.matches(pod.labels) === true
  })
}

/** ReplicaSets of the same controller, including itself. None without a controller: then no pods are related to its own. */
export function siblings(
  { controllerUid: owner }: ReplicaSetFacts,
  replicaSets: readonly ReplicaSetFacts[],
): ReplicaSetFacts[] {
  return owner === '' ? [] : replicaSets.filter((other) => other.controllerUid === owner)
}

/** Pods selected by a sibling, with or without an owner. */
export function relatedPods(related: readonly ReplicaSetFacts[], pods: readonly ScalePod[]): ScalePod[] {
  return pods.filter(({ labels }) => related.some(({ selector }) => selector?.matches(labels) === true))
}

export interface ReplicaSetScale {
  readonly replicaSet: ReplicaSetFacts
  /** Its replicas after the change. */
  readonly replicas: number
}

/**
 * Which pods a ReplicaSet deletes.
 * @param scale of this ReplicaSet
 * @param others siblings scaled at the same time
 * @param replicaSets of the namespace
 * @param pods of the namespace, at least all selected by the ReplicaSet or a sibling
 */
export function rankReplicaSet(
  { replicaSet, replicas }: ReplicaSetScale,
  others: readonly ReplicaSetScale[],
  replicaSets: readonly ReplicaSetFacts[],
  pods: readonly ScalePod[],
  conditions: RankConditions,
): DeletionRank {
  const own = replicaPodsOf(replicaSet, pods)
  const related = relatedPods(siblings(replicaSet, replicaSets), pods)
  const leaving = others.map((other) => {
    const theirs = replicaPodsOf(other.replicaSet, related)
    return { onNode: countByNode(theirs), most: Math.max(0, theirs.length - other.replicas) }
  })
  const candidates = ranked(own, related, conditions, (node) => {
    return leaving.reduce((all, { onNode, most }) => all + Math.min(onNode.get(node) ?? 0, most), 0)
  })
  return rankDeletions(candidates, own.length - replicas, conditions)
}

/** @param mayLeave how many related pods may leave the named node at the same time; default none */
export function ranked(
  own: readonly ScalePod[],
  related: readonly ScalePod[],
  conditions: RankConditions,
  mayLeave: (nodeName: string) => number = () => 0,
): Candidate[] {
  const onNode = countByNode(related.filter(isActive))
  return own.map((pod) => {
    const high = onNode.get(pod.nodeName) ?? 0
    return candidate(pod, { low: high - mayLeave(pod.nodeName), high }, conditions)
  })
}

/** Pods without a node share the name ''. */
function countByNode(pods: readonly ScalePod[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>()
  for (const { nodeName } of pods) counts.set(nodeName, (counts.get(nodeName) ?? 0) + 1)
  return counts
}

interface PodSelector {
  readonly compiled: CompiledSelector
  /** Value of `?labelSelector=`. */
  readonly text: string
}

/** spec.selector; for a ReplicationController a plain map of labels. @returns undefined if unreadable */
export function podSelector(workload: JsonObject): PodSelector | undefined {
  const value = recordOf(workload['spec'])['selector']
  if (!isRecord(value)) return undefined
  const isPlain = value['matchLabels'] === undefined && value['matchExpressions'] === undefined
  const selector: LabelSelector = isPlain ? { matchLabels: value as Readonly<Record<string, string>> } : value
  try {
    return { compiled: compileSelector(selector), text: selectorText(selector) }
  } catch {
    return undefined
  }
}

/**
 * The pods that must be read to tell which ones a workload loses: label selectors, as values of `?labelSelector=`: only pods selected by one of them matter.
 * @param replicaSets of the namespace, at least the workload's and its siblings; for a ReplicationController those of its own kind
 */
export function podSelectors(
  kind: ScalableKind,
  workload: JsonObject,
  replicaSets: readonly JsonObject[],
): readonly string[] {
  const owners = ownersOfPods(kind, workload, replicaSets)
  const texts = new Set(owners.map((owner) => podSelector(owner)?.text))
  // An empty or unreadable selector selects nothing here: controllers reject it too.
  return [...texts].filter((text): text is string => text !== undefined && text !== '')
}

function ownersOfPods(
  kind: ScalableKind,
  workload: JsonObject,
  replicaSets: readonly JsonObject[],
): readonly JsonObject[] {
  if (kind === 'StatefulSet') return [workload]
  const owner = kind === 'Deployment' ? textOf(recordOf(workload['metadata'])['uid']) : controllerUid(workload)
  const related = replicaSets.filter((one) => owner !== '' && controllerUid(one) === owner && hasPods(one))
  return kind === 'Deployment' ? related : [workload, ...related]
}

/** Old ReplicaSets are kept, and most of them are empty. */
function hasPods(replicaSet: JsonObject): boolean {
  const { spec, status } = replicaSet
  return countOf(recordOf(spec)['replicas'], 1) > 0 || countOf(recordOf(status)['replicas'], 0) > 0
}
