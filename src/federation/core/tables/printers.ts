// Which printer a resource has.

import { textOf } from '../../../kit/api/json/object-shape.ts'
import { parseRfc3339 } from '../../../kube/core/tables/ages.ts'
import { CLUSTER_PRINTERS } from './cluster-printers.ts'
import { CORE_PRINTERS } from './core-printers.ts'
import { AGE_COLUMN, at, NAME_COLUMN, type PrintedObject, type Printer, printerOf, tableColumn } from './printer.ts'
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
