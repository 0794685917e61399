// One request and its answer: the one object that carries all that is known of it, and hears what the client does. How it
// is decided stands in serve.ts, how it goes upstream in forward.ts. Everything that it holds is given back once, in `end`.

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
import type { Reservation } from '../../../protection/api/protection.ts'
import { meansNotDeleted } from '../../../protection/core/requests/deletion-answer.ts'
import { createRecord, type RequestRecord } from '../../api/request-record.ts'
import { giveBack, type Held } from '../../core/admission/held.ts'
import { RequestHead, readRequestHead } from '../../core/request/request-head.ts'
import type { WatchFrames } from '../../core/request/watch-frames.ts'
import type { LiveCluster } from '../../state/clusters.ts'
import type { RunningRequest } from '../../state/running.ts'
import { beginRecord } from './begin-record.ts'
import { BufferedBytes } from './buffered-bytes.ts'
import type { Gateway } from './gateway.ts'
import type { Authenticated } from './identity.ts'
import { nextPhase, type Phase } from './phase.ts'
import { RequestBody } from './request-body.ts'
import { giveShare } from './running-share.ts'
import type { WholeBody } from './whole-body.ts'
import { creditFor } from './window-credit.ts'

const EMPTY: Buffer = Buffer.alloc(0)
const NO_FIELDS: HeaderList = []
const NO_HEAD: RequestHead = new RequestHead()
const NO_RECORD: RequestRecord = createRecord()

/** The upstream half, as this half sees it. */
export interface UpstreamHalf {
  /** Where the request body goes; undefined for an upgrade, whose sockets are joined. */
  readonly stream: Stream | undefined
  /** Nobody waits for it any more. */
  cancel(): void
  /** The endpoint no longer counts this request. */
  leave(): void
}

/** Refused: by upstream, or never sent. Unknown: upstream may have done it. */
export type RequestOutcome = 'done' | 'refused' | 'unknown'

/** What the exchange itself needs to know of the decision. */
interface Decided {
  readonly requester: Authenticated
  readonly isWatch: boolean
  readonly held: Held | undefined
  readonly live: Pick<LiveCluster, 'answers'>
}

export class Exchange implements StreamEvents, RunningRequest, AnswerOwner {
  readonly gw: Gateway
  readonly peer: Peer
  readonly client: Stream
  /** The head as it came. */
  list: HeaderList
  /** What it says. */
  head: RequestHead
  record: RequestRecord
  /** The socket, when the client asks to upgrade. */
  readonly upgrade: ClientUpgrade | undefined
  #phase: Phase = 'deciding'
  /** Among the running requests. */
  place = -1
  /** The raw request target without the `/clusters/<name>` prefix. */
  target = ''
  /** Wall clock and monotonic milliseconds at which the decision was taken. */
  nowMs: number
  monotonicMs: number
  /** Who pays for it: the address until it is authenticated, then the user who sent it, whomever it runs as. */
  charge: Charge
  /** Who pays for it as a running request; undefined = nobody. */
  charged: Charge | undefined = undefined
  /** Memory that it holds of what all share; undefined until it does. */
  buffered: BufferedBytes | undefined = undefined
  headBuffered = false
  /** Memory of what it keeps of answers to the gateway's own calls (kept-answers.ts). */
  keptAnswers: AnswerBytes | undefined = undefined
  /** From when it is asked whether the request may be served; what that takes is given back at the end. */
  decision: Decided | undefined = undefined
  upstream: UpstreamHalf | undefined = undefined
  /** The client has gone: nothing needs to be done for it any more. */
  gone = false
  /** The request is complete. */
  requestEnded: boolean
  /** Its body; undefined until something of it comes, which for most requests is never. */
  body: RequestBody | undefined = undefined
  /** All of the body as it came, where a filter has read it. */
  bytes: Buffer | undefined = undefined
  /** Made for this deletion of a pod: given back when upstream does not do it. */
  reservation: Reservation | undefined = undefined
  /** Told once what has come of the request upstream: for whoever has prepared something for it. */
  onOutcome: ((outcome: RequestOutcome) => void) | undefined = undefined
  /** What an answer of 409 leads to instead of being passed on; undefined = it is passed on. */
  onConflict: (() => void) | undefined = undefined
  /** Taken from upstream, not yet by the client: bytes whose window is still to be given back. */
  owedToUpstream = 0
  /** Where the events of a watch end. */
  frames: WatchFrames | undefined = undefined
  /** To be ended where the next event of the watch ends. */
  finishAtBoundary = false

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

