// Exports spans to a collector: OTLP over HTTP, in JSON (specified in opentelemetry-proto). Written by hand, because the SDK costs three times as
// much (docs/decisions/0036). What the collector does not accept in time is dropped and counted; requests never wait for it.

import { promisify } from 'node:util'
import { constants, gzip } from 'node:zlib'
import { Agent } from 'undici'
import type { Clock, Logger } from '../../kit/api/ports.ts'
import type { Charge } from '../../kit/api/stream.ts'
import { serverCharge } from '../../kit/core/shares/charge.ts'
import { BatchSender, type Delivery } from '../../kit/io/batches/batch-sender.ts'
import { http1Connector } from '../../kit/io/dial/http1-connector.ts'
import { RareWarnings } from '../../kit/io/logs/rare-warnings.ts'
import { DOCUMENT, SHORT_TEXT_BYTES } from '../../kube/core/answers/answer-limits.ts'
import { AnswerTooLargeError, NoRoomError } from '../../kube/core/answers/call-errors.ts'
import { type BoundedReply, faultText, fetchBounded } from '../../kube/io/answers/fetch-bounded.ts'
import type { WrittenSpans } from '../core/otlp.ts'
import { type Envelope, envelope } from '../core/otlp-json.ts'
import type { OtlpFiles } from './otlp-files.ts'

interface OtlpExporterOptions {
  /** The collector's URL for traces. */
  readonly url: string
  readonly files: OtlpFiles
  /** Attributes of this process: service.name and the like. */
  readonly resource: Readonly<Record<string, string>>
  readonly version: string
  readonly clock: Clock
  readonly log: Logger
  random(): number
  /** Spans that the collector accepted or rejected permanently, or that could not be sent. */
  onSpans(count: number, result: SpanResult): void
  /** Requests whose spans were dropped, because too many were waiting. */
  onDropped(requests: number): void
  readonly waits?: ExporterWaits
}

/** Milliseconds; each 1 s by default. */
export interface ExporterWaits {
  /** How long spans wait for a batch to fill. */
  readonly batchMs?: number
  /** First retry delay of a failed export. */
  readonly retryMs?: number
}

type SpanResult = 'exported' | 'rejected' | 'failed'

/** Waiting requests, each with one span per step. */
const MAX_WAITING = 2048
const MAX_BATCH = 256
const BATCH_MS = 1000
const TIMEOUT_MS = 10_000
const RETRY_MS = 1000
const MAX_RETRY_MS = 30_000
/** Longest Retry-After that is honoured. */
const MAX_RETRY_AFTER_MS = 300_000
const MAX_ATTEMPTS = 8
/** All others are permanent, by the specification. */
const RETRYABLE: ReadonlySet<number> = new Set([429, 502, 503, 504])
const WARN_EVERY_MS = 60_000

const COMMA = Buffer.from(',')
const compress = promisify(gzip)
/** Output a fifth larger than by default, in less than half the time. */
const FAST = { level: constants.Z_BEST_SPEED }

export class OtlpExporter {
  readonly #options: OtlpExporterOptions
  /** The source that is charged for the memory of the collector's responses. */
  readonly #charge: Charge
  readonly #sender: BatchSender<WrittenSpans, Buffer>
  readonly #warnings: RareWarnings
  #agent: Agent
  #agentCa: string

