// The webhook backend of the audit log, as kube-apiserver's in its mode `batch` (apiserver/plugin/pkg/audit/{buffered,webhook}): events wait
// in a buffer and are POSTed as an audit.k8s.io/v1 EventList. Other than there, batches on their way are limited, too, in number and bytes: a
// receiver that hangs costs no request, and a bounded amount of memory.

import { setTimeout as sleep } from 'node:timers/promises'
import { StatusError } from '../../api/kube/status.ts'
import type { Clock, Logger } from '../../api/ports/ports.ts'
import { errorMessage } from '../../api/validation/error-message.ts'
import { truncateEvent } from '../../core/audit/truncation.ts'
import type { KubeCallEvents } from '../kube/client-events.ts'
import { type KubeAccessSource, KubeHttp } from '../kube/client-http.ts'
import type { LineWriter } from '../logs/line-writer.ts'
import { Throttle } from './throttle.ts'

export interface AuditWebhookOptions {
  readonly access: KubeAccessSource
  readonly initialBackoffMs: number
  /** Events that wait. */
  readonly bufferSize: number
  /** Events. */
  readonly maxBatchSize: number
  /** How long events wait for others. */
  readonly maxWaitMs: number
  /** Of batches; undefined = any number. */
  readonly throttle: { readonly perSecond: number; readonly burst: number } | undefined
  /** Bytes; undefined = events are never truncated. */
  readonly truncate: { readonly maxEventBytes: number; readonly maxBatchBytes: number } | undefined
  readonly calls?: KubeCallEvents | undefined
  readonly clock: Clock
  readonly log: Logger
  random(): number
  /** Milliseconds that one attempt may take. Default 30 s, as in kube-apiserver. */
  readonly timeoutMs?: number
  /** Milliseconds that `close` may take. Default 5 s. */
  readonly flushMs?: number
}

/** What became of events. */
export const WEBHOOK_RESULTS = ['sent', 'buffer-full', 'too-large', 'failed'] as const
export type WebhookResult = (typeof WEBHOOK_RESULTS)[number]

/** Characters of events that wait and of those on their way. */
const MAX_HELD = 64 * 1024 * 1024
/** A batch is split above it; kube-apiserver's default of --audit-webhook-truncate-max-batch-size. */
const MAX_BATCH = 10 * 1024 * 1024
const MAX_UNDERWAY = 16
const TIMEOUT_MS = 30_000
const FLUSH_MS = 5_000
const ABANDON_MS = 1_000
/** apiserver/pkg/util/webhook DefaultRetryBackoffWithInitialDelay. */
const ATTEMPTS = 5
const FACTOR = 1.5
const JITTER = 0.2
/** What a Retry-After may ask for. */
const MAX_RETRY_AFTER_S = 60
const WARN_EVERY_MS = 60_000

export class AuditWebhook implements LineWriter {
  readonly #options: AuditWebhookOptions
  readonly #http: KubeHttp
  readonly #throttle: Throttle | undefined
  readonly #counts: Record<WebhookResult, number> = { sent: 0, 'buffer-full': 0, 'too-large': 0, failed: 0 }
  readonly #maxBatch: number
  #waiting: string[] = []
  /** Characters of all that is held. */
  #held = 0
  readonly #underway = new Set<Promise<void>>()
  /** What waits is sent although there are not enough for a batch. */
  #due = false
  #waitTimer: NodeJS.Timeout | undefined
  #throttleTimer: NodeJS.Timeout | undefined
  #scheduled = false
  #closing: Promise<void> | undefined
  /** No more waiting between attempts: each is made once. */
  readonly #ending = new AbortController()
  readonly #stopped = new AbortController()
  #warnedMs = Number.NEGATIVE_INFINITY
  #idle: (() => void)[] = []

  constructor(options: AuditWebhookOptions) {
    this.#options = options
    const { access, calls, throttle, clock, truncate, timeoutMs = TIMEOUT_MS } = options
    this.#http = new KubeHttp(access, timeoutMs, calls)
    this.#throttle = throttle && new Throttle(throttle.perSecond, throttle.burst, () => clock.monotonic())
    this.#maxBatch = truncate?.maxBatchBytes ?? MAX_BATCH
  }

  /** Events so far. */
  get counts(): Readonly<Record<WebhookResult, number>> {
    return this.#counts
  }

  /** Events so far that did not arrive. */
  dropped(): number {
    return this.#counts['buffer-full'] + this.#counts['too-large'] + this.#counts.failed
  }