  // === where it stands ===

  get phase(): Phase {
    return this.#phase
  }

  /** Nothing else changes the phase. */
  transition(to: Phase): void {
    this.#phase = nextPhase(this.#phase, to)
  }

  // === what the client does ===

  onHeaders(): void {
    // Only responses have a second head.
  }

  onBody(chunk: Buffer, end: boolean): void {
    if (end) this.requestEnded = true
    if (this.record.audit !== undefined) this.record.audit.requestBody(chunk)
    switch (this.phase) {
      case 'deciding':
        if (chunk.length > 0) this.#ensureBody().keep(chunk)
        break
      case 'reading':
        this.body?.read(chunk)
        if (end) this.body?.finish('complete')
        break
      case 'sending':
      case 'answering':
        this.#passOn(chunk, end)
        break
      case 'over':
        // Nobody will read it: it is thrown away, so that the connection can go on.
        if (chunk.length > 0) this.client.credit(chunk.length)
        break
      default:
      // What comes in an upgrade is spliced, or ignored.
    }
  }

  #passOn(chunk: Buffer, end: boolean): void {
    const stream = this.upstream?.stream
    if (chunk.length > 0) this.#ensureBody().passOn(chunk, end, stream, this.phase === 'answering')
    else stream?.body(chunk, end)
  }

  #ensureBuffered(): BufferedBytes {
    this.buffered ??= new BufferedBytes(this.gw, this.charge)
    return this.buffered
  }

  /** Charges a large head. Undefined = there is room for it. */
  bufferHead(): Refusal | undefined {
    const { bytes } = this.head
    if (bytes <= LARGE_HEAD_BYTES || this.headBuffered) return undefined
    const buffered = this.#ensureBuffered()
    this.headBuffered = buffered.take(bytes)
    return this.headBuffered ? undefined : buffered.refusal()
  }

  /** From here on somebody else pays. Undefined = who has room for what is held. */
  chargeTo(charge: Charge): Refusal | undefined {
    this.charge = charge
    const { buffered } = this
    return buffered === undefined || buffered.chargeTo(charge) ? undefined : buffered.refusal()
  }

  #ensureBody(): RequestBody {
    this.body ??= new RequestBody(this.client, this.record, this.#ensureBuffered())
    return this.body
  }

  /** From here on the body goes into `whole`, until its end. */
  readInto(whole: WholeBody): void {
    this.transition('reading')
    this.#ensureBody().readInto(whole)
    if (this.requestEnded) whole.finish('complete')
  }

  /** A part of it was read, and is gone: the request cannot be served any more. */
  refuseBody(refusal: Refusal): Refusal {
    this.#ensureBody().unread = refusal
    return refusal
  }

  /** What goes upstream in the place of a body that was read. */
  setBody(body: Buffer): void {
    this.#ensureBody().replace(body)
  }

  /** Request trailers end here (RFC 9110 section 6.5.1): kube-apiserver reads none, and Go's server bounds them by ending the connection. */
  onTrailers(): void {
    this.onBody(EMPTY, true)
  }

  onDrained(): void {
    if (this.owedToUpstream === 0) return
    const bytes = creditFor(this.owedToUpstream, this.client.queued, this.answerWater)
    if (bytes === 0) return
    this.owedToUpstream -= bytes
    this.upstream?.stream?.credit(bytes)
  }

  onReset(_reason: ResetReason): void {
    this.gone = true
    this.body?.finish('gone')
    // What it waits for may take long, and its body is of no use.
    if (this.undecided) this.body?.forget()
    // While it is decided, the decision finds out; of joined sockets the splice tells.
    if (this.phase === 'over' || this.undecided || this.phase === 'upgraded') return
    this.record.aborted = 'client'
    this.#spendCancelled()
    this.upstream?.cancel()
    this.end()
  }

  /**
   * What upstream has not answered to its end is reset there, on a connection that others share; also when the client takes no such
   * head and the connection says so for it. Watches end so, too: those that were answered have a budget of their own.
   */
  #spendCancelled(): void {
    const { gw, record } = this
    if (this.requester === undefined || this.upstream === undefined) return
    const { cancelledRequests, cancelledLongRunning } = gw.budgets
    const budget = this.phase === 'answering' && record.longRunning ? cancelledLongRunning : cancelledRequests
    budget.spend(record.cluster, this.charge.source, gw.clock.monotonic())
  }

  // === what waits for the client ===

  /** Bytes that may wait for the client while more comes from upstream. */
  get answerWater(): number {
    return this.gw.shares.answers.isOver(this.charge) ? LEAST_WATER_BYTES : ANSWER_WATER_BYTES
  }

  /** Something was given to the client: where it waits, its memory is charged to who asked. */
  chargeAnswer(): void {
    const { client } = this
    if (client.meter === undefined && client.queued > 0) this.gw.shares.answers.add(this)
  }

  dropAnswer(): void {
    const { gw, charge, record } = this
    gw.events.limited(gw.shares.buffered.limit, charge.known)
    if (this.phase === 'upgraded') {
      // What has been transferred is recorded when the sockets have closed.
      this.upstream?.cancel()
      return
    }
    this.client.reset('overloaded')
    if (this.phase === 'over') return
    record.aborted = 'client'
    this.#spendCancelled()
    this.upstream?.cancel()
    this.end()
  }

  // === what comes of it ===

  #tellOutcome(outcome: RequestOutcome): void {
    const { onOutcome } = this
    this.onOutcome = undefined
    onOutcome?.(outcome)
  }

  /** Upstream's answer to a request for which somebody has prepared something. */
  outcomeAnswered(code: number): void {
    this.#tellOutcome(code < 400 ? 'done' : code < 500 ? 'refused' : 'unknown')
  }

  // === the reservation ===

  /** Upstream's answer. After anything but a client's error the pod may have been deleted. */
  deletionAnswered(code: number): void {
    if (meansNotDeleted(code)) this.notDeleted()
    this.reservation = undefined
  }

  /** Whether an answer of 409 leads to another decision: only while all of the body can be sent a second time. */
  get mayDecideAgain(): boolean {
    return this.onConflict !== undefined && this.requestEnded && this.body?.replayable !== false
  }

  /** What was decided is out of date: it is decided again, and this answer is not passed on. */
  conflicted(): void {
    const again = this.onConflict
    this.onConflict = undefined
    // The last one is the Audit-ID, which whoever forwards adds; the list itself may still be looked at.
    this.head.fields = this.head.fields.slice(0, -2)
    this.upstream?.cancel()
    this.upstream?.leave()
    this.upstream = undefined
    this.transition('reading')
    again?.()
  }

  /** For certain: what is reserved is free again. */
  notDeleted(): void {
    if (this.reservation === undefined) return
    this.gw.protection?.release([this.reservation])
    this.reservation = undefined
  }

  // === the end ===

  /** Nothing has been sent upstream. */
  get undecided(): boolean {
    return this.phase === 'deciding' || this.phase === 'reading'
  }

  /** Who sent it, whomever it runs as. */
  get requester(): Authenticated | undefined {
    return this.decision?.requester
  }

  get cluster(): string {
    return this.record.cluster
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

  /** Ends it as its protocol ends cleanly: a watch between two events. */
  finish(): void {
    if (this.phase === 'over') return
    const { isWatch } = this
    if (isWatch && this.frames !== undefined) {
      if (this.frames.atBoundary) this.endWatch()
      else if (this.frames.format === 'opaque') this.abort()
      else this.finishAtBoundary = true
    } else if (isWatch && this.phase === 'sending') this.finishAtBoundary = true
    else this.abort()
  }

  endWatch(): void {
    this.upstream?.cancel()
    this.client.body(EMPTY, true)
    this.end()
  }

  abortCleanly(): void {
    if (this.phase !== 'over' && this.isWatch && this.frames?.atBoundary === true) this.endWatch()
    else this.abort()
  }

  abort(): void {
    if (this.phase === 'over') return
    this.upstream?.cancel()
    if (this.phase !== 'upgrading' && this.phase !== 'upgraded') {
      this.client.reset('internal')
      this.record.aborted = 'upstream'
    }
    this.end()
  }

  /** The one end of every exchange, however it comes: what is held is given back, and the request is counted. */
  end(): void {
    if (this.phase === 'over') return
    if (this.onOutcome !== undefined) this.#tellOutcome(this.undecided ? 'refused' : 'unknown')
    if (this.undecided) this.notDeleted()
    this.transition('over')
    this.body?.end()
    this.upstream?.leave()
    this.buffered?.end()
    this.keptAnswers?.end()
    giveShare(this)
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

  /** Its answer waits for the client, maybe for long, and nobody is charged for the request any more: nothing of it is kept. */
  #forgetRequest(): void {
    this.list = NO_FIELDS
    this.head = NO_HEAD
    this.record = NO_RECORD
    this.bytes = undefined
    this.decision = undefined
    this.upstream = undefined
  }
}
