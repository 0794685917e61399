// ScaleDownPolicy's row of the scheme.

import type { JsonObject } from '../../kit/api/json/json-object.ts'
import { recordOf, textOf } from '../../kit/api/json/object-shape.ts'
import { SCALE_GROUP } from '../../kube/api/own-names.ts'
import type { ResourceKind } from '../../kube/api/resource-kind.ts'
import { checkScaleDownPolicy } from './checks.ts'
import { SCALE_DOWN_POLICY_KIND, SCALE_DOWN_POLICY_SCHEMA } from './schema.ts'

export const SCALE_DOWN_POLICIES: ResourceKind = {
  group: SCALE_GROUP,
  version: 'v1alpha1',
  kind: SCALE_DOWN_POLICY_KIND,
  listKind: 'ScaleDownPolicyList',
  plural: 'scaledownpolicies',
  singular: 'scaledownpolicy',
  shortNames: ['sdp'],
  categories: [],
  namespaced: true,
  hasStatus: true,
  hasGeneration: true,
  schema: SCALE_DOWN_POLICY_SCHEMA,
  columns: [
    {
      name: 'Prefer',
      type: 'string',
      description: 'The preferences, in order; with CRDs, only the first.',
      // A column of a CRD shows the first result of its path only (apiextensions-apiserver, tableconvertor.go).
      jsonPath: '.spec.prefer[0].by',
      cell: preferences,
    },
    { name: 'Shadow', type: 'boolean', description: 'Whether it only reports.', jsonPath: '.spec.shadow' },
    {
      name: 'Ready',
      type: 'string',
      description: 'Whether it is in force.',
      jsonPath: '.status.conditions[?(@.type=="Ready")].status',
    },
    {
      name: 'Last workload',
      type: 'string',
      description: 'Workload that was last scaled down.',
      jsonPath: '.status.lastScaleDown.workload',
    },
    {
      name: 'Outcome',
      type: 'string',
      description: 'Outcome of that scale-down.',
      jsonPath: '.status.lastScaleDown.outcome',
    },
    { name: 'Age', type: 'date', description: 'When it was created.', jsonPath: '.metadata.creationTimestamp' },
  ],
  selectableFields: [],
  check: (object) => checkScaleDownPolicy(object),
}

function preferences({ spec }: JsonObject): string {
  const { prefer } = recordOf(spec)
  return (Array.isArray(prefer) ? prefer : []).map((one) => textOf(recordOf(one)['by'])).join(',')
}
