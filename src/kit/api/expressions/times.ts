// Points in time and durations of expressions, to the nanosecond, as cel-go has them (github.com/google/cel-go/common/types: timestamp.go, duration.go)
// with Go's package time.

import { type Cost, checkedInt, ExpressionFault, noOverload, type Operator, TypedValue } from './values.ts'

const SECOND = 1_000_000_000n
const MILLISECOND = 1_000_000n
/** Years 1 to 9999. */
const FIRST_SECOND = -62_135_596_800n
const LAST_SECOND = 253_402_300_799n
const MINUTES_PER_HOUR = 60
const SECONDS_PER_MINUTE = 60
const MS = 1_000
const MS_PER_DAY = 86_400_000

export class Timestamp extends TypedValue {
  readonly type = 'timestamp'
  /** Since 1970, in UTC. */
  readonly nanos: bigint
  /** As it was written; counts only for its text. */
  readonly offsetMinutes: number

  /** @throws {ExpressionFault} out of range */
  constructor(nanos: bigint, offsetMinutes = 0) {
    super()
    const second = floorDivide(nanos, SECOND)
    if (second < FIRST_SECOND || second > LAST_SECOND) throw new ExpressionFault('timestamp overflow')
    this.nanos = nanos
    this.offsetMinutes = offsetMinutes
  }

  get seconds(): bigint {
    return floorDivide(this.nanos, SECOND)
  }

  /** RFC 3339, with as many digits of the second as it needs. */
  override get text(): string {
    const date = this.#at(this.offsetMinutes)
    const two = (value: number): string => String(value).padStart(2, '0')
    const day = `${String(date.getUTCFullYear()).padStart(4, '0')}-${two(date.getUTCMonth() + 1)}-${two(date.getUTCDate())}`
    const time = `${two(date.getUTCHours())}:${two(date.getUTCMinutes())}:${two(date.getUTCSeconds())}`
    const fraction = `.${String(this.#nanosOfSecond).padStart(9, '0')}`.replace(/\.?0{1,9}$/, '')
    if (this.offsetMinutes === 0) return `${day}T${time}${fraction}Z`
    const zone = Math.abs(this.offsetMinutes)
    const sign = this.offsetMinutes < 0 ? '-' : '+'
    return `${day}T${time}${fraction}${sign}${two(Math.trunc(zone / MINUTES_PER_HOUR))}:${two(zone % MINUTES_PER_HOUR)}`
  }

