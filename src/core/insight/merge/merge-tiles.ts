// A cluster in one glance, out of what each replica knows of it.

import type { ClusterTile, DegradeInForce } from '../../../api/insight/overview.ts'
import type { PartOf, TilePart } from '../../../api/insight/parts.ts'
import { ratio, short } from '../figures.ts'
import { troublesOf } from '../troubles.ts'
import { addDurations, quantileOf } from './durations.ts'

export function mergeTiles(
  parts: readonly PartOf<readonly TilePart[]>[],
  bounds: Float64Array,
): readonly ClusterTile[] {
  const byName = new Map<string, PartOf<TilePart>[]>()
  for (const { replica, part } of parts) {
    for (const tile of part) {
      const same = byName.get(tile.name)
      if (same === undefined) byName.set(tile.name, [{ replica, part: tile }])
      else same.push({ replica, part: tile })
    }
  }
  return [...byName.values()].map((tiles) => mergeTile(tiles, bounds))
}

/** @param parts of one cluster, at least one */
export function mergeTile(parts: readonly PartOf<TilePart>[], bounds: Float64Array): ClusterTile {
  const sum = (of: (tile: TilePart) => number): number => parts.reduce((all, { part }) => all + of(part), 0)
  const requests = sum((tile) => tile.requestsPerSecond)
  const durations = addDurations(parts.map(({ part }) => part.durations))
  const tile = {
    requestsPerSecond: short(requests),
    errorRatio: ratio(
      sum((one) => one.errorsPerSecond),
      requests,
    ),
    refusedRatio: ratio(
      sum((one) => one.refusedPerSecond),
      requests,
    ),
    p50: quantileOf(0.5, durations, bounds),
    p99: quantileOf(0.99, durations, bounds),
    inFlight: sum((one) => one.inFlight),
    watches: sum((one) => one.watches),
    // Of the replica that reaches fewest: its clients have no more.
    endpoints: {
      up: Math.min(...parts.map(({ part }) => part.endpoints.up)),
      all: Math.max(...parts.map(({ part }) => part.endpoints.all)),
    },
    degrade: mergeDegrade(parts),
  }
  const fault = parts.find(({ part }) => part.credentialFault !== '')?.part.credentialFault ?? ''
  const spark = sumOfLines(parts.map(({ part }) => part.spark))
  return { name: parts[0]?.part.name ?? '', ...tile, troubles: troublesOf(tile, fault), spark }
}

/** A switch that is not in force at all of them, such as one thrown on a machine, names those where it is. */
function mergeDegrade(parts: readonly PartOf<TilePart>[]): DegradeInForce | null {
  const [first] = parts.flatMap(({ part }) => (part.degrade === null ? [] : [part.degrade]))
  if (first === undefined) return null
  const replicas = parts.filter(({ part }) => part.degrade?.mode === first.mode).map(({ replica }) => replica)
  return replicas.length === parts.length ? first : { ...first, replicas }
}

/** The newest values stand at the end. */
function sumOfLines(lines: readonly (readonly number[])[]): readonly number[] {
  const [only] = lines
  if (lines.length === 1 && only !== undefined) return only
  const length = Math.max(0, ...lines.map((line) => line.length))
  return Array.from({ length }, (_, i) =>
    short(lines.reduce((sum, line) => sum + (line[line.length - length + i] ?? 0), 0)),
  )
}