  write(line: string): void {
    const { truncate, bufferSize, maxBatchSize, maxWaitMs } = this.#options
    if (this.#closing !== undefined) {
      this.#lose(1, 'failed', 'the gateway stops')
      return
    }
    // Before it is looked at any closer: dropping must be cheap.
    if (this.#waiting.length >= bufferSize || this.#held + line.length > MAX_HELD) {
      this.#lose(1, 'buffer-full', 'the buffer is full: the receiver is too slow, or away')
      return
    }
    const event = truncate === undefined ? line : truncateEvent(line, truncate.maxEventBytes)
    if (event === undefined) {
      this.#lose(1, 'too-large', 'an event is too large even after truncating')
      return
    }
    this.#waiting.push(event)
    this.#held += event.length
    if (this.#waiting.length >= maxBatchSize) this.#schedule()
    else this.#waitTimer ??= setTimeout(() => this.#onWaited(), maxWaitMs).unref()
  }

  flush(): Promise<void> {
    if (this.#waiting.length === 0 && this.#underway.size === 0) return Promise.resolve()
    this.#onWaited()
    return new Promise((resolve) => this.#idle.push(resolve))
  }

  /** Sends what waits, once, within `flushMs`; the rest is dropped. */
  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    const { flushMs = FLUSH_MS } = this.#options
    this.#ending.abort()
    const deadline = setTimeout(() => this.#stopped.abort(), flushMs)
    const late = new Promise<void>((resolve) => this.#stopped.signal.addEventListener('abort', () => resolve()))
    await Promise.race([this.flush(), late])
    clearTimeout(deadline)
    this.#stopped.abort()
    clearTimeout(this.#waitTimer)
    clearTimeout(this.#throttleTimer)
    // A plugin of the kubeconfig cannot be interrupted.
    const abandoned = new AbortController()
    const waiting = sleep(ABANDON_MS, undefined, { signal: abandoned.signal }).catch(() => undefined)
    await Promise.race([Promise.all(this.#underway), waiting])
    abandoned.abort()
    const left = this.#waiting.length
    this.#waiting = []
    if (left > 0) this.#lose(left, 'failed', 'the receiver did not take them before the gateway stopped')
    await this.#http.close()
  }

  #onWaited(): void {
    this.#due = true
    this.#schedule()
  }

  /** Events of one turn of the event loop leave together. */
  #schedule(): void {
    if (this.#scheduled) return
    this.#scheduled = true
    setImmediate(() => {
      this.#scheduled = false
      this.#sendWaiting()
    })
  }

  #sendWaiting(): void {
    const { maxBatchSize, maxWaitMs } = this.#options
    const isEnding = this.#ending.signal.aborted
    while (this.#waiting.length >= maxBatchSize || (this.#due && this.#waiting.length > 0)) {
      if (this.#underway.size >= MAX_UNDERWAY || this.#stopped.signal.aborted) return
      const delayMs = isEnding ? 0 : (this.#throttle?.take() ?? 0)
      if (delayMs > 0) {
        clearTimeout(this.#throttleTimer)
        this.#throttleTimer = setTimeout(() => this.#sendWaiting(), delayMs).unref()
        return
      }
      this.#send(this.#takeBatch())
    }
    this.#due = false
    clearTimeout(this.#waitTimer)
    this.#waitTimer = this.#waiting.length > 0 ? setTimeout(() => this.#onWaited(), maxWaitMs).unref() : undefined
    if (this.#waiting.length > 0 || this.#underway.size > 0) return
    const idle = this.#idle
    this.#idle = []
    for (const resolve of idle) resolve()
  }

  /** One event at least. */
  #takeBatch(): string[] {
    const { maxBatchSize } = this.#options
    let size = 0
    let count = 0
    for (const event of this.#waiting) {
      size += Buffer.byteLength(event)
      if (count > 0 && (count >= maxBatchSize || size > this.#maxBatch)) break
      count++
    }
    return this.#waiting.splice(0, count)
  }

  #send(events: readonly string[]): void {
    const size = events.reduce((sum, event) => sum + event.length, 0)
    const sending = this.#deliver(events).finally(() => {
      this.#underway.delete(sending)
      this.#held -= size
      this.#sendWaiting()
    })
    this.#underway.add(sending)
  }

  async #deliver(events: readonly string[]): Promise<void> {
    const { initialBackoffMs, random } = this.#options
    const body = `{"kind":"EventList","apiVersion":"audit.k8s.io/v1","metadata":{},"items":[${events.join(',')}]}`
    let backoffMs = initialBackoffMs
    for (let attempt = 1; ; attempt++) {
      const isLast = attempt === ATTEMPTS || this.#ending.signal.aborted
      try {
        await this.#http.post(body, this.#stopped.signal)
        this.#counts.sent += events.length
        return
      } catch (error) {
        // As in kube-apiserver, whatever the error: 401, 404 and 413 are errors of a receiver that somebody will correct.
        if (isLast || this.#stopped.signal.aborted) {
          this.#lose(events.length, 'failed', errorMessage(error))
          return
        }
        this.#warn('the audit webhook does not take events; they are sent again', errorMessage(error))
        const ownMs = backoffMs * (1 + JITTER * random())
        await sleep(Math.max(ownMs, retryAfterMs(error)), undefined, { signal: this.#ending.signal }).catch(
          () => undefined,
        )
        backoffMs *= FACTOR
      }
    }
  }

  #lose(count: number, result: WebhookResult, why: string): void {
    this.#counts[result] += count
    this.#warn('events for the audit webhook are lost', why)
  }

  #warn(message: string, why: string): void {
    const { access, clock, log } = this.#options
    const now = clock.monotonic()
    if (now - this.#warnedMs < WARN_EVERY_MS) return
    this.#warnedMs = now
    log.error(message, { webhook: access.server, error: why, lost: this.dropped() })
  }
}

function retryAfterMs(error: unknown): number {
  const seconds = error instanceof StatusError ? (error.status.details?.retryAfterSeconds ?? 0) : 0
  return Math.min(seconds, MAX_RETRY_AFTER_S) * 1000
}
