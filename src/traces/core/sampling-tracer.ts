// Decides which requests are traced. Follows the caller's decision, if there is one (parent-based); otherwise samples at a rate. Callers
// are untrusted: traces requested by them are rate-limited, and beyond the limit kube-apiserver is not asked to trace either.

import type { RequestTrace, Tracer } from '../../gateway/api/request-trace.ts'
import {
  formatTraceparent,
  parseTraceparent,
  removeTraceContext,
  setTraceparent,
  type TraceContext,
  traceStateOf,
} from '../../gateway/core/request/trace-context.ts'
import { Budget } from '../../kit/api/limits/budget.ts'
import type { HeaderList } from '../../kit/api/stream.ts'

interface SamplingOptions {
  /** Traced requests per million, among those without the caller's decision. */
  readonly ratePerMillion: number
  /** Requests per second that are traced at the callers' request. */
  readonly callersPerSecond: number
  /** From 0 to 1. */
  random(): number
  /** Outcome of a caller's request to trace. */
  onCaller(outcome: 'traced' | 'limited'): void
}

const MILLION = 1_000_000
const WORD = 2 ** 32
const ID_BYTES = 8
const ID_DIGITS = 16
/** Identifiers generated at a time. */
const IDS = 32

export class SamplingTracer implements Tracer {
  readonly #options: SamplingOptions
  /** Burst as large as its rate, and at least one token. */
  readonly #callers: Budget
  readonly #bytes = Buffer.alloc(ID_BYTES * IDS)
  /** Hexadecimal digits, and how many of them are used. */
  #ids = ''
  #idsAt = ID_DIGITS * IDS

  constructor(options: SamplingOptions) {
    this.#options = options
    const perSecond = options.callersPerSecond
    this.#callers = new Budget({ burst: perSecond > 0 ? Math.max(1, perSecond) : 0, perSecond }, 0)
  }

  begin(traceparent: string, fields: HeaderList, nowMs: number): RequestTrace | undefined {
    const { ratePerMillion, random } = this.#options
    const caller = traceparent === '' ? undefined : parseTraceparent(traceparent)
    if (caller !== undefined) return this.#ofCaller(caller, fields, nowMs)
    if (traceparent !== '') removeTraceContext(fields)
    return random() * MILLION < ratePerMillion ? this.#root(fields) : undefined
  }

  newSpanId(): string {
    if (this.#idsAt === ID_DIGITS * IDS) this.#makeIds()
    const from = this.#idsAt
    this.#idsAt += ID_DIGITS
    return this.#ids.slice(from, this.#idsAt)
  }

  /** In batches, because converting many bytes to hexadecimal at once is faster than one number. */
  #makeIds(): void {
    const { random } = this.#options
    for (let at = 0; at < ID_BYTES * IDS; at += ID_BYTES) {
      const [high, low] = [Math.floor(random() * WORD), Math.floor(random() * WORD)]
      this.#bytes.writeUInt32BE(high, at)
      // All zeros would mean none.
      this.#bytes.writeUInt32BE(high === 0 && low === 0 ? 1 : low, at + ID_BYTES / 2)
    }
    this.#ids = this.#bytes.toString('hex')
    this.#idsAt = 0
  }

  #root(fields: HeaderList): RequestTrace {
    // Without a traceparent, tracestate is meaningless.
    removeTraceContext(fields)
    return createTrace(fields, `${this.newSpanId()}${this.newSpanId()}`, this.newSpanId(), '', '')
  }

  #ofCaller({ traceId, parentId, sampled }: TraceContext, fields: HeaderList, nowMs: number): RequestTrace | undefined {
    // Forwarded unchanged: kube-apiserver does not record it either.
    if (!sampled) return undefined
    if (this.#callers.take(nowMs)) {
      this.#options.onCaller('traced')
      return createTrace(fields, traceId, this.newSpanId(), parentId, traceStateOf(fields))
    }
    this.#options.onCaller('limited')
    // A vendor that changes the flag must also change the parent id (section 3.4).
    setTraceparent(fields, formatTraceparent(traceId, this.newSpanId(), false))
    return undefined
  }
}

function createTrace(
  fields: HeaderList,
  traceId: string,
  spanId: string,
  parentId: string,
  traceState: string,
): RequestTrace {
  // Its position in the list is fixed now; the sender of the request replaces the span id there.
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
