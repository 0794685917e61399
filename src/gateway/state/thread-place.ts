// The index of a thread among those that share memory.

import type { HashSeed } from '../../kit/core/text/name-hash.ts'

export interface ThreadPlace {
  /** From 0; `threads` = the main thread, which reads and changes limits but serves no requests. */
  readonly thread: number
  /** Number of threads that serve requests. */
  readonly threads: number
  /** For tables keyed by user names; the same in all threads. */
  readonly seed: HashSeed
}

/** A single thread. */
export const ALONE: ThreadPlace = { thread: 0, threads: 1, seed: [0x9e3779b9, 0x7f4a7c15] }
