// Typed access to result rows: a column that does not match the schema means a damaged database.

import type { DatabaseSync, SQLOutputValue, StatementSync } from 'node:sqlite'
import { StoreDamaged } from './errors.ts'

export type StoreRow = Readonly<Record<string, SQLOutputValue>>

export function columnText(row: StoreRow, column: string): string {
  const value = row[column]
  if (typeof value !== 'string') throw damaged(column)
  return value
}

export function columnInteger(row: StoreRow, column: string): number {
  const value = row[column]
  if (typeof value !== 'number') throw damaged(column)
  return value
}

/** Text, or the bytes of a sealed body; undefined for NULL. */
export function columnBody(row: StoreRow, column: string): string | Uint8Array | undefined {
  const value = row[column]
  if (value === null) return undefined
  if (typeof value !== 'string' && !(value instanceof Uint8Array)) throw damaged(column)
  return value
}

/** First column of the first row, for example of a pragma. */
export function singleValue(db: DatabaseSync, sql: string): SQLOutputValue | undefined {
  const row = db.prepare(sql).get()
  return row === undefined ? undefined : Object.values(row)[0]
}

/** The row of a statement that always returns one. */
export function onlyRow(statement: StatementSync): StoreRow {
  const row = statement.get()
  if (row === undefined) throw new StoreDamaged('a row is missing')
  return row
}

function damaged(column: string): StoreDamaged {
  return new StoreDamaged(`column ${column} holds something else`)
}
