// Reads that the gateway answers itself (spec.cache), as `portcullis top` shows them: a line for each cluster, of all replicas together.

import {
  CACHE_STATES,
  type CachedResourceInForce,
  type CacheState,
  cacheStateRank,
  passesOf,
} from '../../../gateway/api/upstream-cluster/read-cache/read-cache-in-force.ts'
import { printable } from '../../../kit/core/text/printable.ts'

/** One cluster, since the gateway was started. */
export interface AnsweredReads {
  readonly cluster: string
  /** The worst of its resources. */
  readonly state: CacheState
  readonly hits: number
  readonly passed: number
  readonly objects: number
  readonly bytes: number
  /** The oldest; null = nothing is kept. */
  readonly ageSeconds: number | null
}

/** Lines at most; --cluster names others. */
export const MOST_ANSWERED = 20
const MS = 1000

/** undefined = the cluster keeps nothing. */
export function answeredReads(cluster: string, resources: readonly CachedResourceInForce[]): AnsweredReads | undefined {
  if (resources.length === 0) return undefined
  const ages = resources.flatMap(({ ageMs }) => ageMs ?? [])
  const sum = (of: (resource: CachedResourceInForce) => number): number =>
    resources.reduce((all, resource) => all + of(resource), 0)
  return {
    cluster,
    state: worstOf(resources),
    hits: sum(({ hits }) => hits),
    passed: sum(passesOf),
    objects: sum(({ objects }) => objects),
    bytes: sum(({ bytes }) => bytes),
    ageSeconds: ages.length === 0 ? null : Math.round(Math.max(...ages) / MS),
  }
}

/** Each replica keeps the same objects, in memory of its own. */
export function sumOfAnswered(all: readonly AnsweredReads[]): readonly AnsweredReads[] {
  const clusters = Map.groupBy(all, ({ cluster }) => cluster)
  return Array.from(clusters, ([cluster, same]) => {
    const ages = same.flatMap(({ ageSeconds }) => ageSeconds ?? [])
    const sum = (of: (one: AnsweredReads) => number): number => same.reduce((more, one) => more + of(one), 0)
    return {
      cluster,
      state: worstOf(same),
      hits: sum(({ hits }) => hits),
      passed: sum(({ passed }) => passed),
      objects: Math.max(...same.map(({ objects }) => objects)),
      bytes: sum(({ bytes }) => bytes),
      ageSeconds: ages.length === 0 ? null : Math.max(...ages),
    }
  })
}

/** Those with most reads first. */
export function mostAnswered(all: readonly AnsweredReads[]): readonly AnsweredReads[] {
  return all.toSorted((a, b) => b.hits + b.passed - (a.hits + a.passed)).slice(0, MOST_ANSWERED)
}

function worstOf(all: readonly { readonly state: CacheState }[]): CacheState {
  const states = all.map(({ state }) => state).toSorted((a, b) => cacheStateRank(a) - cacheStateRank(b))
  return states[0] ?? 'Loading'
}

/** `read cache of prod: 1234 hits of 1300 reads (95 %), 40 objects, 1.2MiB, 3s old`. */
export function answeredLine(reads: AnsweredReads, bytesText: (bytes: number) => string): string {
  const { cluster, state, hits, passed, objects, bytes, ageSeconds } = reads
  const all = hits + passed
  const share = all === 0 ? '' : ` (${Math.floor((100 * hits) / all)} %)`
  const age = ageSeconds === null ? '' : `, ${ageSeconds}s old`
  const bad = state === 'Serving' ? '' : `; ${state}: kubectl describe uc ${printable(cluster)} says why`
  return `read cache of ${printable(cluster)}: ${hits} hits of ${all} reads${share}, ${objects} objects, ${bytesText(bytes)}${age}${bad}`
}

/** Type guard for the answer of another replica, or to a command. */
export function isAnsweredReads(value: unknown): value is readonly AnsweredReads[] {
  return Array.isArray(value) && value.every(isOne)
}

function isOne(value: unknown): boolean {
  const one: Readonly<Record<string, unknown>> = typeof value === 'object' && value !== null ? { ...value } : {}
  const { cluster, state, ageSeconds } = one
  return (
    typeof cluster === 'string' &&
    CACHE_STATES.some((known) => known === state) &&
    ['hits', 'passed', 'objects', 'bytes'].every((name) => typeof one[name] === 'number') &&
    (ageSeconds === null || typeof ageSeconds === 'number')
  )
}
