// Tracing in a gateway thread.

import type { RequestObserver } from '../../gateway/api/request-observer.ts'
import type { RequestRecord } from '../../gateway/api/request-record.ts'
import type { Tracer } from '../../gateway/api/request-trace.ts'
import type { MetricsRecorder } from '../../gateway/metrics/recorder.ts'
import type { Clock } from '../../kit/api/ports.ts'
import type { StreamsToMain } from '../../kit/core/topics/streams.ts'
import type { Config } from '../../process/config/config.ts'
import { type SpanOptions, TRACED, type WrittenSpans, writeSpans } from '../core/otlp.ts'
import { SamplingTracer } from '../core/sampling-tracer.ts'
import { TRACE_CALLERS, TRACES_DROPPED } from '../metrics/descriptors.ts'

interface TracedThread {
  readonly config: Config
  readonly threads: number
  readonly metrics: MetricsRecorder
  readonly streams: StreamsToMain
  readonly clock: Pick<Clock, 'monotonic'>
}

export function traceObservers({ config, threads, metrics, streams, clock }: TracedThread): readonly ThreadTraces[] {
  if (config.tracingOtlpEndpoint === '') return []
  const traces = new ThreadTraces(config, threads, metrics, () => clock.monotonic())
  streams.serve(TRACED, (_, emit) => traces.handTo(emit))
  return [traces]
}

// The thread's side of tracing: decides which requests are traced, and sends their spans to the main thread in batches. Absent if tracing is off.

/** Waiting traced requests; more are dropped. */
const MAX_WAITING = 512
/** How long they wait for a batch to fill. */
const WAIT_MS = 200

export class ThreadTraces implements RequestObserver {
  readonly tracer: Tracer
  readonly #metrics: MetricsRecorder
  readonly #now: () => number
  readonly #spanOptions: SpanOptions
  #waiting: WrittenSpans[] = []
  #timer: NodeJS.Timeout | undefined
  #emit: ((trace: WrittenSpans) => void) | undefined

  /** @param threads that share the callers' rate @param now monotonic milliseconds */
  constructor(config: Config, threads: number, metrics: MetricsRecorder, now: () => number) {
    this.#metrics = metrics
    this.#now = now
    this.tracer = new SamplingTracer({
      ratePerMillion: config.tracingSamplingRatePerMillion,
      callersPerSecond: config.tracingCallersPerSecond / threads,
      random: Math.random,
      onCaller: (outcome) => metrics.add(TRACE_CALLERS, 1, outcome),
    })
    const { tracer } = this
    this.#spanOptions = { userAttributes: config.tracingUserAttributes, newSpanId: () => tracer.newSpanId() }
  }

  /** Hands over spans from now on, until the returned function is called. */
  handTo(emit: (spans: WrittenSpans) => void): () => void {
    this.#emit = emit
    return () => {
      this.#emit = undefined
    }
  }

  /** A watch may last for hours: its span ends with the response head, so that the trace can be viewed. */
  responseStarted(record: RequestRecord): void {
    if (record.trace !== undefined && record.longRunning) this.#end(record)
  }

  requestEnded(record: RequestRecord): void {
    if (record.trace !== undefined) this.#end(record)
  }

  #end(record: RequestRecord): void {
    const { trace } = record
    if (trace === undefined || trace.ended) return
    trace.ended = true
    if (this.#waiting.length >= MAX_WAITING) {
      this.#metrics.add(TRACES_DROPPED, 1, 'thread')
      return
    }
    this.#waiting.push(writeSpans(record, trace, this.#now(), this.#spanOptions))
    this.#timer ??= setTimeout(() => this.flush(), WAIT_MS).unref()
  }

  /** Hands over what waits. */
  flush(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    const waiting = this.#waiting
    this.#waiting = []
    for (const spans of waiting) {
      if (this.#emit === undefined) this.#metrics.add(TRACES_DROPPED, 1, 'thread')
      else this.#emit(spans)
    }
  }
}
