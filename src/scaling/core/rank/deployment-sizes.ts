// How the Deployment controller spreads new replicas over its ReplicaSets (scale(), pkg/controller/deployment/sync.go;
// deployment/util/deployment_util.go). A single ReplicaSet with pods gets all of them; during a rollout each gets its share. The rollout
// then continues, and deletes more.

import { type JsonObject, mapOf } from '../../../kit/api/json/json-object.ts'
import { recordOf, textOf } from '../../../kit/api/json/object-shape.ts'
import { sameJson } from '../../../kit/core/text/same-json.ts'
import { scaledCount } from '../../../protection/core/quota/min-available.ts'
import { countOf, type ReplicaSetFacts, replicaSetFacts } from './replica-set-pods.ts'
import { controllerUid } from './scale-pod.ts'

interface DeploymentSizes {
  /** New spec.replicas of its ReplicaSets that have pods. */
  readonly sizes: readonly { readonly replicaSet: ReplicaSetFacts; readonly replicas: number }[]
  /** Some of its pods are of an older revision, or its newest ReplicaSet has no pods yet. */
  readonly rollout: boolean
}

const DESIRED_ANNOTATION = 'deployment.kubernetes.io/desired-replicas'
const MAX_ANNOTATION = 'deployment.kubernetes.io/max-replicas'
const MAX_COUNT = 2 ** 31 - 1
const HASH_LABEL = 'pod-template-hash'

interface OwnedSet {
  readonly facts: ReplicaSetFacts
  readonly object: JsonObject
}

/** @param replicaSets of the namespace */
export function deploymentSizes(
  deployment: JsonObject,
  replicaSets: readonly JsonObject[],
  replicas: number,
): DeploymentSizes {
  const uid = textOf(recordOf(deployment['metadata'])['uid'])
  const owned = replicaSets
    .filter((object) => controllerUid(object) === uid)
    .map((object): OwnedSet => ({ facts: replicaSetFacts(object), object }))
    .sort((a, b) => a.facts.createdMs - b.facts.createdMs || (a.facts.name < b.facts.name ? -1 : 1))
  // If several have its template, the oldest is the new one.
  const newest = owned.find(({ object }) => sameJson(templateOf(object), templateOf(deployment)))
  const active = owned.filter(({ facts }) => facts.replicas > 0)
  const rollout = active.some((one) => one !== newest)
  const sizes = newSizes(deployment, active, newest, replicas)
  return { rollout, sizes: sizes.map(({ one: { facts }, size }) => ({ replicaSet: facts, replicas: size })) }
}

interface NewSize {
  readonly one: OwnedSet
  readonly size: number
}

/** @param active oldest first */
function newSizes(
  deployment: JsonObject,
  active: readonly OwnedSet[],
  newest: OwnedSet | undefined,
  replicas: number,
): readonly NewSize[] {
  const each = (sizeOf: (one: OwnedSet) => number): NewSize[] => active.map((one) => ({ one, size: sizeOf(one) }))
  const ended = (): NewSize[] => each((one) => (one === newest ? one.facts.replicas : 0))
  // The controller does not notice the scaling (isScalingEvent): the rollout continues.
  if (!isPaused(deployment) && !active.some(({ object }) => isScaling(object, replicas))) {
    return each((one) => (one === newest ? Math.min(one.facts.replicas, replicas) : one.facts.replicas))
  }
  if (active.length === 1) return each(() => replicas)
  if (newest !== undefined && isSaturated(newest, replicas)) return ended()
  const strategy = recordOf(recordOf(deployment['spec'])['strategy'])
  // It waits until all old pods are gone.
  if (strategy['type'] === 'Recreate') return ended()
  return proportional(deployment, active, replicas)
}

function proportional(deployment: JsonObject, active: readonly OwnedSet[], replicas: number): readonly NewSize[] {
  const most = replicas + maxSurge(deployment, replicas)
  const toAdd = (replicas > 0 ? most : 0) - active.reduce((all, { facts }) => all + facts.replicas, 0)
  // Largest first; among equal ones, additions go to the newer and removals come from the older.
  const byAge = toAdd > 0 ? active.toReversed() : active
  let added = 0
  const sizes = byAge
    .toSorted((a, b) => b.facts.replicas - a.facts.replicas)
    .map((one): NewSize => {
      const { facts, object } = one
      const wanted = growth(deployment, facts.replicas, mapOf(object, 'annotations')[MAX_ANNOTATION], replicas, most)
      const rest = toAdd - added
      const share = rest === 0 ? 0 : toAdd > 0 ? Math.min(wanted, rest) : Math.max(wanted, rest)
      added += share
      return { one, size: facts.replicas + share }
    })
  const leftover = toAdd - added
  return sizes.map(({ one, size }, at) => ({ one, size: at === 0 ? Math.max(0, size + leftover) : size }))
}

/** How much a ReplicaSet grows; negative = shrinks (getReplicaSetFraction). */
function growth(
  deployment: JsonObject,
  size: number,
  annotation: string | undefined,
  replicas: number,
  most: number,
): number {
  if (replicas === 0) return -size
  const before = readCount(annotation) || countOf(recordOf(deployment['status'])['replicas'], 0)
  // Like Go: 32-bit multiplication, rounding half away from zero.
  const wanted = Math.imul(size, most) / before
  return before === 0 ? 0 : Math.trunc(wanted + (wanted < 0 ? -0.5 : 0.5)) - size
}

function maxSurge(deployment: JsonObject, replicas: number): number {
  const strategy = recordOf(recordOf(deployment['spec'])['strategy'])
  return scaledCount(recordOf(strategy['rollingUpdate'])['maxSurge'] ?? 0, replicas, true) ?? 0
}

function isScaling(replicaSet: JsonObject, replicas: number): boolean {
  const desired = readCount(mapOf(replicaSet, 'annotations')[DESIRED_ANNOTATION])
  return desired !== undefined && desired !== replicas
}

/** It has all replicas, available, and the old ones are no longer needed. */
function isSaturated({ facts, object }: OwnedSet, replicas: number): boolean {
  const desired = readCount(mapOf(object, 'annotations')[DESIRED_ANNOTATION])
  return facts.replicas === replicas && desired === replicas && facts.availableReplicas === replicas
}

function isPaused(deployment: JsonObject): boolean {
  return recordOf(deployment['spec'])['paused'] === true
}

function readCount(annotation: string | undefined): number | undefined {
  const count = annotation !== undefined && /^\d+$/.test(annotation) ? Number(annotation) : MAX_COUNT + 1
  return count <= MAX_COUNT ? count : undefined
}

/** Without the label that only the ReplicaSet's template has (EqualIgnoreHash). */
function templateOf(object: JsonObject): JsonObject {
  const template = recordOf(recordOf(object['spec'])['template'])
  const metadata = recordOf(template['metadata'])
  const { [HASH_LABEL]: _, ...labels } = recordOf(metadata['labels'])
  return { ...template, metadata: { ...metadata, labels } }
}
