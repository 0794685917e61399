// What a new number of replicas does to the pods of a workload, of any kind that Kubernetes scales by itself.

import { type JsonObject, nameOf } from '../../../api/kube/json-object.ts'
import { recordOf, recordsOf, textOf } from '../../../api/kube/object-shape.ts'
import type { ComparisonWindow } from './age-bucket.ts'
import type { RankConditions } from './compare-pods.ts'
import { decisionText } from './decision-text.ts'
import type { DeletionRank, PodVerdict } from './deletion-rank.ts'
import { deploymentSizes } from './deployment-sizes.ts'
import {
  countOf,
  type ReplicaSetFacts,
  type ReplicaSetScale,
  rankReplicaSet,
  replicaSetFacts,
  replicasOf,
} from './replica-set-pods.ts'
import { type ScalePod, scalePod } from './scale-pod.ts'
import { ordinalOf, statefulSetScale } from './stateful-set.ts'

export type ScalableKind = 'Deployment' | 'ReplicaSet' | 'StatefulSet' | 'ReplicationController'

export interface ScaleDownInput {
  readonly kind: ScalableKind
  readonly workload: JsonObject
  /** All of its namespace; of a ReplicationController those of its own kind. A StatefulSet needs none. */
  readonly replicaSets: readonly JsonObject[]
  /** Of its namespace, at least those that one of these selects. */
  readonly pods: readonly JsonObject[]
  /** The new spec.replicas. */
  readonly replicas: number
  /** When the controller may look, and what is known of it. */
  readonly conditions: RankConditions
}

export interface PlannedPod {
  readonly name: string
  readonly uid: string
  readonly node: string
  readonly rule: PodVerdict['decision']['rule'] | 'Ordinal'
  readonly because: string
}

/** The pods of one ReplicaSet or StatefulSet. */
export interface PlannedSet {
  readonly name: string
  /** Active pods now, and afterwards. */
  readonly from: number
  readonly to: number
  /** In the order in which they go. */
  readonly certain: readonly PlannedPod[]
  /** `count` of `pods` go; 0 = nothing is undetermined. */
  readonly possible: {
    readonly count: number
    readonly pods: readonly PlannedPod[]
    /** If only ages make it open: which ones go, by name, if the controller looks within so many seconds. */
    readonly soon?: { readonly pods: readonly string[]; readonly seconds: number }
  }
  readonly safe: readonly PlannedPod[]
}

export interface ScaleDownPlan {
  /** spec.replicas now. */
  readonly from: number
  readonly to: number
  /** Only those that have pods. */
  readonly sets: readonly PlannedSet[]
  /** Whole sentences without a full stop. */
  readonly notes: readonly string[]
}

export function planScaleDown(input: ScaleDownInput): ScaleDownPlan {
  const { kind, workload, replicas } = input
  const from = countOf(recordOf(workload['spec'])['replicas'], 1)
  const { sets, notes } = kind === 'StatefulSet' ? statefulSetPlan(input) : replicaSetsPlan(input)
  const shown = sets.filter(({ certain, possible, safe }) => certain.length + possible.count + safe.length > 0)
  return { from, to: replicas, sets: shown, notes }
}

type Plan = Pick<ScaleDownPlan, 'sets' | 'notes'>

