// Forwarding: joins the client's stream with an upstream stream, in both directions. Gives back window when the other
// side has taken the data. Makes no decisions except those that a broken connection forces.

import type { Charge, HeaderList, ResetReason, Stream, StreamEvents } from '../../kit/api/stream.ts'
import { refuse } from '../../kit/core/refusal/refusal.ts'
import { AT, nextStepAt } from '../../kit/io/stalls/steps.ts'
import type { ListRequest } from '../api/list-request.ts'
import { nothingSent, watchStarted } from '../core/admission/held.ts'
import { tryRetry } from '../core/endpoints/retry-budget.ts'
import { answerSize } from '../core/list-cost/list-sizes.ts'
import { isExempt, isNodeHeartbeat } from '../core/policy/degrade.ts'
import { headersTooLargeMessage, noEndpointMessage, upstreamFailedMessage } from '../core/policy/traffic-messages.ts'
import { clientResponseHeaders, headerValue } from '../core/request/hop-headers.ts'
import { createWatchFrames, followWatch, type WatchFrames } from '../core/request/watch-frames.ts'
import { refuseWaiting } from '../core/upstream/wait-refusal.ts'
import { threadScheduler } from '../io/scheduling/thread-scheduler.ts'
import type { RequestKind, UpstreamEndpoint } from '../io/upstream/pool.ts'
import { waitRefusal } from '../io/upstream/waiting.ts'
import type { AnswerChange } from './exchange/answer-change.ts'
import { Attempt, selectEndpoint } from './exchange/attempt.ts'
import type { Permit } from './exchange/decision.ts'
import type { Exchange } from './exchange/exchange.ts'
import { NOT_AN_ANSWER, refuseUnreadAnswer, respond } from './exchange/respond.ts'
import type { Answering, UpstreamHalf } from './exchange/state.ts'
import { changedAnswer, type HeldAnswer, type Holder, holdAnswer, WholeAnswer, withLength } from './held-answer.ts'

/** For a request that was not processed: each endpoint, and one more connection to one of them. */
const MAX_ATTEMPTS = 3
const EMPTY = Buffer.alloc(0)
const UNTRIED: readonly string[] = []

/**
 * The exchange ends when one of its streams does. Only admission makes a permit.
 * @param onConflict see Sending in exchange/state.ts
 */
export function forward(exchange: Exchange, permit: Permit, onConflict: (() => void) | undefined): void {
  if (exchange.place < 0) exchange.gw.running.add(exchange)
  const { fields } = exchange.head
  fields[METHOD_AT] = exchange.record.method
  fields[TARGET_AT] = exchange.target
  fields.push('audit-id', exchange.record.auditId)
  if (!send(exchange, permit, UNTRIED, undefined, onConflict)) {
    nothingSent(permit)
    respond(exchange, refuse('no-endpoint', noEndpointMessage(exchange.record.cluster)))
  } else exchange.body?.keptSent(exchange.state.upstream?.stream)
}

// Indexes of the pseudo-header values in RequestHead.fields.
const METHOD_AT = 1
const TARGET_AT = 3
const AUTHORITY_AT = 5
const SCHEME_AT = 7

/**
 * Picks an untried endpoint and sends what is known of the request; false when there is none, or no budget for a retry.
 * @param retry why it is retried; undefined = first attempt
 */
function send(
  exchange: Exchange,
  permit: Permit,
  tried: readonly string[],
  retry: ResetReason | undefined,
  onConflict: (() => void) | undefined,
): boolean {
  const { gw, head, record } = exchange
  const nowMs = gw.clock.monotonic()
  nextStepAt(AT.forward, nowMs)
  let endpoint = selectEndpoint(gw, permit, nowMs, tried)
  // A connection that is closing (GOAWAY) refuses what another connection to the same server would take.
  if (endpoint === undefined && retry === 'refused' && record.attempts < MAX_ATTEMPTS)
    endpoint = selectEndpoint(gw, permit, nowMs)
  if (endpoint === undefined) return false
  const connections = gw.upstreams.get(permit.cluster.name, endpoint.url)
  if (connections === undefined) return false
  // Only now: a request that can't be sent again must not use up retry budget.
  if (retry !== undefined && !takeRetry(exchange, permit, retry, nowMs)) return false
  const attempt = new ForwardAttempt(exchange, permit, endpoint, tried, nowMs)
  exchange.sending(attempt, onConflict)
  // Copied for a retry: the earlier stream may still use the list.
  const fields = tried.length === 0 ? head.fields : head.fields.slice()
  fields[AUTHORITY_AT] = endpoint.authority
  fields[SCHEME_AT] = endpoint.compiled.scheme
  attempt.nameSpan(fields)
  const { body, requestEnded } = exchange
  const noBody = requestEnded && (body === undefined || body.keptBytes === 0)
  const kind = freeClass(connections, classOf(exchange, permit), permit, exchange.charge, nowMs)
  const stream = connections.open(
    kind,
    fields,
    permit.caller.credentials(permit.cluster.client),
    noBody,
    attempt,
    exchange.charge,
  )
  attempt.stream = stream
  if (!noBody) sendBody(exchange, stream)
  return true
}

