// The overview of all replicas, out of what each of them tells. One alone is shown by the same function.

import type { ClusterTile, Overview, SwitchInForce } from '../../../api/insight/overview.ts'
import type { OverviewPart, PartOf, TotalsPart } from '../../../api/insight/parts.ts'
import { chooseTiles, type TileChoice } from '../choose-tiles.ts'
import { short } from '../figures.ts'
import { isHurting } from '../troubles.ts'
import { mergeChanges } from './merge-changes.ts'
import { distinctRows, mergeRefusals, sumOf } from './merge-rows.ts'
import { mergeSeries } from './merge-series.ts'
import { mergeTiles } from './merge-tiles.ts'

/** Entries of each list. */
const MAX_ROWS = 50

/**
 * @param parts of the replicas that have answered, the asked one first; at least one
 * @param missing replicas that have not
 * @param bounds of the buckets of durations, seconds
 */
export function mergeOverviews(
  parts: readonly PartOf<OverviewPart>[],
  missing: readonly string[],
  choice: TileChoice,
  bounds: Float64Array,
): Overview {
  const whole = parts.map(({ part }) => part)
  const tiles = mergeTiles(
    parts.map(({ replica, part }) => ({ replica, part: part.tiles })),
    bounds,
  )
  const { tiles: clusters, matching, page, pages } = chooseTiles(tiles, choice)
  const lists = {
    switches: switchesOf(tiles),
    changes: mergeChanges(parts.map(({ replica, part }) => ({ replica, part: part.changes }))),
    refusals: mergeRefusals(whole.map(({ refusals }) => refusals)),
    certificates: distinctRows(
      whole.map((part) => part.certificates),
      ({ cluster, certificate, endsAt }) => JSON.stringify([cluster, certificate, endsAt]),
    ).toSorted((a, b) => a.endsAt - b.endsAt),
    problems: distinctRows(
      whole.map((part) => part.problems),
      ({ cluster, severity, message }) => JSON.stringify([cluster, severity, message]),
    ),
  }
  const first = <T>(list: readonly T[]): readonly T[] => list.slice(0, MAX_ROWS)
  return {
    sampledAt: Math.max(...whole.map(({ sampledAt }) => sampledAt)),
    version: whole[0]?.version ?? '',
    replicas: parts.map(({ replica }) => replica),
    missing: missing.toSorted(),
    totals: totalsOf(
      tiles,
      whole.map(({ totals }) => totals),
      bounds,
    ),
    clusters,
    matching,
    page,
    pages,
    switches: first(lists.switches),
    changes: first(lists.changes),
    refusals: first(lists.refusals),
    certificates: first(lists.certificates),
    problems: first(lists.problems),
    omitted: omittedOf(lists, whole),
  }
}

function totalsOf(
  tiles: readonly ClusterTile[],
  totals: readonly TotalsPart[],
  bounds: Float64Array,
): Overview['totals'] {
  return {
    clusters: tiles.length,
    hurting: tiles.filter(isHurting).length,
    switched: tiles.filter(({ degrade }) => degrade !== null).length,
    requestsPerSecond: short(sumOf(totals, ({ requestsPerSecond }) => requestsPerSecond)),
    errorsPerSecond: short(sumOf(totals, ({ errorsPerSecond }) => errorsPerSecond)),
    refusedPerSecond: short(sumOf(totals, ({ refusedPerSecond }) => refusedPerSecond)),
    inFlight: sumOf(totals, ({ inFlight }) => inFlight),
    watches: sumOf(totals, ({ watches }) => watches),
    series: mergeSeries(
      totals.map(({ series }) => series),
      bounds,
    ),
  }
}

/** Those that end next come first, then those without an end. */
function switchesOf(tiles: readonly ClusterTile[]): readonly SwitchInForce[] {
  const switches = tiles.flatMap(({ name, degrade }) => (degrade === null ? [] : [{ cluster: name, ...degrade }]))
  const end = ({ expiresAt }: SwitchInForce): number => (expiresAt === 0 ? Number.POSITIVE_INFINITY : expiresAt)
  return switches.sort((a, b) => (end(a) === end(b) ? (a.cluster < b.cluster ? -1 : 1) : end(a) - end(b)))
}

/** What is not shown here, and the most that a replica has left out of its part: others left out the same. */
function omittedOf(
  lists: Readonly<Record<string, readonly unknown[]>>,
  parts: readonly OverviewPart[],
): Overview['omitted'] {
  const omitted = Object.entries(lists).flatMap(([name, list]): [string, number][] => {
    const more = Math.max(0, list.length - MAX_ROWS) + Math.max(...parts.map((part) => part.omitted[name] ?? 0))
    return more > 0 ? [[name, more]] : []
  })
  return Object.fromEntries(omitted)
}
