// The page of one cluster, of all replicas.

import type {
  ClusterPage,
  EndpointRow,
  LimitRow,
  ProtectionPane,
  ProtectorRow,
} from '../../../api/insight/cluster-page.ts'
import type { ClusterPart, PartOf } from '../../../api/insight/parts.ts'
import { clip } from '../change-log.ts'
import { short } from '../figures.ts'
import { mergeChanges } from './merge-changes.ts'
import { distinctRows, groupRows, mergeRefusals, sumOf } from './merge-rows.ts'
import { mergeSeries } from './merge-series.ts'
import { mergeTile } from './merge-tiles.ts'

const MAX_ROWS = 200

/**
 * @param parts of the replicas that know the cluster, the asked one first; at least one
 * @param missing replicas that have not answered
 * @param bounds of the buckets of durations, seconds
 * @returns undefined without a part
 */
export function mergeClusterPages(
  parts: readonly PartOf<ClusterPart>[],
  missing: readonly string[],
  bounds: Float64Array,
): ClusterPage | undefined {
  const [first] = parts
  if (first === undefined) return undefined
  const whole = parts.map(({ part }) => part)
  const each = <T>(of: (part: ClusterPart) => T): readonly T[] => whole.map(of)
  const named = <T>(of: (part: ClusterPart) => readonly T[]): (readonly (T & { readonly replica: string })[])[] =>
    parts.map(({ replica, part }) => of(part).map((row) => ({ ...row, replica })))
  return {
    sampledAt: Math.max(...each(({ sampledAt }) => sampledAt)),
    version: first.part.version,
    replicas: parts.map(({ replica }) => replica),
    missing: missing.toSorted(),
    tile: mergeTile(
      parts.map(({ replica, part }) => ({ replica, part: part.tile })),
      bounds,
    ),
    series: mergeSeries(
      each(({ series }) => series),
      bounds,
    ),
    hosts: first.part.hosts,
    endpoints: groupRows(
      named(({ endpoints }) => endpoints),
      ({ url }) => url,
    ).map((same) => mergeEndpoint(same, parts.length)),
    policies: groupRows(
      each(({ policies }) => policies),
      ({ index, matches, action }) => JSON.stringify([index, matches, action]),
    ).map((same) => ({
      ...same[0],
      perSecond: short(sumOf(same, ({ perSecond }) => perSecond)),
      hits: sumOf(same, ({ hits }) => hits),
    })),
    limits: groupRows(
      each(({ limits }) => limits),
      ({ name, size }) => JSON.stringify([name, size]),
    ).map(mergeLimit),
    refusals: mergeRefusals(each(({ refusals }) => refusals)).slice(0, MAX_ROWS),
    protection: mergeProtection(parts),
    certificates: distinctRows(
      each(({ certificates }) => certificates),
      ({ certificate, endsAt }) => JSON.stringify([certificate, endsAt]),
    ),
    problems: distinctRows(
      each(({ problems }) => problems),
      ({ severity, message }) => JSON.stringify([severity, message]),
    ),
    changes: mergeChanges(parts.map(({ replica, part }) => ({ replica, part: part.changes }))).slice(0, MAX_ROWS),
    credentialFault: whole.find(({ tile }) => tile.credentialFault !== '')?.tile.credentialFault ?? '',
  }
}

/** The worst first. */
const STATES: readonly EndpointRow['state'][] = ['down', 'ejected', 'unknown', 'up', 'backup', 'disabled']

type NamedEndpoint = EndpointRow & { readonly replica: string }

/** As the replica sees it that sees it worst; named when others see it otherwise. */
function mergeEndpoint(rows: readonly [NamedEndpoint, ...NamedEndpoint[]], replicas: number): EndpointRow {
  const rank = ({ state }: EndpointRow): number => STATES.indexOf(state)
  const worst = rows.reduce((found, row) => (rank(row) < rank(found) ? row : found))
  const alike = rows.filter(({ state }) => state === worst.state).map(({ replica }) => replica)
  const where = alike.length === replicas ? '' : `${alike.join(', ')}${worst.message === '' ? '' : ': '}`
  const { replica: _, ...row } = worst
  return {
    ...row,
    message: clip(where + worst.message),
    inFlight: sumOf(rows, ({ inFlight }) => inFlight),
    requestsPerSecond: short(sumOf(rows, ({ requestsPerSecond }) => requestsPerSecond)),
    errorsPerSecond: short(sumOf(rows, ({ errorsPerSecond }) => errorsPerSecond)),
  }
}

/**
 * Each replica has a limit of this size of its own: the fullest counts. Of one that is shared, what all of them use of the size for all
 * counts as well.
 */
function mergeLimit(rows: readonly [LimitRow, ...LimitRow[]]): LimitRow {
  const [first] = rows
  const inFlight = sumOf(rows, (row) => row.inFlight)
  const admittedPerSecond = sumOf(rows, (row) => row.admittedPerSecond)
  const { shared, kind } = first
  const used = kind === 'tokenBucket' ? admittedPerSecond : inFlight
  const fills = rows.flatMap(({ fill }) => (fill === null ? [] : [fill]))
  if (shared !== null && shared > 0) fills.push(short(Math.min(1, used / shared)))
  return {
    ...first,
    size: rows.length === 1 || kind === 'exempt' ? first.size : `${first.size} (each of ${rows.length} replicas)`,
    fill: fills.length === 0 ? null : Math.max(...fills),
    inFlight,
    watches: sumOf(rows, ({ watches }) => watches),
    // The same user may ask several replicas.
    users: Math.max(...rows.map(({ users }) => users)),
    admittedPerSecond: short(admittedPerSecond),
    rejectedPerSecond: short(sumOf(rows, ({ rejectedPerSecond }) => rejectedPerSecond)),
  }
}

/** Of states of a replica: the one that protects least first. */
const PROTECTION_STATES: readonly string[] = ['Broken', 'Starting', 'Counting']

/** Replicas count the same pods: of each protector, what the one counts that lets fewest go. */
function mergeProtection(parts: readonly PartOf<ClusterPart>[]): ProtectionPane | null {
  const panes = parts.flatMap(({ replica, part }) =>
    part.protection === null ? [] : [{ replica, ...part.protection }],
  )
  const [first] = panes
  if (first === undefined) return null
  const rank = ({ state }: ProtectionPane): number => {
    const at = PROTECTION_STATES.indexOf(state)
    return at < 0 ? PROTECTION_STATES.length : at
  }
  const { replica, ...worst } = panes.reduce((found, pane) => (rank(pane) < rank(found) ? pane : found))
  const differs = panes.some(({ state }) => state !== worst.state)
  return {
    ...worst,
    message: differs ? clip(`${replica}${worst.message === '' ? '' : `: ${worst.message}`}`) : worst.message,
    protectors: groupRows(
      panes.map(({ protectors }) => protectors),
      ({ namespace, name }) => JSON.stringify([namespace, name]),
    ).map(mergeProtector),
    omitted: Math.max(...panes.map(({ omitted }) => omitted)),
  }
}

function mergeProtector(rows: readonly [ProtectorRow, ...ProtectorRow[]]): ProtectorRow {
  const most = rows.reduce((found, row) => (row.stuckCount > found.stuckCount ? row : found))
  const least = rows.reduce((found, row) => (row.mayGo < found.mayGo ? row : found))
  const fault = rows.find((row) => row.fault !== '')?.fault ?? ''
  return { ...least, stuck: most.stuck, stuckCount: most.stuckCount, fault }
}
