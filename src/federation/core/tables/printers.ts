// Which printer a resource has.

import { elementsOf, membersOf } from '../../../cache/core/bytes/json-members.ts'
import type { ByteRange } from '../../../cache/core/bytes/object-facts.ts'
import { isRecord, recordsOf, textOf } from '../../../kit/api/json/object-shape.ts'
import { parseRfc3339 } from '../../../kube/core/tables/ages.ts'
import { findJsonPath, parseJsonPath } from '../../../kube/core/tables/json-path.ts'
import { cellOf } from '../../../kube/core/tables/printer-cells.ts'
import { CLUSTER_PRINTERS } from './cluster-printers.ts'
import { CORE_PRINTERS } from './core-printers.ts'
import {
  AGE_COLUMN,
  at,
  type CellOf,
  NAME_COLUMN,
  numberOf,
  type PrintedColumn,
  type PrintedObject,
  type Printer,
  printerOf,
  type TableColumn,
  tableColumn,
} from './printer.ts'
import { WORKLOAD_PRINTERS } from './workload-printers.ts'

const PRINTERS: ReadonlyMap<string, Printer> = new Map(
  Object.entries({ ...CORE_PRINTERS, ...WORKLOAD_PRINTERS, ...CLUSTER_PRINTERS }),
)

/** @returns undefined = kube-apiserver has no columns of its own for it */
export function builtInPrinter({ group, resource }: { group: string; resource: string }): Printer | undefined {
  return PRINTERS.get(group === '' ? resource : `${resource}.${group}`)
}

/** Kubernetes' own kinds of which nothing else is said, such as roles (apiserver/pkg/registry/rest/table.go). */
export const PLAIN_PRINTER: Printer = printerOf(NAME_COLUMN, tableColumn('Created At', createdAt, { type: 'date' }))

/** Custom resources whose definition says nothing, or is not known. */
export const CUSTOM_PRINTER: Printer = printerOf(NAME_COLUMN, {
  ...AGE_COLUMN,
  column: { ...AGE_COLUMN.column, type: 'date' },
})

function createdAt(object: PrintedObject): string {
  const time = textOf(at(object, 'metadata.creationTimestamp'))
  // As Go writes the time that is none.
  return parseRfc3339(time) === undefined ? '0001-01-01T00:00:00Z' : time
}

// The columns of custom resources: additionalPrinterColumns of their CustomResourceDefinition
// (apiextensions-apiserver/pkg/registry/customresource/tableconvertor).

/** Each may show the whole object again. */
export const MOST_COLUMNS = 32
/** Characters of a JSONPath. */
const MOST_PATH = 1024

const TYPES: readonly string[] = ['string', 'integer', 'number', 'boolean', 'date'] satisfies TableColumn['type'][]

/**
 * @param definition the JSON of a CustomResourceDefinition. Its schemas are long, and are not parsed.
 * @returns undefined = it has no columns for the version
 * @throws {MalformedError}
 */
export function customPrinter(definition: Buffer, version: string): Printer | undefined {
  const spec = membersOf(definition, 0).get('spec')
  const versions = spec && membersOf(definition, spec.start).get('versions')
  if (versions === undefined) return undefined
  for (const { start } of elementsOf(definition, versions.start)) {
    const members = membersOf(definition, start)
    if (parsed(definition, members.get('name')) !== version) continue
    const columns = recordsOf(parsed(definition, members.get('additionalPrinterColumns'))).slice(0, MOST_COLUMNS)
    return columns.length === 0 ? undefined : printerOf(NAME_COLUMN, ...columns.map(printedColumn))
  }
  return undefined
}

function parsed(json: Buffer, range: ByteRange | undefined): unknown {
  return range === undefined ? undefined : JSON.parse(json.toString('utf8', range.start, range.end))
}

function printedColumn(of: Readonly<Record<string, unknown>>): PrintedColumn {
  const type = TYPES.includes(textOf(of['type'])) ? (of['type'] as TableColumn['type']) : 'string'
  return tableColumn(textOf(of['name']), valueAt(textOf(of['jsonPath']), type), {
    type,
    format: textOf(of['format']),
    description: textOf(of['description']),
    priority: numberOf(of['priority']),
  })
}

function valueAt(jsonPath: string, type: TableColumn['type']): CellOf {
  if (jsonPath.length > MOST_PATH) return () => null
  try {
    const path = parseJsonPath(jsonPath)
    return (object, nowMs) => {
      const [value] = findJsonPath(object, path)
      if (type === 'string') return value === undefined ? null : goText(value)
      return cellOf(type, value, nowMs)
    }
  } catch (error) {
    if (error instanceof SyntaxError) return () => null
    throw error
  }
}

// How Go prints a JSON value as text: what a column of type string shows of it (client-go/util/jsonpath, evalToText).

/** Numbers with a fraction are written with their exponent unless it is between these. */
const LEAST_EXPONENT = -5
const WRITTEN_EXPONENT = 6
/** Go has no greater integers. */
const MOST_INTEGER = 2 ** 63

/** Characters. All columns together show no more than an object may have. */
export const MOST_CELL: number = 64 * 1024

/** @param value of an object that is kept, which is not nested deeply (MAX_JSON_DEPTH) @returns its beginning, if it is long */
export function goText(value: unknown): string {
  if (value === null) return '<no value>'
  if (typeof value === 'string') return value.slice(0, MOST_CELL)
  if (typeof value === 'number') return numberText(value)
  return jsonText(value, MOST_CELL)
    .replace(/[<>&\u2028\u2029]/g, escaped)
    .slice(0, MOST_CELL)
}

function numberText(value: number): string {
  if (Number.isInteger(value) && Math.abs(value) < MOST_INTEGER) return String(value)
  const [digits = '', exponent = ''] = value.toExponential().split('e')
  const power = Number(exponent)
  if (power > LEAST_EXPONENT && power < WRITTEN_EXPONENT) return String(value)
  return `${digits}e${power < 0 ? '-' : '+'}${String(Math.abs(power)).padStart(2, '0')}`
}

/** With sorted keys. @param most characters after which it may end anywhere */
function jsonText(value: unknown, most: number): string {
  if (typeof value === 'string') return JSON.stringify(value.slice(0, most))
  if (!Array.isArray(value) && !isRecord(value)) return JSON.stringify(value)
  const isList = Array.isArray(value)
  const members = isList ? value.entries() : Object.entries(value).sort(byKey)
  let text = isList ? '[' : '{'
  for (const [key, member] of members) {
    if (text.length > most) break
    if (text.length > 1) text += ','
    if (!isList) text += `${JSON.stringify(key)}:`
    text += jsonText(member, most - text.length)
  }
  return text + (isList ? ']' : '}')
}

function byKey([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number {
  return a < b ? -1 : 1
}

function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
}
