// How Go prints a JSON value as text: what a column of type string shows of it (client-go/util/jsonpath, evalToText).

import { isRecord } from '../../../kit/api/json/object-shape.ts'

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
