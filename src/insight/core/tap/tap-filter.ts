// Which requests a tap shows: lists as in dispatchPolicies (`-x`, a trailing `*`), fields ANDed. Plain data crosses threads; each gateway
// thread compiles it once and evaluates it for every request while a tap is open.

import type { RequestRecord } from '../../../gateway/api/request-record.ts'
import { ALL, compileGlobs, effectiveEntries } from '../../../gateway/core/cluster/compile-rules.ts'
import type { CompiledList } from '../../../gateway/core/cluster/compiled-cluster.ts'
import { anyInList, inList } from '../../../gateway/core/policy/match-list.ts'
import { parseIp } from '../../../kit/api/validation/ip-address.ts'
import type { CompiledCidr } from '../../../kit/core/dial/cidr.ts'
import { inAnyCidr, parseCidr } from '../../../kit/core/dial/cidr.ts'

/** What to show. An empty list matches everything. */
export interface TapFilter {
  readonly clusters: readonly string[]
  /** Matches the effective user or the impersonator. */
  readonly users: readonly string[]
  /** Any of the effective user's groups. */
  readonly groups: readonly string[]
  readonly userAgents: readonly string[]
  readonly verbs: readonly string[]
  /** `pods`, `pods/log`, `deployments.apps`, `pods/*`. */
  readonly resources: readonly string[]
  readonly namespaces: readonly string[]
  readonly names: readonly string[]
  /** For non-resource requests. */
  readonly paths: readonly string[]
  /** `429` or `4xx`. */
  readonly codes: readonly string[]
  /** Reasons of refusals: `rate-limited`. */
  readonly reasons: readonly string[]
  /** Client addresses: CIDR or single ones. */
  readonly addresses: readonly string[]
  /** Only requests that the gateway refused. */
  readonly refused: boolean
  /** Minimum duration, milliseconds; for long-running requests until the response began. 0 = any. */
  readonly slowMs: number
  /** Also when a request begins, before anything is decided about it. */
  readonly started: boolean
}

/** Started: its user is known. Responding: a long-running request's response began. Ended: it is over. */
export type TapPhase = 'started' | 'responding' | 'ended'

/** A filter in the form that threads evaluate. */
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

/** A filter without conditions. */
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

/** Status codes, and 0 for requests without one. */
const CODES = 1000

/** @param source accepted by `readTapQuery` */
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

/** Whether it depends on what is known only at the end. */
export function needsOutcome({ refused, slowMs, codes, reasons }: TapFilter): boolean {
  return refused || slowMs > 0 || codes.length > 0 || reasons.length > 0
}

/** Whether a tap shows the request at this phase. */
export function tapMatches(filter: CompiledTapFilter, record: RequestRecord, phase: TapPhase): boolean {
  if (phase === 'started' && (!filter.source.started || filter.needsOutcome)) return false
  return (
    (filter.codes === undefined || filter.codes[record.code] === 1) &&
    (!filter.source.refused || record.refusal !== '') &&
    (filter.source.slowMs === 0 || timeOf(record) >= filter.source.slowMs) &&
    // The most selective condition of most taps comes first.
    matchesUser(filter.users, record) &&
    matchesCluster(filter.clusters, record) &&
    inList(filter.verbs, verbOf(record)) &&
    matchesObject(filter, record) &&
    matchesSender(filter, record) &&
    (filter.reasons.kind === 'all' || (record.refusal !== '' && inList(filter.reasons, record.refusal)))
  )
}

/** One that a member serves is shown as its own, and as one of the cluster that it was sent to. */
function matchesCluster(clusters: CompiledTapFilter['clusters'], { cluster, federation }: RequestRecord): boolean {
  return inList(clusters, cluster) || (federation !== '' && inList(clusters, federation))
}

/** The Kubernetes verb; the method in lower case if there is none. */
export function verbOf(record: RequestRecord): string {
  return record.verb === '' ? record.method.toLowerCase() : record.verb
}

function timeOf(record: RequestRecord): number {
  // A watch's duration says nothing about slowness.
  return record.longRunning && record.ttfbMs >= 0 ? record.ttfbMs : record.durationMs
}

/** A condition on the object excludes path requests, and vice versa, like the fields of a rule. */
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

/** At least one of the two is named; if inverted, neither is. */
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

// Resources in kubectl's notation: `pods`, `pods/log`, `deployments.apps`, `pods/*`. Without a group, any group matches; `pods` does not
// cover `pods/log`, as in dispatchPolicies.
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

/** The parts of a request that are compared. */
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
  // An empty subresource means none; the star of `pods/*` includes none, as in audit policies.
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
