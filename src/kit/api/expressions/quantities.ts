// Quantities of Kubernetes in expressions: k8s.io/apimachinery/pkg/api/resource (quantity.go, amount.go), which has 64 bits and a power of ten, or, for
// what does not fit, a decimal of any size. Which of the two it is shows: only the first is an integer, and adding up changes a decimal in place.

import { type Cost, ExpressionFault, noOverload, TypedValue } from './values.ts'

/** `value` * 10^`exponent`. */
interface Amount {
  value: bigint
  exponent: number
}

/** Maximum digits, and exponent in both directions, of a number that is calculated with. */
const MAX_DIGITS = 200
const BITS = 64
/** Digits that surely fit in 64 bits. */
const SAFE_DIGITS = 18
const BINARY_DIGITS = 15
const NANO = -9
const MAX_INT = 2n ** 63n - 1n

export class Quantity extends TypedValue {
  readonly type = 'kubernetes.Quantity'
  #amount: Amount
  #isDecimal: boolean
  /** kube-apiserver does not compare a result with ==, if it stands on the right. */
  readonly #isResult: boolean

  constructor(amount: Amount, isDecimal: boolean, isResult = false) {
    super()
    this.#amount = amount
    this.#isDecimal = isDecimal
    this.#isResult = isResult
  }

  override equals(other: unknown, cost: Cost): boolean {
    cost.spend(QUANTITY_STEPS)
    if (!(other instanceof Quantity) || other.#isResult) return noOverload('_==_', this, other)
    return compare(this.#amount, other.#amount) === 0
  }

  override call(name: string, args: readonly unknown[], cost: Cost): unknown {
    cost.spend(QUANTITY_STEPS)
    const [other] = args
    if (args.length === 0) return this.#ask(name)
    if (typeof other === 'bigint' && (name === 'add' || name === 'sub')) {
      return this.#sum(name, new Quantity({ value: other, exponent: 0 }, false))
    }
    if (!(other instanceof Quantity)) return noOverload(name, this, ...args)
    if (name === 'add' || name === 'sub') return this.#sum(name, other)
    const order = this.#compare(other)
    if (name === 'compareTo') return BigInt(order)
    if (name === 'isGreaterThan') return order > 0
    return name === 'isLessThan' ? order < 0 : noOverload(name, this, other)
  }

  get sign(): bigint {
    const { value } = this.#amount
    return value === 0n ? 0n : value < 0n ? -1n : 1n
  }

  #ask(name: string): unknown {
    if (name === 'asApproximateFloat') return this.#float
    const integer = this.#integer
    if (name === 'isInteger') return integer !== undefined
    if (name !== 'asInteger') return noOverload(name, this)
    if (integer === undefined) throw new ExpressionFault('cannot convert value to integer')
    return integer
  }

  get #float(): number {
    const { value, exponent } = this.#amount
    return exponent === 0 ? Number(value) : Number(value) * powerOfTen(exponent)
  }

  get #integer(): bigint | undefined {
    const { value, exponent } = this.#amount
    if (this.#isDecimal || exponent < 0) return undefined
    return scaled(value, exponent)
  }

