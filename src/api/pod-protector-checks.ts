// What can be wrong with a PodProtector beyond its schema: selectors that select nothing they should.

import { type FieldProblem, ProblemList, shown } from './field-errors.ts'
import { isLabelKey, isLabelValue } from './name-syntax.ts'
import { type Loose, looseView } from './object-shape.ts'
import type { AdmissionHistoryConfig, LabelSelector, PodProtector } from './pod-protector.ts'
import { POD_PROTECTOR_SCHEMA } from './pod-protector-schema.ts'

const OPERATORS = ['In', 'NotIn', 'Exists', 'DoesNotExist']

/** Every mistake and doubt. Takes any JSON value and never throws; what the schema finds is not reported again. */
export function checkPodProtector(object: unknown): readonly FieldProblem[] {
  const out = new ProblemList()
  // The view holds what has the right type.
  const { spec } = (looseView(POD_PROTECTOR_SCHEMA, object) ?? {}) as Loose<PodProtector>
  if (spec === undefined) return out.problems
  const { selector, aggregationSelector, minReadySeconds = 0, admissionHistoryConfig = {} } = spec
  if (selector !== undefined) checkSelector(selector, 'spec.selector', out)
  if (aggregationSelector !== undefined) checkSelector(aggregationSelector, 'spec.aggregationSelector', out)
  if (selector !== undefined && isEmpty(selector)) {
    out.warning('spec.selector', 'is empty: all pods of the namespace are protected', 'name the labels of the workload')
  }
  if (selector !== undefined && aggregationSelector !== undefined) checkSuperset(selector, aggregationSelector, out)
  if (minReadySeconds < 0) {
    out.warning('spec.minReadySeconds', `${minReadySeconds} is negative, which means 0`, 'write seconds, 0 or more')
  }
  checkHistory(admissionHistoryConfig, 'spec.admissionHistoryConfig', out)
  return out.problems
}

/** metav1.LabelSelectorAsSelector. */
function checkSelector(selector: Loose<LabelSelector>, path: string, out: ProblemList): void {
  for (const [key, value = ''] of Object.entries(selector.matchLabels ?? {})) {
    checkKey(key, `${path}.matchLabels[${key}]`, out)
    checkValue(value, `${path}.matchLabels[${key}]`, out)
  }
  for (const [index, requirement] of (selector.matchExpressions ?? []).entries()) {
    if (requirement === undefined) continue
    const at = `${path}.matchExpressions[${index}]`
    const { key, operator, values = [] } = requirement
    if (key !== undefined) checkKey(key, `${at}.key`, out)
    if (operator !== undefined && !OPERATORS.includes(operator)) {
      out.error(`${at}.operator`, `${shown(operator)} is not known`, `write one of ${OPERATORS.join(', ')}`)
    }
    const needsValues = operator === 'In' || operator === 'NotIn'
    if (needsValues && values.length === 0) {
      out.error(`${at}.values`, `is required by operator ${operator}`, 'add at least one value')
    } else if ((operator === 'Exists' || operator === 'DoesNotExist') && values.length > 0) {
      out.error(`${at}.values`, `means nothing beside operator ${operator}`, 'remove it, or use In')
    }
    for (const [place, value = ''] of values.entries()) checkValue(value, `${at}.values[${place}]`, out)
  }
}

function checkKey(key: string, path: string, out: ProblemList): void {
  if (isLabelKey(key)) return
  out.error(
    path,
    `${shown(key)} is no label`,
    'write a name of at most 63 characters, after a DNS name and / if need be',
  )
}

function checkValue(value: string, path: string, out: ProblemList): void {
  if (isLabelValue(value)) return
  const fix = 'use at most 63 letters, digits, -, _ and ., beginning and ending with a letter or digit'
  out.error(path, `${shown(value)} is no value of a label`, fix)
}

/** Sure only of labels; requirements that differ may still select more. */
function checkSuperset(selector: Loose<LabelSelector>, counted: Loose<LabelSelector>, out: ProblemList): void {
  const labels = new Map(Object.entries(selector.matchLabels ?? {}))
  for (const [key, value] of Object.entries(counted.matchLabels ?? {})) {
    if (labels.get(key) === value) continue
    const message = 'may leave out pods that selector protects'
    out.warning(`spec.aggregationSelector.matchLabels[${key}]`, message, 'select at least what selector does')
  }
}

function checkHistory(config: Loose<AdmissionHistoryConfig>, path: string, out: ProblemList): void {
  for (const field of ['maxConcurrentLag', 'compactThreshold', 'aggregationRateMillis'] as const) {
    const value = config[field] ?? 0
    if (value < 0)
      out.warning(`${path}.${field}`, `${value} is negative, which means 0`, 'write 0 or more, or remove it')
  }
}

function isEmpty({ matchLabels = {}, matchExpressions = [] }: Loose<LabelSelector>): boolean {
  return Object.keys(matchLabels).length === 0 && matchExpressions.length === 0
}
