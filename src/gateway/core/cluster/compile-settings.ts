// Compiles the parts of an UpstreamCluster that are not rules: endpoints, limits, credentials, health check, degrade switch,
// authentication. Defaults come from the schema.

import { type Complete, complete, fieldOf, itemOf, type Schema } from '../../../kit/api/json/json-schema.ts'
import { canonicalIp } from '../../../kit/api/validation/ip-address.ts'
import { isEmptySelector } from '../../../kit/api/validation/label-selector-checks.ts'
import { parseDuration } from '../../../kit/core/text/duration.ts'
import {
  AUTO_DEGRADE_SCHEMA,
  type AutoDegrade,
  type AutoDegradeNodes,
  type AutoDegradeUpstream,
} from '../../api/upstream-cluster/auto-degrade.ts'
import type { Autoscaler } from '../../api/upstream-cluster/cluster-autoscaler.ts'
import { UPSTREAM_CLUSTER_SPEC_SCHEMA } from '../../api/upstream-cluster/schema.ts'
import {
  type Authentication,
  type ClientConfig,
  type Degrade,
  type DegradeLimit,
  type DegradeRecovery,
  FEATURE_GATES_ANNOTATION,
  type FlowControlSchema,
  type HealthCheck,
  type ListGuard,
  type UpstreamServer,
} from '../../api/upstream-cluster/upstream-cluster.ts'
import { compileIssuer } from './compile-issuer.ts'
import { compileRule } from './compile-rules.ts'
import type { AutoDegradeOptions, NodeTrigger, UpstreamTrigger } from './compiled-auto-degrade.ts'
import type {
  CompiledAuthentication,
  CompiledAutoscaler,
  CompiledClient,
  CompiledDegrade,
  CompiledEndpoint,
  CompiledHealthCheck,
  CompiledListGuard,
  CompiledRecovery,
  CompiledSchema,
  CompiledSharedLimit,
  FollowedServer,
  Ramp,
} from './compiled-cluster.ts'
import { compileRevocation } from './revocation.ts'

const DEFAULT_PORTS = { http: 80, https: 443 } as const
const SECOND_MS = 1000
/** Weight of an address in an EndpointSlice. */
const DEFAULT_WEIGHT = 100
const DEGRADE = fieldOf(UPSTREAM_CLUSTER_SPEC_SCHEMA, 'degrade')

