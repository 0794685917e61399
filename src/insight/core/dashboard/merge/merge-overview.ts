// Merges the overviews of all replicas. A single one is shown by the same function.

import {
  distinct,
  first,
  max,
  merge,
  type Parts,
  rate,
  rows,
  type Shape,
  sum,
} from '../../../../kit/core/merge/merge.ts'
import type { ClusterTile, Overview, SwitchInForce } from '../../../api/overview.ts'
import type { OverviewPart, TotalsPart } from '../../../api/parts.ts'
import { chooseTiles, labelKeysOf, type TileChoice } from '../choose-tiles.ts'
import { isHurting } from '../troubles.ts'
import { mergeChanges } from './merge-changes.ts'
import { mergeRefusals } from './merge-cluster.ts'
import { mergeSeries } from './merge-series.ts'
import { mergeTile } from './merge-tile.ts'

/** Maximum entries per list. */
const MAX_ROWS = 50

type Lists = Pick<Overview, 'switches' | 'changes' | 'refusals' | 'certificates' | 'problems'>

/**
 * @param parts of the replicas that answered, starting with the one that was asked
 * @param missing replicas that did not
 * @param bounds of the duration buckets, seconds
 */
export function mergeOverviews(
  parts: Parts<OverviewPart>,
  missing: readonly string[],
  choice: TileChoice,
  bounds: Float64Array,
): Overview {
  const { tiles, totals, sampledAt, version, ...merged } = merge(shapeOf(bounds, choice.group), parts)
  const { tiles: clusters, ...shown } = chooseTiles(tiles, choice)
  const lists: Lists = { switches: switchesOf(tiles), ...merged }
  const cut = <T>(list: readonly T[]): readonly T[] => list.slice(0, MAX_ROWS)
  return {
    sampledAt,
    version,
    replicas: parts.map(({ replica }) => replica),
    missing: missing.toSorted(),
    totals: {
      clusters: tiles.length,
      hurting: tiles.filter(isHurting).length,
      switched: tiles.filter(({ degrade }) => degrade !== null).length,
      ...totals,
    },
    clusters,
    labelKeys: labelKeysOf(parts.flatMap(({ part }) => part.tiles.map(({ labels }) => labels))),
    ...shown,
    switches: cut(lists.switches),
    changes: cut(lists.changes),
    refusals: cut(lists.refusals),
    certificates: cut(lists.certificates),
    problems: cut(lists.problems),
    omitted: omittedOf(lists, parts),
  }
}

type MergedTotals = Omit<Overview['totals'], 'clusters' | 'hurting' | 'switched'>
type Merged = Omit<Lists, 'switches'> &
  Pick<Overview, 'sampledAt' | 'version'> & { readonly tiles: readonly ClusterTile[]; readonly totals: MergedTotals }

function shapeOf(bounds: Float64Array, group: string): Shape<OverviewPart, Merged> {
  const totals: Shape<TotalsPart, MergedTotals> = {
    requestsPerSecond: rate,
    errorsPerSecond: rate,
    refusedPerSecond: rate,
    inFlight: sum,
    watches: sum,
    series: (series) => mergeSeries(series, bounds),
  }
  return {
    sampledAt: max,
    version: first,
    totals: (parts) => merge(totals, parts),
    tiles: rows(['name'], (same) => mergeTile(same, bounds, group)),
    changes: mergeChanges,
    refusals: mergeRefusals,
    certificates: (lists) =>
      distinct<Overview['certificates'][number]>(
        'cluster',
        'certificate',
        'endsAt',
      )(lists).toSorted((a, b) => a.endsAt - b.endsAt),
    problems: distinct('cluster', 'severity', 'message'),
  }
}

/** Those that end soonest come first, then those without an end. */
function switchesOf(tiles: readonly ClusterTile[]): readonly SwitchInForce[] {
  const switches = tiles.flatMap(({ name, degrade }) => (degrade === null ? [] : [{ cluster: name, ...degrade }]))
  const end = ({ expiresAt }: SwitchInForce): number => (expiresAt === 0 ? Number.POSITIVE_INFINITY : expiresAt)
  return switches.sort((a, b) => (end(a) === end(b) ? (a.cluster < b.cluster ? -1 : 1) : end(a) - end(b)))
}

/** What is not shown here, plus the most that a replica left out of its part: others left out the same. */
function omittedOf(
  lists: Readonly<Record<keyof Lists, readonly unknown[]>>,
  parts: Parts<OverviewPart>,
): Overview['omitted'] {
  const omitted = Object.entries(lists).flatMap(([name, list]): [string, number][] => {
    const more = Math.max(0, list.length - MAX_ROWS) + Math.max(...parts.map(({ part }) => part.omitted[name] ?? 0))
    return more > 0 ? [[name, more]] : []
  })
  return Object.fromEntries(omitted)
}
