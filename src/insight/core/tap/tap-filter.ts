// Which requests a tap shows: lists as in dispatchPolicies (`-x`, a trailing `*`), fields ANDed. Plain data crosses threads;
// each gateway thread compiles it once and evaluates it for every request while somebody taps.

import type { RequestRecord } from '../../../gateway/api/request-record.ts'
import { ALL, compileGlobs, effectiveEntries } from '../../../gateway/core/cluster/compile-rules.ts'
import type { CompiledList } from '../../../gateway/core/cluster/compiled-cluster.ts'
import { anyInList, inList } from '../../../gateway/core/policy/match-list.ts'
import { parseIp } from '../../../kit/api/validation/ip-address.ts'
import type { CompiledCidr } from '../../../kit/core/dial/cidr.ts'
import { inAnyCidr, parseCidr } from '../../../kit/core/dial/cidr.ts'

/** What to show. An empty list leaves its field open. */
export interface TapFilter {
  readonly clusters: readonly string[]
  /** Of the effective user or of the impersonator. */
  readonly users: readonly string[]
  /** Any of the effective user's groups. */
  readonly groups: readonly string[]
  readonly userAgents: readonly string[]
  readonly verbs: readonly string[]
  /** `pods`, `pods/log`, `deployments.apps`, `pods/*`. */
  readonly resources: readonly string[]
  readonly namespaces: readonly string[]
  readonly names: readonly string[]
  /** Of requests that are not for a resource. */
  readonly paths: readonly string[]
  /** `429` or `4xx`. */
  readonly codes: readonly string[]
  /** Reasons of refusals: `rate-limited`. */
  readonly reasons: readonly string[]
  /** Addresses of clients: CIDR or a single one. */
  readonly addresses: readonly string[]
  /** Only requests that the gateway refused. */
  readonly refused: boolean
  /** At least this long, milliseconds; of long-running requests until the response began. 0 = any. */
  readonly slowMs: number
  /** Also when a request begins, before anything is decided about it. */
  readonly started: boolean
}

/** Begins: its user is known. Responding: a long-running request's response began. Ended: it is over. */
export type TapPhase = 'started' | 'responding' | 'ended'

/** A filter as the threads evaluate it. */
export interface CompiledTapFilter {
  readonly source: TapFilter
  readonly clusters: CompiledList
  readonly users: CompiledList
  readonly groups: CompiledList
  readonly userAgents: CompiledList
  readonly verbs: CompiledList
  readonly resources: ResourcePatterns
  readonly namespaces: CompiledList
  readonly names: CompiledList
  readonly paths: CompiledList
  readonly reasons: CompiledList
  /** By code; undefined = any. */
  readonly codes: Uint8Array | undefined
  readonly addresses: readonly CompiledCidr[]
  readonly needsOutcome: boolean
}

/** No condition at all. */
export const EVERYTHING: TapFilter = {
  clusters: [],
  users: [],
  groups: [],
  userAgents: [],
  verbs: [],
  resources: [],
  namespaces: [],
  names: [],
  paths: [],
  codes: [],
  reasons: [],
  addresses: [],
  refused: false,
  slowMs: 0,
  started: false,
}

/** Status codes, and 0 for a request that got none. */
const CODES = 1000

/** Takes a filter that `readTapQuery` has accepted. */
export function compileTapFilter(source: TapFilter): CompiledTapFilter {
  return {
    source,
    clusters: compileGlobs(source.clusters, ALL),
    users: compileGlobs(source.users, ALL),
    groups: compileGlobs(source.groups, ALL),
    userAgents: compileGlobs(source.userAgents, ALL),
    verbs: compileGlobs(source.verbs, ALL),
    resources: compileResourcePatterns(source.resources),
    namespaces: compileGlobs(source.namespaces, ALL),
    names: compileGlobs(source.names, ALL),
    paths: compileGlobs(source.paths, ALL),
    reasons: compileGlobs(source.reasons, ALL),
    codes: compileCodes(source.codes),
    addresses: source.addresses.map((text) => parseCidr(text) ?? { bytes: new Uint8Array(0), bits: 0 }),
    needsOutcome: needsOutcome(source),
  }
}

/** Whether it asks for what is known at the end only. */
export function needsOutcome({ refused, slowMs, codes, reasons }: TapFilter): boolean {
  return refused || slowMs > 0 || codes.length > 0 || reasons.length > 0
}

/** Whether a tap shows the request at this point. */
export function tapMatches(filter: CompiledTapFilter, record: RequestRecord, phase: TapPhase): boolean {
  if (phase === 'started' && (!filter.source.started || filter.needsOutcome)) return false
  return (
    (filter.codes === undefined || filter.codes[record.code] === 1) &&
    (!filter.source.refused || record.refusal !== '') &&
    (filter.source.slowMs === 0 || timeOf(record) >= filter.source.slowMs) &&
    // What most taps name, and most requests differ in, comes first.
    matchesUser(filter.users, record) &&
    inList(filter.clusters, record.cluster) &&
    inList(filter.verbs, verbOf(record)) &&
    matchesObject(filter, record) &&
    matchesSender(filter, record) &&
    (filter.reasons.kind === 'all' || (record.refusal !== '' && inList(filter.reasons, record.refusal)))
  )
}

