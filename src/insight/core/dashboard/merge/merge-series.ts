// Merges the time series of several replicas, whose samples are taken at different moments.

import { first, type Parts } from '../../../../kit/core/merge/merge.ts'
import { short } from '../../../../kit/core/text/figures.ts'
import { RING_STEPS, type Series } from '../../../api/overview.ts'
import type { SeriesPart } from '../../../api/parts.ts'
import { addDurations, quantileOf } from './durations.ts'

const MS = 1000

/** Rates are summed, quantiles are those of all requests of a step. @param bounds of the buckets, seconds */
export function mergeSeries(all: Parts<SeriesPart>, bounds: Float64Array): Series {
  const parts = all.map(({ part }) => part)
  const endsAt = Math.max(0, ...parts.map((part) => part.endsAt))
  const stepSeconds = first(all).stepSeconds
  // Less than a step apart counts as the same step: a series whose newest value lacks a replica would drop at its end.
  const sampled = parts.filter(({ requests }) => requests.length > 0)
  const shifted = sampled.map((part) => ({
    part,
    behind: Math.max(0, Math.floor((endsAt - part.endsAt) / MS / stepSeconds)),
  }))
  const length = Math.min(RING_STEPS, Math.max(0, ...shifted.map(({ part, behind }) => part.requests.length + behind)))
  const at = <T>(values: readonly T[], behind: number, step: number): T | undefined =>
    values[values.length + behind - length + step]
  const sum = (of: (part: SeriesPart) => readonly number[]): number[] =>
    Array.from({ length }, (_, step) =>
      short(shifted.reduce((all, { part, behind }) => all + (at(of(part), behind, step) ?? 0), 0)),
    )
  const p99 = Array.from({ length }, (_, step) => {
    const durations = shifted.map(({ part, behind }) => at(part.durations, behind, step) ?? [])
    return quantileOf(0.99, addDurations(durations), bounds)
  })
  return {
    endsAt,
    stepSeconds,
    requests: sum(({ requests }) => requests),
    errors: sum(({ errors }) => errors),
    refused: sum(({ refused }) => refused),
    p99,
  }
}
