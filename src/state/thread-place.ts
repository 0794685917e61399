// Where a thread stands among those that share memory.

import type { HashSeed } from '../core/text/name-hash.ts'

export interface ThreadPlace {
  /** Counts from 0; `threads` = one that looks and changes limits, but takes no requests: the main thread. */
  readonly thread: number
  /** How many take requests. */
  readonly threads: number
  /** Of tables keyed by user names; the same for all. */
  readonly seed: HashSeed
}

/** One thread that shares with nobody. */
export const ALONE: ThreadPlace = { thread: 0, threads: 1, seed: [0x9e3779b9, 0x7f4a7c15] }
