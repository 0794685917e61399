// One request and its answer: the object that carries all its state and receives the client's events. serve.ts decides
// about it, forward.ts sends it upstream. Everything it holds is released once, in `end`.

import {
  ANSWER_WATER_BYTES,
  type Charge,
  type HeaderList,
  LEAST_WATER_BYTES,
  type Peer,
  type ResetReason,
  type Stream,
  type StreamEvents,
} from '../../../kit/api/stream.ts'
import type { ClientUpgrade } from '../../../kit/api/upgrade.ts'
import type { Refusal } from '../../../kit/core/refusal/refusal.ts'
import { LARGE_HEAD_BYTES } from '../../../kit/core/shares/open-heads.ts'
import type { AnswerOwner } from '../../../kit/core/shares/waiting-answers.ts'
import { AT, nextStepAt, workOn } from '../../../kit/io/stalls/steps.ts'
import type { AnswerBytes } from '../../../kube/io/answers/thread-answers.ts'
import { createRecord, type RequestRecord } from '../../api/request-record.ts'
import { giveBack, type Held } from '../../core/admission/held.ts'
import { RequestHead, readRequestHead } from '../../core/request/request-head.ts'
import type { WatchFrames } from '../../core/request/watch-frames.ts'
import type { HeldGrant } from '../../state/access-grants.ts'
import type { LiveCluster } from '../../state/clusters.ts'
import type { IdentityEntry } from '../../state/identities-seen.ts'
import type { RunningRequest } from '../../state/running.ts'
import type { AnswerChange } from './answer-change.ts'
import { beginRecord } from './begin-record.ts'
import { BufferedBytes } from './buffered-bytes.ts'
import type { Gateway } from './gateway.ts'
import { type Authenticated, NO_GRANTS } from './identity.ts'
import { creditFor, RequestBody, type WholeBody } from './request-body.ts'
import { giveShare } from './running-share.ts'
import {
  Answering,
  DECIDING,
  type ExchangeState,
  nextPhase,
  OVER,
  type Phase,
  READING,
  Sending,
  Upgrading,
  type UpstreamHalf,
} from './state.ts'

const EMPTY: Buffer = Buffer.alloc(0)
const NO_FIELDS: HeaderList = []
const NO_HEAD: RequestHead = new RequestHead()
const NO_RECORD: RequestRecord = createRecord()

/** The status code of upstream's answer; 'unsent' = never sent, or certainly not processed; 'unknown' = it may have been processed. */
export type UpstreamOutcome = number | 'unsent' | 'unknown'

/** The part of the decision that the exchange uses. */
interface Decided {
  readonly requester: Authenticated
  readonly isWatch: boolean
  readonly held: Held | undefined
  readonly cameBy: Pick<Decided, 'held' | 'cameBy'> | undefined
  readonly live: Pick<LiveCluster, 'answers'>
}

export class Exchange implements StreamEvents, RunningRequest, AnswerOwner {
  readonly gw: Gateway
  readonly peer: Peer
  readonly client: Stream
  /** The head as received. */
  list: HeaderList
  /** The parsed head. */
  head: RequestHead
  record: RequestRecord
  /** The socket, if the client asks for an upgrade. */
  readonly upgrade: ClientUpgrade | undefined
  #state: ExchangeState = DECIDING
  /** Index among the running requests. */
  place = -1
  /** The raw request target without the `/clusters/<name>` prefix. */
  target = ''
  /** Wall clock and monotonic milliseconds of the decision. */
  nowMs: number
  monotonicMs: number
  /** Charged for the request: the address until it is authenticated, then the sender, even when impersonating. */
  charge: Charge
  /** Charged for the in-flight slot; undefined = no slot taken. */
  charged: Charge | undefined = undefined
  /** Shared memory held; undefined until first used. */
  buffered: BufferedBytes | undefined = undefined
  /** Memory of kept answers to the gateway's own calls (calls/upstream-reader.ts). */
  keptAnswers: AnswerBytes | undefined = undefined
  /** Set once admission begins; what it takes is released at the end. */
  decision: Decided | undefined = undefined
  /** The client is gone: skip any further work. */
  gone = false
  /** It has waited for the first check of an endpoint, and was decided about again. */
  startedOver = false
  /** Called when the client leaves, for a decision that waits. */
  onGone: (() => void) | undefined = undefined
  /** The request is complete. */
  requestEnded: boolean
  /** Undefined until the first body bytes arrive, which for most requests is never. */
  body: RequestBody | undefined = undefined
  /** Counts this request among the open ones of its sender; undefined = it does not. */
  seen: IdentityEntry | undefined = undefined
  /** The same at the member that it was handed over to. */
  seenInMember: IdentityEntry | undefined = undefined
  /** Set for a member that has other names than the client; undefined = the client gets what upstream answers. */
  answerChange: AnswerChange | undefined = undefined
  /** Called once with the outcome, for a filter that has prepared something. */
  onOutcome: ((outcome: UpstreamOutcome) => void) | undefined = undefined