  get #nanosOfSecond(): bigint {
    return this.nanos - this.seconds * SECOND
  }

  /** Its UTC fields are those of the zone. */
  #at(offsetMinutes: number): Date {
    return new Date((Number(this.seconds) + offsetMinutes * SECONDS_PER_MINUTE) * MS)
  }

  override equals(other: unknown): boolean {
    return other instanceof Timestamp && other.nanos === this.nanos
  }

  override orderOf(other: unknown): number {
    return other instanceof Timestamp ? order(this.nanos, other.nanos) : noOverload('_<_', this, other)
  }

  override calculate(op: Operator, other: unknown): TypedValue {
    if (other instanceof Duration) {
      if (op === '+') return new Timestamp(this.nanos + other.nanos, this.offsetMinutes)
      if (op === '-') return new Timestamp(this.nanos + checkedInt(-other.nanos), this.offsetMinutes)
    }
    if (other instanceof Timestamp && op === '-') {
      // Go checks the whole seconds, too.
      checkedInt((this.seconds - other.seconds) * SECOND)
      return new Duration(this.nanos - other.nanos)
    }
    return noOverload(`_${op}_`, this, other)
  }

  override call(name: string, args: readonly unknown[]): unknown {
    const [zone = ''] = args
    const offset = typeof zone === 'string' ? zoneMinutes(zone) : undefined
    if (offset === undefined) return noOverload(name, this, ...args)
    if (name === 'getMilliseconds') return this.#nanosOfSecond / MILLISECOND
    const read = GETTERS[name]
    return read === undefined ? noOverload(name, this, ...args) : BigInt(read(this.#at(offset)))
  }
}

const GETTERS: Readonly<Record<string, (date: Date) => number>> = {
  getFullYear: (date) => date.getUTCFullYear(),
  getMonth: (date) => date.getUTCMonth(),
  getDate: (date) => date.getUTCDate(),
  getDayOfMonth: (date) => date.getUTCDate() - 1,
  getDayOfWeek: (date) => date.getUTCDay(),
  getDayOfYear(date) {
    const first = new Date(date)
    first.setUTCMonth(0, 1)
    return Math.round((date.getTime() - first.getTime()) / MS_PER_DAY)
  },
  getHours: (date) => date.getUTCHours(),
  getMinutes: (date) => date.getUTCMinutes(),
  getSeconds: (date) => date.getUTCSeconds(),
}

/**
 * The minutes of a zone that is an offset. undefined = it has none: names such as Europe/Berlin depend on the tables of the machine, which a
 * kube-apiserver may have, or not.
 */
export function zoneMinutes(zone: string): number | undefined {
  if (zone === '' || zone === 'UTC') return 0
  const [, hours, minutes] = /^([+-]?\d{1,4}):([+-]?\d{1,4})$/.exec(zone) ?? []
  if (hours === undefined) return undefined
  return Number(hours) * MINUTES_PER_HOUR + (zone.startsWith('-') ? -Number(minutes) : Number(minutes))
}

export class Duration extends TypedValue {
  readonly type = 'duration'
  readonly nanos: bigint

  /** @throws {ExpressionFault} beyond 64 bits */
  constructor(nanos: bigint) {
    super()
    this.nanos = checkedInt(nanos)
  }

  /** Seconds, as Go writes them without an exponent. */
  override get text(): string {
    return `${withoutExponent(this.#in(SECOND))}s`
  }

  /** A double, as in Go. */
  #in(unit: bigint): number {
    return Number(this.nanos / unit) + Number(this.nanos % unit) / Number(unit)
  }

  override equals(other: unknown): boolean {
    return other instanceof Duration && other.nanos === this.nanos
  }

  override orderOf(other: unknown): number {
    return other instanceof Duration ? order(this.nanos, other.nanos) : noOverload('_<_', this, other)
  }

  override calculate(op: Operator, other: unknown): TypedValue {
    if (op === '+' && other instanceof Timestamp) return other.calculate('+', this)
    if (op === '+' && other instanceof Duration) return new Duration(this.nanos + other.nanos)
    if (op === '-' && other instanceof Duration) return new Duration(this.nanos - other.nanos)
    return noOverload(`_${op}_`, this, other)
  }

  override call(name: string, args: readonly unknown[]): unknown {
    if (name === 'getMilliseconds' && args.length === 0) return this.nanos / MILLISECOND
    const unit = args.length === 0 ? WHOLE_UNITS[name] : undefined
    return unit === undefined ? noOverload(name, this, ...args) : BigInt(Math.trunc(this.#in(unit)))
  }
}

const WHOLE_UNITS: Readonly<Record<string, bigint>> = {
  getHours: 3_600n * SECOND,
  getMinutes: 60n * SECOND,
  getSeconds: SECOND,
}

function order(a: bigint, b: bigint): number {
  return a < b ? -1 : a > b ? 1 : 0
}

function floorDivide(a: bigint, b: bigint): bigint {
  return a % b < 0n ? a / b - 1n : a / b
}

/** JavaScript has one below 1e-6. */
function withoutExponent(value: number): string {
  const [digits = '', exponent] = String(value).split('e-')
  if (exponent === undefined) return digits
  const sign = digits.startsWith('-') ? '-' : ''
  return `${sign}0.${'0'.repeat(Number(exponent) - 1)}${digits.replace(/[.-]/g, '')}`
}

const RFC_3339 = /^(\d{4})-(\d\d)-(\d\d)T(\d{1,2}):(\d\d):(\d\d)(?:[.,](\d+))?(?:Z|([+-])(\d\d):(\d\d))$/
const HOURS = 24

export function timestampOf(value: unknown, cost: Cost): Timestamp {
  if (value instanceof Timestamp) return value
  if (typeof value === 'bigint') return new Timestamp(value * SECOND)
  if (typeof value !== 'string') return noOverload('timestamp', value)
  const [all, ...parts] = RFC_3339.exec(cost.text(value)) ?? []
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = parts.slice(0, 6).map(Number)
  const [fraction = '', sign = '', zoneHours = '0', zoneMinutes = '0'] = parts.slice(6)
  const date = new Date(0)
  date.setUTCFullYear(year, month - 1, day)
  date.setUTCHours(hour, minute, second)
  const isDay = date.getUTCMonth() === month - 1 && date.getUTCDate() === day
  const isTime = hour < HOURS && minute < MINUTES_PER_HOUR && second < SECONDS_PER_MINUTE
  // Go accepts offsets of 24 hours and of 60 minutes.
  const isZone = Number(zoneHours) <= HOURS && Number(zoneMinutes) <= MINUTES_PER_HOUR
  if (all === undefined || month === 0 || !isTime || !isDay || !isZone) {
    throw new ExpressionFault('cannot be converted to timestamp')
  }
  const offset = (Number(zoneHours) * MINUTES_PER_HOUR + Number(zoneMinutes)) * (sign === '-' ? -1 : 1)
  const seconds = BigInt(date.getTime() / MS - offset * SECONDS_PER_MINUTE)
  return new Timestamp(seconds * SECOND + BigInt(fraction.slice(0, 9).padEnd(9, '0')), offset)
}

const UNITS: Readonly<Record<string, bigint>> = {
  ns: 1n,
  us: 1_000n,
  µs: 1_000n,
  μs: 1_000n,
  ms: MILLISECOND,
  s: SECOND,
  m: 60n * SECOND,
  h: 3_600n * SECOND,
}
const AMOUNT = /(\d*)(?:\.(\d*))?(ns|us|\u00b5s|\u03bcs|ms|s|m|h)(?=[\d.]|$)/y
/** A number that is longer is out of range, but for zeros in front. */
const MAX_DIGITS = 19
const MAX_NANOS = 2n ** 63n

/** Units in any order, and more than once: Go's ParseDuration. */
export function durationOf(value: unknown, cost: Cost): Duration {
  if (value instanceof Duration) return value
  if (typeof value !== 'string') return noOverload('duration', value)
  const text = cost.points(value).replace(/^[+-]/, '')
  const nanos = text === '0' ? 0n : nanosOf(text)
  return new Duration(value.startsWith('-') ? -nanos : nanos)
}

function nanosOf(text: string): bigint {
  let sum = 0n
  AMOUNT.lastIndex = 0
  for (let at = 0; at < text.length || at === 0; at = AMOUNT.lastIndex) {
    const [, whole = '', fraction = '', name = ''] = AMOUNT.exec(text) ?? []
    const unit = UNITS[name]
    if (unit === undefined || (whole === '' && fraction === '')) throw new ExpressionFault(NO_DURATION)
    sum += amountOf(whole.replace(/^0+/, ''), fraction, unit)
    if (sum > MAX_NANOS) throw new ExpressionFault(NO_DURATION)
  }
  return sum
}

const NO_DURATION = 'cannot be converted to duration'

/** The fraction is a double in Go, with as many digits as fit in 63 bits. */
function amountOf(whole: string, fraction: string, unit: bigint): bigint {
  if (whole.length > MAX_DIGITS || BigInt(whole) > MAX_NANOS / unit) throw new ExpressionFault(NO_DURATION)
  let digits = 0n
  let scale = 1
  for (const digit of fraction) {
    const next = digits * 10n + BigInt(digit)
    if (next > MAX_NANOS) break
    digits = next
    scale *= 10
  }
  return BigInt(whole) * unit + BigInt(Math.trunc(Number(digits) * (Number(unit) / scale)))
}
