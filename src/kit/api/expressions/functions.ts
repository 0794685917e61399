// The functions of expressions: what each is called with decides where it is.

import { callAddress } from './addresses.ts'
import { callList } from './lists.ts'
import { parseQuantity, Quantity } from './quantities.ts'
import { callText } from './texts.ts'
import { Duration, durationOf, Timestamp, timestampOf } from './times.ts'
import { type Cost, checkedInt, ExpressionFault, isMap, noOverload, Optional, TypedValue } from './values.ts'

/** Those that read or write a text. */
const CONVERSIONS: ReadonlySet<string> = new Set(['string', 'int', 'double', 'timestamp', 'duration'])
const CONVERSION_STEPS = 20

export function callFunction(name: string, args: readonly unknown[], cost: Cost): unknown {
  const [value] = args
  if (CONVERSIONS.has(name)) cost.spend(CONVERSION_STEPS)
  switch (name) {
    case 'size':
      return sizeOf(value, cost)
    case 'dyn':
      return value
    case 'string':
      return stringOf(value)
    case 'int':
      return intOf(value, cost)
    case 'double':
      return doubleOf(value, cost)
    case 'timestamp':
      return timestampOf(value, cost)
    case 'duration':
      return durationOf(value, cost)
    case 'quantity':
    case 'isQuantity':
      return callQuantity(name, value, cost)
    case 'ip':
    case 'isIP':
    case 'cidr':
    case 'isCIDR':
      return callAddress(name, value, cost)
    case 'sign':
      return value instanceof Quantity ? value.sign : noOverload(name, value)
    default:
      return noOverload(name, ...args)
  }
}

function callQuantity(name: string, value: unknown, cost: Cost): unknown {
  if (typeof value !== 'string') return noOverload(name, value)
  const quantity = parseQuantity(value, cost)
  if (name === 'isQuantity') return quantity !== undefined
  if (quantity === undefined) throw new ExpressionFault('is not a quantity')
  return quantity
}

export function callMethod(name: string, value: unknown, args: readonly unknown[], cost: Cost): unknown {
  if (name === 'size') return sizeOf(value, cost)
  if (value instanceof Optional) return callOptional(name, value)
  if (value instanceof TypedValue) return value.call(name, args, cost)
  if (Array.isArray(value)) return callList(name, value, args, cost)
  if (typeof value !== 'string') return noOverload(name, value, ...args)
  return callText(name, cost.text(value), args, cost)
}

function callOptional(name: string, { values }: Optional): unknown {
  if (name === 'hasValue') return values.length > 0
  if (name !== 'value') return noOverload(name)
  if (values.length === 0) throw new ExpressionFault('optional.none() dereference')
  return values[0]
}

function sizeOf(value: unknown, cost: Cost): bigint {
  if (typeof value === 'string') return BigInt([...cost.points(value)].length)
  if (Array.isArray(value)) return BigInt(value.length)
  if (!isMap(value)) return noOverload('size', value)
  const { length } = Object.keys(value)
  cost.spend(length)
  return BigInt(length)
}

// Conversions between numbers, times and texts, as Go's strconv has them.

/** Exponents of doubles that Go's strconv writes without one (format 'g'). */
const PLAIN = { from: -4, below: 6 }

function stringOf(value: unknown): string {
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

function intOf(value: unknown, cost: Cost): bigint {
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
function doubleOf(value: unknown, cost: Cost): number {
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