  constructor(options: OtlpExporterOptions) {
    this.#options = options
    const { files, onSpans, random, resource, url, version, waits } = options
    const { batchMs = BATCH_MS, retryMs = RETRY_MS } = waits ?? {}
    const around = envelope(resource, version)
    this.#charge = serverCharge(new URL(url).origin)
    this.#agentCa = files.ca
    this.#agent = agentFor(files.ca)
    this.#warnings = new RareWarnings(options, 'warn', WARN_EVERY_MS)
    this.#sender = new BatchSender({
      maxWaiting: MAX_WAITING,
      maxBatch: MAX_BATCH,
      maxUnderway: 1,
      maxAttempts: MAX_ATTEMPTS,
      waitMs: batchMs,
      encode: (batch) => compress(documentOf(around, batch), FAST),
      deliver: (body, batch, signal) => this.#deliver(body, spansOf(batch), signal),
      // Half of it is random, so that replicas do not retry in sync.
      delayMs: (attempt) => Math.min(MAX_RETRY_MS, retryMs * 2 ** (attempt - 1)) * (0.5 + random() / 2),
      onUndelivered: (batch, result, why) => {
        onSpans(spansOf(batch), result === 'refused' ? 'rejected' : 'failed')
        this.#warnings.warn('the collector does not take spans', { url, error: why })
      },
    })
  }

  /** Requests waiting to be sent. */
  get waiting(): number {
    return this.#sender.waiting
  }

  /** @param traces spans of one request each */
  add(traces: readonly WrittenSpans[]): void {
    let dropped = 0
    for (const trace of traces) {
      if (this.#sender.hasRoom()) this.#sender.add(trace)
      else dropped++
    }
    if (dropped > 0) this.#options.onDropped(dropped)
  }

  /** Sends what waits, once, and ends. @param withinMs time limit */
  async stop(withinMs: number): Promise<void> {
    await this.#sender.stop(withinMs)
    await this.#agent.destroy()
  }

  async #deliver(body: Buffer, count: number, stopped: AbortSignal): Promise<Delivery> {
    const { url, files, onSpans, clock } = this.#options
    const headers = { ...files.headers, 'content-type': 'application/json', 'content-encoding': 'gzip' }
    const signal = AbortSignal.any([AbortSignal.timeout(TIMEOUT_MS), stopped])
    try {
      const reply = await fetchBounded(url, { method: 'POST', headers, body, signal, connections: this.#connections() })
      if (reply.code >= 200 && reply.code < 300) {
        const { rejected, message } = partialSuccess(await textOf(reply, this.#charge))
        onSpans(count - rejected, 'exported')
        if (rejected > 0) onSpans(rejected, 'rejected')
        if (message !== '') this.#warnings.warn('the collector has not taken all spans', { url, error: message })
        return { kind: 'taken' }
      }
      await reply.dump(SHORT_TEXT_BYTES)
      const message = `it answers ${reply.code}`
      if (!RETRYABLE.has(reply.code)) return { kind: 'refused', message }
      return { kind: 'again', afterMs: retryAfterMs(reply.header('retry-after'), clock.now()), message }
    } catch (error) {
      return { kind: 'again', afterMs: 0, message: faultText(error) }
    }
  }

  #connections(): Agent {
    const { ca } = this.#options.files
    if (ca !== this.#agentCa) {
      void this.#agent.close()
      this.#agentCa = ca
      this.#agent = agentFor(ca)
    }
    return this.#agent
  }
}

function spansOf(batch: readonly WrittenSpans[]): number {
  return batch.reduce((sum, { count }) => sum + count, 0)
}

/** Joined as bytes, in half the time of joining text. */
export function documentOf({ head, tail }: Envelope, batch: readonly WrittenSpans[]): Buffer {
  const parts: Buffer[] = []
  for (const { json } of batch) parts.push(parts.length === 0 ? Buffer.from(head) : COMMA, Buffer.from(json))
  parts.push(Buffer.from(tail))
  return Buffer.concat(parts)
}

function agentFor(ca: string): Agent {
  const tls = ca === '' ? {} : { ca }
  const connect = http1Connector({ timeout: TIMEOUT_MS, ...tls })
  return new Agent({ connections: 1, connect, headersTimeout: TIMEOUT_MS })
}

/** '' = too long, or no memory for it: the collector has accepted the spans anyway. @throws (rejects) if it is cut off */
function textOf(reply: BoundedReply, charge: Charge): Promise<string> {
  return reply.countedText({ ...DOCUMENT, bytes: SHORT_TEXT_BYTES }, charge).catch((error: unknown) => {
    if (error instanceof AnswerTooLargeError || error instanceof NoRoomError) return ''
    throw error
  })
}

/** ExportTraceServiceResponse. */
function partialSuccess(text: string): { readonly rejected: number; readonly message: string } {
  try {
    const { rejectedSpans = 0, errorMessage: message = '' } = JSON.parse(text)?.partialSuccess ?? {}
    const rejected = Number(rejectedSpans)
    return { rejected: Number.isSafeInteger(rejected) && rejected > 0 ? rejected : 0, message: String(message) }
  } catch {
    return { rejected: 0, message: '' }
  }
}

/** Seconds or a date (RFC 9110 section 10.2.3); 0 = neither. */
function retryAfterMs(text: string, nowMs: number): number {
  const ms = /^\d+$/.test(text) ? Number(text) * 1000 : Date.parse(text) - nowMs
  return ms > 0 ? Math.min(ms, MAX_RETRY_AFTER_MS) : 0
}
