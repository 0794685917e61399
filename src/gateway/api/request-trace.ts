// What is known about a request that is traced, beside its record: identifiers and times. The request path fills it; whoever exports it
// makes spans of it. A request that is not traced has none.

/** Mutable on purpose. Times are monotonic milliseconds; -1 = not reached. */
export interface RequestTrace {
  /** 32 hexadecimal digits. */
  readonly traceId: string
  /** Of the server span: 16 hexadecimal digits. */
  readonly spanId: string
  /** The caller's span; '' = the trace begins here. */
  readonly parentId: string
  /** The caller's `tracestate`; ''. */
  readonly traceState: string
  authenticatedMs: number
  /** Impersonation asked by the client was authorised, if there was any: from here it is decided whether the request is served. */
  identifiedMs: number
  admittedMs: number
  readonly attempts: TraceAttempt[]
  /** Its spans have been made. */
  ended: boolean
}

/** One sending of the request to an endpoint. */
export interface TraceAttempt {
  readonly spanId: string
  readonly endpoint: string
  /** An endpoint is looked for. */
  readonly pickMs: number
  readonly sentMs: number
  headMs: number
  endMs: number
  /** Of upstream's answer; 0 = there was none. */
  code: number
  /** ResetReason, or another short name; '' = none. */
  error: string
}

/** Decides which requests are traced. */
export interface Tracer {
  /**
   * For a request whose head was just read. Changes `fields`, which go upstream, where a traceparent in them is not to be believed.
   * @param traceparent '' = there is none
   * @returns undefined = it is not traced
   */
  begin(traceparent: string, fields: string[], nowMs: number): RequestTrace | undefined
  /** Of a new span. */
  newSpanId(): string
}