/** If only this stream was reset, the request itself may be the cause: charge the user's retry budget. Always charge the cluster's. */
function takeRetry(exchange: Exchange, permit: Permit, reason: ResetReason, nowMs: number): boolean {
  const { gw, record, charge } = exchange
  if (reason !== 'refused' && reason !== 'connection') {
    if (!gw.budgets.repeatedReads.spend(record.cluster, charge.source, nowMs)) return false
  }
  return tryRetry(permit.live.retryBudget, nowMs)
}

function sendBody({ body, requestEnded }: Exchange, stream: Stream): void {
  body?.sendKept(stream)
  if (requestEnded) stream.body(EMPTY, true)
}

/** Heartbeats, at the rate of kubelets, and what spec.degrade.exempt names never wait for a stream. */
function freeClass(
  connections: UpstreamEndpoint,
  kind: RequestKind,
  permit: Permit,
  charge: Charge,
  nowMs: number,
): RequestKind {
  if (connections.relisting && (kind === 'list' || kind === 'watch-opening') && isReserved(permit))
    return kind === 'list' ? 'unary' : 'watch'
  if ((kind !== 'unary' && kind !== 'list') || !connections.isFull(kind, charge)) return kind
  const { limits, info, user } = permit
  const reserved = isReserved(permit) || (isNodeHeartbeat(info, user) && limits.tryHeartbeat(user.name, nowMs))
  return reserved ? 'reserved' : kind
}

/** Flow control may have checked already. */
function isReserved({ reserved, cluster, info, user, userAgent }: Permit): boolean {
  return reserved || isExempt(cluster.degrade, info, user, userAgent)
}

function classOf({ record }: Exchange, { caller, isWatch, info }: Permit): RequestKind {
  if (caller.kind === 'anonymous') return 'anonymous'
  if (isWatch) return 'watch-opening'
  if (record.longRunning) return 'watch'
  return info.verb === 'list' ? 'list' : 'unary'
}

/** Events of one attempt. Those of an abandoned attempt are ignored. */
class ForwardAttempt extends Attempt implements StreamEvents, UpstreamHalf, Holder {
  stream: Stream | undefined = undefined
  /** The part of a held answer received so far. */
  #held: HeldAnswer | undefined = undefined
  /** Time slice in which its head arrived. */
  #heldIn = 0
  /** Set for an answer that is to be changed. */
  #whole: WholeAnswer | undefined = undefined

  onHeaders(list: HeaderList, end: boolean): void {
    const exchange = this.exchange
    if (exchange.state.upstream !== this || exchange.phase !== 'sending') return
    const status = Number(list[1])
    if (status < 200) {
      if (status !== 101) exchange.client.headers(clientResponseHeaders(list), false)
      return
    }
    const nowMs = this.answered(status)
    threadScheduler.chargeAnswer(exchange.charge, 0)
    if (status === 409 && exchange.decidesAgain()) return
    const listed = exchange.record.list
    if (listed !== undefined) this.#measure(listed, list, status)
    if (!end && exchange.answerChange !== undefined) {
      this.#whole = new WholeAnswer(exchange, list)
      return
    }
    if (!end && this.#isRepeatable && exchange.body?.replayable !== false) {
      this.#held = holdAnswer(list, exchange.record, this, nowMs)
      if (this.#held !== undefined) {
        this.#heldIn = threadScheduler.slice
        return
      }
    }
    const { finishing } = this.#begin(list, end, this.permit.isWatch ? this.#watchAnswered(list, status) : undefined)
    if (end) {
      exchange.end()
      return
    }
    if (this.permit.isWatch) exchange.forgetFields()
    // Data that arrived with the head goes first: a watch that ends without an event looks broken to its client.
    if (finishing) setImmediate(() => exchange.finish())
  }

