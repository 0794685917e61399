// Field selectors (apimachinery/pkg/fields/selector.go): `metadata.name=a,type!=Opaque`.

import type { JsonObject } from '../../kit/api/json/json-object.ts'
import { isRecord } from '../../kit/api/json/object-shape.ts'
import type { ResourceKind } from '../../kube/api/resource-kind.ts'
import { isBuiltIn } from '../objects/write-object-decode.ts'

interface SelectorTerm {
  readonly field: string
  readonly value: string
  readonly negated: boolean
}

export type FieldSelector = readonly SelectorTerm[]

/** Selectors of core kinds for fields elsewhere in the object (pkg/registry/core/event/strategy.go). */
const ELSEWHERE: ReadonlyMap<string, string> = new Map([
  ['source', 'source.component'],
  ['name', 'metadata.name'],
])

/** @throws {SyntaxError} with kube-apiserver's message, also for a field that the kind doesn't support */
export function parseFieldSelector(text: string, kind: ResourceKind): FieldSelector {
  const terms: SelectorTerm[] = []
  for (const part of splitTerms(text)) {
    if (part === '') continue
    const term = parseTerm(part)
    if (term === undefined) throw new SyntaxError(`invalid selector: '${text}'; can't understand '${part}'`)
    checkField(term.field, kind)
    terms.push(term)
  }
  return terms
}

export function fieldsMatch(selector: FieldSelector, object: JsonObject): boolean {
  return selector.every(({ field, value, negated }) => (fieldOf(object, field) === value) !== negated)
}

function checkField(field: string, kind: ResourceKind): void {
  const { selectableFields, namespaced } = kind
  if (field === 'metadata.name' || selectableFields.includes(field)) return
  if (field === 'metadata.namespace' && namespaced) return
  // runtime.DefaultMetaV1FieldSelectorConversion, for built-in kinds without selectable fields of their own (Lease).
  if (isBuiltIn(kind) && selectableFields.length === 0) {
    throw new SyntaxError(
      `${JSON.stringify(field)} is not a known field selector: only "metadata.name", "metadata.namespace"`,
    )
  }
  throw new SyntaxError(`field label not supported: ${field}`)
}

/** The field as text; '' if absent. */
function fieldOf(object: JsonObject, field: string): string {
  let value: unknown = object
  for (const key of (ELSEWHERE.get(field) ?? field).split('.')) {
    value = isRecord(value) && Object.hasOwn(value, key) ? value[key] : undefined
  }
  if (typeof value === 'string') return value
  return typeof value === 'number' || typeof value === 'boolean' ? String(value) : ''
}

function parseTerm(part: string): SelectorTerm | undefined {
  for (let at = 0; at < part.length; at++) {
    const operator = operatorAt(part, at)
    if (operator === '') continue
    const value = unescapeValue(part.slice(at + operator.length))
    return { field: part.slice(0, at), value, negated: operator === '!=' }
  }
  return undefined
}

function operatorAt(part: string, at: number): '' | '!=' | '==' | '=' {
  if (part.startsWith('!=', at)) return '!='
  if (part.startsWith('==', at)) return '=='
  return part.charAt(at) === '=' ? '=' : ''
}

/** Splits at unescaped commas. */
function splitTerms(selector: string): string[] {
  const terms: string[] = []
  let start = 0
  for (let at = 0; at < selector.length; at++) {
    const character = selector.charAt(at)
    if (character === '\\') at++
    else if (character === ',') {
      terms.push(selector.slice(start, at))
      start = at + 1
    }
  }
  terms.push(selector.slice(start))
  return terms
}

/** Backslash escapes of `\`, `,` and `=`. @throws {SyntaxError} for a lone backslash or any other escape */
function unescapeValue(value: string): string {
  let plain = ''
  for (let at = 0; at < value.length; at++) {
    let character = value.charAt(at)
    if (character === ',' || character === '=') {
      throw new SyntaxError(`invalid field selector: unescaped character in value: ${character.charCodeAt(0)}`)
    }
    if (character === '\\') {
      character = value.charAt(++at)
      if (character !== '\\' && character !== ',' && character !== '=') {
        throw new SyntaxError(`invalid field selector: invalid escape sequence: \\${character}`)
      }
    }
    plain += character
  }
  return plain
}
