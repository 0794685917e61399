// The columns of custom resources: additionalPrinterColumns of their CustomResourceDefinition
// (apiextensions-apiserver/pkg/registry/customresource/tableconvertor).

import { elementsOf, membersOf } from '../../../cache/core/bytes/json-members.ts'
import type { ByteRange } from '../../../cache/core/bytes/object-facts.ts'
import { recordsOf, textOf } from '../../../kit/api/json/object-shape.ts'
import { findJsonPath, parseJsonPath } from '../../../kube/core/tables/json-path.ts'
import { cellOf } from '../../../kube/core/tables/printer-cells.ts'
import { goText } from './go-text.ts'
import {
  type CellOf,
  NAME_COLUMN,
  numberOf,
  type PrintedColumn,
  type Printer,
  printerOf,
  type TableColumn,
  tableColumn,
} from './printer.ts'

/** Each may show the whole object again. */
export const MOST_COLUMNS = 32
/** Characters of a JSONPath. */
export const MOST_PATH = 1024

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
