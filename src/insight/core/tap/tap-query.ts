// A tap as the query of `GET /api/v1/tap`, written by the command line and parsed by the admin listener. Everything has a limit: each
// gateway thread evaluates the filter for every request.

import { type ClusterChoice, readChoice } from '../../../gateway/core/choice/choose-clusters.ts'
import { Budget } from '../../../kit/api/limits/budget.ts'
import { UserError } from '../../../kit/api/validation/field-errors.ts'
import { parseCidr } from '../../../kit/core/dial/cidr.ts'
import { REFUSAL_TABLE } from '../../../kit/core/refusal/refusal.ts'
import { formatDuration, parseDuration } from '../../../kit/core/text/duration.ts'
import { EVERYTHING, needsOutcome, type TapFilter } from './tap-filter.ts'

export interface TapRequest {
  readonly filter: TapFilter
  /** Clusters by label, as they are when the tap begins; '' = as the filter says. */
  readonly selector: string
  /** Events per second, over all replicas. */
  readonly maxRps: number
  /** Duration, milliseconds. */
  readonly forMs: number
  /** Ends after this many events; 0 = unlimited. */
  readonly limit: number
}

const DEFAULT_RPS = 100
const MAX_RPS = 1000
/** Maximum burst: events that a thread may have in flight to a reader. */
const MAX_BURST = 256
const DEFAULT_FOR_MS = 300_000
const MAX_FOR_MS = 3_600_000
const MAX_LIMIT = 1_000_000
/** Per list. */
const MAX_VALUES = 32
/** Characters per value. */
const MAX_VALUE = 256
const MAX_SLOW_MS = 3_600_000

type ListField = {
  [Field in keyof TapFilter]: TapFilter[Field] extends readonly string[] ? Field : never
}[keyof TapFilter]

/** Repeatable parameters, with the command line flags that users know. */
const LISTS: ReadonlyMap<string, ListField> = new Map<string, ListField>([
  ['cluster', 'clusters'],
  ['user', 'users'],
  ['group', 'groups'],
  ['userAgent', 'userAgents'],
  ['verb', 'verbs'],
  ['resource', 'resources'],
  ['namespace', 'namespaces'],
  ['name', 'names'],
  ['path', 'paths'],
  ['code', 'codes'],
  ['reason', 'reasons'],
  ['address', 'addresses'],
])
const SWITCHES = ['refused', 'started'] as const
/** Parameters of requests between replicas. */
const IGNORED: ReadonlySet<string> = new Set(['replicas', 'onBehalfOf'])

/** Either the request, or its errors. */
export type TapQuery =
  | { readonly request: TapRequest; readonly errors?: undefined }
  | { readonly request?: undefined; readonly errors: readonly string[] }

/**
 * Reports all errors at once, as sentences.
 * @param named maps a parameter to the name its reader knows. Default: its own name
 */
export function readTapQuery(
  query: Iterable<readonly [string, string]>,
  named: (name: string) => string = same,
): TapQuery {
  const reader = new TapQueryReader(named)
  for (const [name, value] of query) reader.read(name, value)
  return reader.done()
}

/** The rate limit of a tap, per thread and overall: bursts of one second's events, but at most MAX_BURST. */
export function tapBudget(maxRps: number, nowMs: number): Budget {
  return new Budget({ burst: Math.min(maxRps, MAX_BURST), perSecond: maxRps }, nowMs)
}

/** The inverse of readTapQuery. Defaults are omitted. */
export function writeTapQuery({ filter, selector, maxRps, forMs, limit }: TapRequest): URLSearchParams {
  const query = new URLSearchParams()
  if (selector !== '') query.set('selector', selector)
  for (const [name, field] of LISTS) for (const value of filter[field]) query.append(name, value)
  for (const name of SWITCHES) if (filter[name]) query.set(name, 'true')
  if (filter.slowMs > 0) query.set('slow', formatDuration(filter.slowMs))
  if (maxRps !== DEFAULT_RPS) query.set('maxRps', String(maxRps))
  if (forMs !== DEFAULT_FOR_MS) query.set('for', formatDuration(forMs))
  if (limit > 0) query.set('limit', String(limit))
  return query
}

function same(name: string): string {
  return name
}

class TapQueryReader {
  readonly #named: (name: string) => string
  readonly #errors: string[] = []
  readonly #lists = new Map<ListField, string[]>()
  readonly #switches = new Set<string>()
  #selector = ''
  #slowMs = 0
  #maxRps = DEFAULT_RPS
  #forMs = DEFAULT_FOR_MS
  #limit = 0

  constructor(named: (name: string) => string) {
    this.#named = named
  }