  constructor(
    gw: Gateway,
    peer: Peer,
    client: Stream,
    list: HeaderList,
    requestEnded: boolean,
    upgrade: ClientUpgrade | undefined,
  ) {
    this.gw = gw
    this.peer = peer
    this.client = client
    this.list = list
    this.upgrade = upgrade
    this.requestEnded = requestEnded
    this.charge = peer.addressCharge
    this.monotonicMs = gw.clock.monotonic()
    nextStepAt(AT.decide, this.monotonicMs)
    this.nowMs = gw.clock.now()
    this.head = readRequestHead(list, peer.remoteAddress, peer.protocol === 'h2')
    this.record = beginRecord(gw, peer, this.head, this.monotonicMs, this.nowMs)
    workOn(this.record)
  }

  // === state ===

  get state(): ExchangeState {
    return this.#state
  }

  get phase(): Phase {
    return this.#state.phase
  }

  /** The only place that changes the state. */
  #become<To extends ExchangeState>(to: To): To {
    nextPhase(this.#state.phase, to.phase)
    this.#state = to
    return to
  }

  /** @param onConflict see Sending; of the first attempt */
  sending(upstream: UpstreamHalf, onConflict: (() => void) | undefined): void {
    if (this.#state.phase === 'sending') this.#state.upstream = upstream
    else this.#become(new Sending(upstream, onConflict))
  }

  /** Upstream's head goes to the client. @throws before the request was sent */
  answering(frames: WatchFrames | undefined): Answering {
    const state = this.#state
    if (state.phase !== 'sending') throw new Error(`a request that is ${state.phase} has no answer`)
    return this.#become(new Answering(state, frames))
  }

  upgrading(upstream: UpstreamHalf): void {
    if (this.#state.phase === 'upgrading') this.#state.upstream = upstream
    else this.#become(new Upgrading(upstream))
  }

  /** The two sockets are joined. */
  upgraded(): void {
    const state = this.#state
    if (state.phase !== 'upgrading') throw new Error(`a request that is ${state.phase} is not being upgraded`)
    state.phase = 'upgraded'
  }

  // === client events ===

  onHeaders(): void {
    // Only responses have a second head.
  }

  onBody(chunk: Buffer, end: boolean): void {
    if (end) this.requestEnded = true
    if (this.record.audit !== undefined) this.record.audit.requestBody(chunk)
    const state = this.#state
    switch (state.phase) {
      case 'deciding':
        if (chunk.length > 0) this.#ensureBody().keep(chunk)
        break
      case 'reading':
        this.body?.read(chunk)
        if (end) this.body?.finish('complete')
        break
      case 'sending':
      case 'answering':
        this.#passOn(state, chunk, end)
        break
      case 'over':
        // Discarded, so that the connection can go on.
        if (chunk.length > 0) this.client.credit(chunk.length)
        break
      default:
      // Data of an upgrade is spliced or ignored.
    }
  }

  #passOn({ phase, upstream: { stream } }: Sending | Answering, chunk: Buffer, end: boolean): void {
    if (chunk.length > 0) this.#ensureBody().passOn(chunk, end, stream, phase === 'answering')
    else stream?.body(chunk, end)
  }

  #ensureBuffered(): BufferedBytes {
    this.buffered ??= new BufferedBytes(this.gw, this.charge)
    return this.buffered
  }

  /** Charges memory for an answer of the gateway's own, until `giveMemory` or the end. @returns whether the sender has room for it */
  takeMemory(bytes: number): boolean {
    return this.#ensureBuffered().take(bytes)
  }

