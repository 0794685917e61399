// Values of expressions: those of JSON, where numbers are doubles; `bigint` is CEL's int. Operations on them, and their costs.

/** The expression has no value. */
export class ExpressionFault extends Error {}

/** Maximum cost of all expressions about one token: a hundred thousand steps take a few milliseconds. */
export const MAX_COST = 100_000
/** This many characters of a text cost one step. */
const TEXT_STEP = 64
/** The same if characters are processed one by one. */
const POINT_STEP = 8
/** The same for a search, which compares at most the characters of the text times those of the part. */
const SEARCH_STEP = 1_024
const MAX_EQUAL_DEPTH = 100
const INT_BITS = 64

export class Cost {
  #left: number
  readonly #message: string

  constructor(most: number = MAX_COST, message = 'the expression costs too much') {
    this.#left = most
    this.#message = message
  }

  /** @throws {ExpressionFault} if the total is too high */
  spend(steps: number): void {
    this.#left -= steps
    if (this.#left < 0) throw new ExpressionFault(this.#message)
  }

  text(text: string): string {
    this.spend(1 + text.length / TEXT_STEP)
    return text
  }

  /** Its characters, one by one. */
  points(text: string): string {
    this.spend(text.length / POINT_STEP)
    return text
  }

  search(text: string, part: string): void {
    this.spend((text.length * part.length) / SEARCH_STEP)
  }
}

export class Optional {
  readonly values: readonly [] | readonly [unknown]

  constructor(values: readonly [] | readonly [unknown]) {
    this.values = values
  }
}

/** A value that is neither one of JSON nor a list or a map, such as a duration. */
export abstract class TypedValue {
  /** In messages. */
  abstract readonly type: string

  /** What string() makes of it; undefined = it has no text. */
  get text(): string | undefined {
    return undefined
  }

  abstract equals(other: unknown, cost: Cost): boolean

  /** Negative, zero or positive. */
  orderOf(other: unknown): number {
    return noOverload('_<_', this, other)
  }

  calculate(op: Operator, other: unknown): unknown {
    return noOverload(`_${op}_`, this, other)
  }

  /** A method. */
  abstract call(name: string, args: readonly unknown[], cost: Cost): unknown
}

export const NONE: Optional = new Optional([])

export type CelMap = Readonly<Record<string, unknown>>

export function isMap(value: unknown): value is CelMap {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false
  return !(value instanceof Optional || value instanceof TypedValue)
}

/** The type in messages. */
export function typeName(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'list'
  if (value instanceof Optional) return 'optional'
  if (value instanceof TypedValue) return value.type
  const names: Readonly<Record<string, string>> = { bigint: 'int', number: 'double', boolean: 'bool', object: 'map' }
  return names[typeof value] ?? typeof value
}

/** @throws {ExpressionFault} */
export function noOverload(what: string, ...values: readonly unknown[]): never {
  throw new ExpressionFault(`no such overload: ${what}(${values.map(typeName).join(', ')})`)
}

export function isNumber(value: unknown): value is number | bigint {
  return typeof value === 'number' || typeof value === 'bigint'
}

/** Values of different types are not equal, except numbers. */
export function areEqual(a: unknown, b: unknown, cost: Cost, depth = 0): boolean {
  if (depth > MAX_EQUAL_DEPTH) throw new ExpressionFault('values are too deep to be compared')
  cost.spend(1)
  if (typeof a === 'string' && typeof b === 'string') return a === cost.text(b)
  // Compares int and double as numbers.
  // biome-ignore lint/suspicious/noDoubleEquals: === would tell 1 from 1n
  if (isNumber(a) && isNumber(b)) return a == b
  if (Array.isArray(a) && Array.isArray(b)) {
    return a.length === b.length && a.every((item, i) => areEqual(item, b[i], cost, depth + 1))
  }
  if (a instanceof Optional && b instanceof Optional) {
    return a.values.length === b.values.length && areEqual([...a.values], [...b.values], cost, depth + 1)
  }
  if (a instanceof TypedValue) return a.equals(b, cost)
  if (isMap(a) && isMap(b)) {
    const [keys, others] = [Object.keys(a), Object.keys(b)]
    cost.spend(keys.length + others.length)
    if (keys.length !== others.length) return false
    return keys.every((key) => Object.hasOwn(b, key) && areEqual(a[key], b[key], cost, depth + 1))
  }
  return a === b
}

/** Negative, zero or positive. Texts by their code points. */
export function orderOf(a: unknown, b: unknown, cost: Cost): number {
  if (typeof a === 'string' && typeof b === 'string') {
    return Buffer.compare(Buffer.from(cost.points(a)), Buffer.from(cost.points(b)))
  }
  if (isNumber(a) && isNumber(b)) return a < b ? -1 : a > b ? 1 : 0
  if (typeof a === 'boolean' && typeof b === 'boolean') return Number(a) - Number(b)
  return a instanceof TypedValue ? a.orderOf(b) : noOverload('_<_', a, b)
}

export type Operator = '+' | '-' | '*' | '/' | '%'

/** Also joins texts and lists. */
export function calculate(op: Operator, a: unknown, b: unknown, cost: Cost): unknown {
  if (typeof a === 'bigint' && typeof b === 'bigint') return checkedInt(integers(op, a, b))
  if (typeof a === 'number' && typeof b === 'number' && op !== '%') return doubles(op, a, b)
  if (op === '+' && typeof a === 'string' && typeof b === 'string') return cost.text(a + b)
  if (op === '+' && Array.isArray(a) && Array.isArray(b)) {
    cost.spend(a.length + b.length)
    return [...a, ...b]
  }
  return a instanceof TypedValue ? a.calculate(op, b) : noOverload(`_${op}_`, a, b)
}

function integers(op: Operator, a: bigint, b: bigint): bigint {
  if (op === '+') return a + b
  if (op === '-') return a - b
  if (op === '*') return a * b
  if (b === 0n) throw new ExpressionFault('division by zero')
  return op === '/' ? a / b : a % b
}

function doubles(op: Exclude<Operator, '%'>, a: number, b: number): number {
  if (op === '+') return a + b
  if (op === '-') return a - b
  return op === '*' ? a * b : a / b
}

/** @throws {ExpressionFault} beyond 64 bits */
export function checkedInt(value: bigint): bigint {
  if (BigInt.asIntN(INT_BITS, value) !== value) throw new ExpressionFault('integer overflow')
  return value
}