  read(name: string, value: string): void {
    const list = LISTS.get(name)
    if (list !== undefined) this.#add(name, list, value)
    else if (name === 'refused' || name === 'started') this.#switch(name, value)
    else if (name === 'selector') this.#select(name, value)
    else if (name === 'slow') this.#slowMs = this.#duration(name, value, MAX_SLOW_MS)
    else if (name === 'for') this.#forMs = this.#duration(name, value, MAX_FOR_MS)
    else if (name === 'maxRps') this.#maxRps = this.#number(name, value, MAX_RPS)
    else if (name === 'limit') this.#limit = this.#number(name, value, MAX_LIMIT)
    else if (!IGNORED.has(name)) this.#errors.push(`unknown parameter ${quoted(name)}`)
  }

  done(): TapQuery {
    const filter: TapFilter = {
      ...EVERYTHING,
      ...Object.fromEntries(this.#lists),
      refused: this.#switches.has('refused'),
      started: this.#switches.has('started'),
      slowMs: this.#slowMs,
    }
    if (filter.started && needsOutcome(filter)) {
      const [started, ...others] = ['started', 'code', 'refused', 'reason', 'slow'].map(this.#named)
      this.#errors.push(`${started} shows requests before they are answered: without ${others.join(', ')}`)
    }
    if (this.#selector !== '' && filter.clusters.length > 0) {
      this.#errors.push(`clusters and ${this.#named('selector')} are both given: give one of the two`)
    }
    if (this.#errors.length > 0) return { errors: this.#errors }
    const [selector, maxRps, forMs, limit] = [this.#selector, this.#maxRps, this.#forMs, this.#limit]
    return { request: { filter, selector, maxRps, forMs, limit } }
  }

  #add(name: string, field: ListField, value: string): void {
    const values = this.#lists.get(field) ?? []
    const error = valueError(field, value)
    if (values.length >= MAX_VALUES) this.#errors.push(`more than ${MAX_VALUES} values of ${this.#named(name)}`)
    else if (error !== '') this.#errors.push(`${this.#named(name)} ${quoted(value)} ${error}`)
    this.#lists.set(field, [...values.slice(0, MAX_VALUES), value])
  }

  #select(name: string, value: string): void {
    this.#selector = value
    try {
      readChoice(clustersWith(value))
    } catch (error) {
      if (!(error instanceof UserError)) throw error
      this.#errors.push(`${this.#named(name)}: ${error.message}`)
    }
  }

  #switch(name: string, value: string): void {
    if (value === 'true' || value === '') this.#switches.add(name)
    else if (value !== 'false') this.#errors.push(`${this.#named(name)} ${quoted(value)} must be true or false`)
  }

  #duration(name: string, value: string, most: number): number {
    const ms = value.length > MAX_VALUE ? undefined : parseDuration(value)
    if (ms !== undefined && ms > 0 && ms <= most) return ms
    this.#errors.push(
      `${this.#named(name)} ${quoted(value)} must be a duration above 0 and at most ${formatDuration(most)}: 500ms, 5m`,
    )
    return 0
  }

  #number(name: string, value: string, most: number): number {
    const number = /^\d{1,9}$/.test(value) ? Number(value) : 0
    if (number >= 1 && number <= most) return number
    this.#errors.push(`${this.#named(name)} ${quoted(value)} must be a whole number from 1 to ${most}`)
    return 0
  }
}

/** @param selector of labels */
export function clustersWith(selector: string): ClusterChoice {
  return { names: [], selector, all: false, except: [] }
}

function valueError(field: ListField, value: string): string {
  if (value.length > MAX_VALUE) return `is longer than ${MAX_VALUE} characters`
  if (field === 'codes' && !/^[1-5](\d\d|xx)$/.test(value)) return 'must be a status code or a class of them: 429, 4xx'
  if (field === 'reasons' && !isReason(value)) return `must be one of ${Object.keys(REFUSAL_TABLE).join(', ')}`
  if (field === 'addresses' && parseCidr(value) === undefined) return 'must be an address or a range: 10.0.0.0/8'
  // A star elsewhere would be taken literally, as in dispatchPolicies, which is never intended.
  if (field !== 'resources' && /\*./.test(value)) return 'can have a * only at its end'
  return ''
}

/** Also a prefix, `rate-*`, and an exclusion, `-rate-limited`. */
function isReason(value: string): boolean {
  const name = value.startsWith('-') ? value.slice(1) : value
  const reasons = Object.keys(REFUSAL_TABLE)
  return name.endsWith('*') ? reasons.some((one) => one.startsWith(name.slice(0, -1))) : reasons.includes(name)
}

function quoted(text: string): string {
  return JSON.stringify(text.length > 64 ? `${text.slice(0, 64)}…` : text)
}
