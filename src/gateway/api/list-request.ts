// A list, or a watch that begins with one, as the request path and those who listen to it see it.

/**
 * - passed: nothing is to be said against it; unknown: nothing is known of its size
 * - exempt: it would be refused, but for who asks; relearned: likewise, but what is known is old, and this one shows what is true now
 * - shadow: it would be refused, were it not for shadow mode
 */
export type ListOutcome = 'passed' | 'unknown' | 'exempt' | 'relearned' | 'shadow' | 'refused'

export interface ListRequest {
  readonly isWatch: boolean
  /** Items of a page; 0 = no limit. */
  readonly limit: number
  /** It goes on where a page ended. */
  readonly continued: boolean
  /** resourceVersion=0: from kube-apiserver's watch cache, which knows no limit. */
  readonly anyVersion: boolean
  /** Of its selectors (gateway/core/list-cost/selector-shape.ts); '' = it has none. */
  readonly shape: string
  /** What is known of the whole list; undefined = nothing. */
  readonly size: ListSize | undefined
  /** What it will probably be answered with, without compression; 0 = not known. */
  readonly bytes: number
  /** 1 to 100. */
  readonly seats: number
  /** Whether flow control has counted the seats. */
  charged: boolean
  /** What the LIST guard has said; '' = it was not asked. */
  outcome: ListOutcome | ''
  /** What has come of the answer; undefined = none that counts. */
  answer: ListAnswer | undefined
}

/** What was seen of a list. Mutable: each thread has its own. */
export interface ListSize {
  readonly apiGroup: string
  readonly resource: string
  /** '' = all namespaces, or a cluster-scoped resource. */
  readonly namespace: string
  readonly shape: string
  /** Of the whole list, without compression. */
  bytes: number
  /** Of the whole list; 0 = not known. */
  items: number
  /** Of one item, by pages; 0 = no page was seen. */
  itemBytes: number
  /** Milliseconds since the epoch. */
  seenMs: number
  /** When this thread last let one pass to see what is true now. Milliseconds since the epoch; 0 = never. */
  relearnMs: number
}

/** The body of an answer, as it passes. */
export interface ListAnswer {
  see(chunk: Buffer): void
  /**
   * So far, without compression where that is known.
   * @param complete it came to its end
   */
  bytes(complete: boolean): number
  /** How many items are behind this page; 0 = it does not say. */
  remainingItems(): number
}
