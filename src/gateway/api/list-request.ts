// A list, or a watch that begins with one, as seen by the request path and its observers.

/**
 * - passed: no objection; unknown: its size is not known
 * - exempt: would be refused, but the caller is exempt; relearned: would be refused, but the known size is stale, so this one measures it again
 * - shadow: would be refused, but for shadow mode
 */
export type ListOutcome = 'passed' | 'unknown' | 'exempt' | 'relearned' | 'shadow' | 'refused'

export interface ListRequest {
  readonly isWatch: boolean
  /** Page size; 0 = no limit. */
  readonly limit: number
  /** Continues a paged list. */
  readonly continued: boolean
  /** resourceVersion=0: served from kube-apiserver's watch cache, which ignores the limit. */
  readonly anyVersion: boolean
  /** Shape of its selectors (core/list-cost/selector-shape.ts); '' = it has none. */
  readonly shape: string
  /** Known size of the whole list; undefined = none. */
  readonly size: ListSize | undefined
  /** Expected response size, uncompressed; 0 = unknown. */
  readonly bytes: number
  /** 1 to 100. */
  readonly seats: number
  /** Whether flow control has counted the seats. */
  charged: boolean
  /** Verdict of the LIST guard; '' = it was not asked. */
  outcome: ListOutcome | ''
  /** The response so far; undefined = none that counts. */
  answer: ListAnswer | undefined
}

/** Observed size of a list. Mutable: each thread has its own. */
export interface ListSize {
  readonly apiGroup: string
  readonly resource: string
  /** '' = all namespaces, or a cluster-scoped resource. */
  readonly namespace: string
  readonly shape: string
  /** Bytes of the whole list, uncompressed. */
  bytes: number
  /** Items in the whole list; 0 = unknown. */
  items: number
  /** Bytes per item, learned from pages; 0 = no page seen. */
  itemBytes: number
  /** Milliseconds since the epoch. */
  seenMs: number
  /** When this thread last let one pass to measure it again. Milliseconds since the epoch; 0 = never. */
  relearnMs: number
}

/** The body of a response, as it passes. */
export interface ListAnswer {
  see(chunk: Buffer): void
  /**
   * Bytes so far, uncompressed where that is known.
   * @param complete the body has ended
   */
  bytes(complete: boolean): number
  /** Number of items after this page; 0 = not stated. */
  remainingItems(): number
}
