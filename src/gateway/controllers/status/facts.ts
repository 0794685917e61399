// Gathers the inputs of the status of one UpstreamCluster from the live state of the main thread.

import type { Clock } from '../../../kit/api/ports.ts'
import type { SourceError } from '../../api/resource-source.ts'
import type { CachedResourceInForce } from '../../api/upstream-cluster/read-cache/read-cache-in-force.ts'
import { type CellClocks, certainSkewMs } from '../../core/clocks/cell-clock.ts'
import type { CompiledCachedResource, CompiledCluster } from '../../core/cluster/compiled-cluster.ts'
import {
  type GatewayRight,
  isProtectionRight,
  missingRightsMessage,
  requestsStillPass,
} from '../../core/identity/gateway-rights.ts'
import { effectiveMode } from '../../core/policy/degrade.ts'
import { type MembersFact, membersFact } from '../../core/status/members.ts'
import type {
  AutoscalerFact,
  CredentialFault,
  EndpointState,
  IssuerFact,
  LimitsFact,
  MeasuredClocks,
  ProtectionFact,
  RightsFact,
  ServerFact,
  StatusFacts,
} from '../../core/status/status-facts.ts'
import type { LiveCluster } from '../../state/clusters.ts'
import { certificateFaults, certificatesEndingSoon } from './certificates.ts'

/** The part of the main thread's clusters used for statuses. */
export interface LiveClusters {
  get(name: string): LiveCluster | undefined
}

interface GatheringDeps {
  readonly clusters: LiveClusters
  readonly clock: Clock
  /** The gateway's rights in a cluster. */
  rights(cluster: string): ClusterRights
  /** Problem of shared limits; '' = none; absent = there is no Redis. */
  limitsMessage?(cluster: string): string
  /** Default: clocks are not reported. */
  readonly clocks?: CellClocks
  /** Its servers whose names are looked up; undefined = none. Default: none. */
  servers?(cluster: string): readonly ServerFact[] | undefined
  /** Issuers of its tokens; undefined = none. Default: none. */
  issuers?(cluster: string): readonly IssuerFact[] | undefined
  /** Read caches that this replica keeps of a cluster. Default: none. */
  readCache?(cluster: string): readonly CachedResourceInForce[]
  /** Status of its cluster-autoscaler; undefined = not followed here. Default: never followed. */
  autoscaler?(cluster: string): AutoscalerFact | undefined
}

/** A RightsFact with the missing rights. */
export type ClusterRights =
  | Exclude<RightsFact, { readonly kind: 'missing' }>
  | { readonly kind: 'missing'; readonly missing: readonly GatewayRight[]; readonly message: string }

/** @param inForce metadata.generation that all threads have in force; 0 = none */
export function gatherFacts(
  deps: GatheringDeps,
  name: string,
  generation: number,
  inForce: number,
  problems: readonly SourceError[],
): StatusFacts {
  const { clusters, clock, rights } = deps
  const live = inForce === 0 ? undefined : clusters.get(name)
  const clocks = live === undefined ? undefined : measuredClocks(deps, live.compiled)
  const endpoints = live === undefined ? [] : endpointStates(live, clock)
  const granted = rights(name)
  return {
    generation,
    problems,
    inForce: live === undefined ? 0 : inForce,
    degrade: live?.compiled.degrade,
    endpoints,
    credentials: live === undefined ? [] : credentialFaults(live.compiled, endpoints, granted, clock.now()),
    endingSoon: live === undefined ? [] : certificatesEndingSoon(live.compiled, clock.now()),
    rights: granted,
    hasClientCA: live === undefined ? undefined : live.compiled.serving.clientCA !== '',
    shadows: live === undefined ? [] : shadowsOf(live.compiled),
    limits: live === undefined ? undefined : limitsFact(live.compiled, deps.limitsMessage?.(name)),
    protection: live === undefined ? undefined : protectionFact(live.compiled, granted),
    cache: live?.compiled.cache?.map(cachedLabel),
    members: live === undefined ? undefined : membersOf(deps, live.compiled),
    ...(clocks !== undefined && { clocks }),
    servers: live === undefined ? undefined : deps.servers?.(name),
    issuers: live === undefined ? undefined : deps.issuers?.(name),
    autoscaler: live === undefined ? undefined : autoscalerFact(deps, live.compiled),
  }
}

function membersOf({ clusters, readCache }: GatheringDeps, { federation }: CompiledCluster): MembersFact | undefined {
  return (
    federation &&
    membersFact(federation, {
      get: (cluster) => clusters.get(cluster)?.compiled,
      cached: (cluster) => readCache?.(cluster) ?? [],
    })
  )
}

function cachedLabel({ group, resource }: CompiledCachedResource): string {
  return group === '' ? resource : `${resource}.${group}`
}

/** Keeps the previous status of an autoscaler that should be followed but isn't yet. */
function autoscalerFact(deps: GatheringDeps, { name, autoscaler }: CompiledCluster): AutoscalerFact | undefined {
  if (autoscaler === undefined) return undefined
  const { namespace, name: configMap, staleAfterMs } = autoscaler
  const nothing = { message: '', state: '', report: undefined, writtenAtMs: 0, staleAfterMs }
  return deps.autoscaler?.(name) ?? { where: `${namespace}/${configMap}`, seen: 'pending', ...nothing }
}

