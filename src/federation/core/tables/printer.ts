// What the columns of a Table are made of: a name, a type, and the cell that an object has there.

import { listOf, recordOf, recordsOf, textOf } from '../../../kit/api/json/object-shape.ts'
import { ageOf } from '../../../kube/core/tables/ages.ts'

/** Parsed; nothing is known of its shape. */
export type PrintedObject = Readonly<Record<string, unknown>>

export type Cell = string | number | boolean | null

/** TableColumnDefinition of meta.k8s.io/v1. */
export interface TableColumn {
  readonly name: string
  readonly type: 'string' | 'integer' | 'number' | 'boolean' | 'date'
  /** 'name' = the cell is the name of the object. */
  readonly format: string
  readonly description: string
  /** Above 0: only with `-o wide`. */
  readonly priority: number
}

export interface Printer {
  readonly columns: readonly TableColumn[]
  /** One for each column. */
  cells(object: PrintedObject, nowMs: number): readonly Cell[]
  /** That the object is over, for instance. Default: there is nothing to say. */
  conditions?(object: PrintedObject): readonly object[] | undefined
}

export type CellOf = (object: PrintedObject, nowMs: number) => Cell

export interface PrintedColumn {
  readonly column: TableColumn
  readonly cell: CellOf
}

export function printerOf(...columns: readonly PrintedColumn[]): Printer {
  return {
    columns: columns.map(({ column }) => column),
    cells: (object, nowMs) => columns.map(({ cell }) => cell(object, nowMs)),
  }
}

/** Kubernetes' own descriptions are whole paragraphs of its API reference, which kubectl does not show. */
export function tableColumn(name: string, cell: CellOf, more: Partial<Omit<TableColumn, 'name'>> = {}): PrintedColumn {
  return { column: { name, type: 'string', format: '', description: '', priority: 0, ...more }, cell }
}

export function countColumn(name: string, cell: CellOf): PrintedColumn {
  return tableColumn(name, cell, { type: 'integer' })
}

export function wideColumn(name: string, cell: CellOf): PrintedColumn {
  return tableColumn(name, cell, { priority: 1 })
}

/** What an object has at a path; undefined = a step is missing. */
export function at(object: unknown, path: string): unknown {
  let value = object
  for (const key of path.split('.')) value = recordOf(value)[key]
  return value
}

/** The text at a path. @param absent instead of an empty one */
export function textCell(path: string, absent = ''): CellOf {
  return (object) => textOf(at(object, path)) || absent
}

/** The number at a path, or 0, as Go has it. */
export function numberCell(path: string): CellOf {
  return (object) => numberOf(at(object, path))
}

/** How many items or keys there are. */
export function sizeOf(value: unknown): number {
  return Array.isArray(value) ? value.length : Object.keys(recordOf(value)).length
}

export function sizeCell(path: string): CellOf {
  return (object) => sizeOf(at(object, path))
}

/** The time since that at a path. */
export function ageCell(path: string): CellOf {
  return (object, nowMs) => ageOf(at(object, path), nowMs)
}

export const objectName: CellOf = textCell('metadata.name')
export const NAME_COLUMN: PrintedColumn = tableColumn('Name', objectName, { format: 'name' })
export const AGE_COLUMN: PrintedColumn = tableColumn('Age', ageCell('metadata.creationTimestamp'))

export function numberOf(value: unknown): number {
  return typeof value === 'number' ? value : 0
}

/** A quantity, or an IntOrString, as kube-apiserver has written it. */
export function writtenOf(value: unknown, absent: string): string {
  return typeof value === 'string' || typeof value === 'number' ? String(value) : absent
}

/** The texts that items of a list have under a key. */
export function textsOf(items: unknown, key: string): readonly string[] {
  return recordsOf(items).map((item) => textOf(item[key]))
}

/** A condition is there. @param status undefined = any */
export function hasCondition(object: PrintedObject, type: string, status: string | undefined): boolean {
  const found = recordsOf(at(object, 'status.conditions')).find((condition) => condition['type'] === type)
  return found !== undefined && (status === undefined || found['status'] === status)
}

export function isDeleted(object: PrintedObject): boolean {
  return textOf(at(object, 'metadata.deletionTimestamp')) !== ''
}

/** The first of many. @param absent instead of none */
export function firstOf(items: readonly string[], most: number, absent: string): string {
  const shown = items.slice(0, most).join(',')
  return items.length > most ? `${shown} + ${items.length - most} more...` : shown || absent
}

/** Labels as kubectl shows them (apimachinery/pkg/labels, FormatLabels). */
export function labelsText(labels: unknown): string {
  const pairs = Object.entries(recordOf(labels)).map(([key, value]) => `${key}=${textOf(value)}`)
  return pairs.sort().join(',') || '<none>'
}

export function labelsCell(path: string): CellOf {
  return (object) => labelsText(at(object, path))
}

/** A LabelSelector (apimachinery/pkg/apis/meta/v1/helpers.go). @param absent for one that selects nothing, or everything */
export function selectorCell(path: string, absent: string, invalid: string): CellOf {
  return (object) => selectorText(at(object, path), absent, invalid)
}

function selectorText(value: unknown, absent: string, invalid: string): string {
  const { matchLabels, matchExpressions } = recordOf(value)
  const equal = Object.entries(recordOf(matchLabels)).map(([key, one]) => ({ key, term: `${key}=${textOf(one)}` }))
  const others = recordsOf(matchExpressions).map((expression) => {
    const key = textOf(expression['key'])
    return { key, term: termOf(key, textOf(expression['operator']), listOf(expression['values']).map(textOf)) }
  })
  const terms = [...equal, ...others].sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0))
  if (terms.some(({ term }) => term === undefined)) return invalid
  return terms.map(({ term }) => term).join(',') || absent
}

function termOf(key: string, operator: string, values: readonly string[]): string | undefined {
  const sorted = [...values].sort().join(',')
  switch (operator) {
    case 'In':
      return `${key} in (${sorted})`
    case 'NotIn':
      return `${key} notin (${sorted})`
    case 'Exists':
      return key
    case 'DoesNotExist':
      return `!${key}`
    default:
      return undefined
  }
}

/** What a template of pods has in it. */
export function containers(template: string): readonly PrintedColumn[] {
  const path = `${template}.spec.containers`
  return [
    wideColumn('Containers', (object) => textsOf(at(object, path), 'name').join(',')),
    wideColumn('Images', (object) => textsOf(at(object, path), 'image').join(',')),
  ]
}
