// One request and its answer: the one object that carries all that is known of it, and hears what the client does. How it
// is decided stands in serve.ts, how it goes upstream in forward.ts. Everything that it holds is given back once, in `end`.

import type { Reservation } from '../api/protection.ts'
import { createRecord, type RequestRecord } from '../api/request-record.ts'
import {
  type HeaderList,
  HIGH_WATER_BYTES,
  type Peer,
  type ResetReason,
  type Stream,
  type StreamEvents,
} from '../api/stream.ts'
import type { ClientUpgrade } from '../api/upgrade.ts'
import { type RequestHead, readRequestHead } from '../core/request-head.ts'
import type { WatchFrames } from '../core/watch-frames.ts'
import { ChunkQueue } from '../http2/chunk-queue.ts'
import type { RunningRequest } from '../state/running.ts'
import { giveBack, type Permit } from './admit.ts'
import type { Gateway } from './gateway.ts'
import type { Authenticated } from './identity.ts'
import type { WholeBody } from './whole-body.ts'

/** Body kept until upstream answers, so that a request which upstream never processed can be sent elsewhere. */
const REPLAY_LIMIT_BYTES = 256 * 1024
const MAX_AUDIT_ID = 128
const EMPTY: Buffer = Buffer.alloc(0)

/** The upstream half, as this half sees it. */
export interface UpstreamHalf {
  /** Where the request body goes; undefined for an upgrade, whose sockets are joined. */
  readonly stream: Stream | undefined
  /** Nobody waits for it any more. */
  cancel(): void
  /** The endpoint no longer counts this request. */
  leave(): void
}

export type Phase =
  /** Nothing has been sent upstream; the body is held, at most a flow-control window of it. */
  | 'deciding'
  /** Nothing has been sent upstream; the body is read to its end, because the decision depends on it. */
  | 'reading'
  /** Upstream has not answered; a body that is not too long is kept. */
  | 'sending'
  /** Upstream's response head is out. */
  | 'answering'
  /** An upgrade, before and after the client's socket was joined to upstream's. */
  | 'upgrading'
  | 'upgraded'
  | 'over'

