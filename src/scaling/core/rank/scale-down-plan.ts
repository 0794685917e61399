// What a new replica count does to the pods of a workload, for every kind that Kubernetes itself scales.

import type { ScalableKind } from '../../../gateway/core/request/scale-target.ts'
import { type JsonObject, nameOf } from '../../../kit/api/json/json-object.ts'
import { recordOf, recordsOf, textOf } from '../../../kit/api/json/object-shape.ts'
import { formatDuration } from '../../../kit/core/text/duration.ts'
import { ageBucket, type ComparisonWindow, firstChangeMs } from './age-bucket.ts'
import { comparedTimes, type RankConditions } from './compare-pods.ts'
import type { DeletionRank, PodVerdict, RankDecision } from './deletion-rank.ts'
import { deploymentSizes } from './deployment-sizes.ts'
import {
  countOf,
  type ReplicaSetFacts,
  type ReplicaSetScale,
  rankReplicaSet,
  replicaPodsOf,
  replicaSetFacts,
} from './replica-set-pods.ts'
import { type ScalePod, scalePod } from './scale-pod.ts'
import { ordinalOf, statefulSetScale } from './stateful-set.ts'

interface ScaleDownInput {
  readonly kind: ScalableKind
  readonly workload: JsonObject
  /** All in its namespace; for a ReplicationController those of its own kind. A StatefulSet needs none. */
  readonly replicaSets: readonly JsonObject[]
  /** Pods in its namespace, at least those selected by one of these. */
  readonly pods: readonly JsonObject[]
  /** The new spec.replicas. */
  readonly replicas: number
  /** When the controller may act, and what is known of its configuration. */
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
  /** Active pods before and after. */
  readonly from: number
  readonly to: number
  /** In the order of deletion. */
  readonly certain: readonly PlannedPod[]
  /** `count` of `pods` go; 0 = nothing is undetermined. */
  readonly possible: {
    readonly count: number
    readonly pods: readonly PlannedPod[]
    /** If only ages leave it open: which ones go, by name, if the controller compares within this many seconds. */
    readonly soon?: { readonly pods: readonly string[]; readonly seconds: number }
  }
  readonly safe: readonly PlannedPod[]
}

export interface ScaleDownPlan {
  /** Current spec.replicas. */
  readonly from: number
  readonly to: number
  /** Only sets that have pods. */
  readonly sets: readonly PlannedSet[]
  /** Sentences without a full stop. */
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
    `${nameOf(workload)} belongs to ${textOf(owner['name'])}, whose controller resets its replicas: scale that one`,
  ]
}

function deploymentScales(
  workload: JsonObject,
  replicaSets: readonly JsonObject[],
  replicas: number,
): { readonly scales: readonly ReplicaSetScale[]; readonly notes: readonly string[] } {
  const { sizes, rollout } = deploymentSizes(workload, replicaSets, replicas)
  const note =
    'a rollout is in progress: this is what scaling alone deletes; the rollout continues, and deletes pods of older ReplicaSets as new ones become available'
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
  const from = replicaPodsOf(scale.replicaSet, pods).length
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

// Words the reason why a pod goes or stays.
function decisionText({ pod, rank, decision }: PodVerdict, window: ComparisonWindow): string {
  const { fromMs: nowMs } = window
  const { rule, against } = decision
  if (against === undefined) return withoutComparison(rule)
  const { pod: other, rank: otherRank } = against
  switch (rule) {
    case 'Unassigned':
      return pod.nodeName === '' ? 'not assigned to a node' : 'assigned to a node'
    case 'Phase':
      return `phase ${pod.phase || 'not set'}, ${other.name}: ${other.phase || 'not set'}`
    case 'NotReady':
      return pod.ready ? 'ready' : 'not ready'
    case 'DeletionCost':
      return `deletion cost ${pod.deletionCost}, ${other.name}: ${other.deletionCost}`
    case 'DoubledUp':
      return `pods of its owner on its node: ${rank}, ${other.name}: ${otherRank}`
    case 'ReadyTime':
      return ageText('ready for', pod.readySinceMs, other.readySinceMs, other.name, nowMs)
    case 'Restarts':
      return restartsText(pod, other)
    case 'CreationTime':
      return ageText('age', pod.createdMs, other.createdMs, other.name, nowMs)
    case 'AgeBoundary':
      return boundaryText(pod, other, window)
    case 'SiblingDeletions':
      return `${other.name} may go first: another ReplicaSet deletes pods on these nodes at the same time`
    case 'Policy':
      return `a ScaleDownPolicy chooses between it and ${other.name}`
    case 'Cycle':
      return `${other.name} comes before it, and others behind it before ${other.name}: the rules make a circle`
    default:
      return `equal to ${other.name} by all rules`
  }
}

function withoutComparison(rule: RankDecision['rule']): string {
  if (rule === 'Nothing') return 'none is too many'
  return rule === 'LaterBatch' ? 'after the first 500 the rest is compared again' : 'all of them go'
}

function restartsText(pod: ScalePod, other: ScalePod): string {
  if (pod.restarts !== other.restarts) return `restarts: ${pod.restarts}, ${other.name}: ${other.restarts}`
  return `restarts of a sidecar: ${pod.sidecarRestarts}, ${other.name}: ${other.sidecarRestarts}`
}

/** Ages are compared by powers of two of their nanoseconds, then by UID within one. */
function ageText(what: string, own: number, other: number, name: string, nowMs: number): string {
  const text = (time: number): string => {
    return time === 0 ? 'unknown' : formatDuration(Math.max(0, Math.floor((nowMs - time) / 1000)) * 1000)
  }
  const bucket = (time: number): number => ageBucket((nowMs - time) * 1e6)
  const byUid = own !== 0 && other !== 0 && bucket(own) === bucket(other)
  return `${what} ${text(own)}, ${name}: ${text(other)}${byUid ? ' (about the same, so the UID decides)' : ''}`
}

/** When two ages swap places. */
function boundaryText(pod: ScalePod, other: ScalePod, window: ComparisonWindow): string {
  const [a = 0, b = 0] = comparedTimes(pod, other) ?? []
  const changeMs = firstChangeMs(Math.max(a, b), Math.min(a, b), window)
  const when = changeMs === undefined ? 'within the minute' : `in ${secondsText(changeMs - window.fromMs)}`
  return `its age and that of ${other.name} change places ${when}`
}

/** Whole seconds, at least one. */
function secondsText(ms: number): string {
  return formatDuration(Math.max(1, Math.floor(ms / 1000)) * 1000)
}
