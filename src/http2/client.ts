// The client side of a connection: opens streams and receives responses.

import type { Charge, HeaderList, SharedFields, Stream, StreamEvents } from '../kit/api/stream.ts'
import { Connection, type ConnectionDriver } from './connection.ts'
import type { AbuseKind, Http2Counters } from './counters.ts'
import * as frame from './frames.ts'
import type { HeadMemory } from './header-frames.ts'
import { DECODED, TOO_LARGE } from './hpack/decoder.ts'
import { encodeShared } from './hpack/encoder.ts'
import { PSEUDO_STATUS } from './hpack/field-rules.ts'
import type { Http2Limits } from './limits.ts'
import { ANY_LENGTH, type Http2Stream } from './stream.ts'
import { UnconfirmedResets } from './unconfirmed-resets.ts'

export interface ClientEvents {
  /** The peer's SETTINGS have arrived or changed: `maxStreams` is known. */
  onReady(): void
  /**
   * A stream opened for `charge` has ended; before `onSlotFree`. Not called when all end with the connection.
   * @param byUs we reset it; otherwise it completed, or the peer reset it
   */
  onStreamGone(charge: Charge | undefined, byUs: boolean): void
  /**
   * The connection fails, and requests of these charges probably caused it; each is repeated per request. Called before any stream learns
   * of it.
   * @param certain the peer, or what it has sent, identifies them
   */
  onSuspects(charges: readonly Charge[], certain: boolean): void
  /** The connection has ended; this many streams are about to be notified. */
  onEnding(streams: number): void
  /** A stream has ended: there may be room for another. */
  onSlotFree(): void
  /** No new streams on this connection; open ones continue. */
  onGoaway(code: number): void
}

const { CANCEL, ENHANCE_YOUR_CALM, INTERNAL_ERROR, NO_ERROR, PROTOCOL_ERROR, STREAM_CLOSED, LARGEST_STREAM_ID } = frame
/** 1xx heads before the final response: a pod may send any number through a kube-apiserver, and no window limits them. */
export const MAX_INTERIM_ANSWERS = 100
/** The recommended minimum (RFC 9113 section 6.5.2), assumed until the SETTINGS of the peer have arrived. */
const ASSUMED_MAX_STREAMS = 100

export class ClientConnection extends Connection {
  override readonly isServer = false
  readonly #events: ClientEvents
  readonly #resets: UnconfirmedResets = new UnconfirmedResets()
  readonly #suspects: Suspects = new Suspects()
  /** We detected an error in what the peer sent. */
  #faulty = false
  #nextStream = 1

  constructor(
    limits: Http2Limits,
    counters: Http2Counters,
    driver: ConnectionDriver,
    events: ClientEvents,
    nowMs: number,
    head?: HeadMemory,
  ) {
    super(limits, counters, driver, '', nowMs, head)
    this.#events = events
    this.sender.preface()
    this.sendSettings([
      frame.HEADER_TABLE_SIZE,
      limits.headerTableBytes,
      frame.ENABLE_PUSH,
      0,
      frame.INITIAL_WINDOW_SIZE,
      limits.streamWindowBytes,
      frame.MAX_FRAME_SIZE,
      limits.maxFrameBytes,
      frame.MAX_HEADER_LIST_SIZE,
      limits.maxHeaderListBytes,
    ])
  }

  /** Whether the peer's SETTINGS have arrived. */
  get ready(): boolean {
    return this.settings.received
  }

  /** Concurrent streams that the peer allows. */
  get maxStreams(): number {
    return this.settings.received ? this.settings.maxStreams : ASSUMED_MAX_STREAMS
  }

  /** Streams that count against `maxStreams`: open ones, and reset ones that the peer may not know about. */
  override get takenStreams(): number {
    return this.streams.open.size + this.#resets.count
  }

  /** Whether new streams may be opened, as long as fewer than `maxStreams` are in use. */
  get usable(): boolean {
    return !this.over && !this.goaway.received && this.goaway.state === 'no' && this.#nextStream <= LARGEST_STREAM_ID
  }

  /** Bytes of unsent heads and control frames. */
  get backlogBytes(): number {
    return this.sender.bytes
  }

  /** The peer's SETTINGS_MAX_HEADER_LIST_SIZE (RFC 9113 section 6.5.2); infinite when not sent. */
  get maxListBytes(): number {
    return this.sender.maxListBytes
  }