  #compare(other: Quantity): number {
    const order = compare(this.#amount, other.#amount)
    if (other.#isDecimal) this.#isDecimal = true
    return order
  }

  #sum(name: 'add' | 'sub', other: Quantity): Quantity {
    const { value, exponent } = other.#amount
    const addend = { value: name === 'add' ? value : -value, exponent }
    if (!(this.#isDecimal || other.#isDecimal)) {
      const small = smallSum(this.#amount, addend)
      if (small !== undefined) return new Quantity(small, false, true)
    }
    const sum = decimalSum(this.#amount, addend)
    if (this.#isDecimal) Object.assign(this.#amount, sum)
    return new Quantity(this.#isDecimal ? this.#amount : sum, true, true)
  }
}

/** Cost of each operation with numbers of up to two hundred digits. */
const QUANTITY_STEPS = 100

/** The power that Go's math.Pow10 has, which is the product or quotient of two. */
function powerOfTen(exponent: number): number {
  const table = 32
  const size = Math.abs(exponent)
  const [coarse, fine] = [table * Math.floor(size / table), size % table]
  if (exponent < 0) return size > 323 ? 0 : Number(`1e-${coarse}`) / Number(`1e${fine}`)
  return size > 308 ? Number.POSITIVE_INFINITY : Number(`1e${coarse}`) * Number(`1e${fine}`)
}

/** undefined = it does not fit in 64 bits. */
function scaled(value: bigint, exponent: number): bigint | undefined {
  if (value === 0n) return 0n
  if (exponent > SAFE_DIGITS) return undefined
  return inBits(value * 10n ** BigInt(exponent))
}

function inBits(value: bigint): bigint | undefined {
  return BigInt.asIntN(BITS, value) === value ? value : undefined
}

function smallSum(a: Amount, b: Amount): Amount | undefined {
  if (b.value === 0n) return { ...a }
  if (a.value === 0n) return { ...b }
  const exponent = Math.min(a.exponent, b.exponent)
  const [left, right] = [scaled(a.value, a.exponent - exponent), scaled(b.value, b.exponent - exponent)]
  const value = left === undefined || right === undefined ? undefined : inBits(left + right)
  return value === undefined ? undefined : { value, exponent }
}

function decimalSum(a: Amount, b: Amount): Amount {
  const exponent = Math.min(a.exponent, b.exponent)
  return { value: aligned(a, exponent) + aligned(b, exponent), exponent }
}

function compare(a: Amount, b: Amount): number {
  const exponent = Math.min(a.exponent, b.exponent)
  const [left, right] = [aligned(a, exponent), aligned(b, exponent)]
  return left < right ? -1 : left > right ? 1 : 0
}

function aligned({ value, exponent }: Amount, to: number): bigint {
  if (exponent - to > MAX_DIGITS) throw new ExpressionFault('the quantity is too large')
  return value * 10n ** BigInt(exponent - to)
}

const PARTS = /^([+-]?)(\d*)(?:\.(\d*))?([^\d.][^.]*)?$/
const EXPONENT = /^[eE]([+-]?\d{1,19})$/
const POWERS: Readonly<Record<string, number>> = { n: -9, u: -6, m: -3, '': 0, k: 3, M: 6, G: 9, T: 12, P: 15, E: 18 }
const BINARY_POWERS: Readonly<Record<string, number>> = { Ki: 10, Mi: 20, Gi: 30, Ti: 40, Pi: 50, Ei: 60 }

/** undefined = it is none. */
export function parseQuantity(text: string, cost: Cost): Quantity | undefined {
  const [all, sign = '', whole = '', fraction = '', suffix = ''] = PARTS.exec(cost.points(text)) ?? []
  if (all === undefined || text === '') return undefined
  if (text.length > MAX_DIGITS) throw new ExpressionFault('the quantity is too long')
  const power = Object.hasOwn(POWERS, suffix) ? POWERS[suffix] : decimalPower(suffix)
  const binary = Object.hasOwn(BINARY_POWERS, suffix) ? (BINARY_POWERS[suffix] ?? 0) : undefined
  if (power === undefined && binary === undefined) return undefined
  const digits = { sign, whole: whole.replace(/^0+/, '') || '0', fraction, isEmpty: whole === '' && fraction === '' }
  return binary === undefined ? decimalQuantity(digits, power ?? 0) : binaryQuantity(digits, binary)
}

interface Digits {
  readonly sign: string
  readonly whole: string
  readonly fraction: string
  /** Only a sign, a point or a suffix, which are zero in some forms. */
  readonly isEmpty: boolean
}

/** Go keeps the lower 32 bits. */
function decimalPower(suffix: string): number | undefined {
  const [, digits] = EXPONENT.exec(suffix) ?? []
  const power = digits === undefined ? undefined : inBits(BigInt(digits.replace('+', '')))
  return power === undefined ? undefined : Number(BigInt.asIntN(32, power))
}

function signed({ sign, whole, fraction }: Digits): bigint {
  const value = BigInt(whole + fraction)
  return sign === '-' ? -value : value
}

function decimalQuantity(digits: Digits, power: number): Quantity | undefined {
  const exponent = power - digits.fraction.length
  const value = signed(digits)
  const isSmall = digits.whole.length + digits.fraction.length <= SAFE_DIGITS && exponent >= NANO
  if (isSmall) return new Quantity({ value, exponent }, false)
  return digits.isEmpty ? undefined : new Quantity(toNanos({ value, exponent }), true)
}

function binaryQuantity(digits: Digits, power: number): Quantity | undefined {
  const value = signed(digits) << BigInt(power)
  const left = BINARY_DIGITS - digits.whole.length - Math.trunc((power * 3) / 10) - 1
  if (digits.fraction === '' && left >= 0 && inBits(value) !== undefined) {
    return new Quantity({ value, exponent: 0 }, false)
  }
  if (digits.isEmpty) return undefined
  const nanos = toNanos({ value, exponent: -digits.fraction.length })
  const [least, most] = [
    { value: -MAX_INT, exponent: 0 },
    { value: MAX_INT, exponent: 0 },
  ]
  if (compare(nanos, most) > 0) return new Quantity(most, true)
  return new Quantity(compare(nanos, least) < 0 ? least : nanos, true)
}

/** Rounds away from zero. */
function toNanos(amount: Amount): Amount {
  const { value, exponent } = amount
  if (value === 0n) return amount
  if (exponent >= NANO) return { value: aligned(amount, NANO), exponent: NANO }
  if (NANO - exponent > MAX_DIGITS * 2) return { value: value < 0n ? -1n : 1n, exponent: NANO }
  const unit = 10n ** BigInt(NANO - exponent)
  const rest = value % unit
  return { value: value / unit + (rest === 0n ? 0n : rest < 0n ? -1n : 1n), exponent: NANO }
}
