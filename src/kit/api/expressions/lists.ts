// Functions of lists (k8s.io/apiserver/pkg/cel/library/lists.go), and of lists as sets (github.com/google/cel-go/ext/sets.go).

import { Duration } from './times.ts'
import { areEqual, type Cost, calculate, ExpressionFault, isNumber, noOverload, orderOf, TypedValue } from './values.ts'

type List = readonly unknown[]

export function callList(name: string, list: List, args: List, cost: Cost): unknown {
  const [arg] = args
  switch (name) {
    case 'join':
      return join(list, arg ?? '', cost)
    case 'indexOf':
      return BigInt(list.findIndex((item) => areEqual(item, arg, cost)))
    case 'lastIndexOf':
      return BigInt(list.findLastIndex((item) => areEqual(item, arg, cost)))
    case 'isSorted':
      return list.every((item, i) => ordered(name, item) && (i === 0 || compare(list[i - 1], item, cost) <= 0))
    case 'min':
    case 'max':
      return extreme(name, list, cost)
    case 'sum':
      return sum(list, cost)
    default:
      return noOverload(name, list, ...args)
  }
}

export function callSets(name: string, [a, b]: List, cost: Cost): boolean {
  if (!Array.isArray(a) || !Array.isArray(b)) return noOverload(`sets.${name}`, a, b)
  switch (name) {
    case 'contains':
      return contains(a, b, cost)
    case 'equivalent':
      return contains(a, b, cost) && contains(b, a, cost)
    case 'intersects':
      return a.some((item) => has(b, item, cost))
    default:
      return noOverload(`sets.${name}`, a, b)
  }
}

function contains(list: List, items: List, cost: Cost): boolean {
  return items.every((item) => has(list, item, cost))
}

function has(list: List, wanted: unknown, cost: Cost): boolean {
  return list.some((item) => areEqual(item, wanted, cost))
}

function join(items: List, by: unknown, cost: Cost): string {
  if (typeof by !== 'string') return noOverload('join', items, by)
  const texts = items.map((item) => (typeof item === 'string' ? cost.text(item) : noOverload('join', item)))
  cost.spend((texts.length * by.length) / 64)
  return texts.join(by)
}

function extreme(name: 'min' | 'max', list: List, cost: Cost): unknown {
  if (list.length === 0) throw new ExpressionFault(`${name} called on empty list`)
  const better = name === 'min' ? 1 : -1
  return list.reduce((best, item) => (ordered(name, item) && compare(best, item, cost) === better ? item : best))
}

/** @throws {ExpressionFault} */
function ordered(name: string, item: unknown): true {
  const isOrdered =
    isNumber(item) || typeof item === 'string' || typeof item === 'boolean' || item instanceof TypedValue
  return isOrdered || noOverload(name, item)
}

/** What cannot be compared counts as the same in kube-apiserver. */
function compare(a: unknown, b: unknown, cost: Cost): number {
  cost.spend(1)
  const isSameKind =
    (isNumber(a) && isNumber(b)) ||
    (a instanceof TypedValue && b instanceof TypedValue ? a.type === b.type : typeof a === typeof b)
  return isSameKind ? Math.sign(orderOf(a, b, cost)) : 0
}

/** @param type of the items that there could be; '' = any */
export function emptySum(type: string): unknown {
  return type === 'double' ? 0 : type === 'google.protobuf.Duration' ? new Duration(0n) : 0n
}

function sum(list: List, cost: Cost): unknown {
  const [first] = list
  const zero = typeof first === 'number' ? 0 : first instanceof Duration ? new Duration(0n) : 0n
  return list.reduce((total, item) => {
    cost.spend(1)
    return calculate('+', total, item, cost)
  }, zero)
}
