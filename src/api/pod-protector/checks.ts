// What can be wrong with a PodProtector beyond its schema: selectors that select nothing they should.

import type { FieldError } from '../kube/field-error.ts'
import { type Loose, looseView } from '../kube/object-shape.ts'
import { FieldErrors, reportable } from '../validation/field-errors.ts'
import { checkLabelSelector, isEmptySelector } from './label-selector-checks.ts'
import { leavesOut } from './label-selector-sets.ts'
import type { AdmissionHistoryConfig, LabelSelector, PodProtector } from './pod-protector.ts'
import { POD_PROTECTOR_SCHEMA } from './schema.ts'

/** Every error and warning. Takes any JSON value and never throws; what the schema finds is not reported again. */
export function checkPodProtector(object: unknown): readonly FieldError[] {
  const out = new FieldErrors()
  // The view holds what has the right type.
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

/** Pods that are protected and not counted: a defect of Podseidon (D6), which lets it happen. */
function checkCounted(selector: Loose<LabelSelector>, counted: Loose<LabelSelector>, out: FieldErrors): void {
  for (const place of leavesOut(selector, counted)) {
    const message = 'leaves out pods that selector protects: they count as if they were not there'
    out.warning(`spec.aggregationSelector${place}`, message, 'select at least what selector does')
  }
}

const SMALLEST = { maxConcurrentLag: 0, compactThreshold: 1, aggregationRateMillis: 0 } as const

/** Only warnings: Podseidon takes any number. */
function checkHistory(config: Loose<AdmissionHistoryConfig>, path: string, out: FieldErrors): void {
  for (const field of ['maxConcurrentLag', 'compactThreshold', 'aggregationRateMillis'] as const) {
    const least = SMALLEST[field]
    const value = config[field] ?? least
    if (value >= least) continue
    out.warning(`${path}.${field}`, `${value} means ${least}`, `write ${least} or more, or remove it`)
  }
}
