// Merges the replicas' summaries of a cluster.

import {
  first,
  lines,
  merge,
  type Parts,
  rate,
  type Shape,
  said,
  sum,
  sumOfField,
} from '../../../../kit/core/merge/merge.ts'
import { ratio } from '../../../../kit/core/text/figures.ts'
import type { ClusterTile } from '../../../api/overview.ts'
import type { TilePart } from '../../../api/parts.ts'
import { troublesOf } from '../troubles.ts'
import { addDurations, quantileOf } from './durations.ts'

type Merged = Omit<ClusterTile, 'troubles' | 'group'> & Pick<TilePart, 'credentialFault' | 'labels'>

/** @param bounds of the duration buckets, seconds @param key the label that the page is grouped by; '' = none */
export function mergeTile(parts: Parts<TilePart>, bounds: Float64Array, key: string = ''): ClusterTile {
  const durations = addDurations(parts.map(({ part }) => part.durations))
  const shape: Shape<TilePart, Merged> = {
    name: first,
    labels: first,
    requestsPerSecond: rate,
    errorRatio: (_, tiles) => ratio(sumOfField(tiles, 'errorsPerSecond'), sumOfField(tiles, 'requestsPerSecond')),
    refusedRatio: (_, tiles) => ratio(sumOfField(tiles, 'refusedPerSecond'), sumOfField(tiles, 'requestsPerSecond')),
    p50: () => quantileOf(0.5, durations, bounds),
    p99: () => quantileOf(0.99, durations, bounds),
    inFlight: sum,
    watches: sum,
    // From the replica that reaches the fewest: its clients have no more.
    endpoints: (values) => ({
      up: Math.min(...values.map(({ part }) => part.up)),
      all: Math.max(...values.map(({ part }) => part.all)),
    }),
    degrade: mergeDegrade,
    spark: lines,
    credentialFault: said,
  }
  const { credentialFault, labels, ...tile } = merge(shape, parts)
  return { ...tile, group: labels[key] ?? '', troubles: troublesOf(tile, credentialFault) }
}

/** A switch that is not in force on all replicas, such as one set on a single machine, names those where it is. */
function mergeDegrade(switches: Parts<TilePart['degrade']>): TilePart['degrade'] {
  const found = switches.find(({ part }) => part !== null)?.part ?? null
  if (found === null) return null
  const where = switches.filter(({ part }) => part?.mode === found.mode).map(({ replica }) => replica)
  return where.length === switches.length ? found : { ...found, replicas: where }
}
