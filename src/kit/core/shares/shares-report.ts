// Who holds what of the resources that are divided among sources: of one thread, and of all of them together.

import { first, isSome, merge, type Parts, rows, sum } from '../merge/merge.ts'
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
export function sumOfShares(threads: readonly (readonly ShareReport[])[], most: number): readonly ShareReport[] {
  const parts = threads.map((part, i) => ({ replica: `${i}`, part }))
  const merged = rows<ShareReport, ShareReport>(['limit', 'known'], (same) => {
    const largest = (lists: Parts<readonly Holder[]>): readonly Holder[] => sumOfHolders(lists).slice(0, most)
    return { ...first(same), ...merge({ capacity: sum, held: sum, sources: sum, largest }, same) }
  })
  return isSome(parts) ? merged(parts) : []
}

function sumOfHolders(lists: Parts<readonly Holder[]>): readonly Holder[] {
  const merged = rows<Holder, Holder>(['source'], (same) => ({ ...first(same), ...merge({ held: sum }, same) }))
  return merged(lists).toSorted((one, other) => other.held - one.held)
}
