// The fields of a value, and where it does not fit its schema at all (sigs.k8s.io/structured-merge-diff/v6/typed/{tofieldset,validate}.go).

import { isRecord } from '../../../kit/api/json/object-shape.ts'
import { compareText } from '../../../kit/api/json/sorted-json.ts'
import { type Atom, deduced, kindOfAtom, type ListAtom, type MapAtom, memberAtom } from './atom.ts'
import { FieldSet } from './field-set.ts'
import { goPlain, goSyntax, goTypeName } from './go-syntax.ts'
import { itemElement, memberElement, shownElement } from './path-element.ts'

/** Every leaf, and items that are owned separately. */
export function fieldsOf(atom: Atom, value: unknown): FieldSet {
  const root = new FieldSet()
  collect(atom, value, root)
  return root
}

function collect(atom: Atom, value: unknown, node: FieldSet): void {
  const { map, list, scalar } = deduced(atom, value)
  if (map !== undefined) {
    if (map.atomic) node.member = true
    else if (isRecord(value)) collectMembers(map, value, node)
  } else if (scalar !== undefined) node.member = true
  else if (list !== undefined) {
    if (list.atomic) node.member = true
    else if (Array.isArray(value)) collectItems(list, value, node)
  }
}

function collectMembers(map: MapAtom, value: Readonly<Record<string, unknown>>, node: FieldSet): void {
  for (const [key, member] of Object.entries(value)) {
    const child = node.child(memberElement(key))
    const atom = memberAtom(map, key)
    if (atom !== undefined) collect(atom, member, child)
    const empty = member === null || (isRecord(member) && Object.keys(member).length === 0)
    if (empty || map.field(key) === undefined) child.member = true
  }
}

function collectItems(list: ListAtom, items: readonly unknown[], node: FieldSet): void {
  const elements = items.map((item) => elementOf(list, item))
  const times = new Map<string, number>()
  for (const element of elements) times.set(element, (times.get(element) ?? 0) + 1)
  for (const [at, element] of elements.entries()) {
    const child = node.child(element)
    // Duplicate items are one field.
    if (times.get(element) === 1) collect(list.items, items[at], child)
    child.member = true
  }
}

/** The element of an item that was already validated. */
export function elementOf(list: ListAtom, item: unknown): string {
  const named = itemElement(list, item)
  return 'element' in named ? named.element : 'v:null'
}

/** `.spec.text: expected string, got ...`, one per error. */
export function typeErrors(atom: Atom, value: unknown, path = ''): string[] {
  const { map, list, scalar } = deduced(atom, value)
  const error = (text: string): string[] => [path === '' ? text : `${path}: ${text}`]
  if (value === null) return []
  switch (kindOfAtom({ ...(map && { map }), ...(list && { list }), ...(scalar && { scalar }) })) {
    case 'map':
      if (!isRecord(value)) return error(`expected map, got &{${goPlain(value)}}`)
      return map === undefined ? [] : memberErrors(map, value, path)
    case 'list':
      if (!Array.isArray(value)) return error(`expected list, got &{${goPlain(value)}}`)
      return list === undefined ? [] : itemErrors(list, value, path)
    case 'scalar': {
      const text = scalar === undefined ? undefined : scalarError(scalar, value)
      return text === undefined ? [] : error(text)
    }
  }
}

function scalarError(scalar: NonNullable<Atom['scalar']>, value: unknown): string | undefined {
  switch (scalar) {
    case 'numeric':
      return typeof value === 'number' ? undefined : `expected numeric (int or float), got ${goTypeName(value)}`
    case 'string':
      if (typeof value === 'string') return undefined
      return `expected string, got &value.valueUnstructured{Value:${goSyntax(value)}}`
    case 'boolean':
      return typeof value === 'boolean' ? undefined : `expected boolean, got &{${goPlain(value)}}`
    case 'untyped':
      return typeof value === 'object' ? `expected any scalar, got &{${goPlain(value)}}` : undefined
  }
}

function memberErrors(map: MapAtom, value: Readonly<Record<string, unknown>>, path: string): string[] {
  return Object.keys(value)
    .sort(compareText)
    .flatMap((key) => {
      const atom = memberAtom(map, key)
      const at = `${path}.${key}`
      return atom === undefined ? [`${at}: field not declared in schema`] : typeErrors(atom, value[key], at)
    })
}

function itemErrors(list: ListAtom, items: readonly unknown[], path: string): string[] {
  const errors: string[] = []
  const seen = new Set<string>()
  for (const [at, item] of items.entries()) {
    if (list.atomic) {
      for (const error of typeErrors(list.items, item, `${path}[${at}]`)) errors.push(error)
      continue
    }
    const named = itemElement(list, item)
    // Without an element, nothing below it can be named.
    if ('error' in named) return [...errors, `${path}: element ${at}: ${named.error}`]
    const { element } = named
    if (seen.has(element)) errors.push(`${path}: duplicate entries for key ${shownElement(element)}`)
    seen.add(element)
    for (const error of typeErrors(list.items, item, path + shownElement(element))) errors.push(error)
  }
  return errors
}