  /**
   * Sends a request; only on a `usable` connection with room for a stream. Errors are reported by `events.onReset`.
   * Returns undefined when nothing was sent because the head is larger than `maxListBytes`.
   * @param head pseudo-header fields first
   * @param shared more fields, after `head`
   * @param charge of the request; undefined = unknown
   */
  open(
    head: HeaderList,
    shared: SharedFields | undefined,
    end: boolean,
    events: StreamEvents,
    charge?: Charge,
  ): Stream | undefined {
    const id = this.#nextStream
    if (shared !== undefined && shared.encoded === undefined) shared.encoded = encodeShared(shared.list)
    if (!this.sender.head(id, head, shared?.encoded, end)) {
      this.counters.headsNotSent++
      return undefined
    }
    this.#nextStream += 2
    const stream = this.streams.add(id, this.settings.windowBytes)
    stream.events = events
    stream.charge = charge
    this.#suspects.onOpened(id, charge, this.nowMs)
    stream.bodyless = isHead(head)
    if (end) {
      stream.ending = true
      stream.localEnded = true
    }
    this.#confirmWhenFull()
    return stream
  }

  override onHead(id: number, end: boolean, outcome: number): void {
    const stream = this.streams.open.get(id)
    if (stream === undefined) {
      this.#onUnknownStream(id)
      return
    }
    if (stream.remoteEnded) {
      this.blame(stream, STREAM_CLOSED)
      return
    }
    if (outcome === TOO_LARGE) this.counters.headerListTooLarge++
    if (stream.answered) this.onTrailers(stream, end, outcome)
    else if (outcome === DECODED) this.#onAnswer(stream, end)
    else this.blame(stream, PROTOCOL_ERROR)
  }

  #onAnswer(stream: Http2Stream, end: boolean): void {
    const { pseudoMask, contentLength, fields } = this.decoder
    const status = pseudoMask === PSEUDO_STATUS ? readStatus(fields[1] ?? '') : 0
    // 101 does not exist in HTTP/2 (RFC 9113 section 8.6).
    if (status < 100 || status === 101 || contentLength < ANY_LENGTH || (status < 200 && end)) {
      this.blame(stream, PROTOCOL_ERROR)
      return
    }
    if (status < 200) {
      if (++stream.interim > MAX_INTERIM_ANSWERS) this.blame(stream, ENHANCE_YOUR_CALM)
      else stream.events.onHeaders(fields, false)
      return
    }
    const bodyless = status === 204 || status === 304 || stream.bodyless
    if (end && !bodyless && contentLength > 0) {
      this.blame(stream, PROTOCOL_ERROR)
      return
    }
    stream.answered = true
    stream.expectedBytes = bodyless ? 0 : contentLength
    stream.remoteEnded = end
    stream.events.onHeaders(fields, end)
    if (end) this.streams.afterRemoteEnd(stream)
  }

  #onUnknownStream(id: number): void {
    if (this.isIdle(id)) this.fail(PROTOCOL_ERROR, 'HEADERS on a stream that was not opened')
    else if (!this.streams.closed.wasResetByUs(id)) this.blameGone(id, STREAM_CLOSED)
  }

  /** The response is complete; the rest of the request is not needed. */
  override onRemoteEnd(stream: Http2Stream): void {
    this.counters.lateBodiesCut++
    this.streams.resetStream(stream, CANCEL)
  }

  override isIdle(id: number): boolean {
    return (id & 1) === 0 || id >= this.#nextStream
  }

  override onPeerSettings(): void {
    this.#events.onReady()
  }

  /** Streams above the last one that the peer has seen may be retried (RFC 9113 section 6.8). */
  override onPeerGoaway(lastStream: number, code: number): void {
    if (code !== NO_ERROR) this.#suspect(this.#suspects.ofGoaway(lastStream, code, this.nowMs), true)
    for (const stream of this.streams.open.all()) {
      if (stream.id <= lastStream || stream.dead) continue
      const { events } = stream
      this.streams.kill(stream)
      events.onReset('refused')
    }
    this.#events.onGoaway(code)
  }

  override tick(nowMs: number): void {
    super.tick(nowMs)
    if (!this.over) this.#resets.tick(this.sender)
  }

  override onResetByUs({ charge }: Http2Stream): void {
    this.#resets.add()
    this.#suspects.onReset(charge, this.nowMs)
  }

  override onPingAnswered(payload: number): void {
    super.onPingAnswered(payload)
    if (!this.#resets.onPingAnswered(payload)) return
    this.#confirmWhenFull()
    this.#events.onSlotFree()
  }

  #confirmWhenFull(): void {
    const full = this.#resets.count > 0 && this.takenStreams >= this.maxStreams
    if (full && !this.over) this.#resets.tickWhenFull(this.sender)
  }

  /** Charge of every open stream. */
  *charges(): Iterable<Charge | undefined> {
    for (const { charge } of this.streams.open.all()) yield charge
  }

  override fail(code: number, message: string): void {
    this.#suspectSender()
    super.fail(code, message)
  }

  override abuse(kind: AbuseKind, why = ''): void {
    // No single request is to blame if the server doesn't read.
    if (kind !== 'slowRead') this.#suspectSender()
    super.abuse(kind, why)
  }

  /** The response being read makes us end the connection: blame its request. */
  #suspectSender(): void {
    if (this.over) return
    this.#faulty = true
    const charge = this.streams.open.get(this.receivingStream)?.charge
    if (charge !== undefined) this.#suspect([charge], true)
  }

  #suspect(charges: readonly Charge[], certain: boolean): void {
    if (charges.length > 0) this.#events.onSuspects(charges, certain)
  }

  /** The socket was closed: INTERNAL_ERROR without a GOAWAY from either side. */
  protected override onEnding(code: number): void {
    const silent = code === INTERNAL_ERROR && !this.#faulty && !this.goaway.received
    if (silent) this.#suspect(this.#suspects.ofLoss(this.nowMs), false)
    this.#events.onEnding(this.streams.open.size)
  }

  override onStreamGone({ charge }: Http2Stream, byUs: boolean): void {
    this.#confirmWhenFull()
    this.#events.onStreamGone(charge, byUs)
    this.#events.onSlotFree()
  }
}