/** As Kubernetes names it; the method in lower case where there is no verb. */
export function verbOf(record: RequestRecord): string {
  return record.verb === '' ? record.method.toLowerCase() : record.verb
}

function timeOf(record: RequestRecord): number {
  // How long a watch ran says nothing of who was slow.
  return record.longRunning && record.ttfbMs >= 0 ? record.ttfbMs : record.durationMs
}

/** A condition on the object excludes requests for a path, and the other way round, as the fields of a rule do. */
function matchesObject(filter: CompiledTapFilter, record: RequestRecord): boolean {
  const { resources, namespaces, names, paths } = filter
  const asksForResource = resources.kind !== 'all' || namespaces.kind !== 'all' || names.kind !== 'all'
  if (!record.isResourceRequest) return !asksForResource && inList(paths, record.path)
  if (paths.kind !== 'all') return false
  return inList(namespaces, record.namespace) && inList(names, record.name) && resourceMatches(resources, record)
}

function matchesSender(filter: CompiledTapFilter, record: RequestRecord): boolean {
  return (
    anyInList(filter.groups, record.groups) &&
    inList(filter.userAgents, record.userAgent) &&
    matchesAddress(filter.addresses, record.remoteAddress)
  )
}

/** One of the two is named; inverted, none of them is. */
function matchesUser(users: CompiledList, { user, impersonator }: RequestRecord): boolean {
  if (impersonator === '') return inList(users, user)
  if (users.kind === 'none-of') return inList(users, user) && inList(users, impersonator)
  return inList(users, user) || inList(users, impersonator)
}

function matchesAddress(addresses: readonly CompiledCidr[], remoteAddress: string): boolean {
  if (addresses.length === 0) return true
  const address = parseIp(remoteAddress)
  return address !== undefined && inAnyCidr(addresses, address)
}

function compileCodes(texts: readonly string[]): Uint8Array | undefined {
  if (texts.length === 0) return undefined
  const codes = new Uint8Array(CODES)
  for (const text of texts) {
    const hundreds = Number(text[0]) * 100
    if (text.endsWith('xx')) codes.fill(1, hundreds, hundreds + 100)
    else codes[Number(text)] = 1
  }
  return codes
}

// Resources as kubectl writes them: `pods`, `pods/log`, `deployments.apps`, `pods/*`. Without a group any group is meant; `pods` is not
// `pods/log`, as in dispatchPolicies.
interface ResourcePattern {
  readonly resource: Glob
  /** undefined = any. */
  readonly group: Glob | undefined
  /** '' = none. */
  readonly subresource: Glob
}

interface Glob {
  readonly text: string
  readonly isPrefix: boolean
}

interface ResourcePatterns {
  readonly kind: 'all' | 'any-of' | 'none-of'
  readonly patterns: readonly ResourcePattern[]
}

/** An empty list matches everything. */
function compileResourcePatterns(entries: readonly string[]): ResourcePatterns {
  const effective = effectiveEntries(entries)
  if (effective.length === 0 || effective.includes('*')) return { kind: 'all', patterns: [] }
  const inverted = effective.every((entry) => entry.startsWith('-'))
  const texts = inverted ? effective.map((entry) => entry.slice(1)) : effective
  return { kind: inverted ? 'none-of' : 'any-of', patterns: texts.map(compilePattern) }
}

/** What is compared of a request. */
interface RequestedResource {
  readonly resource: string
  readonly apiGroup: string
  readonly subresource: string
}

function resourceMatches({ kind, patterns }: ResourcePatterns, requested: RequestedResource): boolean {
  if (kind === 'all') return true
  for (const pattern of patterns) if (patternMatches(pattern, requested)) return kind === 'any-of'
  return kind === 'none-of'
}

function patternMatches(pattern: ResourcePattern, { resource, apiGroup, subresource }: RequestedResource): boolean {
  if (!globMatches(pattern.resource, resource)) return false
  if (pattern.group !== undefined && !globMatches(pattern.group, apiGroup)) return false
  // A subresource of '' is none; the star of `pods/*` stands for none, too, as in audit policies.
  return subresource === '' ? pattern.subresource.text === '' : globMatches(pattern.subresource, subresource)
}

function compilePattern(text: string): ResourcePattern {
  const slash = text.indexOf('/')
  const whole = slash < 0 ? text : text.slice(0, slash)
  const dot = whole.indexOf('.')
  return {
    resource: compileGlob(dot < 0 ? whole : whole.slice(0, dot)),
    group: dot < 0 ? undefined : compileGlob(whole.slice(dot + 1)),
    subresource: compileGlob(slash < 0 ? '' : text.slice(slash + 1)),
  }
}

function compileGlob(text: string): Glob {
  return text.endsWith('*') ? { text: text.slice(0, -1), isPrefix: true } : { text, isPrefix: false }
}

function globMatches({ text, isPrefix }: Glob, value: string): boolean {
  return isPrefix ? value.startsWith(text) : value === text
}
