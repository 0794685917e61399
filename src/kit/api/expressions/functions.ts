// The functions of expressions: what each is called with decides where it is.

import { callAddress } from './addresses.ts'
import { doubleOf, intOf, stringOf } from './conversions.ts'
import { callList } from './lists.ts'
import { parseQuantity, Quantity } from './quantities.ts'
import { callText } from './texts.ts'
import { durationOf, timestampOf } from './times.ts'
import { type Cost, ExpressionFault, isMap, noOverload, Optional, TypedValue } from './values.ts'

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
