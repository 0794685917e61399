// Who holds how much of the resources divided among sources: per thread, and over all threads.

import { first, isSome, merge, type Parts, rows, sum } from '../merge/merge.ts'
import type { ShareLimit } from './shared-resource.ts'
import type { ShareHolder, Shares } from './shares.ts'

/** One resource, for authenticated or for unauthenticated clients. */
export interface ShareReport {
  /** `thread-time`: milliseconds of the last second. */
  readonly limit: ShareLimit | 'thread-time'
  readonly known: boolean
  /** 0 = unlimited: nothing is counted. */
  readonly capacity: number
  readonly held: number
  /** Sources that hold something; over several threads, an upper bound. */
  readonly sources: number
  /** The largest holders, largest first. */
  readonly largest: readonly ShareHolder[]
}

/** Per thread: the largest overall is among the larger ones of some thread. */
export const MOST_OF_A_THREAD = 50

export function reportShares(limit: ShareLimit, known: boolean, shares: Shares): ShareReport {
  const { capacity, held, holders } = shares
  return { limit, known, capacity, held, sources: holders, largest: shares.largest(MOST_OF_A_THREAD) }
}

/** @param threads reports of each; @param most holders to list per resource */
export function sumOfShares(threads: readonly (readonly ShareReport[])[], most: number): readonly ShareReport[] {
  const parts = threads.map((part, i) => ({ replica: `${i}`, part }))
  const merged = rows<ShareReport, ShareReport>(['limit', 'known'], (same) => {
    const largest = (lists: Parts<readonly ShareHolder[]>): readonly ShareHolder[] => sumOfHolders(lists).slice(0, most)
    return { ...first(same), ...merge({ capacity: sum, held: sum, sources: sum, largest }, same) }
  })
  return isSome(parts) ? merged(parts) : []
}

function sumOfHolders(lists: Parts<readonly ShareHolder[]>): readonly ShareHolder[] {
  const merged = rows<ShareHolder, ShareHolder>(['source'], (same) => ({
    ...first(same),
    ...merge({ held: sum }, same),
  }))
  return merged(lists).toSorted((one, other) => other.held - one.held)
}
