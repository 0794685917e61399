// Objects in other forms: as a Table (for `kubectl get`), and as metadata only
// (apimachinery/pkg/apis/meta/v1/types.go, Table and PartialObjectMetadata; apiserver/pkg/endpoints/handlers/response.go).

import type { JsonObject } from '../../kit/api/json/json-object.ts'
import type { PrinterColumn, ResourceKind } from '../../kube/api/resource-kind.ts'
import type { IncludeObject } from '../../kube/core/tables/include-object.ts'
import { findJsonPath, parseJsonPath } from '../../kube/core/tables/json-path.ts'
import { cellOf } from '../../kube/core/tables/printer-cells.ts'

const META_VERSION = 'meta.k8s.io/v1'

/**
 * @param listMeta metadata of the list, or resourceVersion of the one object
 * @param includeObject the part of the object in each row; kube-apiserver's default is Metadata
 */
export function tableOf(
  kind: ResourceKind,
  items: readonly JsonObject[],
  listMeta: JsonObject,
  includeObject: IncludeObject,
  nowMs: number,
): JsonObject {
  return table(kind, items, listMeta, includeObject, nowMs, columnDefinitions(kind))
}

/**
 * One object of a watch, as a Table of one row. Only the first event of a watch carries the columns.
 * @param first whether it is the first
 */
export function tableEventOf(
  kind: ResourceKind,
  object: JsonObject,
  includeObject: IncludeObject,
  nowMs: number,
  first: boolean,
): JsonObject {
  return table(kind, [object], versionOf(object), includeObject, nowMs, first ? columnDefinitions(kind) : null)
}

/** A BOOKMARK of a watch of Tables: no rows, only the resourceVersion. */
export function tableBookmark(kind: ResourceKind, metadata: JsonObject, first: boolean): JsonObject {
  return table(kind, [], metadata, 'None', 0, first ? columnDefinitions(kind) : null)
}

/** The object's metadata, as a separate object. */
export function partialOf(_kind: ResourceKind, object: JsonObject): JsonObject {
  return { kind: 'PartialObjectMetadata', apiVersion: META_VERSION, metadata: object['metadata'] ?? {} }
}

export function partialListOf(kind: ResourceKind, items: readonly JsonObject[], listMeta: JsonObject): JsonObject {
  return {
    kind: 'PartialObjectMetadataList',
    apiVersion: META_VERSION,
    metadata: listMeta,
    items: items.map((item) => partialOf(kind, item)),
  }
}

function table(
  kind: ResourceKind,
  items: readonly JsonObject[],
  metadata: JsonObject,
  includeObject: IncludeObject,
  nowMs: number,
  columnDefinitions: readonly ColumnDefinition[] | null,
): JsonObject {
  const columns = columnsOf(kind)
  return {
    kind: 'Table',
    apiVersion: META_VERSION,
    metadata,
    columnDefinitions,
    rows: items.map((item) => ({
      cells: columns.map((column) => column.cell(item, nowMs)),
      object: rowObject(kind, item, includeObject),
    })),
  }
}

function columnDefinitions(kind: ResourceKind): readonly ColumnDefinition[] {
  return columnsOf(kind).map(({ definition }) => definition)
}

function rowObject(kind: ResourceKind, item: JsonObject, includeObject: IncludeObject): JsonObject | null {
  switch (includeObject) {
    case 'None':
      return null
    case 'Metadata':
      return partialOf(kind, item)
    case 'Object':
      return item
  }
}

function versionOf(object: JsonObject): JsonObject {
  const metadata = object['metadata']
  if (typeof metadata !== 'object' || metadata === null) return {}
  const { resourceVersion } = metadata as { readonly resourceVersion?: unknown }
  return resourceVersion === undefined ? {} : { resourceVersion }
}

// The columns of a Table: the printer columns of the kind, after the name (apiextensions-apiserver
// pkg/registry/customresource/tableconvertor; built-in kinds as in kubernetes/pkg/printers).

/** meta.k8s.io/v1 TableColumnDefinition. */
interface ColumnDefinition {
  readonly name: string
  readonly type: string
  readonly format: string
  readonly description: string
  /** Above 0: only with `-o wide`. */
  readonly priority: number
}

interface Column {
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
function columnsOf(kind: ResourceKind): readonly Column[] {
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
