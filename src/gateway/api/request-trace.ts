// Trace data of a request, next to its record: identifiers and times. The request path fills it in; the exporter turns it into spans. Untraced requests
// have none.

/** Deliberately mutable. Times are monotonic milliseconds; -1 = not reached. */
export interface RequestTrace {
  /** 32 hexadecimal digits. */
  readonly traceId: string
  /** Id of the server span: 16 hexadecimal digits. */
  readonly spanId: string
  /** The caller's span; '' = this is the root. */
  readonly parentId: string
  /** The caller's `tracestate`; ''. */
  readonly traceState: string
  authenticatedMs: number
  /** Authentication and any client-requested impersonation are done: admission starts here. */
  identifiedMs: number
  admittedMs: number
  readonly attempts: TraceAttempt[]
  /** Its spans have been created. */
  ended: boolean
}

/** One attempt to send the request to an endpoint. */
export interface TraceAttempt {
  readonly spanId: string
  readonly endpoint: string
  /** Endpoint selection starts. */
  readonly pickMs: number
  readonly sentMs: number
  headMs: number
  endMs: number
  /** Status code of upstream's response; 0 = none. */
  code: number
  /** ResetReason, or another short name; '' = none. */
  error: string
}

/** Decides which requests are traced. */
export interface Tracer {
  /**
   * Called when a request head has been read. Modifies `fields`, which go upstream, if they contain an untrusted traceparent.
   * @param traceparent '' = none
   * @returns undefined = not traced
   */
  begin(traceparent: string, fields: string[], nowMs: number): RequestTrace | undefined
  /** Id for a new span. */
  newSpanId(): string
}
