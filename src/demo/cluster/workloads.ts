// Stands in for the controllers of deployments and ReplicaSets: each step brings a workload a little closer to its
// spec, so that there is something to watch.

import { createHash } from 'node:crypto'
import { metaText } from '../../apiserver/objects/object-metadata.ts'
import type { JsonObject } from '../../kit/api/json/json-object.ts'
import { isRecord } from '../../kit/api/json/object-shape.ts'
import { sortedJson } from '../../kit/api/json/sorted-json.ts'
import { sameJson } from '../../kit/core/text/same-json.ts'
import type { ResourceKind } from '../../kube/api/resource-kind.ts'
import { rankReplicaSet, replicaSetFacts } from '../../scaling/core/rank/replica-set-pods.ts'
import { scalePod } from '../../scaling/core/rank/scale-pod.ts'
import { numberAt, objectAt, textAt, valueAt } from '../kinds/json.ts'
import { DEMO_PODS, isEnding, isPodReady } from '../kinds/pod-kind.ts'
import { DEMO_DEPLOYMENTS, DEMO_REPLICA_SETS, wantedReplicas } from '../kinds/workload-kinds.ts'
import type { DemoObjects } from './objects.ts'
import { nodeFor, ownerUid } from './scheduler.ts'

const CONTROLLER = 'kube-controller-manager'
const HASH_LABEL = 'pod-template-hash'
const REVISION = 'deployment.kubernetes.io/revision'
/** Pods of one ReplicaSet created per step. Excess pods are removed at once, by one ranking. */
const PODS_PER_STEP = 3

/** The newest ReplicaSet gets all replicas; older ones lose as many as the newest has ready. */
export function stepDeployment(objects: DemoObjects, deployment: JsonObject): void {
  const hash = templateHash(deployment)
  const all = ownedBy(objects, DEMO_REPLICA_SETS, deployment)
  const isNewest = (set: JsonObject): boolean => textAt(objectAt(set, 'metadata.labels'), HASH_LABEL) === hash
  const newest = all.find(isNewest)
  const older = all.filter((set) => !isNewest(set))
  const wanted = wantedReplicas(deployment)
  const next = Math.max(0, ...older.map(revisionOf)) + 1
  if (newest === undefined) {
    addReplicaSet(objects, deployment, hash, next)
    return
  }
  // A rollback makes its ReplicaSet the newest revision (kubectl rollout undo).
  writeReplicas(objects, newest, wanted, Math.max(revisionOf(newest), next))
  let spare = Math.max(0, wanted - numberAt(newest, 'status.readyReplicas'))
  for (const old of older) {
    const kept = Math.min(spare, wantedReplicas(old))
    writeReplicas(objects, old, kept, revisionOf(old))
    spare -= kept
  }
  writeDeploymentStatus(objects, deployment, newest, ownedBy(objects, DEMO_REPLICA_SETS, deployment))
}

/** @param all create all missing pods at once, on their nodes */
export function stepReplicaSet(objects: DemoObjects, set: JsonObject, all: boolean): void {
  const pods = ownedBy(objects, DEMO_PODS, set).filter((pod) => !isEnding(pod))
  const missing = wantedReplicas(set) - pods.length
  for (let i = 0; i < (all ? missing : Math.min(missing, PODS_PER_STEP)); i++) addPod(objects, set, all)
  if (all && missing > 0) return
  for (const pod of victims(objects, set, -missing)) objects.remove(DEMO_PODS, pod)
  const now = ownedBy(objects, DEMO_PODS, set).filter((pod) => !isEnding(pod))
  const ready = now.filter(isPodReady).length
  writeStatus(objects, DEMO_REPLICA_SETS, set, {
    observedGeneration: valueAt(set, 'metadata.generation'),
    replicas: now.length,
    fullyLabeledReplicas: now.length,
    readyReplicas: ready,
    availableReplicas: ready,
  })
}

/** Victims if there are too many pods: those that kube-controller-manager would delete, and among equal ones the first. */
function victims(objects: DemoObjects, set: JsonObject, count: number): readonly JsonObject[] {
  if (count <= 0) return []
  const namespace = metaText(set, 'namespace')
  const pods = objects.list(DEMO_PODS, namespace)
  const sets = objects.list(DEMO_REPLICA_SETS, namespace).map(replicaSetFacts)
  const nowMs = objects.now()
  const conditions = { window: { fromMs: nowMs, toMs: nowMs } }
  const scale = { replicaSet: replicaSetFacts(set), replicas: wantedReplicas(set) }
  const { certain, possible } = rankReplicaSet(scale, [], sets, pods.map(scalePod), conditions)
  const chosen = new Set([...certain, ...possible.pods.slice(0, possible.count)].map(({ pod }) => pod.uid))
  return pods.filter((pod) => chosen.has(uidOf(pod)))
}

/** Removes objects whose owner is gone. */
export function collectOrphans(objects: DemoObjects): void {
  const living = new Set([DEMO_DEPLOYMENTS, DEMO_REPLICA_SETS].flatMap((kind) => objects.list(kind).map(uidOf)))
  for (const kind of [DEMO_REPLICA_SETS, DEMO_PODS]) {
    for (const one of objects.list(kind)) {
      const owner = ownerUid(one)
      if (owner !== '' && !living.has(owner) && !isEnding(one)) objects.remove(kind, one)
    }
  }
}

