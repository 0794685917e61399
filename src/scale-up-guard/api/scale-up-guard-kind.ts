// ScaleUpGuard's row of the scheme.

import { SCALE_GROUP } from '../../kube/api/own-names.ts'
import type { ResourceKind } from '../../kube/api/resource-kind.ts'
import { checkScaleUpGuard } from './checks.ts'
import { SCALE_UP_GUARD_KIND, SCALE_UP_GUARD_SCHEMA } from './schema.ts'

export const SCALE_UP_GUARDS: ResourceKind = {
  group: SCALE_GROUP,
  version: 'v1alpha1',
  kind: SCALE_UP_GUARD_KIND,
  listKind: 'ScaleUpGuardList',
  plural: 'scaleupguards',
  singular: 'scaleupguard',
  shortNames: ['sug'],
  categories: [],
  namespaced: false,
  hasStatus: true,
  hasGeneration: true,
  schema: SCALE_UP_GUARD_SCHEMA,
  columns: [
    {
      name: 'Management',
      type: 'string',
      description: 'UpstreamCluster that has the Machines.',
      jsonPath: '.spec.clusterRef.management',
    },
    { name: 'Groups', type: 'integer', description: 'Groups that are guarded.', jsonPath: '.status.groupCount' },
    {
      name: 'Backed off',
      type: 'integer',
      description: 'Groups whose scale-ups are refused.',
      jsonPath: '.status.backedOffCount',
    },
    { name: 'Shadow', type: 'boolean', description: 'Whether it only reports.', jsonPath: '.spec.shadow' },
    {
      name: 'Ready',
      type: 'string',
      description: 'Whether it observes the groups.',
      jsonPath: '.status.conditions[?(@.type=="Ready")].status',
    },
    { name: 'Age', type: 'date', description: 'When it was created.', jsonPath: '.metadata.creationTimestamp' },
  ],
  selectableFields: [],
  check: (object) => checkScaleUpGuard(object),
}