const ENDPOINT = /^(https?):\/\/(?:\[([^\]]*)\]|([^:/?#]*))(?::(\d+))?/i

/** Addresses by server, as written in spec.servers. An absent server has not been looked up yet. */
export type ServerAddresses = ReadonlyMap<string, readonly string[]>

export const NO_ADDRESSES: ServerAddresses = new Map()

/** The key in ServerAddresses for the EndpointSlice: its addresses, each with its port. (Other keys are server URLs.) */
export const SLICE = 'EndpointSlice'
/** An entry among those: spec.servers serve as if no slice were followed. */
export const SEEDS = ''

/**
 * If an endpoint is listed twice, the first one counts.
 * @param addresses of servers with `resolve`. May include the name itself, which stands for the server as written
 */
function compileServers(
  servers: readonly UpstreamServer[],
  schema: Schema<readonly UpstreamServer[]>,
  addresses: ServerAddresses,
): readonly CompiledEndpoint[] {
  const endpoints = new Map<string, CompiledEndpoint>()
  for (const server of servers) {
    const { resolve, ...one } = complete(itemOf(schema), server)
    const compiled = compileEndpoint(one)
    for (const endpoint of resolve ? addressesOf(compiled, addresses) : [compiled]) {
      const first = endpoints.get(endpoint.url)
      endpoints.set(endpoint.url, first === undefined ? endpoint : alsoOf(first, endpoint))
    }
  }
  return [...endpoints.values()]
}

/** An endpoint of two servers belongs to the first; the other is still followed, and policies may still refer to it. */
function alsoOf(first: CompiledEndpoint, { of }: CompiledEndpoint): CompiledEndpoint {
  if (of === undefined || of.url === first.of?.url) return first
  return { ...first, also: [...(first.also ?? []), of] }
}

/**
 * The servers as written, followed by those of the EndpointSlice, for which they are a backup. A server in both appears once, as written.
 * @param addresses the slice's are under SLICE; without that entry the written servers are used alone
 */
export function compileEndpoints(
  servers: readonly UpstreamServer[],
  schema: Schema<readonly UpstreamServer[]>,
  addresses: ServerAddresses,
): readonly CompiledEndpoint[] {
  const seeds = compileServers(servers, schema, addresses)
  const found = addresses.get(SLICE) ?? []
  const server = seeds.find(({ host }) => canonicalIp(host) === undefined) ?? seeds[0]
  if (found.length === 0 || server === undefined) return seeds
  const places = new Set(found)
  const of = server.of ?? { url: server.url, name: server.host }
  const backup = !places.has(SEEDS)
  const known = new Set(seeds.map(placeOf))
  const own = found.filter((place) => place !== SEEDS && !known.has(place))
  return [
    ...seeds.map((seed) => (backup && !places.has(placeOf(seed)) ? { ...seed, backup } : seed)),
    ...own.map((place) => atPlace(place, { ...of, slice: true })),
  ]
}

function placeOf({ host, port }: CompiledEndpoint): string {
  return placeText(canonicalIp(host) ?? host, port)
}

function placeText(host: string, port: number): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`
}

/** It has the default weight, since none is written anywhere. */
function atPlace(place: string, of: FollowedServer): CompiledEndpoint {
  const url = `https://${place}`
  const [, , ipv6, ipv4 = '', port] = ENDPOINT.exec(url) ?? []
  const host = ipv6 ?? ipv4
  return { url, scheme: 'https', host, port: Number(port), disabled: false, weight: DEFAULT_WEIGHT, of }
}

/** Weight and everything else come from the server. */
function addressesOf(server: CompiledEndpoint, addresses: ServerAddresses): readonly CompiledEndpoint[] {
  const { url, host, scheme, port } = server
  if (canonicalIp(host) !== undefined) return [server]
  const of = { url, name: host }
  return (addresses.get(url) ?? [host]).map((address) => {
    if (address === host) return { ...server, of }
    const own = `${scheme}://${placeText(address, port)}`
    return { ...server, url: own, host: address, of }
  })
}

function compileEndpoint({ endpoint, disabled, weight }: Omit<Complete<UpstreamServer>, 'resolve'>): CompiledEndpoint {
  const [, scheme = '', ipv6, name = '', port] = ENDPOINT.exec(endpoint) ?? []
  const known = scheme.toLowerCase() === 'http' ? 'http' : 'https'
  return {
    url: endpoint,
    scheme: known,
    host: ipv6 ?? name,
    port: port === undefined ? DEFAULT_PORTS[known] : Number(port),
    disabled,
    weight,
  }
}

/** With a `global*` limit, a request must pass both that and the local one. */
export function compileSchema(schema: FlowControlSchema, of: Schema<FlowControlSchema>): CompiledSchema {
  const { name, perUser, cost, maxWatches, shadow, strategy = '' } = complete(of, schema)
  const { qps, burst } = schema.tokenBucket ?? { qps: 0, burst: 0 }
  const { max } = schema.maxRequestsInflight ?? { max: 0 }
  return {
    name,
    kind: kindOf(schema),
    qps,
    burst,
    max,
    perUser,
    cost,
    maxWatches,
    shadow,
    strategy,
    shared: sharedLimit(schema),
  }
}

/** The limit shared by all replicas; a per-user limit is never shared. */
function sharedLimit(schema: FlowControlSchema): CompiledSharedLimit | undefined {
  const { strategy, globalTokenBucket: bucket, globalMaxRequestsInflight: inflight } = schema
  if ((strategy !== 'globalAllocate' && strategy !== 'globalCount') || schema.perUser === true) return undefined
  const kind = kindOf(schema)
  if (kind === 'tokenBucket' && bucket !== undefined) return { qps: bucket.qps, burst: bucket.burst, max: 0 }
  if (kind === 'maxRequestsInflight' && inflight !== undefined) return { qps: 0, burst: 0, max: inflight.max }
  return undefined
}

function kindOf(schema: FlowControlSchema): CompiledSchema['kind'] {
  if (schema.tokenBucket !== undefined) return 'tokenBucket'
  return schema.maxRequestsInflight !== undefined ? 'maxRequestsInflight' : 'exempt'
}

/**
 * Implements what validation warns about: with a CA `insecure` has no effect, and a key without a certificate is ignored. No token is ever
 * sent over plain HTTP.
 */
export function compileClient(
  given: ClientConfig | undefined,
  endpoints: readonly CompiledEndpoint[],
  schema: Schema<ClientConfig>,
): CompiledClient {
  const client = complete(schema, given)
  const ca = decode(client.caData)
  const inClear = endpoints.some(({ scheme }) => scheme === 'http')
  return {
    insecure: client.insecure && ca === '',
    // Token files end with a newline, which is illegal in a header.
    bearerToken: inClear ? '' : decode(client.bearerToken).trim(),
    ...compilePair(client),
    ca,
    serverName: client.serverName,
    qps: client.qps / Math.max(1, client.qpsDivisor),
    burst: client.burst,
  }
}

/** Key and certificate; neither if one of them is missing. */
export function compilePair({
  keyData = '',
  certData = '',
}: {
  readonly keyData?: string
  readonly certData?: string
}): {
  readonly key: string
  readonly cert: string
} {
  return keyData === '' || certData === '' ? { key: '', cert: '' } : { key: decode(keyData), cert: decode(certData) }
}

/** Base64 to text; '' when absent. */
export function decode(data: string | undefined): string {
  return data === undefined ? '' : Buffer.from(data, 'base64').toString('utf8')
}

export function compileHealthCheck(check: HealthCheck | undefined, schema: Schema<HealthCheck>): CompiledHealthCheck {
  const { intervalSeconds, timeoutSeconds, ...others } = complete(schema, check)
  return { ...others, intervalMs: intervalSeconds * SECOND_MS, timeoutMs: timeoutSeconds * SECOND_MS }
}

/** KubeGateway's DenyAllRequests outranks spec.degrade. Exempt rules stay in force. */
export function compileDegrade(
  degrade: Degrade | undefined,
  denyAllRequests: boolean,
  schema: Schema<Degrade> = DEGRADE,
): CompiledDegrade {
  const {
    exempt: rules = [],
    limited: limit,
    since,
    recovery: wanted,
    auto: automatic,
    // For a recovery: it is not in force.
    before: _,
    ...given
  } = complete(schema, degrade)
  const recovery = compileRecovery(wanted, fieldOf(schema, 'recovery'))
  const auto = automatic === undefined ? undefined : compileAutoDegrade(automatic, fieldOf(schema, 'auto'))
  const exempt = rules.map(compileRule)
  const limited = compileLimit(limit, since, fieldOf(schema, 'limited'))
  const ramp = recovery === undefined ? limited : { ...limited, overMs: recovery.rampMs }
  const common = { exempt, limited, ramp, recovery, auto }
  if (denyAllRequests) {
    const reason = `annotation ${FEATURE_GATES_ANNOTATION}: DenyAllRequests=true`
    const fixed = { expiresAtMs: 0, expiresAt: '', shadow: false, guardsDisruption: false, observed: true }
    return { mode: 'Freeze', reason, ...fixed, ...common }
  }
  const guardsDisruption = given.mode === 'NoDisruption' || given.mode === 'Limited'
  const observed = auto !== undefined || recovery !== undefined || given.mode !== 'Off'
  return { ...given, expiresAtMs: timeOf(given.expiresAt), guardsDisruption, ...common, observed }
}

function compileLimit(given: DegradeLimit | undefined, since: string, schema: Schema<DegradeLimit>): Ramp {
  const { startQPS, endQPS, overSeconds } = complete(schema, given)
  return { startQps: startQPS, endQps: endQPS, overMs: overSeconds * SECOND_MS, sinceMs: timeOf(since) }
}

/** Milliseconds since the epoch; 0 = none. */
function timeOf(text: string): number {
  const ms = Date.parse(text)
  return Number.isNaN(ms) ? 0 : ms
}

/** Absent durations get their defaults; the schema rejects invalid ones. */
function compileRecovery(
  given: DegradeRecovery | undefined,
  schema: Schema<DegradeRecovery> = fieldOf(DEGRADE, 'recovery'),
): CompiledRecovery | undefined {
  if (given === undefined) return undefined
  const { hold, ramp } = complete(schema, given)
  return { holdMs: parseDuration(hold) ?? 0, rampMs: parseDuration(ramp) ?? 0 }
}

export function compileListGuard(given: ListGuard, schema: Schema<ListGuard>): CompiledListGuard {
  const { shadow, maxBytesUnlimited, exempt = [] } = complete(schema, given)
  return { shadow, maxBytesUnlimited, exempt: exempt.map(compileRule) }
}

export function compileAutoscaler(given: Autoscaler, schema: Schema<Autoscaler>): CompiledAutoscaler {
  const { namespace, name } = complete(fieldOf(schema, 'statusConfigMap'), given.statusConfigMap)
  return { namespace, name, staleAfterMs: complete(schema, given).staleAfterSeconds * SECOND_MS }
}

export function compileAuthentication(
  given: Authentication | undefined,
  schema: Schema<Authentication>,
): CompiledAuthentication {
  const { audiences = [], anonymous, revoked = [], jwt = [], ...ttl } = complete(schema, given)
  return {
    audiences,
    successTtlMs: ttl.tokenSuccessTTLSeconds * SECOND_MS,
    failureTtlMs: ttl.tokenFailureTTLSeconds * SECOND_MS,
    anonymous,
    issuers: jwt.map(compileIssuer),
    revoked: compileRevocation(revoked),
  }
}

// spec.degrade.auto with its defaults.
export function compileAutoDegrade(
  given: AutoDegrade,
  schema: Schema<AutoDegrade> = AUTO_DEGRADE_SCHEMA,
): AutoDegradeOptions {
  const { nodes, upstream, shadow, recovery = {} } = complete(schema, given)
  return {
    nodes: nodes === undefined ? undefined : compileNodes(nodes, fieldOf(schema, 'nodes')),
    upstream: upstream === undefined ? undefined : compileUpstream(upstream, fieldOf(schema, 'upstream')),
    shadow,
    recovery,
  }
}

function compileNodes(given: AutoDegradeNodes, schema: Schema<AutoDegradeNodes>): NodeTrigger {
  const { okUnready, maxUnreadyPercent, exitPercent, ...times } = complete(schema, given)
  const { selector } = given
  return {
    okUnready,
    maxUnreadyPercent,
    exitPercent,
    enterAfterMs: ms(times.enterAfter),
    exitAfterMs: ms(times.exitAfter),
    startupMs: ms(times.maxStartupTime),
    staleAfterMs: ms(times.staleAfter),
    // A selector that matches everything is treated as absent.
    selector: selector === undefined || isEmptySelector(selector) ? undefined : selector,
  }
}

function compileUpstream(given: AutoDegradeUpstream, schema: Schema<AutoDegradeUpstream>): UpstreamTrigger {
  const { maxErrorPercent, minRequests, ...times } = complete(schema, given)
  return {
    maxErrorPercent,
    maxLatencyMs: ms(times.maxLatency),
    minRequests,
    windowMs: ms(times.window),
    enterAfterMs: ms(times.enterAfter),
    exitAfterMs: ms(times.exitAfter),
  }
}

/** The schema rejects invalid durations. */
function ms(text: string): number {
  return parseDuration(text) ?? 0
}