  /** @param bytes at most as many as were taken */
  giveMemory(bytes: number): void {
    if (this.phase !== 'over') this.buffered?.give(bytes)
  }

  /** Charges a large head. Undefined = it fits. */
  bufferHead(): Refusal | undefined {
    const { bytes } = this.head
    return bytes <= LARGE_HEAD_BYTES ? undefined : this.#ensureBuffered().takeHead(bytes)
  }

  /** Moves all charges. Undefined = the new payer has room for what is held. */
  chargeTo(charge: Charge): Refusal | undefined {
    this.charge = charge
    const { buffered } = this
    return buffered === undefined || buffered.chargeTo(charge) ? undefined : buffered.refusal()
  }

  #ensureBody(): RequestBody {
    this.body ??= new RequestBody(this.client, this.record, this.#ensureBuffered())
    return this.body
  }

  /** Collects the body in `whole` from here on, to its end. */
  readInto(whole: WholeBody): void {
    this.#become(READING)
    this.#ensureBody().readInto(whole)
    if (this.requestEnded) whole.finish('complete')
  }

  /** Part of the body was read and is gone: the request can't be served any more. */
  refuseBody(refusal: Refusal): Refusal {
    this.#ensureBody().unread = refusal
    return refusal
  }

  /** The complete body as the client sent it, which a filter has read; sent unless it is replaced. */
  setRead(body: Buffer): Buffer {
    this.#ensureBody().setRead(body)
    return body
  }

  /** Sends another body than the one that was read. */
  setBody(body: Buffer): void {
    this.#ensureBody().replace(body)
  }

  /** Drops request trailers (RFC 9110 section 6.5.1): kube-apiserver reads none, and Go's server bounds them by ending the connection. */
  onTrailers(): void {
    this.onBody(EMPTY, true)
  }

  onDrained(): void {
    const state = this.#state
    if (state.phase !== 'answering' || state.owedToUpstream === 0) return
    const bytes = creditFor(state.owedToUpstream, this.client.queued, this.answerWater)
    if (bytes === 0) return
    state.owedToUpstream -= bytes
    state.upstream.stream?.credit(bytes)
  }

  onReset(_reason: ResetReason): void {
    this.gone = true
    this.body?.finish('gone')
    this.onGone?.()
    // A pending decision may take long, and the body is no longer needed.
    if (this.undecided) this.body?.forget()
    // While undecided, the decision notices; for joined sockets the splice does.
    if (this.phase === 'over' || this.undecided || this.phase === 'upgraded') return
    this.record.aborted = 'client'
    this.#spendCancelled()
    this.#state.upstream?.cancel()
    this.end()
  }

  /**
   * A request that upstream has not fully answered is reset there, on a connection shared with others; the same when the client refuses a
   * response head and the connection resets the stream for it. Watches count, too: those that were answered have a budget of their own.
   */
  #spendCancelled(): void {
    const { gw, record } = this
    if (this.requester === undefined || this.#state.upstream === undefined) return
    const { cancelledRequests, cancelledLongRunning } = gw.budgets
    const budget = this.phase === 'answering' && record.longRunning ? cancelledLongRunning : cancelledRequests
    budget.spend(record.cluster, this.charge.source, gw.clock.monotonic())
  }

  // === backpressure to upstream ===

  /** Bytes that may be buffered for the client while more comes from upstream. */
  get answerWater(): number {
    return this.gw.shares.answers.isOver(this.charge) ? LEAST_WATER_BYTES : ANSWER_WATER_BYTES
  }

  /** Something was written to the client: buffered bytes are charged to the requester. */
  chargeAnswer(): void {
    const { client } = this
    if (client.meter === undefined && client.queued > 0) this.gw.shares.answers.add(this)
  }

  dropAnswer(): void {
    const { gw, charge, record } = this
    gw.events.limited(gw.shares.buffered.limit, charge.known)
    if (this.phase === 'upgraded') {
      this.#state.upstream?.cancel()
      return
    }
    this.client.reset('overloaded')
    if (this.phase === 'over') return
    record.aborted = 'client'
    this.#spendCancelled()
    this.#state.upstream?.cancel()
    this.end()
  }