export class Exchange implements StreamEvents, RunningRequest {
  readonly gw: Gateway
  readonly peer: Peer
  readonly client: Stream
  /** The head as it came. */
  readonly list: HeaderList
  /** What it says. */
  readonly head: RequestHead
  readonly record: RequestRecord
  /** The socket, when the client asks to upgrade. */
  readonly upgrade: ClientUpgrade | undefined
  phase: Phase = 'deciding'
  /** Among the running requests. */
  place = -1
  /** The raw request target without the `/clusters/<name>` prefix. */
  target = ''
  /** Wall clock and monotonic milliseconds at which the decision was taken. */
  nowMs: number
  monotonicMs: number
  /** Who sent it, whomever it runs as. */
  requestor: Authenticated | undefined = undefined
  /** What admission allowed, and what it took. */
  permit: Permit | undefined = undefined
  upstream: UpstreamHalf | undefined = undefined
  /** The client has gone: nothing needs to be done for it any more. */
  gone = false
  /** The request is complete. */
  requestEnded: boolean
  requestTrailers: HeaderList | undefined = undefined
  /** What came of the body, as long as it may have to be sent (again). */
  kept: ChunkQueue | undefined = undefined
  keptBytes = 0
  replayable = true
  /** The body as it came, where it is read before anything is sent. */
  wholeBody: WholeBody | undefined = undefined
  /** Made for this deletion of a pod: given back when upstream does not do it. */
  reservation: Reservation | undefined = undefined
  /** What an answer of 409 leads to instead of being passed on; undefined = it is passed on. */
  onConflict: (() => void) | undefined = undefined
  /** Taken from one side, not yet by the other: bytes whose window is still to be given back. */
  owedToClient = 0
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
    this.monotonicMs = gw.clock.monotonic()
    this.nowMs = gw.clock.now()
    this.head = readRequestHead(list, peer.remoteAddress, peer.protocol === 'h2')
    this.record = recordOf(this)
  }

  // === what the client does ===

  onHeaders(): void {
    // Only responses have a second head.
  }

  onBody(chunk: Buffer, end: boolean): void {
    if (end) this.requestEnded = true
    switch (this.phase) {
      case 'deciding':
        if (chunk.length > 0) this.#keep(chunk)
        break
      case 'reading':
        this.#read(chunk)
        if (end) this.wholeBody?.finish('complete')
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
    this.record.requestBytes += chunk.length
    if (this.phase === 'sending' && this.replayable && chunk.length > 0) {
      this.#keep(chunk)
      if (this.keptBytes > REPLAY_LIMIT_BYTES) this.forgetBody()
    }
    const stream = this.upstream?.stream
    stream?.body(chunk, end)
    this.#taken(chunk.length, stream)
  }

  /** The window of what upstream's stream has not sent on is given back when it has (`upstreamDrained`). */
  #taken(bytes: number, stream: Stream | undefined): void {
    if (bytes === 0) return
    if (stream !== undefined && stream.queued >= HIGH_WATER_BYTES) this.owedToClient += bytes
    else this.client.credit(bytes)
  }

  #keep(chunk: Buffer): void {
    this.keptBytes += chunk.length
    this.kept ??= new ChunkQueue()
    this.kept.push(chunk)
  }

  /** From here on the body goes into `whole`, until its end. */
  readBody(whole: WholeBody): void {
    this.phase = 'reading'
    this.wholeBody = whole
    for (const piece of this.kept?.pieces() ?? []) this.#read(piece)
    this.kept?.clear()
    this.keptBytes = 0
    if (this.requestEnded) whole.finish('complete')
  }

  #read(chunk: Buffer): void {
    if (chunk.length === 0) return
    this.record.requestBytes += chunk.length
    this.wholeBody?.add(chunk)
    this.client.credit(chunk.length)
  }

  /** What goes upstream in the place of a body that was read. */
  setBody(body: Buffer): void {
    this.kept?.clear()
    this.keptBytes = 0
    if (body.length > 0) this.#keep(body)
  }

  /** What came before there was an endpoint was sent: from here on it counts as passed on. */
  bodySent(): void {
    if (this.wholeBody === undefined) {
      this.record.requestBytes += this.keptBytes
      this.#taken(this.keptBytes, this.upstream?.stream)
    }
    if (this.keptBytes > REPLAY_LIMIT_BYTES) this.forgetBody()
  }

  /** The request cannot be sent again. */
  forgetBody(): void {
    this.replayable = false
    this.kept?.clear()
    this.kept = undefined
  }

  onTrailers(list: HeaderList): void {
    this.requestEnded = true
    this.requestTrailers = list
    if (this.phase === 'reading') this.wholeBody?.finish('complete')
    if (this.phase === 'sending' || this.phase === 'answering') this.upstream?.stream?.trailers(list)
  }

  onDrained(): void {
    const bytes = creditFor(this.owedToUpstream, this.client.queued)
    if (bytes === 0) return
    this.owedToUpstream -= bytes
    this.upstream?.stream?.credit(bytes)
  }

  onReset(_reason: ResetReason): void {
    this.gone = true
    this.wholeBody?.finish('gone')
    // While it is decided, the decision finds out; of joined sockets the splice tells.
    if (this.phase === 'over' || this.undecided || this.phase === 'upgraded') return
    this.record.aborted = 'client'
    this.upstream?.cancel()
    this.end()
  }

  /** Upstream has taken what it had to: the client may send on. */
  upstreamDrained(): void {
    const bytes = creditFor(this.owedToClient, this.upstream?.stream?.queued ?? 0)
    if (bytes === 0) return
    this.owedToClient -= bytes
    this.client.credit(bytes)
  }

  // === the reservation ===

  /** Upstream's answer. After anything but a client's error the pod may have been deleted. */
  deletionAnswered(code: number): void {
    if (isNoDeletion(code)) this.notDeleted()
    this.reservation = undefined
  }

  /** The pod is another one than was judged, or has changed: it is judged again, and this answer is not passed on. */
  conflicted(): void {
    const again = this.onConflict
    this.onConflict = undefined
    this.upstream?.cancel()
    this.upstream?.leave()
    this.upstream = undefined
    this.phase = 'reading'
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

  get cluster(): string {
    return this.record.cluster
  }

  get endpoint(): string {
    return this.record.endpoint
  }

  get longRunning(): boolean {
    return this.upgrade !== undefined || this.record.longRunning
  }

  /** Ends it as its protocol ends cleanly: a watch between two events. */
  finish(): void {
    if (this.phase === 'over') return
    const watch = this.permit?.isWatch === true
    if (watch && this.frames !== undefined) {
      if (this.frames.atBoundary) this.endWatch()
      else if (this.frames.format === 'opaque') this.cut()
      else this.finishAtBoundary = true
    } else if (watch && this.phase === 'sending') this.finishAtBoundary = true
    else this.cut()
  }

  endWatch(): void {
    this.upstream?.cancel()
    this.client.body(EMPTY, true)
    this.end()
  }

  cut(): void {
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
    const held = this.phase === 'deciding' ? this.keptBytes : this.owedToClient
    if (this.undecided) this.notDeleted()
    this.phase = 'over'
    this.wholeBody?.discard()
    this.kept?.clear()
    this.kept = undefined
    if (held > 0) this.client.credit(held)
    this.upstream?.leave()
    if (this.permit !== undefined) giveBack(this.permit)
    const { gw, record } = this
    record.durationMs = gw.clock.monotonic() - record.startMs
    gw.events.requestEnded(record)
    gw.running.remove(this)
  }
}

/**
 * Whether the answer means that the pod lives on. 404, and 409 to a uid: it is gone, by whomever, and stays counted among the
 * deletions until the aggregator sees it. 408: a server that gave up on waiting may have done its work.
 */
export function isNoDeletion(code: number): boolean {
  return code >= 400 && code < 500 && code !== 404 && code !== 408 && code !== 409
}

/**
 * How much of what is owed is given back, with `queued` bytes still to be sent: what there is room for. All at once would
 * bring as much at once, and everybody else on the connection behind it.
 */
function creditFor(owed: number, queued: number): number {
  return queued === 0 ? owed : Math.min(owed, Math.max(0, HIGH_WATER_BYTES - queued))
}

function recordOf({ gw, peer, head, monotonicMs, nowMs }: Exchange): RequestRecord {
  const record = createRecord()
  record.startMs = monotonicMs
  record.startWallMs = nowMs
  record.protocol = peer.protocol
  record.remoteAddress = peer.remoteAddress
  record.method = head.method
  record.target = head.target
  record.host = head.host
  record.userAgent = head.userAgent
  record.auditId = isUsableAuditId(head.auditId) ? head.auditId : gw.uuid()
  return record
}

/** As kube-apiserver takes it from the client; anything that could not be a log field is replaced. */
function isUsableAuditId(id: string): boolean {
  if (id === '' || id.length > MAX_AUDIT_ID) return false
  for (let i = 0; i < id.length; i++) {
    const c = id.charCodeAt(i)
    if (c < 0x21 || c > 0x7e) return false
  }
  return true
}
