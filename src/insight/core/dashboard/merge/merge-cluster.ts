// The page of one cluster, merged from all replicas.

import type { ProtectorRow } from '../../../../gateway/api/pod-protection-in-force.ts'
import { cacheStateRank } from '../../../../gateway/api/upstream-cluster/read-cache/read-cache-in-force.ts'
import {
  distinct,
  each,
  first,
  isSome,
  max,
  merge,
  type PartOf,
  type Parts,
  rate,
  rows,
  type Shape,
  said,
  sum,
  sumOfField,
  worst,
} from '../../../../kit/core/merge/merge.ts'
import { short } from '../../../../kit/core/text/figures.ts'
import type { CachedRow, ClusterPage, EndpointRow, LimitRow, ProtectionPane } from '../../../api/cluster-page.ts'
import type { ShownRefusals } from '../../../api/overview.ts'
import type { ClusterPart } from '../../../api/parts.ts'
import { clip } from '../change-log.ts'
import { mergeChanges } from './merge-changes.ts'
import { mergeSeries } from './merge-series.ts'
import { mergeTile } from './merge-tile.ts'

const MAX_ROWS = 200

/**
 * @param parts of the replicas that know the cluster, starting with the one that was asked
 * @param missing replicas that did not answer
 * @param bounds of the duration buckets, seconds
 * @returns undefined without a part
 */
export function mergeClusterPages(
  parts: readonly PartOf<ClusterPart>[],
  missing: readonly string[],
  bounds: Float64Array,
): ClusterPage | undefined {
  if (!isSome(parts)) return undefined
  const replicas = parts.map(({ replica }) => replica)
  return { ...merge(shapeOf(bounds), parts), replicas, missing: missing.toSorted() }
}

function shapeOf(bounds: Float64Array): Shape<ClusterPart, Omit<ClusterPage, 'replicas' | 'missing'>> {
  return {
    sampledAt: max,
    version: first,
    tile: (tiles) => mergeTile(tiles, bounds),
    series: (series) => mergeSeries(series, bounds),
    hosts: first,
    endpoints: rows(['url'], mergeEndpoint),
    policies: rows(['index', 'matches', 'action'], (same) => ({
      ...first(same),
      ...merge({ perSecond: rate, hits: sum }, same),
    })),
    limits: rows(['name', 'size'], mergeLimit),
    refusals: (refusals) => mergeRefusals(refusals).slice(0, MAX_ROWS),
    protection: mergeProtection,
    cached: rows(['resource', 'version'], mergeCached),
    certificates: distinct('certificate', 'endsAt'),
    problems: distinct('severity', 'message'),
    changes: (changes) => mergeChanges(changes).slice(0, MAX_ROWS),
    credentialFault: (_, parts) => said(each(parts, ({ tile }) => tile.credentialFault)),
  }
}

type MergedRefusal = Omit<ShownRefusals, 'cluster'> & Partial<Pick<ShownRefusals, 'cluster'>>
type Counts = Pick<ShownRefusals, 'perSecond' | 'count'>

/** Most frequent first. */
export function mergeRefusals<T extends MergedRefusal>(lists: Parts<readonly T[]>): readonly T[] {
  const merged = rows<T, T>(['cluster', 'reason', 'rule'], (same) => {
    return { ...first(same), ...merge<MergedRefusal, Counts>({ perSecond: rate, count: sum }, same) }
  })
  return merged(lists).toSorted((a, b) => b.count - a.count)
}

/** Worst first. */
const STATES: readonly EndpointRow['state'][] = ['down', 'ejected', 'unknown', 'up', 'backup', 'disabled']

/** As seen by the replica that sees it worst, which is named if others see it differently. */
function mergeEndpoint(same: Parts<EndpointRow>, lists: Parts<unknown>): EndpointRow {
  const { part: seen } = worst(same, ({ state }) => STATES.indexOf(state))
  const alike = same.filter(({ part }) => part.state === seen.state).map(({ replica }) => replica)
  const where = alike.length === lists.length ? '' : `${alike.join(', ')}${seen.message === '' ? '' : ': '}`
  const sums = merge({ inFlight: sum, requestsPerSecond: rate, errorsPerSecond: rate }, same)
  return { ...seen, message: clip(where + seen.message), ...sums }
}

/**
 * Each replica has its own limit of this size: the fullest counts. For a shared limit, the total use of the shared size counts as well.
 */
function mergeLimit(same: Parts<LimitRow>): LimitRow {
  const { shared, kind, size } = first(same)
  const used = sumOfField(same, kind === 'tokenBucket' ? 'admittedPerSecond' : 'inFlight')
  const fills = same.flatMap(({ part: { fill } }) => fill ?? [])
  if (shared !== null && shared > 0) fills.push(short(Math.min(1, used / shared)))
  return {
    ...first(same),
    size: same.length === 1 || kind === 'exempt' ? size : `${size} (each of ${same.length} replicas)`,
    fill: fills.length === 0 ? null : Math.max(...fills),
    // The same user may use several replicas: the maximum is shown.
    ...merge({ inFlight: sum, watches: sum, users: max, admittedPerSecond: rate, rejectedPerSecond: rate }, same),
  }
}

/** As the replica that is worst off has it, which is named if others are better; each keeps the same objects, in memory of its own. */
function mergeCached(same: Parts<CachedRow>, lists: Parts<unknown>): CachedRow {
  const { replica, part: seen } = worst(same, ({ state }) => cacheStateRank(state))
  const differs = same.length < lists.length || same.some(({ part }) => part.state !== seen.state)
  const ages = same.flatMap(({ part: { ageSeconds } }) => ageSeconds ?? [])
  const passes = rows<CachedRow['passes'][number], CachedRow['passes'][number]>(['reason'], (counts) => ({
    ...first(counts),
    count: sumOfField(counts, 'count'),
  }))
  return {
    ...seen,
    message: differs ? clip(`${replica}${seen.message === '' ? '' : `: ${seen.message}`}`) : seen.message,
    ageSeconds: ages.length === 0 ? null : Math.max(...ages),
    passes: passes(each(same, (row) => row.passes)).toSorted((a, b) => b.count - a.count),
    ...merge({ objects: max, bytes: sum, hits: sum }, same),
  }
}

/** States of a replica, least protective first. */
const PROTECTION_STATES: readonly string[] = ['Broken', 'Starting', 'Counting']

/** Replicas count the same pods: for each protector, uses the count that allows the fewest deletions. */
function mergeProtection(all: Parts<ProtectionPane | null>): ProtectionPane | null {
  const panes = all.flatMap(({ replica, part }) => (part === null ? [] : [{ replica, part }]))
  if (!isSome(panes)) return null
  const { replica, part: least } = worst(panes, ({ state }) => {
    const at = PROTECTION_STATES.indexOf(state)
    return at < 0 ? PROTECTION_STATES.length : at
  })
  const differs = panes.some(({ part }) => part.state !== least.state)
  return {
    ...least,
    message: differs ? clip(`${replica}${least.message === '' ? '' : `: ${least.message}`}`) : least.message,
    ...merge({ protectors: rows(['namespace', 'name'], mergeProtector), omitted: max }, panes),
  }
}

function mergeProtector(same: Parts<ProtectorRow>): ProtectorRow {
  const { stuck, stuckCount } = worst(same, (row) => -row.stuckCount).part
  const { part: least } = worst(same, ({ mayGo }) => mayGo)
  return { ...least, stuck, stuckCount, ...merge({ fault: said }, same) }
}