  /** Abandoned answers are not measured. */
  #measure(listed: ListRequest, head: HeaderList, status: number): void {
    const encoding = headerValue(head, 'content-encoding') ?? ''
    const type = headerValue(head, 'content-type') ?? ''
    listed.answer = status === 200 && !listed.isWatch ? answerSize(encoding, type, listed.limit > 0) : undefined
  }

  /** Sends the head to the client: no retry from here on. */
  #begin(list: HeaderList, end: boolean, frames: WatchFrames | undefined): Answering {
    const { exchange } = this
    const state = exchange.answering(frames)
    exchange.body?.forget()
    exchange.client.headers(this.clientHead(list), end)
    exchange.gw.events.responseStarted(exchange.record)
    return state
  }

  /** Sends what was held to the client, and then whatever follows. */
  #passOnHeld(held: HeldAnswer): void {
    const { exchange } = this
    this.#held = undefined
    // Usually it arrived in one piece, and `answered` has just noted the time.
    if (!threadScheduler.isReadIn(this.#heldIn)) this.answeredNow()
    this.#begin(held.head, false, undefined)
    exchange.record.responseBytes += held.passOn(exchange.client, exchange.record.audit)
    exchange.chargeAnswer()
  }

  #watchAnswered(list: HeaderList, status: number): WatchFrames | undefined {
    watchStarted(this.permit)
    if (status !== 200) return undefined
    const encoding = headerValue(list, 'content-encoding') ?? ''
    return createWatchFrames(headerValue(list, 'content-type') ?? '', encoding)
  }

  onBody(chunk: Buffer, end: boolean): void {
    const exchange = this.exchange
    if (exchange.state.upstream !== this) return
    threadScheduler.chargeAnswer(exchange.charge, chunk.length)
    exchange.record.list?.answer?.see(chunk)
    if (this.#whole !== undefined && exchange.answerChange !== undefined) {
      this.#collect(this.#whole, exchange.answerChange, chunk, end)
      return
    }
    const held = this.#held
    if (held !== undefined) {
      if (!end && held.hold(chunk)) {
        this.stream?.credit(chunk.length)
        return
      }
      this.#passOnHeld(held)
    }
    const { state } = exchange
    if (state.phase !== 'answering') return
    exchange.record.responseBytes += chunk.length
    if (exchange.record.audit !== undefined) exchange.record.audit.responseBody(chunk)
    const { client } = exchange
    const { frames } = state
    client.body(chunk, end)
    if (end) exchange.end()
    const { queued } = client
    if (queued > 0) exchange.chargeAnswer()
    if (end) return
    if (queued === 0 || queued < exchange.answerWater) this.stream?.credit(chunk.length)
    else state.owedToUpstream += chunk.length
    if (frames !== undefined && followWatch(frames, chunk) && state.finishing) exchange.endWatch()
  }

  #collect(whole: WholeAnswer, change: AnswerChange, chunk: Buffer, end: boolean): void {
    const added = whole.add(chunk, change.maxBytes)
    if (added === 'no-memory') this.#unread(whole, 'too much waits for clients of this user')
    else if (added === 'too-long') this.#tellInstead(whole, change)
    else if (end) this.#tellChanged(whole, change)
    else this.stream?.credit(chunk.length)
  }

  #tellChanged(whole: WholeAnswer, change: AnswerChange): void {
    const body = whole.take()
    const told = changedAnswer(change, whole.head, body)
    if (told === undefined) this.#unread(whole, NOT_AN_ANSWER)
    else this.#tell(whole, told, body)
  }

  #tellInstead(whole: WholeAnswer, change: AnswerChange): void {
    const told = change.instead(Number(whole.head[1]))
    if (told === undefined) {
      this.#unread(whole, `it has more than ${change.maxBytes} bytes`)
      return
    }
    this.cancel()
    this.#tell(whole, told, told)
  }

  /** @param recorded what the audit log has of it */
  #tell({ head }: WholeAnswer, told: Buffer, recorded: Buffer): void {
    const { exchange } = this
    const { client, record } = exchange
    this.#begin(withLength(head, told.length), false, undefined)
    record.audit?.responseBody(recorded)
    record.responseBytes += told.length
    client.body(told, true)
    exchange.end()
    exchange.chargeAnswer()
  }

  /** Names in it may be those of the member: nothing of it is passed on. */
  #unread({ head }: WholeAnswer, why: string): void {
    const { exchange } = this
    const refusal = refuseUnreadAnswer(exchange.record.cluster, Number(head[1]), why)
    this.cancel()
    this.leave()
    respond(exchange, refusal)
  }

  onTrailers(list: HeaderList): void {
    const exchange = this.exchange
    if (exchange.state.upstream !== this) return
    if (this.#whole !== undefined && exchange.answerChange !== undefined) {
      this.#tellChanged(this.#whole, exchange.answerChange)
      return
    }
    if (this.#held !== undefined) this.#passOnHeld(this.#held)
    if (exchange.phase !== 'answering') return
    exchange.client.trailers(list)
    exchange.end()
  }

  onDrained(): void {
    if (this.exchange.state.upstream === this) this.exchange.body?.upstreamDrained(this.stream?.queued ?? 0)
  }

  onReset(reason: ResetReason): void {
    const exchange = this.exchange
    const { state } = exchange
    if (state.upstream !== this) return
    if (state.phase === 'answering') this.#brokenAnswer(state, reason)
    else this.#noAnswer(reason)
  }

  /** Upstream broke mid-response: never a clean end, except for a watch between two events. */
  #brokenAnswer({ frames }: Answering, reason: ResetReason): void {
    const exchange = this.exchange
    this.failed(reason)
    exchange.record.aborted = 'upstream'
    if (frames?.atBoundary === true) exchange.client.body(EMPTY, true)
    else exchange.client.reset(reason === 'connection' || reason === 'cancel' ? 'internal' : reason)
    exchange.end()
  }

  #noAnswer(reason: ResetReason): void {
    const exchange = this.exchange
    const { gw, record } = exchange
    this.failed(reason)
    this.leave()
    if (reason === 'head-too-large') {
      this.#headTooLarge()
      return
    }
    if (this.#mayRetry(reason) && send(exchange, this.permit, this.tried, reason, undefined)) {
      gw.events.retried(record.cluster, reason === 'refused' ? 'refused' : 'read')
      return
    }
    if (reason === 'refused' || reason === 'overloaded') exchange.tellOutcome('unsent')
    const refusal = waitRefusal(this.stream)
    if (refusal !== undefined) {
      gw.events.limited(refusal.limit, exchange.charge.known)
      respond(exchange, refuseWaiting(record.cluster, exchange.charge, refusal, gw.random()))
      return
    }
    respond(exchange, refuse('upstream-failed', upstreamFailedMessage(record.cluster)))
  }

  /** Nothing was sent, and no other endpoint of the cluster would accept it. */
  #headTooLarge(): void {
    const exchange = this.exchange
    const { cluster, endpoint } = exchange.record
    const connections = exchange.gw.upstreams.get(cluster, endpoint)
    const maxBytes = connections?.maxListBytes() ?? Number.POSITIVE_INFINITY
    exchange.tellOutcome('unsent')
    respond(exchange, refuse('headers-too-large', headersTooLargeMessage(cluster, maxBytes)))
  }

  /** Never retries a write that may have been seen, nor the same endpoint twice. */
  #mayRetry(reason: ResetReason): boolean {
    if (this.exchange.body?.replayable === false) return false
    // A source over its limit must not use up everyone's retries.
    return reason !== 'overloaded' && (reason === 'refused' || this.#isRepeatable)
  }

  /** Idempotent. */
  get #isRepeatable(): boolean {
    const { requestEnded, record } = this.exchange
    return (record.method === 'GET' || record.method === 'HEAD') && !this.permit.isWatch && requestEnded
  }

  heldTooLong(): void {
    if (this.#held !== undefined) this.#passOnHeld(this.#held)
  }

  override leave(): void {
    if (this.#held !== undefined) {
      this.#held.discard()
      this.#held = undefined
      this.unanswered()
    }
    if (this.#whole !== undefined) {
      this.#whole.discard()
      this.#whole = undefined
      if (this.exchange.phase === 'sending') this.unanswered()
    }
    super.leave()
  }

  cancel(): void {
    this.stream?.reset('cancel')
  }
}
