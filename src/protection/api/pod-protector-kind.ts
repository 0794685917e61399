// PodProtector's row of the scheme, with Podseidon's names and columns.

import type { FieldError } from '../../kit/api/json/field-error.ts'
import { type Loose, looseView } from '../../kit/api/json/object-shape.ts'
import { FieldErrors, reportable } from '../../kit/api/validation/field-errors.ts'
import { checkLabelSelector, isEmptySelector } from '../../kit/api/validation/label-selector-checks.ts'
import type { LabelSelector } from '../../kit/api/validation/label-selector-schema.ts'
import { leavesOut } from '../../kit/api/validation/label-selector-sets.ts'
import type { ResourceKind } from '../../kube/api/resource-kind.ts'
import type { AdmissionHistoryConfig, PodProtector } from './pod-protector.ts'
import { POD_PROTECTOR_GROUP, POD_PROTECTOR_KIND, POD_PROTECTOR_SCHEMA, POD_PROTECTOR_VERSION } from './schema.ts'

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
    { name: 'Required', type: 'string', description: 'Pods that must stay available.', jsonPath: '.spec.minAvailable' },
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
      description: 'Available pods less the deletions admitted since.',
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

// Checks of a PodProtector that its schema cannot express, such as selectors that select nothing they should.

/** Returns every error and warning. Takes any JSON value and never throws; schema errors are not repeated. */
export function checkPodProtector(object: unknown): readonly FieldError[] {
  const out = new FieldErrors()
  // The view holds only fields of the right type.
  const { spec } = (looseView(POD_PROTECTOR_SCHEMA, object) ?? {}) as Loose<PodProtector>
  if (spec === undefined) return out.found
  const { selector, aggregationSelector, minReadySeconds = 0, admissionHistoryConfig = {} } = spec
  const readable = selector === undefined || checkLabelSelector(selector, 'spec.selector', out)
  if (aggregationSelector !== undefined) {
    const alsoReadable = checkLabelSelector(aggregationSelector, 'spec.aggregationSelector', out)
    if (readable && alsoReadable && selector !== undefined) checkCounted(selector, aggregationSelector, out)
  }
  if (selector !== undefined && isEmptySelector(selector)) {
    out.warning('spec.selector', 'is empty: all pods of the namespace are protected', 'name the labels of the workload')
  }
  if (minReadySeconds < 0) {
    out.warning('spec.minReadySeconds', `${minReadySeconds} is negative, which means 0`, 'write seconds, 0 or more')
  }
  checkHistory(admissionHistoryConfig, 'spec.admissionHistoryConfig', out)
  return reportable(out.found, out.more)
}

/** Detects pods that are protected but not counted, a Podseidon defect (D6): it accepts such objects. */
function checkCounted(selector: Loose<LabelSelector>, counted: Loose<LabelSelector>, out: FieldErrors): void {
  for (const place of leavesOut(selector, counted)) {
    const message = 'leaves out pods that selector protects: they count as if they were not there'
    out.warning(`spec.aggregationSelector${place}`, message, 'select at least what selector does')
  }
}

const SMALLEST = { maxConcurrentLag: 0, compactThreshold: 1, aggregationRateMillis: 0 } as const

/** Warnings only: Podseidon accepts any number. */
function checkHistory(config: Loose<AdmissionHistoryConfig>, path: string, out: FieldErrors): void {
  for (const field of ['maxConcurrentLag', 'compactThreshold', 'aggregationRateMillis'] as const) {
    const least = SMALLEST[field]
    const value = config[field] ?? least
    if (value >= least) continue
    out.warning(`${path}.${field}`, `${value} means ${least}`, `write ${least} or more, or remove it`)
  }
}