function uidOf(object: JsonObject): string {
  return metaText(object, 'uid')
}

function ownedBy(objects: DemoObjects, kind: ResourceKind, owner: JsonObject): JsonObject[] {
  return objects.list(kind, metaText(owner, 'namespace')).filter((one) => ownerUid(one) === uidOf(owner))
}

function ownerReference(kind: ResourceKind, owner: JsonObject): JsonObject {
  return { apiVersion: 'apps/v1', kind: kind.kind, name: metaText(owner, 'name'), uid: uidOf(owner), controller: true }
}

/** Hash of the template's content: kubectl writes empty fields, and in a different order (kubectl rollout undo). */
function templateHash(deployment: JsonObject): string {
  const template = sortedJson(withoutEmpty(objectAt(deployment, 'spec.template')))
  return createHash('sha256').update(template).digest('hex').slice(0, 10)
}

/** Drops members that are null or empty maps. */
function withoutEmpty(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutEmpty)
  if (!isRecord(value)) return value
  const members = Object.entries(value).map(([key, member]) => [key, withoutEmpty(member)] as const)
  return Object.fromEntries(members.filter(([, member]) => !isEmpty(member)))
}

function isEmpty(value: unknown): boolean {
  return value === null || (isRecord(value) && Object.keys(value).length === 0)
}

function addReplicaSet(objects: DemoObjects, deployment: JsonObject, hash: string, revision: number): void {
  const template = objectAt(deployment, 'spec.template')
  const labels = { ...objectAt(template, 'metadata.labels'), [HASH_LABEL]: hash }
  const set = {
    metadata: {
      name: `${metaText(deployment, 'name')}-${hash}`,
      namespace: metaText(deployment, 'namespace'),
      labels,
      annotations: { [REVISION]: String(revision) },
      ownerReferences: [ownerReference(DEMO_DEPLOYMENTS, deployment)],
    },
    spec: {
      replicas: wantedReplicas(deployment),
      selector: { matchLabels: labels },
      template: { ...template, metadata: { ...objectAt(template, 'metadata'), labels } },
    },
  }
  objects.create(DEMO_REPLICA_SETS, set, CONTROLLER)
}

function revisionOf(set: JsonObject): number {
  return Number(objectAt(set, 'metadata.annotations')[REVISION] ?? 0)
}

function writeReplicas(objects: DemoObjects, set: JsonObject, replicas: number, revision: number): void {
  if (wantedReplicas(set) === replicas && revisionOf(set) === revision) return
  const annotations = { ...objectAt(set, 'metadata.annotations'), [REVISION]: String(revision) }
  const metadata = { ...objectAt(set, 'metadata'), annotations }
  objects.update(DEMO_REPLICA_SETS, { ...set, metadata, spec: { ...objectAt(set, 'spec'), replicas } }, CONTROLLER)
}

function addPod(objects: DemoObjects, set: JsonObject, placed: boolean): void {
  const { labels, annotations } = objectAt(set, 'spec.template.metadata')
  const metadata = {
    generateName: `${metaText(set, 'name')}-`,
    namespace: metaText(set, 'namespace'),
    labels,
    ...(annotations !== undefined && { annotations }),
    ownerReferences: [ownerReference(DEMO_REPLICA_SETS, set)],
  }
  const nodeName = placed ? nodeFor(objects, uidOf(set)) : undefined
  const spec = { ...objectAt(set, 'spec.template.spec'), ...(nodeName !== undefined && { nodeName }) }
  objects.create(DEMO_PODS, { metadata, spec }, CONTROLLER)
}

function writeDeploymentStatus(
  objects: DemoObjects,
  deployment: JsonObject,
  newest: JsonObject,
  all: readonly JsonObject[],
): void {
  const sum = (field: string): number => all.reduce((total, set) => total + numberAt(set, `status.${field}`), 0)
  const wanted = wantedReplicas(deployment)
  const ready = sum('readyReplicas')
  const updated = numberAt(newest, 'status.replicas')
  const conditions = [
    { type: 'Available', status: ready >= wanted ? 'True' : 'False', reason: 'MinimumReplicasAvailable' },
    {
      type: 'Progressing',
      status: 'True',
      reason: updated === wanted ? 'NewReplicaSetAvailable' : 'ReplicaSetUpdated',
    },
  ]
  writeStatus(objects, DEMO_DEPLOYMENTS, deployment, {
    observedGeneration: valueAt(deployment, 'metadata.generation'),
    replicas: sum('replicas'),
    updatedReplicas: updated,
    readyReplicas: ready,
    availableReplicas: ready,
    unavailableReplicas: Math.max(0, wanted - ready),
    conditions,
  })
}

function writeStatus(objects: DemoObjects, kind: ResourceKind, object: JsonObject, status: JsonObject): void {
  if (sameJson(object['status'] ?? {}, status)) return
  const { metadata, ...rest } = object
  // Any version: only controllers write statuses.
  const { resourceVersion: _, ...known } = objectAt({ metadata }, 'metadata')
  objects.update(kind, { ...rest, metadata: known, status }, CONTROLLER, 'status')
}
