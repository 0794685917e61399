// The columns of a Table: the printer columns of the kind, after the name (apiextensions-apiserver
// pkg/registry/customresource/tableconvertor; the kinds of Kubernetes itself as kubernetes/pkg/printers has them).

import type { JsonObject } from '../../api/kube/json-object.ts'
import type { PrinterColumn, ResourceKind } from '../../api/ports/resource-kind.ts'
import { ageOf } from './ages.ts'
import { findJsonPath, parseJsonPath } from './json-path.ts'

/** meta.k8s.io/v1 TableColumnDefinition. */
export interface ColumnDefinition {
  readonly name: string
  readonly type: string
  readonly format: string
  readonly description: string
  /** Above 0: only with `-o wide`. */
  readonly priority: number
}

export interface Column {
  readonly definition: ColumnDefinition
  /** null = empty. */
  cell(object: JsonObject, nowMs: number): string | number | boolean | null
}

const NAME: PrinterColumn = {
  name: 'Name',
  type: 'string',
  format: 'name',
  description: 'Name of the object, unique among the objects of its kind in its namespace.',
  jsonPath: '.metadata.name',
}

const remembered = new WeakMap<ResourceKind, readonly Column[]>()

/** In the order in which kubectl prints them. The name comes first, unless the kind places it elsewhere. */
export function columnsOf(kind: ResourceKind): readonly Column[] {
  const known = remembered.get(kind)
  if (known !== undefined) return known
  const hasName = kind.columns.some(({ format }) => format === 'name')
  const columns = (hasName ? kind.columns : [NAME, ...kind.columns]).map(columnOf)
  remembered.set(kind, columns)
  return columns
}

function columnOf(column: PrinterColumn): Column {
  const { name, type, format = '', priority = 0, jsonPath } = column
  const description = column.description ?? `Custom resource definition column (in JSONPath format): ${jsonPath}`
  const value = column.cell ?? firstAt(jsonPath)
  return {
    definition: { name, type, format, description, priority },
    cell: (object, nowMs) => cellOf(type, value(object), nowMs),
  }
}

function firstAt(jsonPath: string): (object: JsonObject) => unknown {
  const path = parseJsonPath(jsonPath)
  return (object) => findJsonPath(object, path)[0]
}

/** The server turns a time into an age: the client only prints text. */
function cellOf(type: PrinterColumn['type'], value: unknown, nowMs: number): string | number | boolean | null {
  if (value === undefined || value === null) return null
  switch (type) {
    case 'string':
      return typeof value === 'object' ? JSON.stringify(value) : String(value)
    case 'integer':
      return typeof value === 'number' ? Math.trunc(value) : null
    case 'number':
      return typeof value === 'number' ? value : null
    case 'boolean':
      return typeof value === 'boolean' ? value : null
    case 'date':
      return typeof value === 'string' ? ageOf(value, nowMs) : null
  }
}
