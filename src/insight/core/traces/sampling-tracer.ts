// Which requests are traced. As the caller says, where it says anything (parent-based); else so many of a million. A caller may be anybody:
// of those who ask for it no more are traced than the rate allows, and for the others kube-apiserver is not told to either.

import type { RequestTrace, Tracer } from '../../../gateway/api/request-trace.ts'
import { Budget } from '../../../kit/api/limits/budget.ts'
import type { HeaderList } from '../../../kit/api/stream.ts'
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
const ID_BYTES = 8
const ID_DIGITS = 16
/** Identifiers that are made at a time. */
const IDS = 32

export class SamplingTracer implements Tracer {
  readonly #options: SamplingOptions
  /** As large as its rate, and of one token at least. */
  readonly #callers: Budget
  readonly #bytes = Buffer.alloc(ID_BYTES * IDS)
  /** Hexadecimal, of which so many digits have been used. */
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

  /** Some at a time, because hexadecimal text of one number takes longer than that of many bytes. */
  #makeIds(): void {
    const { random } = this.#options
    for (let at = 0; at < ID_BYTES * IDS; at += ID_BYTES) {
      const [high, low] = [Math.floor(random() * WORD), Math.floor(random() * WORD)]
      this.#bytes.writeUInt32BE(high, at)
      // All zeros means none.
      this.#bytes.writeUInt32BE(high === 0 && low === 0 ? 1 : low, at + ID_BYTES / 2)
    }
    this.#ids = this.#bytes.toString('hex')
    this.#idsAt = 0
  }

  #root(fields: HeaderList): RequestTrace {
    // Without a traceparent it belongs to nothing.
    removeTraceContext(fields)
    return createTrace(fields, `${this.newSpanId()}${this.newSpanId()}`, this.newSpanId(), '', '')
  }

  #ofCaller({ traceId, parentId, sampled }: TraceContext, fields: HeaderList, nowMs: number): RequestTrace | undefined {
    // Passed on as it came: kube-apiserver does not record it either.
    if (!sampled) return undefined
    if (this.#callers.take(nowMs)) {
      this.#options.onCaller('traced')
      return createTrace(fields, traceId, this.newSpanId(), parentId, traceStateOf(fields))
    }
    this.#options.onCaller('limited')
    // Who changes the flag is another parent (section 3.4).
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
