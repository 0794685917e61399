// What goes into a RetryBatch, what comes out of it, and what it needs from its owner.

export interface BatchPace {
  /** How long the first request of an idle key waits for others, ms. */
  readonly coldStartDelayMs: number
  /** At least so much lies between the starts of two writes of one key, ms. */
  readonly batchIntervalMs: number
  /** After a conflict: ms, and up to `retryJitterMs` more. */
  readonly retryBackoffMs: number
  readonly retryJitterMs: number
  /** A write that is not over by then is given up, ms. */
  readonly writeTimeoutMs: number
  /** Keys that write at once. */
  readonly writesAtOnce: number
  /** A key without work for so long is idle, and forgotten, ms. */
  readonly idleMs: number
}

export interface BatchRequest<Operation> {
  readonly operation: Operation
  /** Monotonic, ms: then it is answered, whatever else; it is not begun after it. */
  readonly deadlineMs: number
  /** It can wait so long for a write that is made anyway, ms. Default 0. */
  readonly waitMs?: number
  /** A write that fails does not answer it: it is tried again until its deadline, later and later. Default false. */
  readonly persistent?: boolean
}

/** What came of a write. */
export type BatchOutcome<Result> =
  /** One result for each operation, in their order. */
  | { readonly type: 'done'; readonly results: readonly Result[] }
  /** Somebody else was faster, nothing was written: all again. */
  | { readonly type: 'conflict' }
  | { readonly type: 'failed'; readonly error: unknown }

export type BatchAnswer<Result> =
  | { readonly type: 'done'; readonly result: Result; readonly retries: number }
  /** The deadline has passed. */
  | { readonly type: 'expired'; readonly retries: number }
  | { readonly type: 'failed'; readonly error: unknown; readonly retries: number }
  | { readonly type: 'stopped'; readonly retries: number }

export interface RetryBatchDeps<Operation, Result> {
  readonly pace: BatchPace
  /** Monotonic, ms. */
  now(): number
  /** In [0, 1). */
  random(): number
  /** @returns cancels it */
  schedule(delayMs: number, run: () => void): () => void
  /**
   * One write with all of it, in the order of submission; which of them goes first is for the adapter to say (newest first: the
   * older ones are likelier to be too late). Of one key there is never a second call before the first is over or given up.
   */
  execute(key: string, operations: readonly Operation[]): Promise<BatchOutcome<Result>>
  /** A write did what its request no longer waits for: it was answered, or is tried once more. */
  onLate(key: string, operation: Operation, result: Result): void
  /** What was begun with a write is done or given up, after so many writes that were in vain. */
  onBatch(key: string, durationMs: number, retries: number): void
}
