// Cells of tables of core kinds that no JSONPath can give, as kubectl shows them of a real cluster
// (k8s.io/kubernetes/pkg/printers/internalversion/printers.go).

import type { JsonObject } from '../kube/json-object.ts'
import { recordOf, textOf } from '../kube/object-shape.ts'
import type { PrinterColumn } from '../ports/resource-kind.ts'
import { EVENTS } from './event-kind.ts'
import { SECRETS } from './secret-kind.ts'

type Cell = (object: JsonObject) => unknown

const CELLS: ReadonlyMap<PrinterColumn, Cell> = new Map([
  ...cellsOf(SECRETS.columns, { Data: (secret) => Object.keys(recordOf(secret['data'])).length }),
  ...cellsOf(EVENTS.columns, {
    'Last Seen': lastSeen,
    Object: involved,
    Source: source,
    Message: (event) => textOf(event['message']).trim(),
    'First Seen': firstSeen,
    Count: (event) => numberAt(recordOf(event['series']), 'count') ?? numberAt(event, 'count') ?? 1,
  }),
])

/**
 * What the cell is computed from the object as: of a column of type `date` the time, else what is shown. undefined: take
 * the column's jsonPath.
 */
export function computedCell(column: PrinterColumn): Cell | undefined {
  return CELLS.get(column)
}

function cellsOf(columns: readonly PrinterColumn[], cells: Readonly<Record<string, Cell>>): [PrinterColumn, Cell][] {
  return columns.flatMap((column): [PrinterColumn, Cell][] => {
    const cell = cells[column.name]
    return cell === undefined ? [] : [[column, cell]]
  })
}

function firstSeen(event: JsonObject): unknown {
  return event['firstTimestamp'] ?? event['eventTime'] ?? null
}

function lastSeen(event: JsonObject): unknown {
  return recordOf(event['series'])['lastObservedTime'] ?? event['lastTimestamp'] ?? firstSeen(event)
}

function involved(event: JsonObject): string {
  const target = recordOf(event['involvedObject'])
  const kind = textOf(target['kind']).toLowerCase()
  const name = textOf(target['name'])
  return name === '' ? kind : `${kind}/${name}`
}

function source(event: JsonObject): string {
  const { component, host } = recordOf(event['source'])
  const program = String(component || event['reportingComponent'] || '')
  const instance = String(host || event['reportingInstance'] || '')
  return instance === '' ? program : `${program}, ${instance}`
}

function numberAt(object: JsonObject, key: string): number | undefined {
  const value = object[key]
  return typeof value === 'number' && value !== 0 ? value : undefined
}
