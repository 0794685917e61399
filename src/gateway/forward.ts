// Forwarding: the client's stream and an upstream stream, joined. What one brings goes to the other, and the window is given
// back when the other side took it. Nothing is decided here but what a broken wire forces.

import type { RequestRecord } from '../api/request-record.ts'
import { type HeaderList, HIGH_WATER_BYTES, type ResetReason, type Stream, type StreamEvents } from '../api/stream.ts'
import { clientResponseHeaders, headerValue } from '../core/hop-headers.ts'
import { refuse } from '../core/refusal.ts'
import { tryRetry } from '../core/retry-budget.ts'
import { noEndpointMessage, upstreamFailedMessage } from '../core/traffic-messages.ts'
import { warningValue } from '../core/warning.ts'
import { createWatchFrames, followWatch, type WatchFrames } from '../core/watch-frames.ts'
import type { RequestClass } from '../io/upstream-pool.ts'
import type { RunningRequest } from '../state/running.ts'
import type { Permit } from './admit.ts'
import { AttemptEvents, type AttemptSink } from './attempt-events.ts'
import type { Gateway } from './gateway.ts'
import type { OutgoingRequest } from './outgoing.ts'
import type { RequestBody } from './request-body.ts'
import { respond } from './respond.ts'
import { type Selected, type Selection, selectEndpoint } from './select-endpoint.ts'

export interface Forwarding {
  readonly client: Stream
  readonly body: RequestBody
  readonly record: RequestRecord
  readonly request: OutgoingRequest
  readonly selection: Selection
  readonly kind: RequestClass
  readonly isWatch: boolean
}

/** Body kept until upstream answers, so that a request which upstream never processed can be sent elsewhere. */
const REPLAY_LIMIT_BYTES = 256 * 1024
/** Of a request that nobody has processed: each endpoint, and one more connection to one of them. */
const MAX_ATTEMPTS = 3
const EMPTY = Buffer.alloc(0)
const NOTHING: ReadonlySet<string> = new Set()
const IDEMPOTENT = new Set(['GET', 'HEAD'])

/** Resolves when the exchange is over, whichever way. Never rejects. */
export function forward(gw: Gateway, forwarding: Forwarding, permit: Permit): Promise<void> {
  return new Promise((resolve) => {
    const exchange = new Exchange(gw, forwarding, permit, resolve)
    gw.running.add(exchange)
    exchange.start()
  })
}

/**
 * `sending` until upstream's response head, `answering` until its end, then `over`. It hears the
 * client through `fromClient`, and upstream as an AttemptSink.
 */
class Exchange implements RunningRequest, AttemptSink {
  readonly #gw: Gateway
  readonly #forwarding: Forwarding
  readonly #permit: Permit
  readonly #done: () => void
  readonly #client: Stream
  readonly #record: RequestRecord
  readonly #tried = new Set<string>()
  #state: 'sending' | 'answering' | 'over' = 'sending'
  #endpoint: Selected | undefined
  #upstream: Stream | undefined
  /** Which attempt an event belongs to: those of an attempt given up are not heard. */
  #attempt = 0
  #sentAtMs = 0
  #replay: Buffer[] = []
  #replayBytes = 0
  #replayable = true
  #requestEnded = false
  #requestTrailers: HeaderList | undefined
  #owedToClient = 0
  #owedToUpstream = 0
  #frames: WatchFrames | undefined
  #finishAtBoundary = false

  constructor(gw: Gateway, forwarding: Forwarding, permit: Permit, done: () => void) {
    this.#gw = gw
    this.#forwarding = forwarding
    this.#permit = permit
    this.#done = done
    this.#client = forwarding.client
    this.#record = forwarding.record
  }

  get cluster(): string {
    return this.#record.cluster
  }

  get endpoint(): string {
    return this.#record.endpoint
  }

  get longRunning(): boolean {
    return this.#record.longRunning
  }

  start(): void {
    if (!this.#send()) {
      this.#permit.nothingSent()
      this.#refuse('no-endpoint')
      return
    }
    this.#forwarding.body.drainTo(this.fromClient)
  }

