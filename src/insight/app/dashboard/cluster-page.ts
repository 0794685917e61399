// One cluster in full.

import { certificateEnds } from '../../../gateway/controllers/status/certificates.ts'
import type {
  CompiledCluster,
  CompiledList,
  CompiledPolicy,
  CompiledRule,
  CompiledSchema,
} from '../../../gateway/core/cluster/compiled-cluster.ts'
import type { LiveCluster } from '../../../gateway/state/clusters.ts'
import { short } from '../../../kit/core/text/figures.ts'
import type { CachedRow, EndpointRow, LimitRow, PolicyRow, ProtectionPane } from '../../api/cluster-page.ts'
import type { Change } from '../../api/overview.ts'
import type { ClusterPart } from '../../api/parts.ts'
import { clip } from '../../core/dashboard/change-log.ts'
import { type OverviewDeps, problemRow } from './overview.ts'
import { ClusterSample } from './samples.ts'
import { tileOf } from './tiles.ts'

export interface ClusterPageDeps extends OverviewDeps {
  /** What protects its pods; null = nothing. */
  protection(cluster: CompiledCluster): ProtectionPane | null
  /** What it answers itself. */
  cached(cluster: string): readonly CachedRow[]
  /** Its Events in the API server; none if they cannot be read. Never rejects. */
  events(cluster: string): Promise<readonly Change[]>
}

const MAX_ROWS = 200
const MAX_HOSTS = 50

/** What this replica knows about it. */
export async function clusterPart(live: LiveCluster, deps: ClusterPageDeps): Promise<ClusterPart> {
  const { compiled } = live
  const { samples, clock } = deps
  const { name } = compiled
  const sample = samples.of(name)
  const events = await deps.events(name)
  const changes = [...deps.changes.recent(clock.now(), name), ...events].sort((a, b) => b.at - a.at)
  return {
    sampledAt: samples.takenAt,
    version: deps.version,
    tile: tileOf(live, deps),
    series: (sample ?? new ClusterSample()).series(samples.takenAt),
    hosts: [...compiled.hosts, ...compiled.ips, ...compiled.ports.map((port) => `port ${port}`)].slice(0, MAX_HOSTS),
    endpoints: endpointRows(live, sample, clock.monotonic()),
    policies: policyRows(compiled, sample),
    limits: limitRows(live, sample, clock.monotonic()),
    refusals: (sample?.refusals(name) ?? []).slice(0, MAX_ROWS).map(({ reason, rule, code, perSecond, count }) => {
      return { reason, rule: clip(rule), code, perSecond: short(perSecond), count }
    }),
    protection: deps.protection(compiled),
    cached: deps.cached(name),
    certificates: certificateEnds(compiled).map(([certificate, endsAt]) => ({ certificate, endsAt })),
    problems: deps
      .problems()
      .map(problemRow)
      .filter(({ cluster }) => cluster === name),
    changes: changes.slice(0, MAX_ROWS),
  }
}

function endpointRows(
  { compiled, endpoints }: LiveCluster,
  sample: ClusterSample | undefined,
  nowMs: number,
): EndpointRow[] {
  return endpoints.describe(nowMs).map(({ url, disabled, state, ejected, available, inFlight, lastProbe }, i) => {
    const rates = sample?.endpoints.get(url)
    const backup = compiled.endpoints[i]?.backup === true && !available
    const up = state === 'healthy' ? (backup ? 'backup' : 'up') : state === 'unhealthy' ? 'down' : 'unknown'
    return {
      url,
      state: disabled ? 'disabled' : ejected ? 'ejected' : up,
      message: lastProbe === undefined || lastProbe.ok ? '' : clip(lastProbe.message),
      inFlight,
      requestsPerSecond: short(rates?.requests ?? 0),
      errorsPerSecond: short(rates?.errors ?? 0),
      weight: compiled.endpoints[i]?.weight ?? 0,
    }
  })
}

function policyRows({ policies, schemas }: CompiledCluster, sample: ClusterSample | undefined): PolicyRow[] {
  return policies.slice(0, MAX_ROWS).map((policy) => ({
    index: policy.index,
    matches: clip(describePolicy(policy)),
    action: actionOf(policy),
    limit: schemas[policy.schema]?.name ?? '',
    strategy: policy.strategy,
    perSecond: short(sample?.policies.get(String(policy.index)) ?? 0),
    hits: sample?.totals?.policies.get(String(policy.index)) ?? 0,
  }))
}

function actionOf({ deny, shadow }: CompiledPolicy): PolicyRow['action'] {
  return deny ? (shadow ? 'deny (shadow)' : 'deny') : 'allow'
}

