// The functions of expressions: CEL's own, and those of its extension for texts (github.com/google/cel-go/ext/strings.go), which counts code points.

import { callAddress } from './addresses.ts'
import { doubleOf, intOf, stringOf } from './conversions.ts'
import { callList } from './lists.ts'
import { parseQuantity, Quantity } from './quantities.ts'
import { durationOf, timestampOf } from './times.ts'
import { type Cost, ExpressionFault, isMap, noOverload, Optional, TypedValue } from './values.ts'

export function callFunction(name: string, args: readonly unknown[], cost: Cost): unknown {
  const [value] = args
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

function callText(name: string, text: string, args: readonly unknown[], cost: Cost): unknown {
  switch (name) {
    case 'lowerAscii':
      return cost.points(text).replaceAll(/[A-Z]+/g, (upper) => upper.toLowerCase())
    case 'upperAscii':
      return cost.points(text).replaceAll(/[a-z]+/g, (lower) => lower.toUpperCase())
    case 'substring':
      return substring(cost.points(text), args)
    default: {
      const [first, second] = args
      return typeof first === 'string'
        ? callSearch(name, text, cost.text(first), second, cost)
        : noOverload(name, text, ...args)
    }
  }
}

function callSearch(name: string, text: string, part: string, by: unknown, cost: Cost): unknown {
  if (name !== 'startsWith' && name !== 'endsWith') cost.search(text, part)
  switch (name) {
    case 'startsWith':
      return text.startsWith(part)
    case 'endsWith':
      return text.endsWith(part)
    case 'contains':
      return text.includes(part)
    case 'indexOf': {
      const at = text.indexOf(part)
      return at < 0 ? -1n : BigInt([...cost.points(text.slice(0, at))].length)
    }
    case 'lastIndexOf': {
      const at = text.lastIndexOf(part)
      return at < 0 ? -1n : BigInt([...cost.points(text.slice(0, at))].length)
    }
    case 'split': {
      const parts = part === '' ? [...cost.points(text)] : text.split(part)
      cost.spend(parts.length)
      return parts
    }
    case 'replace':
      return typeof by === 'string' ? replace(text, part, by, cost) : noOverload(name, text, part, by)
    default:
      return noOverload(name, text, part)
  }
}

/** An empty `part` matches before, between and after all characters. */
function replace(text: string, part: string, by: string, cost: Cost): string {
  const parts = part === '' ? ['', ...cost.points(text), ''] : text.split(part)
  // Charged before the result is built, which may be much longer than the text.
  cost.spend(parts.length + (parts.length * by.length) / 64)
  return parts.join(by)
}

function substring(text: string, [start, end]: readonly unknown[]): string {
  const points = [...text]
  const [from, to] = [indexIn(start), end === undefined ? points.length : indexIn(end)]
  if (from < 0 || from > points.length || to < from || to > points.length) {
    throw new ExpressionFault('index out of range')
  }
  return points.slice(from, to).join('')
}

function indexIn(value: unknown): number {
  return typeof value === 'bigint' ? Number(value) : noOverload('substring', value)
}

function sizeOf(value: unknown, cost: Cost): bigint {
  if (typeof value === 'string') return BigInt([...cost.points(value)].length)
  if (Array.isArray(value)) return BigInt(value.length)
  if (!isMap(value)) return noOverload('size', value)
  const { length } = Object.keys(value)
  cost.spend(length)
  return BigInt(length)
}
