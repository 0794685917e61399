// Objects in other forms: as a Table (for `kubectl get`), and as metadata only
// (apimachinery/pkg/apis/meta/v1/types.go, Table and PartialObjectMetadata; apiserver/pkg/endpoints/handlers/response.go).

import type { JsonObject } from '../../kit/api/json/json-object.ts'
import type { PrinterColumn, ResourceKind } from '../../kube/api/resource-kind.ts'
import { findJsonPath, parseJsonPath } from './json-path.ts'

const SECOND = 1000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
/** RFC 3339 as parsed by Go's time.RFC3339: seconds are required, fractions and an offset allowed. */
const RFC3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/

export type IncludeObject = 'None' | 'Metadata' | 'Object'

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

/**
 * Age of `timestamp` as `kubectl get` shows it (apimachinery/pkg/util/duration/duration.go, HumanDuration): `5m12s`; `<unknown>` if it is
 * missing, `<invalid>` if it is not a time.
 */
export function ageOf(timestamp: unknown, nowMs: number): string {
  if (timestamp === undefined || timestamp === null || timestamp === '') return '<unknown>'
  const ms = parseRfc3339(timestamp)
  return ms === undefined ? '<invalid>' : humanDuration(nowMs - ms)
}

/** Milliseconds since the epoch; undefined = not an RFC 3339 time. */
export function parseRfc3339(timestamp: unknown): number | undefined {
  if (typeof timestamp !== 'string' || !RFC3339.test(timestamp)) return undefined
  const ms = Date.parse(timestamp)
  return Number.isNaN(ms) ? undefined : ms
}

/** At most two units, the finer one only where it matters. Slightly in the future is now; further ahead is `<invalid>`. */
export function humanDuration(ms: number): string {
  const seconds = Math.trunc(ms / SECOND)
  if (seconds < -1) return '<invalid>'
  if (seconds < 0) return '0s'
  if (seconds < 120) return `${seconds}s`
  const minutes = Math.trunc(ms / MINUTE)
  if (minutes < 10) return twoUnits(minutes, 'm', seconds % 60, 's')
  if (minutes < 180) return `${minutes}m`
  const hours = Math.trunc(ms / HOUR)
  if (hours < 8) return twoUnits(hours, 'h', minutes % 60, 'm')
  if (hours < 48) return `${hours}h`
  const days = Math.trunc(hours / 24)
  if (hours < 24 * 8) return twoUnits(days, 'd', hours % 24, 'h')
  if (days < 365 * 2) return `${days}d`
  const years = Math.trunc(days / 365)
  return years < 8 ? twoUnits(years, 'y', days % 365, 'd') : `${years}y`
}

function twoUnits(coarse: number, coarseUnit: string, fine: number, fineUnit: string): string {
  return fine === 0 ? `${coarse}${coarseUnit}` : `${coarse}${coarseUnit}${fine}${fineUnit}`
}
