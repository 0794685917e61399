// Load balancing: the strategies that pick an endpoint for a request, behind one function type.

import type { Strategy } from '../../api/upstream-cluster/strategies.ts'

/** What a strategy sees of an endpoint. */
export interface EndpointView {
  readonly url: string
  /** `endpointHash(url)`, computed once. */
  readonly hash: number
  /** Weight relative to the others. 0 takes no requests. */
  readonly weight: number
  /** Enabled, healthy and not ejected; or only late, if no other one is available. */
  readonly available: boolean
  /** Requests without a complete response. */
  readonly inFlight: number
}

/** State of round robin; one per policy. */
export interface Cursor {
  /** How far each candidate is behind (positive) or ahead (negative) of its share, in units of 1 / total weight of a request. */
  readonly lags: Map<EndpointView, number>
  /** The total weight that `lags` are measured in. */
  total: number
}

/** For one request. */
export interface PickContext {
  /** Uniform in [0, 1). */
  random(): number
  readonly cursor: Cursor
  /** `affinityHash(user, address)`; read by Affinity only. */
  readonly affinityHash: number
}

/** Index into `candidates`; -1 when none can take the request. */
type PickEndpoint = (candidates: readonly EndpointView[], context: PickContext) => number

/** Rounding error of rescaled lags: a smaller lag counts as 0. */
const ROUNDING = 1e-6

const FNV_OFFSET = 0x811c9dc5
const FNV_PRIME = 0x01000193

export const PICKERS: Readonly<Record<Strategy, PickEndpoint>> = {
  RoundRobin: pickRoundRobin,
  Random: pickRandom,
  LeastRequest: pickLeastRequest,
  Affinity: pickAffinity,
}

export function createCursor(): Cursor {
  return { lags: new Map(), total: 0 }
}

/** uint32 of a user and the client's address, so that one client sticks to one apiserver. */
export function affinityHash(user: string, address: string): number {
  return mix(fnv1a(address, fnv1a('\0', fnv1a(user, FNV_OFFSET))))
}

export function endpointHash(url: string): number {
  return mix(fnv1a(url, FNV_OFFSET))
}

/**
 * Smooth weighted round robin: of the candidates behind their share, the one whose turn ends first (earliest deadline first, which keeps
 * each within one request of its exact share: Baruah et al., "Proportionate progress", 1996). An unavailable candidate keeps its lag, so
 * candidates that come and go do not disturb the others' shares.
 */
function pickRoundRobin(candidates: readonly EndpointView[], context: PickContext): number {
  const lags = context.cursor.lags
  const total = totalWeight(candidates)
  if (total === 0) return -1
  if (total !== context.cursor.total) rescale(context.cursor, total)
  let best: EndpointView | undefined
  let bestIndex = -1
  let bestOwed = false
  let bestDeadline = 0
  for (let i = 0; i < candidates.length; i++) {
    const candidate = candidates[i]
    const weight = usableWeight(candidates, i)
    if (candidate === undefined || weight === 0) continue
    const lag = (lags.get(candidate) ?? 0) + weight
    lags.set(candidate, lag)
    const owed = lag > ROUNDING
    const deadline = (total - lag) / weight
    if (best === undefined || (owed && !bestOwed) || (owed === bestOwed && deadline < bestDeadline)) {
      best = candidate
      bestIndex = i
      bestOwed = owed
      bestDeadline = deadline
    }
  }
  if (best !== undefined) lags.set(best, (lags.get(best) ?? 0) - total)
  return bestIndex
}

/** Lags are whole numbers while the total is unchanged, so nothing drifts; one request counts `total`. */
function rescale(cursor: Cursor, total: number): void {
  const factor = cursor.total === 0 ? 1 : total / cursor.total
  for (const [candidate, lag] of cursor.lags) cursor.lags.set(candidate, lag * factor)
  cursor.total = total
}

function pickRandom(candidates: readonly EndpointView[], context: PickContext): number {
  return sample(candidates, context, -1)
}

/** Power of two choices: draws two by weight and takes the one with fewer requests for its weight, the first drawn on a tie. */
function pickLeastRequest(candidates: readonly EndpointView[], context: PickContext): number {
  const first = sample(candidates, context, -1)
  const second = first === -1 ? -1 : sample(candidates, context, first)
  const a = candidates[first]
  const b = candidates[second]
  if (a === undefined || b === undefined) return first
  return b.inFlight * a.weight < a.inFlight * b.weight ? second : first
}

/**
 * Weighted rendezvous hashing: every candidate has a score for this client, the highest wins. When an endpoint goes, only its own clients
 * move; when it returns, only they move back.
 */
function pickAffinity(candidates: readonly EndpointView[], context: PickContext): number {
  let best = -1
  let bestScore = 0
  for (let i = 0; i < candidates.length; i++) {
    const weight = usableWeight(candidates, i)
    if (weight === 0) continue
    const hash = mix((candidates[i]?.hash ?? 0) ^ Math.imul(context.affinityHash, 0x9e3779b1))
    // -weight / ln(u) with u in (0, 1): a candidate's chance of the highest score is its share of the weights.
    const score = -weight / Math.log((hash + 0.5) / 2 ** 32)
    if (best === -1 || score > bestScore) {
      best = i
      bestScore = score
    }
  }
  return best
}

/** Draws one by weight, but not `other`. */
function sample(candidates: readonly EndpointView[], context: PickContext, other: number): number {
  const total = totalWeight(candidates) - usableWeight(candidates, other)
  if (total === 0) return -1
  let left = context.random() * total
  let last = -1
  for (let i = 0; i < candidates.length; i++) {
    const weight = i === other ? 0 : usableWeight(candidates, i)
    if (weight === 0) continue
    last = i
    left -= weight
    if (left < 0) return i
  }
  // Rounding may have consumed the last candidate's share.
  return last
}

function totalWeight(candidates: readonly EndpointView[]): number {
  let total = 0
  for (let i = 0; i < candidates.length; i++) total += usableWeight(candidates, i)
  return total
}

function usableWeight(candidates: readonly EndpointView[], index: number): number {
  const candidate = candidates[index]
  return candidate === undefined || !candidate.available ? 0 : candidate.weight
}

function fnv1a(text: string, start: number): number {
  let hash = start
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), FNV_PRIME)
  return hash
}

/** Finalizer of MurmurHash3: each input bit flips each output bit with probability one half. uint32. */
function mix(hash: number): number {
  let h = hash ^ (hash >>> 16)
  h = Math.imul(h, 0x85ebca6b)
  h ^= h >>> 13
  h = Math.imul(h, 0xc2b2ae35)
  return (h ^ (h >>> 16)) >>> 0
}
