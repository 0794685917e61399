// Activity of each cluster per step of ten seconds: rates from differences of the gateway's own counters, for the last half hour. Collected whether
// or not it is viewed.

import { setImmediate as yieldToEventLoop } from 'node:timers/promises'
import {
  type ClusterTotals,
  clusterTotals,
  DURATION_BOUNDS,
  refusalCode,
} from '../../../gateway/metrics/cluster-totals.ts'
import type { ClusterChanges } from '../../../gateway/metrics/metrics.ts'
import { short } from '../../../kit/core/text/figures.ts'
import { RING_STEPS, type ShownRefusals, STEP_SECONDS } from '../../api/overview.ts'
import type { Durations, SeriesPart } from '../../api/parts.ts'
import { durationsOf } from '../../core/dashboard/merge/durations.ts'
import { increase, Ring } from '../../core/dashboard/rate-ring.ts'

const MS = 1000
const REFUSAL_STEPS = 30
const MINUTE_STEPS = 60 / STEP_SECONDS
/** Distinct reasons and rules per cluster; configurations have fewer. */
const MAX_REFUSALS = 200
/** Clusters processed per turn of the event loop. */
const CLUSTERS_AT_ONCE = 100

const NO_DURATIONS: Durations = []
const NO_RATES: ReadonlyMap<string, number> = new Map()
const NO_ENDPOINTS: ReadonlyMap<string, { readonly requests: number; readonly errors: number }> = new Map()

/** One cluster; '' = requests for no known cluster. */
export class ClusterSample {
  readonly requests: Ring = new Ring(RING_STEPS)
  readonly errors: Ring = new Ring(RING_STEPS)
  readonly refused: Ring = new Ring(RING_STEPS)
  /** Per step, newest last. */
  readonly #durations: Durations[] = []
  /** The newest counts. */
  totals: ClusterTotals | undefined
  /** Per second, in the newest step. */
  endpoints: ReadonlyMap<string, { readonly requests: number; readonly errors: number }> = NO_ENDPOINTS
  admitted: ReadonlyMap<string, number> = NO_RATES
  rejected: ReadonlyMap<string, number> = NO_RATES
  policies: ReadonlyMap<string, number> = NO_RATES
  /** Requests per step, by reason and rule. */
  readonly #refusals = new Map<string, Ring>()

  /** @param seconds since the previous counts */
  take(now: ClusterTotals, seconds: number): void {
    const before = this.totals
    this.totals = now
    if (before === undefined) return
    const rate = (then: number, later: number): number => increase(then, later) / seconds
    this.requests.push(rate(before.requests, now.requests))
    this.errors.push(rate(before.errors, now.errors))
    this.refused.push(rate(before.refused, now.refused))
    this.#pushDurations(newDurations(before, now))
    this.admitted = rates(before.admitted, now.admitted, seconds)
    this.rejected = rates(before.rejected, now.rejected, seconds)
    this.policies = rates(before.policies, now.policies, seconds)
    this.endpoints = new Map(
      [...now.endpoints].map(([url, { requests, errors }]) => {
        const was = before.endpoints.get(url) ?? { requests: 0, errors: 0 }
        return [url, { requests: rate(was.requests, requests), errors: rate(was.errors, errors) }]
      }),
    )
    this.#takeRefusals(before, now)
  }

  /** The counts are as they were a step before. */
  rest(): void {
    this.requests.push(0)
    this.errors.push(0)
    this.refused.push(0)
    this.#pushDurations(NO_DURATIONS)
    this.admitted = NO_RATES
    this.rejected = NO_RATES
    this.policies = NO_RATES
    this.endpoints = NO_ENDPOINTS
    for (const [key, ring] of this.#refusals) {
      ring.push(0)
      if (ring.sum(REFUSAL_STEPS) === 0) this.#refusals.delete(key)
    }
  }

  #pushDurations(durations: Durations): void {
    this.#durations.push(durations)
    if (this.#durations.length > RING_STEPS) this.#durations.shift()
  }

  #takeRefusals(before: ClusterTotals, now: ClusterTotals): void {
    for (const [key, count] of now.refusals) {
      const news = increase(before.refusals.get(key) ?? 0, count)
      let ring = this.#refusals.get(key)
      if (ring === undefined) {
        if (news === 0 || this.#refusals.size >= MAX_REFUSALS) continue
        ring = new Ring(REFUSAL_STEPS)
        this.#refusals.set(key, ring)
      }
      ring.push(news)
      if (ring.sum(REFUSAL_STEPS) === 0) this.#refusals.delete(key)
    }
  }

  /** Durations in the newest step. */
  get durations(): Durations {
    return this.#durations.at(-1) ?? []
  }