/** Only pod protection depends on clocks. */
function measuredClocks({ clock, clocks }: GatheringDeps, { protection }: CompiledCluster): MeasuredClocks | undefined {
  if (protection === undefined || clocks === undefined) return undefined
  const skew = clocks.skew(protection.cell, clock.now(), clock.monotonic())
  return { skew, toleratedMs: clocks.marginMs }
}

/** Features in shadow mode, except the degrade switch and pod protection, which have their own conditions. */
function shadowsOf({ access, policies, schemas }: CompiledCluster): string[] {
  const found = access?.shadow === true ? ['accessControl'] : []
  for (const { name, shadow } of schemas) if (shadow) found.push(`flow control schema ${name}`)
  for (const { index, shadow } of policies) if (shadow) found.push(`dispatchPolicies[${index}]`)
  return found
}

function limitsFact({ schemas }: CompiledCluster, message: string | undefined): LimitsFact | undefined {
  if (!schemas.some(({ shared }) => shared !== undefined)) return undefined
  return { redis: message !== undefined, message: message ?? '' }
}

function protectionFact({ protection }: CompiledCluster, rights: ClusterRights): ProtectionFact | undefined {
  if (protection === undefined) return undefined
  const { cell, shadow, aggregation } = protection
  const missing = rights.kind === 'missing' ? rights.missing.filter(isProtectionRight) : []
  const missingRights = missing.length === 0 ? '' : missingRightsMessage(missing, '')
  return { cell, shadow, counted: aggregation.enabled, missingRights }
}

function endpointStates({ endpoints }: LiveCluster, clock: Clock): EndpointState[] {
  // A backup that could serve but isn't needed is fine.
  const needed = endpoints.describe(clock.monotonic()).filter(({ url, state, available }) => {
    return available || state !== 'healthy' || endpoints.byUrl(url)?.compiled.backup !== true
  })
  return needed.map(({ url, state, available, lastProbe }) => {
    // Weight 0 is equivalent to disabled: taking no requests is intended.
    const disabled = endpoints.byUrl(url)?.enabled !== true
    return { url, disabled, state, available, message: lastProbe?.message ?? '' }
  })
}

/** Changes whenever the status may change without an event: endpoints, expiry of the degrade mode, certificates, rights, clocks. */
export function liveSignature(deps: GatheringDeps, name: string): string {
  const { clusters, clock, rights } = deps
  const live = clusters.get(name)
  if (live === undefined) return ''
  const { compiled, endpoints } = live
  const nowMs = clock.now()
  const monotonicMs = clock.monotonic()
  let text: string = effectiveMode(compiled.degrade, nowMs)
  for (let i = 0; i < endpoints.all.length; i++) {
    const endpoint = endpoints.view(i)
    text += `,${endpoint?.health.state}${endpoints.available(i, monotonicMs)}${endpoint?.lastProbe?.message ?? ''}`
  }
  for (const { path } of certificateFaults(compiled, nowMs)) text += path
  text += certificatesEndingSoon(compiled, nowMs).join('')
  for (const { keys, asked, message } of deps.issuers?.(name) ?? []) text += `,${keys}${asked}${message}`
  for (const { addresses, message } of deps.servers?.(name) ?? []) text += `,${addresses.join()}${message}`
  const granted = rights(name)
  text += granted.kind
  if ('message' in granted) text += granted.message
  const measured = measuredClocks(deps, compiled)
  if (measured !== undefined) text += `,${clocksSignature(measured)}`
  for (const { state, message } of membersOf(deps, compiled)?.members ?? []) text += `,${state}${message}`
  const autoscaler = deps.autoscaler?.(name)
  if (autoscaler !== undefined) text += autoscalerSignature(autoscaler)
  return text
}

/** One object per report, and a text per verdict: cheap to compare every second. */
function autoscalerSignature({ seen, message, state, report }: AutoscalerFact): string {
  return `,${seen}${message}${state}${report === undefined ? '' : numberOf(report)}`
}

const numbers = new WeakMap<object, number>()
let nextNumber = 0

/** Unique per report. */
function numberOf(report: object): number {
  const known = numbers.get(report) ?? ++nextNumber
  numbers.set(report, known)
  return known
}

/** Rounded, because skew drifts slowly. */
function clocksSignature({ skew }: MeasuredClocks): string {
  return skew === undefined ? 'unknown' : String(Math.round(certainSkewMs(skew) / SKEW_STEP_MS))
}

const SKEW_STEP_MS = 5_000
const REFUSED = 'answered with 401'

/** Expired certificates, and credentials that upstream rejects. */
function credentialFaults(
  compiled: CompiledCluster,
  endpoints: readonly EndpointState[],
  rights: ClusterRights,
  nowMs: number,
): CredentialFault[] {
  const faults = [...certificateFaults(compiled, nowMs)]
  const { client } = compiled
  const refusing = endpoints.filter(({ message, disabled }) => !disabled && message === REFUSED)
  if (refusing.length > 0 && (client.cert !== '' || client.bearerToken !== '')) {
    const urls = refusing.map(({ url }) => url).join(', ')
    const message = `${urls} answers its health check with 401`
    faults.push({ path: 'spec.clientConfig', reason: 'Refused', message, partial: true })
  } else if (rights.kind === 'rejected') {
    faults.push({ path: 'spec.clientConfig', reason: 'Refused', message: rights.message })
  }
  if (rights.kind === 'missing') {
    const partial = requestsStillPass(rights.missing)
    faults.push({ path: 'spec.clientConfig', reason: 'Forbidden', message: rights.message, partial })
  }
  return faults
}
