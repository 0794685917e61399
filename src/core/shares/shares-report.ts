// Who holds what of the resources that are divided among sources: of one thread, and of all of them together.

import type { ShareLimit } from './shared-resource.ts'
import type { Holder, Shares } from './shares.ts'

/** One resource, for those who are authenticated or for those who are not. */
export interface ShareReport {
  /** `thread-time`: milliseconds of the last second. */
  readonly limit: ShareLimit | 'thread-time'
  readonly known: boolean
  /** 0 = unlimited: nothing is counted. */
  readonly capacity: number
  readonly held: number
  /** Sources that hold something; of several threads the most that there can be. */
  readonly sources: number
  /** Those who hold most, most first. */
  readonly largest: readonly Holder[]
}

/** Of each thread: who is the largest of all is among the larger ones of some thread. */
export const MOST_OF_A_THREAD = 50

export function reportShares(limit: ShareLimit, known: boolean, shares: Shares): ShareReport {
  const { capacity, held, holders } = shares
  return { limit, known, capacity, held, sources: holders, largest: shares.largest(MOST_OF_A_THREAD) }
}

/** @param threads reports of each; @param most holders that are named of each resource */
export function sumOfShares(threads: readonly (readonly ShareReport[])[], most: number): ShareReport[] {
  const sums = new Map<string, ShareReport>()
  for (const one of threads.flat()) {
    const key = `${one.limit} ${one.known}`
    const sum = sums.get(key)
    sums.set(key, sum === undefined ? one : added(sum, one))
  }
  return [...sums.values()].map((sum) => ({ ...sum, largest: sum.largest.slice(0, most) }))
}

function added(a: ShareReport, b: ShareReport): ShareReport {
  const holders = new Map<string, Holder>()
  for (const holder of [...a.largest, ...b.largest]) {
    const held = (holders.get(holder.source)?.held ?? 0) + holder.held
    holders.set(holder.source, { ...holder, held })
  }
  const largest = [...holders.values()].sort((one, other) => other.held - one.held)
  return { ...a, capacity: a.capacity + b.capacity, held: a.held + b.held, sources: a.sources + b.sources, largest }
}
