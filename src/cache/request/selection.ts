// Which objects a request names by its selectors.

import { type LabelRequirements, labelsMatch } from '../../kube/core/selectors/label-requirement.ts'
import { parseLabelSelector } from '../../kube/core/selectors/parse-selector.ts'
import { compileFieldSelector } from '../core/fields/selectable-fields.ts'
import type { CachedCollection } from '../state/cached-collection.ts'
import type { CachedObject } from '../state/cached-object.ts'

export type Selects = (object: CachedObject) => boolean

interface Selectors {
  readonly labelSelector: string
  readonly fieldSelector: string
}

const ALL: Selects = () => true
/**
 * Requirements on labels and fields together; a comparison of numbers counts as many, since it takes as long. Each is tested of every object, and a
 * thread looks at its clock after 64 objects.
 */
export const MOST_REQUIREMENTS = 32
const COMPARISON_REQUIREMENTS = 8

/** undefined = kube-apiserver has to say what it makes of them. @param namespace '' = all */
export function selectionOf(
  { labelSelector, fieldSelector }: Selectors,
  namespace: string,
  collection: CachedCollection,
): Selects | undefined {
  const labels = labelSelector === '' ? [] : requirementsOf(labelSelector)
  const fields = fieldSelector === '' ? ALL : fieldsOf(fieldSelector, collection)
  if (labels === undefined || fields === undefined) return undefined
  if (costOf(labels) + fieldTerms(fieldSelector) > MOST_REQUIREMENTS) return undefined
  const inside = namespace === '' ? ALL : (object: CachedObject) => object.facts.namespace === namespace
  if (labels.length === 0 && fieldSelector === '') return inside
  return (object) => inside(object) && labelsMatch(labels, object.facts.labels) && fields(object)
}

/** At least as many as there are requirements. */
export function fieldTerms(fieldSelector: string): number {
  return fieldSelector === '' ? 0 : fieldSelector.split(',').length
}

function costOf(labels: LabelRequirements): number {
  return labels.reduce((sum, { operator }) => {
    return sum + (operator === 'Gt' || operator === 'Lt' ? COMPARISON_REQUIREMENTS : 1)
  }, 0)
}

function fieldsOf(text: string, { fields }: CachedCollection): Selects | undefined {
  const matches = compileFieldSelector(text, fields)
  return matches && ((object) => matches(object.facts))
}

function requirementsOf(text: string): LabelRequirements | undefined {
  try {
    return parseLabelSelector(text)
  } catch {
    return undefined
  }
}
