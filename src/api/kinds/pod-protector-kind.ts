// PodProtector's row of the scheme: names and columns as Podseidon has them.

import { checkPodProtector } from '../pod-protector/checks.ts'
import { POD_PROTECTOR_GROUP, POD_PROTECTOR_KIND, POD_PROTECTOR_VERSION } from '../pod-protector/names.ts'
import { POD_PROTECTOR_SCHEMA } from '../pod-protector/schema.ts'
import type { ResourceKind } from '../ports/resource-kind.ts'

export const POD_PROTECTORS: ResourceKind = {
  group: POD_PROTECTOR_GROUP,
  version: POD_PROTECTOR_VERSION,
  kind: POD_PROTECTOR_KIND,
  listKind: 'PodProtectorList',
  plural: 'podprotectors',
  singular: 'podprotector',
  shortNames: ['ppr'],
  categories: [],
  namespaced: true,
  hasStatus: true,
  hasGeneration: true,
  schema: POD_PROTECTOR_SCHEMA,
  columns: [
    { name: 'Required', type: 'string', description: 'Pods that have to stay.', jsonPath: '.spec.minAvailable' },
    {
      name: 'Aggregated',
      type: 'integer',
      description: 'Available pods as they were counted.',
      jsonPath: '.status.summary.aggregatedAvailableReplicas',
    },
    {
      // Podseidon's own column shows the aggregated number a second time.
      name: 'Estimated',
      type: 'integer',
      description: 'Available pods less the deletions let through since.',
      jsonPath: '.status.summary.estimatedAvailableReplicas',
    },
    {
      name: 'Bucket lag',
      type: 'integer',
      description: 'Milliseconds by which the slowest cell is behind.',
      priority: 1,
      jsonPath: '.status.summary.maxLatencyMillis',
    },
    { name: 'Age', type: 'date', description: 'When it was created.', jsonPath: '.metadata.creationTimestamp' },
  ],
  selectableFields: [],
  check: (object) => checkPodProtector(object),
}
