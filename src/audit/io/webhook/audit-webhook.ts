// The audit log's webhook backend, like kube-apiserver's in `batch` mode (apiserver/plugin/pkg/audit/{buffered,webhook}): events wait in a buffer and
// are POSTed as an audit.k8s.io/v1 EventList. Unlike there, batches in flight are also bounded, in number and bytes: a hanging receiver costs no
// request, and a bounded amount of memory.

import { Budget } from '../../../kit/api/limits/budget.ts'
import type { Clock, Logger } from '../../../kit/api/ports.ts'
import { errorMessage } from '../../../kit/api/validation/error-message.ts'
import { BatchSender, type Delivery } from '../../../kit/io/batches/batch-sender.ts'
import type { LineWriter } from '../../../kit/io/logs/line-writer.ts'
import { RareWarnings } from '../../../kit/io/logs/rare-warnings.ts'
import { StatusError } from '../../../kube/api/status.ts'
import type { KubeCallEvents } from '../../../kube/io/client-events.ts'
import { type KubeAccessSource, KubeHttp } from '../../../kube/io/client-http.ts'
import { MAX_BATCH_BYTES } from '../../../process/api/audit-size.ts'
import { truncateEvent } from '../../core/truncation.ts'

export interface AuditWebhookOptions {
  readonly access: KubeAccessSource
  readonly initialBackoffMs: number
  /** Maximum number of waiting events. */
  readonly bufferSize: number
  /** Events per batch. */
  readonly maxBatchSize: number
  /** How long events wait for a batch to fill. */
  readonly maxWaitMs: number
  /** Rate of batches; undefined = unlimited. */
  readonly throttle: { readonly perSecond: number; readonly burst: number } | undefined
  /** Larger events are truncated; 0 = never. */
  readonly maxEventBytes: number
  readonly calls?: KubeCallEvents | undefined
  readonly clock: Clock
  readonly log: Logger
  random(): number
  /** Timeout of one attempt, milliseconds. Default 30 s, as in kube-apiserver. */
  readonly timeoutMs?: number
  /** Timeout of `close`, milliseconds. Default 5 s. */
  readonly flushMs?: number
}

/** What happened to events. */
export const WEBHOOK_RESULTS = ['sent', 'buffer-full', 'too-large', 'failed'] as const
type WebhookResult = (typeof WEBHOOK_RESULTS)[number]

/** Characters of waiting events and those in flight. */
const MAX_HELD = 64 * 1024 * 1024
const MAX_UNDERWAY = 16
const TIMEOUT_MS = 30_000
const FLUSH_MS = 5_000
/** apiserver/pkg/util/webhook DefaultRetryBackoffWithInitialDelay. */
const ATTEMPTS = 5
const FACTOR = 1.5
const JITTER = 0.2
/** Longest Retry-After that is honoured. */
const MAX_RETRY_AFTER_S = 60
const WARN_EVERY_MS = 60_000

export class AuditWebhook implements LineWriter {
  readonly #options: AuditWebhookOptions
  readonly #http: KubeHttp
  readonly #sender: BatchSender<string, string>
  readonly #warnings: RareWarnings
  readonly #counts: Record<WebhookResult, number> = { sent: 0, 'buffer-full': 0, 'too-large': 0, failed: 0 }

  constructor(options: AuditWebhookOptions) {
    this.#options = options
    const { access, calls, throttle, clock, initialBackoffMs, random, timeoutMs = TIMEOUT_MS } = options
    this.#http = new KubeHttp(access, timeoutMs, calls)
    this.#warnings = new RareWarnings(options, 'error', WARN_EVERY_MS)
    const budget = throttle && new Budget(throttle, clock.monotonic())
    this.#sender = new BatchSender({
      maxWaiting: options.bufferSize,
      maxHeld: MAX_HELD,
      maxBatch: options.maxBatchSize,
      maxBatchBytes: MAX_BATCH_BYTES,
      maxUnderway: MAX_UNDERWAY,
      maxAttempts: ATTEMPTS,
      waitMs: options.maxWaitMs,
      sizeOf: (event) => event.length,
      bytesOf: (event) => Buffer.byteLength(event),
      encode: eventList,
      deliver: (list, events, signal) => this.#deliver(list, events.length, signal),
      delayMs: (attempt) => initialBackoffMs * FACTOR ** (attempt - 1) * (1 + JITTER * random()),
      onUndelivered: (events, _, why) => this.#lose(events.length, 'failed', why),
      onRetry: (why) => this.#warn('the audit webhook does not take events; they are sent again', why),
      takePlace: () => budget?.takeOrWaitMs(clock.monotonic()) ?? 0,
    })
  }

  /** Events so far, by result. */
  get counts(): Readonly<Record<WebhookResult, number>> {
    return this.#counts
  }

  /** Events so far that were not delivered. */
  dropped(): number {
    return this.#counts['buffer-full'] + this.#counts['too-large'] + this.#counts.failed
  }

  write(line: string): void {
    if (this.#sender.isStopping) {
      this.#lose(1, 'failed', 'the gateway stops')
      return
    }
    if (!this.#sender.hasRoom(line.length)) {
      this.#lose(1, 'buffer-full', 'the buffer is full: the receiver is too slow, or away')
      return
    }
    const { maxEventBytes } = this.#options
    const event = maxEventBytes === 0 ? line : truncateEvent(line, maxEventBytes)
    if (event === undefined) this.#lose(1, 'too-large', 'an event is too large even after truncating')
    else this.#sender.add(event)
  }

  flush(): Promise<void> {
    return this.#sender.flush()
  }

  /** Sends what waits, once, within `flushMs`; the rest is dropped. */
  async close(): Promise<void> {
    await this.#sender.stop(this.#options.flushMs ?? FLUSH_MS)
    await this.#http.close()
  }

  /** Retries any error, as kube-apiserver does: 401, 404 and 413 are receiver errors that will be corrected. */
  async #deliver(list: string, count: number, signal: AbortSignal): Promise<Delivery> {
    try {
      await this.#http.post(list, signal)
      this.#counts.sent += count
      return { kind: 'taken' }
    } catch (error) {
      return { kind: 'again', afterMs: retryAfterMs(error), message: errorMessage(error) }
    }
  }

  #lose(count: number, result: WebhookResult, why: string): void {
    this.#counts[result] += count
    this.#warn('events for the audit webhook are lost', why)
  }

  #warn(message: string, error: string): void {
    this.#warnings.warn(message, { webhook: this.#options.access.server, error, lost: this.dropped() })
  }
}

function eventList(events: readonly string[]): string {
  return `{"kind":"EventList","apiVersion":"audit.k8s.io/v1","metadata":{},"items":[${events.join(',')}]}`
}

function retryAfterMs(error: unknown): number {
  const seconds = error instanceof StatusError ? (error.status.details?.retryAfterSeconds ?? 0) : 0
  return Math.min(seconds, MAX_RETRY_AFTER_S) * 1000
}
