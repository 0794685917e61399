// Conversions between numbers, times and texts, as Go's strconv has them.

import { Duration, Timestamp } from './times.ts'
import { type Cost, checkedInt, ExpressionFault, noOverload, TypedValue } from './values.ts'

/** Exponents of doubles that Go's strconv writes without one (format 'g'). */
const PLAIN = { from: -4, below: 6 }

export function stringOf(value: unknown): string {
  if (typeof value === 'string') return value
  if (typeof value === 'boolean' || typeof value === 'bigint') return String(value)
  if (value instanceof TypedValue) return value.text ?? noOverload('string', value)
  if (typeof value !== 'number') return noOverload('string', value)
  if (!Number.isFinite(value)) return Number.isNaN(value) ? 'NaN' : value > 0 ? '+Inf' : '-Inf'
  const [digits = '', exponent = '0'] = value.toExponential().split('e')
  const size = Number(exponent)
  if (size >= PLAIN.from && size < PLAIN.below) return Object.is(value, -0) ? '-0' : String(value)
  return `${digits}e${size < 0 ? '-' : '+'}${String(Math.abs(size)).padStart(2, '0')}`
}

const MAX_SAFE_INT = 2 ** 63
/** An int has at most as many. */
const MAX_DIGITS = 19

export function intOf(value: unknown, cost: Cost): bigint {
  if (typeof value === 'bigint') return value
  if (typeof value === 'string') {
    if (!/^[+-]?\d+$/.test(cost.text(value))) throw new ExpressionFault('cannot be converted to int')
    const digits = value.replace(/^[+-]?0*/, '')
    if (digits.length > MAX_DIGITS) throw new ExpressionFault('integer overflow')
    return checkedInt(value.startsWith('-') ? -BigInt(digits) : BigInt(digits))
  }
  if (value instanceof Timestamp) return value.seconds
  if (value instanceof Duration) return value.nanos
  if (typeof value !== 'number') return noOverload('int', value)
  if (!(Math.abs(value) < MAX_SAFE_INT)) throw new ExpressionFault('integer overflow')
  return BigInt(Math.trunc(value))
}

const NOT_FINITE = /^(?:[+-]?inf(?:inity)?|nan)$/i
const DECIMAL = /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?$/i

/** Hexadecimal numbers are left out. */
export function doubleOf(value: unknown, cost: Cost): number {
  if (typeof value === 'number') return value
  if (typeof value === 'bigint') return Number(value)
  if (typeof value !== 'string') return noOverload('double', value)
  if (NOT_FINITE.test(cost.text(value))) {
    return /nan/i.test(value) ? Number.NaN : value.startsWith('-') ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY
  }
  const number = DECIMAL.test(value) ? Number(value) : Number.NaN
  if (!Number.isFinite(number)) throw new ExpressionFault('cannot be converted to double')
  return number
}
