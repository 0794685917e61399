// Input and output of a RetryBatch, and what it needs from its owner.

export interface BatchPace {
  /** How long the first request of an idle key waits for others, ms. */
  readonly coldStartDelayMs: number
  /** Minimum time between the starts of two writes of one key, ms. */
  readonly batchIntervalMs: number
  /** Wait after a conflict, ms, plus up to `retryJitterMs`. */
  readonly retryBackoffMs: number
  readonly retryJitterMs: number
  /** A write is given up after this time, ms. */
  readonly writeTimeoutMs: number
  /** Number of keys that may write concurrently. */
  readonly writesAtOnce: number
  /** A key without work for this long is forgotten, ms. */
  readonly idleMs: number
}

export interface BatchRequest<Operation> {
  readonly operation: Operation
  /** Monotonic, ms: the request is answered by then in any case, and not started afterwards. */
  readonly deadlineMs: number
  /** How long it may wait for a write that is due anyway, ms. Default 0. */
  readonly waitMs?: number
  /** A failed write does not answer it: it is retried with a growing backoff until its deadline. Default false. */
  readonly persistent?: boolean
}

/** The outcome of a write. */
export type BatchOutcome<Result> =
  /** One result per operation, in order. */
  | { readonly type: 'done'; readonly results: readonly Result[] }
  /** Another writer was first and nothing was written: all requests are retried. */
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
   * Writes all operations at once, in the order of submission; the adapter decides which are applied first (the newest: older ones are more
   * likely to be too late). For one key there is no second call before the first has ended or was given up.
   */
  execute(key: string, operations: readonly Operation[]): Promise<BatchOutcome<Result>>
  /** A write completed for a request that no longer waits for it, because it was answered or is being retried. */
  onLate(key: string, operation: Operation, result: Result): void
  /** A batch is written or given up, after `retries` failed writes. */
  onBatch(key: string, durationMs: number, retries: number): void
}
