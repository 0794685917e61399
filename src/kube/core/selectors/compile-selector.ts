// Compiles label selectors of objects: metav1.LabelSelectorAsSelector with the checks of labels.NewRequirement
// (apimachinery/pkg/apis/meta/v1/helpers.go, pkg/labels/selector.go).

import { isRecord, recordOf } from '../../../kit/api/json/object-shape.ts'
import { shown } from '../../../kit/api/validation/field-errors.ts'
import type { LabelSelector } from '../../../kit/api/validation/label-selector-schema.ts'
import { isLabelKey, isLabelValue } from '../../../kit/api/validation/name-syntax.ts'
import { type LabelRequirement, type LabelRequirements, type Labels, labelsMatch } from './label-requirement.ts'

export interface CompiledSelector {
  /** All must match; none = every object matches. */
  readonly requirements: LabelRequirements
  matches(labels: Labels): boolean
}

/** @throws {SyntaxError} naming the requirement; the text is meant for people */
export function compileSelector(selector: LabelSelector): CompiledSelector {
  const requirements = readRequirements(selector)
  return { requirements, matches: (labels) => labelsMatch(requirements, labels) }
}

/**
 * The value of `?labelSelector=`, not yet URL-escaped; '' = everything.
 * @throws {SyntaxError} as compileSelector
 */
export function selectorText(selector: LabelSelector): string {
  return readRequirements(selector).map(requirementText).join(',')
}

function requirementText({ key, operator, values }: LabelRequirement): string {
  switch (operator) {
    case 'In':
      return values.size === 1 ? `${key}=${[...values].join()}` : `${key} in (${[...values].join()})`
    case 'NotIn':
      return `${key} notin (${[...values].join()})`
    case 'Exists':
      return key
    case 'DoesNotExist':
      return `!${key}`
    case 'Gt':
      return `${key}>${[...values].join()}`
    case 'Lt':
      return `${key}<${[...values].join()}`
  }
}

/** Accepts any JSON: an object of another cluster may not be validated. */
function readRequirements(selector: unknown): LabelRequirements {
  if (!isRecord(selector)) throw new SyntaxError('it is not an object: write matchLabels or matchExpressions')
  const matchLabels = selector['matchLabels'] ?? {}
  const matchExpressions = selector['matchExpressions'] ?? []
  if (!isRecord(matchLabels)) throw new SyntaxError('matchLabels is not a map of labels to values')
  if (!Array.isArray(matchExpressions)) throw new SyntaxError('matchExpressions is not a list of requirements')
  const fromLabels = Object.entries(matchLabels).map(([key, value]) =>
    readRequirement({ key, operator: 'In', values: [value] }, `matchLabels[${key}]`),
  )
  const fromExpressions = matchExpressions.map((item: unknown, index) =>
    readRequirement(item, `matchExpressions[${index}]`),
  )
  return [...fromLabels, ...fromExpressions]
}

function readRequirement(item: unknown, where: string): LabelRequirement {
  const { key, operator, values: given } = recordOf(item)
  if (typeof key !== 'string' || !isLabelKey(key))
    throw new SyntaxError(`${where}: ${shown(key)} is not a valid label key`)
  const list = given ?? []
  if (!Array.isArray(list)) throw new SyntaxError(`${where}: values is not a list`)
  const values = new Set<string>()
  for (const value of list as unknown[]) {
    if (typeof value !== 'string' || !isLabelValue(value)) {
      throw new SyntaxError(`${where}: ${shown(value)} is not a valid label value`)
    }
    values.add(value)
  }
  switch (operator) {
    case 'In':
    case 'NotIn':
      if (values.size === 0) throw new SyntaxError(`${where}: operator ${operator} needs at least one value`)
      return { key, operator, values }
    case 'Exists':
    case 'DoesNotExist':
      if (values.size > 0) throw new SyntaxError(`${where}: operator ${operator} takes no values`)
      return { key, operator, values }
    default:
      throw new SyntaxError(`${where}: operator ${shown(operator)} must be one of In, NotIn, Exists, DoesNotExist`)
  }
}
