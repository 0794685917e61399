// Deployment and ReplicaSet (apps/v1), with their Scale.

import type { JsonObject } from '../../kit/api/json/json-object.ts'
import { type JsonSchema, MAX_INT32, wholeNumber } from '../../kit/api/json/json-schema.ts'
import {
  DEPLOYMENTS as NAMED_DEPLOYMENTS,
  REPLICA_SETS as NAMED_REPLICA_SETS,
} from '../../kube/api/kinds/foreign-kinds.ts'
import type { ResourceKind, ViewSubresource } from '../../kube/api/resource-kind.ts'
import { numberAt, objectAt, valueAt } from './json.ts'
import { POD_SPEC } from './pod-kind.ts'
import { AGE, column, integerColumn, openKind, openObject, statusWith } from './rows.ts'

/** autoscaling/v1 Scale: the desired number of pods. */
const SCALE: ViewSubresource = {
  name: 'scale',
  group: 'autoscaling',
  version: 'v1',
  kind: 'Scale',
  show(object) {
    const { name, namespace, uid, resourceVersion, creationTimestamp } = objectAt(object, 'metadata')
    const labels = Object.entries(objectAt(object, 'spec.selector.matchLabels'))
    return {
      kind: 'Scale',
      apiVersion: 'autoscaling/v1',
      metadata: { name, namespace, uid, resourceVersion, creationTimestamp },
      spec: { replicas: numberAt(object, 'spec.replicas') },
      status: {
        replicas: numberAt(object, 'status.replicas'),
        selector: labels.map(([key, value]) => `${key}=${String(value)}`).join(','),
      },
    }
  },
  withView: (object, scale) => ({
    ...object,
    spec: { ...objectAt(object, 'spec'), replicas: valueAt(scale, 'spec.replicas') ?? 0 },
  }),
}

function workload(kind: 'Deployment' | 'ReplicaSet', description: string, more: object = {}): JsonSchema {
  return openKind(description, 'apps/v1', kind, {
    spec: openObject('What is wanted.', {
      replicas: { ...wholeNumber('How many pods.'), minimum: 0, maximum: MAX_INT32, default: 1 },
      selector: openObject('Which pods are its own.'),
      template: openObject('What its pods are made of.', {
        metadata: openObject('Labels and annotations.'),
        spec: POD_SPEC,
      }),
      ...more,
    }),
    status: statusWith(),
  })
}

export const DEMO_DEPLOYMENTS: ResourceKind = {
  ...NAMED_DEPLOYMENTS,
  shortNames: ['deploy'],
  categories: ['all'],
  subresources: [SCALE],
  schema: workload('Deployment', 'Deployment keeps pods of the newest template running, by ReplicaSets.', {
    strategy: { ...openObject('How old pods are replaced.'), default: { type: 'RollingUpdate' } },
  }),
  columns: [
    column('Ready', (one) => `${numberAt(one, 'status.readyReplicas')}/${numberAt(one, 'spec.replicas', 1)}`),
    integerColumn('Up-to-date', 'status.updatedReplicas'),
    integerColumn('Available', 'status.availableReplicas'),
    AGE,
  ],
}

export const DEMO_REPLICA_SETS: ResourceKind = {
  ...NAMED_REPLICA_SETS,
  shortNames: ['rs'],
  categories: ['all'],
  subresources: [SCALE],
  schema: workload('ReplicaSet', 'ReplicaSet keeps a number of equal pods running.'),
  columns: [
    integerColumn('Desired', 'spec.replicas'),
    integerColumn('Current', 'status.replicas'),
    integerColumn('Ready', 'status.readyReplicas'),
    AGE,
  ],
  selectableFields: ['status.replicas'],
}

/** Desired number of pods. */
export function wantedReplicas(object: JsonObject): number {
  return numberAt(object, 'spec.replicas', 1)
}
