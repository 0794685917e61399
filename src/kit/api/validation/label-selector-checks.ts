// Validates a metav1.LabelSelector: reports whatever LabelSelectorAsSelector would reject.
// k8s.io/apimachinery/pkg/apis/meta/v1/helpers.go

import type { Loose } from '../json/object-shape.ts'
import { type FieldErrors, shown } from './field-errors.ts'
import type { LabelSelector } from './label-selector-schema.ts'
import { contradiction } from './label-selector-sets.ts'
import { isLabelKey, isLabelValue } from './name-syntax.ts'

const OPERATORS = ['In', 'NotIn', 'Exists', 'DoesNotExist']

/** `path` is the selector's path. Duplicate values are accepted. @returns whether the selector is valid */
export function checkLabelSelector(selector: Loose<LabelSelector>, path: string, out: FieldErrors): boolean {
  const before = out.found.length
  checkRequirements(selector, path, out)
  if (out.found.length > before) return false
  const key = contradiction(selector)
  if (key !== undefined) {
    const message = `selects nothing: its requirements of ${key} exclude each other`
    out.warning(path, message, 'keep one of them')
  }
  return true
}

function checkRequirements(selector: Loose<LabelSelector>, path: string, out: FieldErrors): void {
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
      out.invalid(`${at}.operator`, `${shown(operator)} is not known`, `write one of ${OPERATORS.join(', ')}`)
    }
    const needsValues = operator === 'In' || operator === 'NotIn'
    if (needsValues && values.length === 0) {
      out.required(`${at}.values`, `is required by operator ${operator}`, 'add at least one value')
    } else if ((operator === 'Exists' || operator === 'DoesNotExist') && values.length > 0) {
      out.invalid(`${at}.values`, `may not be specified when operator is ${operator}`, 'remove it, or use In')
    }
    for (const [place, value = ''] of values.entries()) checkValue(value, `${at}.values[${place}]`, out)
  }
}

/** An empty selector selects everything. */
export function isEmptySelector({ matchLabels = {}, matchExpressions = [] }: Loose<LabelSelector>): boolean {
  return Object.keys(matchLabels).length === 0 && matchExpressions.length === 0
}

function checkKey(key: string, path: string, out: FieldErrors): void {
  if (isLabelKey(key)) return
  out.invalid(
    path,
    `${shown(key)} is not a valid label key`,
    'write a name of at most 63 characters, optionally after a DNS name and /',
  )
}

function checkValue(value: string, path: string, out: FieldErrors): void {
  if (isLabelValue(value)) return
  const fix = 'use at most 63 letters, digits, -, _ and ., beginning and ending with a letter or digit'
  out.invalid(path, `${shown(value)} is not a valid label value`, fix)
}