  // === outcome ===

  /** Upstream's answer; or the request was certainly not processed. */
  tellOutcome(outcome: UpstreamOutcome): void {
    const { onOutcome } = this
    this.onOutcome = undefined
    onOutcome?.(outcome)
  }

  /** On a 409: decides again with the complete body, if it can be sent again, instead of passing on this answer. @returns whether it does */
  decidesAgain(): boolean {
    const state = this.#state
    if (state.phase !== 'sending' || state.onConflict === undefined) return false
    if (!this.requestEnded || this.body?.replayable === false) return false
    // Drops the Audit-ID, which forwarding adds last; copied, because the old list may still be in use.
    this.head.fields = this.head.fields.slice(0, -2)
    state.upstream.cancel()
    state.upstream.leave()
    this.#become(READING)
    state.onConflict()
    return true
  }

  // === end ===

  /** Nothing has been sent upstream. */
  get undecided(): boolean {
    return this.phase === 'deciding' || this.phase === 'reading'
  }

  /** The sender, even when impersonating. */
  get requester(): Authenticated | undefined {
    return this.decision?.requester
  }

  get grants(): readonly HeldGrant[] {
    return this.decision?.requester.grants ?? NO_GRANTS
  }

  get cluster(): string {
    return this.record.cluster
  }

  get federation(): string {
    return this.record.federation
  }

  get endpoint(): string {
    return this.record.endpoint
  }

  get longRunning(): boolean {
    return this.upgrade !== undefined || this.record.longRunning
  }

  get isWatch(): boolean {
    return this.decision?.isWatch === true
  }

  /** Ends it cleanly for its protocol: a watch between two events. */
  finish(): void {
    const state = this.#state
    if (state.phase === 'sending' && this.isWatch) state.finishing = true
    else if (state.phase !== 'answering' || state.frames === undefined) this.abort()
    else if (state.frames.atBoundary) this.endWatch()
    else if (state.frames.format === 'opaque') this.abort()
    else state.finishing = true
  }

  endWatch(): void {
    this.#state.upstream?.cancel()
    this.client.body(EMPTY, true)
    this.end()
  }

  abortCleanly(): void {
    const state = this.#state
    if (state.phase === 'answering' && state.frames?.atBoundary === true) this.endWatch()
    else this.abort()
  }

  abort(): void {
    if (this.phase === 'over') return
    // Joined sockets end the exchange as they are cancelled.
    const isAnswer = this.phase !== 'upgrading' && this.phase !== 'upgraded'
    this.#state.upstream?.cancel()
    if (isAnswer) {
      this.client.reset('internal')
      this.record.aborted = 'upstream'
    }
    this.end()
  }

  /** The single end of every exchange: releases what it holds and counts the request. */
  end(): void {
    if (this.phase === 'over') return
    if (this.onOutcome !== undefined) this.tellOutcome(this.undecided ? 'unsent' : 'unknown')
    const { upstream } = this.#state
    this.#become(OVER)
    this.body?.end()
    upstream?.leave()
    this.buffered?.end()
    this.keptAnswers?.end()
    giveShare(this)
    if (this.seen !== undefined) this.seen.open--
    if (this.seenInMember !== undefined) this.seenInMember.open--
    if (this.decision !== undefined) giveBack(this.decision)
    const { gw, record } = this
    const endMs = gw.clock.monotonic()
    record.durationMs = endMs - record.startMs
    nextStepAt(AT.observe, endMs)
    workOn(record)
    const answers = this.decision?.live.answers
    if (answers !== undefined && this.upgrade === undefined) answers.count(record)
    gw.events.requestEnded(record)
    gw.running.remove(this)
    if (this.client.queued > 0) this.#forgetRequest()
  }

  /** It is answered, and lasts for hours: nothing reads the fields of its head again. */
  forgetFields(): void {
    this.list = NO_FIELDS
    this.head.fields = NO_FIELDS
  }

  /** Its answer may wait long for the client, and the request is no longer charged: drop everything it keeps. */
  #forgetRequest(): void {
    this.list = NO_FIELDS
    this.head = NO_HEAD
    this.record = NO_RECORD
    this.body = undefined
    this.decision = undefined
  }
}