  /** Refusals in the last five minutes, most frequent first. */
  refusals(cluster: string): ShownRefusals[] {
    const rows = [...this.#refusals].map(([key, ring]) => {
      const [reason = '', rule = ''] = key.split('\n')
      const count = Math.round(ring.sum(REFUSAL_STEPS))
      return { cluster, reason, rule, code: refusalCode(reason), perSecond: ring.last / STEP_SECONDS, count }
    })
    return rows.sort((a, b) => b.count - a.count)
  }

  series(endsAt: number): SeriesPart {
    return {
      endsAt,
      stepSeconds: STEP_SECONDS,
      requests: this.requests.values(RING_STEPS).map(short),
      errors: this.errors.values(RING_STEPS).map(short),
      refused: this.refused.values(RING_STEPS).map(short),
      durations: this.#durations,
    }
  }

  /** One value per minute. */
  spark(): number[] {
    return this.requests.means(MINUTE_STEPS).map(short)
  }
}

function newDurations(before: ClusterTotals, now: ClusterTotals): Durations {
  const count = increase(before.durationCount, now.durationCount)
  if (count === 0) return durationsOf(now.durations, 0)
  return durationsOf(
    now.durations.map((value, i) => increase(before.durations[i] ?? 0, value)),
    count,
  )
}

function rates(
  before: ReadonlyMap<string, number>,
  now: ReadonlyMap<string, number>,
  seconds: number,
): ReadonlyMap<string, number> {
  return new Map([...now].map(([key, value]) => [key, increase(before.get(key) ?? 0, value) / seconds]))
}

export class Samples {
  /** All clusters together. */
  readonly all: ClusterSample = new ClusterSample()
  readonly #clusters = new Map<string, ClusterSample>()
  #takenAt = 0
  #monotonic = 0

  /** Time of the newest sample, milliseconds since the epoch; 0 = none yet. */
  get takenAt(): number {
    return this.#takenAt
  }

  /** '' = requests for no known cluster. */
  of(cluster: string): ClusterSample | undefined {
    return this.#clusters.get(cluster)
  }

  entries(): Iterable<[string, ClusterSample]> {
    return this.#clusters
  }

  /** @param changes since the last call: of thousands of clusters, few have requests in any ten seconds */
  async take({ changed, has }: ClusterChanges, nowMs: number, monotonicMs: number): Promise<void> {
    const seconds = Math.max((monotonicMs - this.#monotonic) / MS, 0.001)
    this.#monotonic = monotonicMs
    const taken = new Set<string>()
    let looked = 0
    for (const store of changed) {
      if (++looked % CLUSTERS_AT_ONCE === 0) await yieldToEventLoop()
      const now = clusterTotals(store)
      // Thousands may have had no request yet: the first one begins their half hour.
      if (hadNothing(now) && !this.#clusters.has(store.cluster)) continue
      taken.add(store.cluster)
      this.#sampleOf(store.cluster).take(now, seconds)
    }
    for (const [name, sample] of this.#clusters) {
      if (!has(name)) this.#clusters.delete(name)
      else if (!taken.has(name)) sample.rest()
    }
    this.all.take(sumOf([...this.#clusters.values()].flatMap(({ totals }) => totals ?? [])), seconds)
    this.#takenAt = nowMs
  }

  #sampleOf(cluster: string): ClusterSample {
    let sample = this.#clusters.get(cluster)
    if (sample === undefined) {
      sample = new ClusterSample()
      // A new cluster has no previous counts: its first requests are new.
      if (this.#takenAt > 0) sample.totals = NOTHING
      this.#clusters.set(cluster, sample)
    }
    return sample
  }
}

const NOTHING: ClusterTotals = sumOf([])

function hadNothing({ requests, errors, refused, inFlight, watches }: ClusterTotals): boolean {
  return requests + errors + refused + inFlight + watches === 0
}

/** Without counts by name. */
function sumOf(all: readonly ClusterTotals[]): ClusterTotals {
  const durations = new Float64Array(DURATION_BOUNDS.length)
  const sum = { requests: 0, errors: 0, refused: 0, inFlight: 0, watches: 0, durationCount: 0 }
  for (const totals of all) {
    sum.requests += totals.requests
    sum.errors += totals.errors
    sum.refused += totals.refused
    sum.inFlight += totals.inFlight
    sum.watches += totals.watches
    sum.durationCount += totals.durationCount
    for (let i = 0; i < durations.length; i++) durations[i] = (durations[i] ?? 0) + (totals.durations[i] ?? 0)
  }
  const none = new Map<string, number>()
  return {
    ...sum,
    durations,
    refusals: none,
    endpoints: new Map(),
    admitted: none,
    rejected: none,
    policies: none,
  }
}
