// Among which pods a scale-down chooses: those of the one ReplicaSet that shrinks.

import type { ScalableKind } from '../../../gateway/core/request/scale-target.ts'
import type { JsonObject } from '../../../kit/api/json/json-object.ts'
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
import { UnavailableError } from './cluster-reads.ts'

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
