// ScaleDownPolicy's row of the scheme.

import type { FieldError } from '../../kit/api/json/field-error.ts'
import type { JsonObject } from '../../kit/api/json/json-object.ts'
import { type Loose, looseView, recordOf, textOf } from '../../kit/api/json/object-shape.ts'
import { FieldErrors, reportable, shown } from '../../kit/api/validation/field-errors.ts'
import { checkLabelSelector } from '../../kit/api/validation/label-selector-checks.ts'
import { isLabelKey } from '../../kit/api/validation/name-syntax.ts'
import { SCALE_GROUP } from '../../kube/api/own-names.ts'
import type { ResourceKind } from '../../kube/api/resource-kind.ts'
import type { ScaleDownPolicy, VictimPreference } from './scale-down-policy.ts'
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

/** What the schema cannot express. Returns every error and warning. Takes any JSON value and never throws; schema errors are not repeated. */
export function checkScaleDownPolicy(object: unknown): readonly FieldError[] {
  const out = new FieldErrors()
  const { spec } = (looseView(SCALE_DOWN_POLICY_SCHEMA, object) ?? {}) as Loose<ScaleDownPolicy>
  if (spec === undefined) return out.found
  const { selector, prefer = [] } = spec
  if (selector !== undefined) checkLabelSelector(selector, 'spec.selector', out)
  for (const [index, preference] of prefer.entries()) {
    if (preference !== undefined) checkPreference(preference, `spec.prefer[${index}]`, out)
  }
  return reportable(out.found, out.more)
}

const FIELDS = [
  ['topologyKey', 'TopologyExcess'],
  ['annotation', 'Annotation'],
] as const

function checkPreference(preference: Loose<VictimPreference>, path: string, out: FieldErrors): void {
  for (const [field, kind] of FIELDS) {
    const value = preference[field]
    const at = `${path}.${field}`
    if (preference.by === kind && value === undefined) out.required(at, `is required by ${kind}`, 'name a key')
    else if (value !== undefined && preference.by !== kind) {
      out.warning(at, `has no effect without by: ${kind}`, 'remove it')
    } else if (value !== undefined && !isLabelKey(value.toLowerCase())) {
      out.invalid(at, `${shown(value)} is not a valid key`, 'write a name, optionally after a DNS name and /')
    }
  }
}
