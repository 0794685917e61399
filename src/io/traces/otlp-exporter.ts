// Sends spans to a collector: OTLP over HTTP, in JSON (the specification in opentelemetry-proto). By hand, because the SDK costs three times
// as much (docs/decisions/0036). What the collector does not take in time is dropped and counted; requests never wait for it.

import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { constants, gzip } from 'node:zlib'
import { Agent } from 'undici'
import type { Clock, Logger } from '../../api/ports/ports.ts'
import type { Charge } from '../../api/ports/stream.ts'
import { DOCUMENT, SHORT_TEXT_BYTES } from '../../core/answers/answer-limits.ts'
import { AnswerTooLargeError, NoRoomError } from '../../core/answers/call-errors.ts'
import { serverCharge } from '../../core/shares/charge.ts'
import type { WrittenSpans } from '../../core/traces/otlp.ts'
import { type Envelope, envelope } from '../../core/traces/otlp-json.ts'
import { type BoundedReply, faultText, fetchBounded } from '../answers/fetch-bounded.ts'
import type { OtlpFiles } from './otlp-files.ts'

export interface OtlpExporterOptions {
  /** URL of the collector's traces. */
  readonly url: string
  readonly files: OtlpFiles
  /** What describes this process: service.name and the like. */
  readonly resource: Readonly<Record<string, string>>
  readonly version: string
  readonly clock: Clock
  readonly log: Logger
  random(): number
  /** Spans that the collector has taken, has refused for good, or could not be sent to it. */
  onSpans(count: number, result: SpanResult): void
  /** Requests whose spans were dropped, because too many wait. */
  onDropped(requests: number): void
  readonly waits?: ExporterWaits
}

/** Milliseconds; each 1 s by default. */
export interface ExporterWaits {
  /** How long spans wait for others to be sent with. */
  readonly batchMs?: number
  /** Until a failed sending is tried again, for the first time. */
  readonly retryMs?: number
}

export type SpanResult = 'exported' | 'rejected' | 'failed'

/** Requests that wait, as many spans each as they had steps. */
const MAX_WAITING = 2048
const MAX_BATCH = 256
const BATCH_MS = 1000
const TIMEOUT_MS = 10_000
const RETRY_MS = 1000
const MAX_RETRY_MS = 30_000
/** What a Retry-After may ask for. */
const MAX_RETRY_AFTER_MS = 300_000
const MAX_ATTEMPTS = 8
/** By the specification all others are for good. */
const RETRYABLE: ReadonlySet<number> = new Set([429, 502, 503, 504])
const WARN_EVERY_MS = 60_000

const COMMA = Buffer.from(',')
const compress = promisify(gzip)
/** A fifth larger than by default, for less than half of the time. */
const FAST = { level: constants.Z_BEST_SPEED }

/** What one sending has come to; `retryAfterMs` 0 = the collector has not said. */
type Answer =
  | { readonly kind: 'taken'; readonly rejected: number; readonly message: string }
  | { readonly kind: 'refused'; readonly message: string }
  | { readonly kind: 'busy'; readonly retryAfterMs: number; readonly message: string }

export class OtlpExporter {
  readonly #options: OtlpExporterOptions
  /** What stands around the spans. */
  readonly #envelope: Envelope
  /** Who pays for the memory of the collector's answers. */
  readonly #charge: Charge
  #waiting: WrittenSpans[] = []
  #timer: NodeJS.Timeout | undefined
  #sending: Promise<void> | undefined
  #agent: Agent
  #agentCa: string
  readonly #stopped = new AbortController()
  #warnedMs = Number.NEGATIVE_INFINITY

  constructor(options: OtlpExporterOptions) {
    this.#options = options
    this.#envelope = envelope(options.resource, options.version)
    this.#charge = serverCharge(new URL(options.url).origin)
    this.#agentCa = options.files.ca
    this.#agent = agentFor(options.files.ca)
  }

  /** Requests that wait to be sent. */
  get waiting(): number {
    return this.#waiting.length
  }