function isHead(head: HeaderList): boolean {
  for (let i = 0; i + 1 < head.length; i += 2) if (head[i] === ':method') return head[i + 1] === 'HEAD'
  return false
}

/** Three digits, or 0. */
function readStatus(text: string): number {
  const status = Number(text)
  // Not "2e2" either, which a client over HTTP/1.1 would get as it is.
  return status >= 100 && status <= 999 && String(status) === text ? status : 0
}

// Guesses whose request made a server end the connection: the server reports only an error code and the last stream it has processed.

/** Streams, and resets, that are remembered. A power of two. */
const REMEMBERED = 16
/** Older ones are unrelated. */
const RECENT_MS = 2_000

class Suspects {
  // Rings: the last streams opened, and the last ones we reset.
  readonly #ids = new Array<number>(REMEMBERED).fill(0)
  readonly #openedMs = new Array<number>(REMEMBERED).fill(0)
  readonly #openedFor = new Array<Charge | undefined>(REMEMBERED).fill(undefined)
  readonly #resetMs = new Array<number>(REMEMBERED).fill(0)
  readonly #resetOf = new Array<Charge | undefined>(REMEMBERED).fill(undefined)
  #opened = 0
  #reset = 0

  onOpened(id: number, charge: Charge | undefined, nowMs: number): void {
    const at = this.#opened++ & (REMEMBERED - 1)
    this.#ids[at] = id
    this.#openedMs[at] = nowMs
    this.#openedFor[at] = charge
  }

  onReset(charge: Charge | undefined, nowMs: number): void {
    const at = this.#reset++ & (REMEMBERED - 1)
    this.#resetMs[at] = nowMs
    this.#resetOf[at] = charge
  }

  /** The peer ended the connection with an error. Go's server names the stream of the offending frame, if it is the last. */
  ofGoaway(lastStream: number, code: number, nowMs: number): Charge[] {
    const reset = this.#recent(this.#resetOf, this.#resetMs, nowMs)
    if (code === ENHANCE_YOUR_CALM && reset.length > 0) return reset
    const at = this.#ids.indexOf(lastStream)
    const last = this.#openedFor[at]
    const isRecent = nowMs - (this.#openedMs[at] ?? 0) <= RECENT_MS
    return last !== undefined && isRecent ? [last] : this.ofLoss(nowMs)
  }

  /** The connection was closed without GOAWAY: suspects are all that have just opened a stream. */
  ofLoss(nowMs: number): Charge[] {
    return this.#recent(this.#openedFor, this.#openedMs, nowMs)
  }

  #recent(charges: readonly (Charge | undefined)[], atMs: readonly number[], nowMs: number): Charge[] {
    const recent: Charge[] = []
    for (const [i, charge] of charges.entries())
      if (charge !== undefined && nowMs - (atMs[i] ?? 0) <= RECENT_MS) recent.push(charge)
    return recent
  }
}