  /** Picks an endpoint and sends what is known of the request. */
  #send(sameAgain = false): boolean {
    const { selection, request, kind, body } = this.#forwarding
    let selected = selectEndpoint(this.#gw, selection, this.#tried)
    // A connection that was closing (GOAWAY) refuses what another connection to the same server takes.
    if (selected === undefined && sameAgain && this.#attempt < MAX_ATTEMPTS)
      selected = selectEndpoint(this.#gw, selection, NOTHING)
    if (selected === undefined) return false
    this.#endpoint = selected
    const { url } = selected.endpoint
    this.#tried.add(url)
    this.#record.endpoint = url
    this.#record.attempts++
    selected.endpoint.started()
    this.#sentAtMs = this.#gw.clock.monotonic()
    const head: HeaderList = [
      ':method',
      request.method,
      ':path',
      request.target,
      ':authority',
      url.slice(url.indexOf('//') + 2),
      ':scheme',
      selected.endpoint.compiled.scheme,
      ...request.fields,
    ]
    const attempt = ++this.#attempt
    const noBody = this.#attempt === 1 ? body.empty : this.#requestEnded && this.#replayBytes === 0
    const upstream = selected.upstream.open(kind, head, noBody, new AttemptEvents(this, attempt))
    this.#upstream = upstream
    if (noBody) return true
    for (const chunk of this.#replay) upstream.body(chunk, false)
    if (this.#requestTrailers !== undefined) upstream.trailers(this.#requestTrailers)
    else if (this.#requestEnded) upstream.body(EMPTY, true)
    return true
  }

  readonly fromClient: StreamEvents = {
    onHeaders: () => undefined,
    onBody: (chunk, end) => this.#onRequestBody(chunk, end),
    onTrailers: (list) => {
      this.#requestEnded = true
      this.#requestTrailers = list
      if (this.#state !== 'over') this.#upstream?.trailers(list)
    },
    onDrained: () => this.#onClientDrained(),
    onReset: () => this.#onClientGone(),
  }

  #onRequestBody(chunk: Buffer, end: boolean): void {
    this.#record.requestBytes += chunk.length
    if (end) this.#requestEnded = true
    if (this.#state === 'over') {
      this.#client.credit(chunk.length)
      return
    }
    if (this.#state === 'sending' && this.#replayable && chunk.length > 0) this.#keep(chunk)
    const upstream = this.#upstream
    // A request known to have no body was ended when it was opened; the stream ignores a second end.
    upstream?.body(chunk, end)
    if (upstream !== undefined && upstream.queued >= HIGH_WATER_BYTES) this.#owedToClient += chunk.length
    else if (chunk.length > 0) this.#client.credit(chunk.length)
  }

  #keep(chunk: Buffer): void {
    this.#replayBytes += chunk.length
    if (this.#replayBytes <= REPLAY_LIMIT_BYTES) {
      this.#replay.push(chunk)
      return
    }
    this.#replayable = false
    this.#replay = []
  }

  #onClientDrained(): void {
    if (this.#owedToUpstream === 0 || this.#client.queued >= HIGH_WATER_BYTES) return
    const bytes = this.#owedToUpstream
    this.#owedToUpstream = 0
    this.#upstream?.credit(bytes)
  }

  #onClientGone(): void {
    if (this.#state === 'over') return
    this.#record.aborted = 'client'
    this.#upstream?.reset('cancel')
    this.#finish()
  }

  // === what upstream does ===

  onHeaders(attempt: number, list: HeaderList, end: boolean): void {
    if (attempt !== this.#attempt || this.#state !== 'sending') return
    const status = Number(list[1])
    if (status < 200) {
      if (status !== 101) this.#client.headers(clientResponseHeaders(list), false)
      return
    }
    this.#state = 'answering'
    this.#replay = []
    this.#replayable = false
    const record = this.#record
    record.code = status
    const nowMs = this.#gw.clock.monotonic()
    record.ttfbMs = nowMs - record.startMs
    record.upstreamMs = nowMs - this.#sentAtMs
    this.#endpointAnswered()
    const head = clientResponseHeaders(list)
    if (headerValue(head, 'audit-id') === undefined) head.push('audit-id', record.auditId)
    for (const warning of this.#permit.warnings) head.push('warning', warningValue(warning))
    if (this.#forwarding.isWatch) {
      this.#permit.watchStarted()
      const type = headerValue(list, 'content-type') ?? ''
      if (status === 200) this.#frames = createWatchFrames(type, headerValue(list, 'content-encoding') ?? '')
    }
    this.#client.headers(head, end)
    this.#gw.events.responseStarted(record)
    if (end) this.#finish()
    else if (this.#finishAtBoundary) this.finish()
  }

  onBody(attempt: number, chunk: Buffer, end: boolean): void {
    if (attempt !== this.#attempt || this.#state !== 'answering') return
    this.#record.responseBytes += chunk.length
    this.#client.body(chunk, end)
    if (end) {
      this.#finish()
      return
    }
    if (this.#client.queued < HIGH_WATER_BYTES) this.#upstream?.credit(chunk.length)
    else this.#owedToUpstream += chunk.length
    if (this.#frames !== undefined && followWatch(this.#frames, chunk) && this.#finishAtBoundary) this.#endWatch()
  }

  onTrailers(attempt: number, list: HeaderList): void {
    if (attempt !== this.#attempt || this.#state !== 'answering') return
    this.#client.trailers(list)
    this.#finish()
  }

  onDrained(attempt: number): void {
    if (attempt !== this.#attempt || this.#owedToClient === 0) return
    if ((this.#upstream?.queued ?? 0) >= HIGH_WATER_BYTES) return
    const bytes = this.#owedToClient
    this.#owedToClient = 0
    this.#client.credit(bytes)
  }

  onReset(attempt: number, reason: ResetReason): void {
    if (attempt !== this.#attempt || this.#state === 'over') return
    if (this.#state === 'answering') this.#onBrokenAnswer(reason)
    else this.#onNoAnswer(reason)
  }

  /** Upstream is gone in the middle: never a clean end, but for a watch that stands between two events. */
  #onBrokenAnswer(reason: ResetReason): void {
    this.#record.aborted = 'upstream'
    if (this.#frames?.atBoundary === true) this.#client.body(EMPTY, true)
    else this.#client.reset(reason === 'connection' || reason === 'cancel' ? 'internal' : reason)
    this.#finish()
  }

  #onNoAnswer(reason: ResetReason): void {
    const { live } = this.#forwarding.selection
    this.#leaveEndpoint()
    const nowMs = this.#gw.clock.monotonic()
    if (this.#mayRetry(reason) && tryRetry(live.retryBudget, nowMs) && this.#send(reason === 'refused')) {
      this.#gw.events.retried(this.#record.cluster, reason === 'refused' ? 'refused' : 'read')
      return
    }
    this.#refuse('upstream-failed')
  }

  /** Never a write that may have been seen; never twice to the same endpoint. */
  #mayRetry(reason: ResetReason): boolean {
    if (!this.#replayable) return false
    if (reason === 'refused') return true
    return IDEMPOTENT.has(this.#record.method) && !this.#forwarding.isWatch && this.#requestEnded
  }

  #refuse(reason: 'no-endpoint' | 'upstream-failed'): void {
    this.#state = 'over'
    const name = this.#record.cluster
    const refusal = refuse(reason, reason === 'no-endpoint' ? noEndpointMessage(name) : upstreamFailedMessage(name))
    respond(this.#client, this.#forwarding.body, this.#record, refusal)
    this.#close()
  }

  #endpointAnswered(): void {
    if (this.#endpoint === undefined) return
    this.#forwarding.selection.live.endpoints.onSuccess(this.#endpoint.endpoint, this.#gw.clock.monotonic())
  }

  #leaveEndpoint(): void {
    if (this.#endpoint !== undefined) this.#endpoint.endpoint.ended()
    this.#endpoint = undefined
  }

  // === the end ===

  finish(): void {
    if (this.#state === 'over') return
    if (this.#forwarding.isWatch && this.#frames !== undefined) {
      if (this.#frames.atBoundary) this.#endWatch()
      else if (this.#frames.format === 'opaque') this.cut()
      else this.#finishAtBoundary = true
      return
    }
    if (this.#forwarding.isWatch && this.#state === 'sending') this.#finishAtBoundary = true
    else this.cut()
  }

  #endWatch(): void {
    this.#client.body(EMPTY, true)
    this.#upstream?.reset('cancel')
    this.#finish()
  }

  cut(): void {
    if (this.#state === 'over') return
    this.#upstream?.reset('cancel')
    this.#client.reset('internal')
    this.#record.aborted = 'upstream'
    this.#finish()
  }

  #finish(): void {
    this.#state = 'over'
    this.#forwarding.body.discard()
    this.#close()
  }

  #close(): void {
    this.#leaveEndpoint()
    this.#gw.running.remove(this)
    this.#done()
  }
}