  get #batchMs(): number {
    return this.#options.waits?.batchMs ?? BATCH_MS
  }

  /** @param traces spans of one request each */
  add(traces: readonly WrittenSpans[]): void {
    const room = Math.max(0, MAX_WAITING - this.#waiting.length)
    for (const trace of traces.slice(0, room)) this.#waiting.push(trace)
    if (traces.length > room) this.#options.onDropped(traces.length - room)
    if (this.#waiting.length >= MAX_BATCH) this.#send()
    else if (this.#waiting.length > 0) this.#timer ??= setTimeout(() => this.#send(), this.#batchMs).unref()
  }

  /** Sends what waits, once, and ends. @param withinMs how long that may take */
  async stop(withinMs: number): Promise<void> {
    this.#send()
    const deadline = setTimeout(() => this.#stopped.abort(), withinMs)
    while (this.#sending !== undefined) await this.#sending
    clearTimeout(deadline)
    clearTimeout(this.#timer)
    this.#stopped.abort()
    await this.#agent.destroy()
  }

  /** One batch after the other. */
  #send(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    if (this.#sending !== undefined || this.#waiting.length === 0) return
    this.#sending = this.#sendAll().finally(() => {
      this.#sending = undefined
    })
  }

  async #sendAll(): Promise<void> {
    while (this.#waiting.length > 0 && !this.#stopped.signal.aborted) {
      const batch = this.#waiting.slice(0, MAX_BATCH)
      this.#waiting = this.#waiting.slice(MAX_BATCH)
      const count = batch.reduce((sum, spans) => sum + spans.count, 0)
      try {
        await this.#deliver(batch, count)
      } catch (error) {
        // A bug: the next batch may be better.
        this.#options.onSpans(count, 'failed')
        this.#options.log.error('spans could not be sent', { error })
      }
    }
  }

  /** @param count of spans */
  async #deliver(batch: readonly WrittenSpans[], count: number): Promise<void> {
    const { onSpans, random, waits } = this.#options
    const body = await compress(documentOf(this.#envelope, batch), FAST)
    let delayMs = waits?.retryMs ?? RETRY_MS
    for (let attempt = 1; ; attempt++) {
      const answer = await this.#post(body)
      if (answer.kind === 'taken') {
        onSpans(count - answer.rejected, 'exported')
        if (answer.rejected > 0) onSpans(answer.rejected, 'rejected')
        if (answer.message !== '') this.#warn('the collector has not taken all spans', answer.message)
        return
      }
      const over = attempt >= MAX_ATTEMPTS || this.#stopped.signal.aborted
      if (answer.kind === 'refused' || over) {
        onSpans(count, answer.kind === 'refused' ? 'rejected' : 'failed')
        this.#warn('the collector does not take spans', answer.message)
        return
      }
      // Half of it at random, so that replicas do not come back together.
      const ownMs = delayMs * (0.5 + random() / 2)
      await this.#sleep(answer.retryAfterMs > 0 ? answer.retryAfterMs : ownMs)
      delayMs = Math.min(MAX_RETRY_MS, 2 * delayMs)
    }
  }

  async #post(body: Buffer): Promise<Answer> {
    const { url, files } = this.#options
    if (files.ca !== this.#agentCa) {
      void this.#agent.close()
      this.#agentCa = files.ca
      this.#agent = agentFor(files.ca)
    }
    const headers = { ...files.headers, 'content-type': 'application/json', 'content-encoding': 'gzip' }
    const signal = AbortSignal.any([AbortSignal.timeout(TIMEOUT_MS), this.#stopped.signal])
    try {
      const call = { method: 'POST', headers, body, signal, connections: this.#agent }
      return await this.#answerOf(await fetchBounded(url, call))
    } catch (error) {
      return { kind: 'busy', retryAfterMs: 0, message: faultText(error) }
    }
  }

  async #answerOf(reply: BoundedReply): Promise<Answer> {
    if (reply.code >= 200 && reply.code < 300) return partialSuccess(await textOf(reply, this.#charge))
    await reply.dump(SHORT_TEXT_BYTES)
    const message = `it answers ${reply.code}`
    if (!RETRYABLE.has(reply.code)) return { kind: 'refused', message }
    return { kind: 'busy', retryAfterMs: retryAfterMs(reply.header('retry-after'), this.#options.clock.now()), message }
  }

  /** Ends early when the exporter stops. */
  async #sleep(ms: number): Promise<void> {
    await sleep(ms, undefined, { signal: this.#stopped.signal }).catch(() => undefined)
  }

  #warn(message: string, error: string): void {
    const nowMs = this.#options.clock.monotonic()
    if (nowMs - this.#warnedMs < WARN_EVERY_MS) return
    this.#warnedMs = nowMs
    this.#options.log.warn(message, { url: this.#options.url, error })
  }
}

/** Joined as bytes, in half of the time that joining them as text takes. */
export function documentOf({ head, tail }: Envelope, batch: readonly WrittenSpans[]): Buffer {
  const parts: Buffer[] = []
  for (const { json } of batch) parts.push(parts.length === 0 ? Buffer.from(head) : COMMA, Buffer.from(json))
  parts.push(Buffer.from(tail))
  return Buffer.concat(parts)
}

function agentFor(ca: string): Agent {
  const tls = ca === '' ? {} : { ca }
  return new Agent({ connections: 1, connect: { timeout: TIMEOUT_MS, ...tls }, headersTimeout: TIMEOUT_MS })
}

/** '' = more than is read, or there is no room for it: the collector has taken the spans all the same. @throws (rejects) when it breaks off */
function textOf(reply: BoundedReply, charge: Charge): Promise<string> {
  return reply.countedText({ ...DOCUMENT, bytes: SHORT_TEXT_BYTES }, charge).catch((error: unknown) => {
    if (error instanceof AnswerTooLargeError || error instanceof NoRoomError) return ''
    throw error
  })
}

/** ExportTraceServiceResponse. */
function partialSuccess(text: string): Answer {
  try {
    const { rejectedSpans = 0, errorMessage: message = '' } = JSON.parse(text)?.partialSuccess ?? {}
    const rejected = Number(rejectedSpans)
    return {
      kind: 'taken',
      rejected: Number.isSafeInteger(rejected) && rejected > 0 ? rejected : 0,
      message: String(message),
    }
  } catch {
    return { kind: 'taken', rejected: 0, message: '' }
  }
}

/** Seconds or a date (RFC 9110 section 10.2.3); 0 = neither. */
function retryAfterMs(text: string, nowMs: number): number {
  const ms = /^\d+$/.test(text) ? Number(text) * 1000 : Date.parse(text) - nowMs
  return ms > 0 ? Math.min(ms, MAX_RETRY_AFTER_MS) : 0
}
