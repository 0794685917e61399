// Which requests are traced. As the caller says, where it says anything (parent-based); else so many of a million. A caller may be anybody:
// of those who ask for it no more are traced than the rate allows, and for the others kube-apiserver is not told to either.

import type { RequestTrace, Tracer } from '../../api/ports/request-trace.ts'
import type { HeaderList } from '../../api/ports/stream.ts'
import {
  formatTraceparent,
  parseTraceparent,
  removeTraceContext,
  setTraceparent,
  type TraceContext,
  traceStateOf,
} from './trace-context.ts'

export interface SamplingOptions {
  /** Requests of a million that are traced without being asked to. */
  readonly ratePerMillion: number
  /** Requests a second that are traced because their callers ask for it. */
  readonly callersPerSecond: number
  /** From 0 to 1. */
  random(): number
  /** What became of a caller's wish. */
  onCaller(outcome: 'traced' | 'limited'): void
}

const MILLION = 1_000_000
const WORD = 2 ** 32

export class SamplingTracer implements Tracer {
  readonly #options: SamplingOptions
  /** A bucket as large as its rate, and of one token at least. */
  readonly #burst: number
  #tokens: number
  #sinceMs = 0

  constructor(options: SamplingOptions) {
    this.#options = options
    this.#burst = options.callersPerSecond > 0 ? Math.max(1, options.callersPerSecond) : 0
    this.#tokens = this.#burst
  }

  begin(traceparent: string, fields: HeaderList, nowMs: number): RequestTrace | undefined {
    const { ratePerMillion, random } = this.#options
    const caller = traceparent === '' ? undefined : parseTraceparent(traceparent)
    if (caller !== undefined) return this.#ofCaller(caller, fields, nowMs)
    if (traceparent !== '') removeTraceContext(fields)
    return random() * MILLION < ratePerMillion ? this.#root(fields) : undefined
  }

  newSpanId(): string {
    // All zeros means none.
    return `${this.#hexWord()}${this.#hexWord()}`.replace(/^0{16}$/, '0000000000000001')
  }

  #root(fields: HeaderList): RequestTrace {
    // Without a traceparent it belongs to nothing.
    removeTraceContext(fields)
    return createTrace(fields, `${this.newSpanId()}${this.newSpanId()}`, this.newSpanId(), '', '')
  }

  #ofCaller({ traceId, parentId, sampled }: TraceContext, fields: HeaderList, nowMs: number): RequestTrace | undefined {
    // Passed on as it came: kube-apiserver does not record it either.
    if (!sampled) return undefined
    if (this.#take(nowMs)) {
      this.#options.onCaller('traced')
      return createTrace(fields, traceId, this.newSpanId(), parentId, traceStateOf(fields))
    }
    this.#options.onCaller('limited')
    // Who changes the flag is another parent (section 3.4).
    setTraceparent(fields, formatTraceparent(traceId, this.newSpanId(), false))
    return undefined
  }

  #take(nowMs: number): boolean {
    const { callersPerSecond } = this.#options
    this.#tokens = Math.min(this.#burst, this.#tokens + (Math.max(0, nowMs - this.#sinceMs) * callersPerSecond) / 1000)
    this.#sinceMs = nowMs
    if (this.#tokens < 1) return false
    this.#tokens--
    return true
  }

  #hexWord(): string {
    return Math.floor(this.#options.random() * WORD)
      .toString(16)
      .padStart(8, '0')
  }
}

function createTrace(
  fields: HeaderList,
  traceId: string,
  spanId: string,
  parentId: string,
  traceState: string,
): RequestTrace {
  // Its place in the list is fixed now; whoever sends the request puts the span of the sending there.
  setTraceparent(fields, formatTraceparent(traceId, spanId, true))
  return {
    traceId,
    spanId,
    parentId,
    traceState,
    authenticatedMs: -1,
    identifiedMs: -1,
    admittedMs: -1,
    attempts: [],
    ended: false,
  }
}