function limitRows({ compiled, flows }: LiveCluster, sample: ClusterSample | undefined, nowMs: number): LimitRow[] {
  const states = new Map(flows.describe(nowMs).map((flow) => [flow.schema, flow]))
  return compiled.schemas.slice(0, MAX_ROWS).map((schema, index) => {
    const flow = states.get(schema.name)
    const inFlight = flow?.inFlight ?? 0
    return {
      index,
      change: changeOf(schema),
      name: schema.name,
      kind: schema.kind,
      perUser: schema.perUser,
      shadow: schema.shadow,
      size: sizeOf(schema),
      shared: sharedOf(schema),
      fill: fillOf(schema, inFlight, flow?.tokens ?? schema.burst),
      inFlight,
      watches: flow?.watches ?? 0,
      users: flow?.users ?? 0,
      admittedPerSecond: short(sample?.admitted.get(schema.name) ?? 0),
      rejectedPerSecond: short(sample?.rejected.get(schema.name) ?? 0),
    }
  })
}

function changeOf({ kind, qps, max }: CompiledSchema): LimitRow['change'] {
  if (kind === 'tokenBucket') return { path: 'tokenBucket/qps', value: qps }
  return kind === 'maxRequestsInflight' ? { path: 'maxRequestsInflight/max', value: max } : null
}

function sizeOf({ kind, qps, burst, max, maxWatches, shared }: CompiledSchema): string {
  const size =
    kind === 'tokenBucket' ? `${qps}/s, burst ${burst}` : kind === 'maxRequestsInflight' ? `${max} at once` : 'exempt'
  const watches = maxWatches > 0 ? `, ${maxWatches} watches` : ''
  return `${size}${watches}${shared === undefined ? '' : `, ${kind === 'tokenBucket' ? `${shared.qps}/s` : shared.max} of all replicas`}`
}

function sharedOf({ kind, shared, perUser }: CompiledSchema): number | null {
  if (shared === undefined || perUser || kind === 'exempt') return null
  return kind === 'tokenBucket' ? shared.qps : shared.max
}

function fillOf({ kind, burst, max, perUser }: CompiledSchema, inFlight: number, tokens: number): number | null {
  if (kind === 'maxRequestsInflight' && !perUser) return max === 0 ? 1 : short(Math.min(1, inFlight / max))
  // For a per-user limit, the tokens are those of the user with the fewest.
  if (kind === 'tokenBucket' && burst > 0) return short(Math.min(1, Math.max(0, 1 - tokens / burst)))
  return null
}

// Summarizes a dispatch policy in one line: `list, watch pods of ci-*`.
const MAX_NAMES = 4
const MAX_RULES = 3

function describePolicy({ rules }: Pick<CompiledPolicy, 'rules'>): string {
  if (rules.length === 0) return 'nothing'
  const shown = rules.slice(0, MAX_RULES).map(describeRule)
  return rules.length > MAX_RULES ? `${shown.join('; or ')}; or ${rules.length - MAX_RULES} more` : shown.join('; or ')
}

function describeRule(rule: CompiledRule): string {
  const verbs = namesOf(rule.verbs) ?? 'all verbs'
  const resources = namesOf(rule.resources)
  const urls = namesOf(rule.nonResourceURLs)
  const what =
    rule.resources.kind === 'none' ? (urls ?? 'all URLs') : `${resources ?? 'everything'}${groupsOf(rule.apiGroups)}`
  const parts = [`${verbs} ${what}`]
  const add = (word: string, list: CompiledList): void => {
    const names = namesOf(list)
    if (names !== undefined && list.kind !== 'none') parts.push(`${word} ${names}`)
  }
  add('named', rule.resourceNames)
  add('in', rule.namespaces)
  add('by', rule.users)
  add('by groups', rule.userGroups)
  add('with', rule.userAgents)
  return parts.join(' ')
}

function groupsOf(groups: CompiledList): string {
  const names = namesOf(groups)
  return names === undefined || names === '""' || groups.kind === 'none' ? '' : ` (${names})`
}

/** undefined = all. */
function namesOf({ kind, exact, prefixes, subresources }: CompiledList): string | undefined {
  if (kind === 'all') return undefined
  if (kind === 'none') return 'none'
  const names = [
    ...[...exact].map((name) => (name === '' ? '""' : name)),
    ...prefixes.map((prefix) => `${prefix}*`),
    ...[...subresources].map((name) => `*/${name}`),
  ]
  const shown = names.slice(0, MAX_NAMES).join(', ')
  const all = names.length > MAX_NAMES ? `${shown} and ${names.length - MAX_NAMES} more` : shown
  return kind === 'none-of' ? `all but ${all}` : all
}