function statefulSetPlan({ workload, pods, replicas, conditions }: ScaleDownInput): Plan {
  const uid = textOf(recordOf(workload['metadata'])['uid'])
  const own = pods.map(scalePod).filter(({ controllerUid }) => controllerUid === uid)
  const { condemned, safe, blocked, claimsDeleted } = statefulSetScale(
    workload,
    own,
    replicas,
    conditions.window.fromMs,
  )
  const planned = (pod: ScalePod): PlannedPod => {
    const ordinal = ordinalOf(pod)
    const because = ordinal < 0 ? 'its name has no ordinal' : `ordinal ${ordinal}`
    return { ...plain(pod), rule: 'Ordinal', because: pod.terminating ? `${because}, terminating already` : because }
  }
  const set: PlannedSet = {
    name: nameOf(workload),
    from: own.length,
    to: own.length - condemned.length,
    certain: condemned.map(planned),
    possible: { count: 0, pods: [] },
    safe: safe.map(planned),
  }
  const claims = claimsDeleted * condemned.length
  const notes = [
    ...(blocked === '' ? [] : [blocked]),
    ...(claims === 0
      ? []
      : [`${claims} PersistentVolumeClaims are deleted with them (persistentVolumeClaimRetentionPolicy.whenScaled)`]),
  ]
  return { sets: [set], notes }
}

function replicaSetsPlan({ kind, workload, replicaSets, pods, replicas, conditions }: ScaleDownInput): Plan {
  const facts = replicaSets.map(replicaSetFacts)
  const read = pods.map(scalePod)
  const { scales, notes } =
    kind === 'Deployment'
      ? deploymentScales(workload, replicaSets, replicas)
      : { scales: [{ replicaSet: replicaSetFacts(workload), replicas }], notes: ownerNotes(workload) }
  const sets = scales.map((scale) => {
    const others = scales.filter((other) => other !== scale)
    return setPlan(scale, others, facts, read, conditions)
  })
  return { sets, notes }
}

function ownerNotes(workload: JsonObject): readonly string[] {
  const owners = recordsOf(recordOf(workload['metadata'])['ownerReferences'])
  const owner = owners.find((one) => one['controller'] === true)
  if (owner === undefined) return []
  return [
    `${nameOf(workload)} belongs to ${textOf(owner['name'])}, whose controller sets its replicas back: scale that one`,
  ]
}

function deploymentScales(
  workload: JsonObject,
  replicaSets: readonly JsonObject[],
  replicas: number,
): { readonly scales: readonly ReplicaSetScale[]; readonly notes: readonly string[] } {
  const { sizes, rollout } = deploymentSizes(workload, replicaSets, replicas)
  const note =
    'a rollout is in progress: this is what scaling alone deletes; the rollout goes on, and deletes pods of older ReplicaSets as new ones become available'
  return { scales: sizes, notes: rollout ? [note] : [] }
}

function setPlan(
  scale: ReplicaSetScale,
  others: readonly ReplicaSetScale[],
  facts: readonly ReplicaSetFacts[],
  pods: readonly ScalePod[],
  conditions: RankConditions,
): PlannedSet {
  const rank = rankReplicaSet(scale, others, facts, pods, conditions)
  const from = replicasOf(scale.replicaSet, pods).length
  return { name: scale.replicaSet.name, from, to: from - goes(rank), ...verdicts(rank, conditions.window) }
}

function goes({ certain, possible }: DeletionRank): number {
  return certain.length + possible.count
}

function verdicts(
  { certain, possible, safe }: DeletionRank,
  window: ComparisonWindow,
): Pick<PlannedSet, keyof DeletionRank> {
  const planned = (verdict: PodVerdict): PlannedPod => {
    return { ...plain(verdict.pod), rule: verdict.decision.rule, because: decisionText(verdict, window) }
  }
  return {
    certain: certain.map(planned),
    possible: { count: possible.count, pods: possible.pods.map(planned), ...soonOf(possible, window) },
    safe: safe.map(planned),
  }
}

function soonOf(
  { soon }: DeletionRank['possible'],
  { fromMs }: ComparisonWindow,
): Pick<PlannedSet['possible'], 'soon'> {
  if (soon === undefined) return {}
  const seconds = Math.floor((soon.untilMs - fromMs) / 1000)
  return seconds < 1 ? {} : { soon: { pods: soon.pods.map(({ name }) => name), seconds } }
}

function plain({ name, uid, nodeName }: ScalePod): Pick<PlannedPod, 'name' | 'uid' | 'node'> {
  return { name, uid, node: nodeName }
}
