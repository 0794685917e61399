// One HTTP/2 connection to an endpoint: its capacity, its lifetime, and why it ended.

import type { Duplex } from 'node:stream'
import { ClientConnection, type ClientEvents } from '../../../http2/client.ts'
import type { Http2Counters } from '../../../http2/counters.ts'
import { PING_UNANSWERED } from '../../../http2/deadlines.ts'
import { SETTINGS_TIMEOUT } from '../../../http2/frames.ts'
import type { HeadMemory } from '../../../http2/header-frames.ts'
import { CLIENT_SIDE_LIMITS } from '../../../http2/limits.ts'
import type { Charge, HeaderList, ResetReason, SharedFields, Stream, StreamEvents } from '../../../kit/api/stream.ts'
import { AT } from '../../../kit/io/stalls/steps.ts'
import type { UpstreamCounters } from '../../metrics/upstream-counters.ts'
import { EngineSocket, type EngineSocketEvents } from '../socket/engine-socket.ts'
import { UnsentStream } from './unsent-stream.ts'
import type { Carrier } from './waiting.ts'

/** Why a connection to an endpoint was closed: the name of its counter. */
export type CloseCause = Exclude<keyof UpstreamCounters, 'opened' | 'connectFailed' | 'endedByRequests'>

export interface ConnectionOwner {
  /** The server's SETTINGS have arrived. Called once, and never after `onGone`. */
  onReady(): void
  /** Its capacity has grown. */
  onRoom(): void
  /** A stream has ended; not called if all end because the connection closed. */
  onStreamGone(charge: Charge | undefined, byUs: boolean): void
  /** Sources whose requests probably broke the connection, usable since `readyAtMs`. Called before `onGone`, and before its streams know. */
  onSuspects(charges: readonly Charge[], certain: boolean, readyAtMs: number): void
  /** The connection ended together with this many streams. Called before `onGone`. */
  onStreamsEnded(streams: number): void
  /**
   * The connection closed. Called once.
   * @param broken the error, unless closed on purpose
   * @param wasReady it was able to carry requests
   */
  onGone(connection: UpstreamConnection, cause: CloseCause, broken: Error | undefined, wasReady: boolean): void
}

/** Slow start: limit of streams on a new connection until its first response, or for a second. */
export const SLOW_START_STREAMS = 32
const SLOW_START_MS = 1_000
/** Jittered by a fifth either way, so that connections opened together do not end together. */
const MAX_AGE_MS = 10 * 60_000
const AGE_JITTER = 0.2
/** Below the 90 s after which kube-apiserver closes idle connections, so that we never write into a closing one. */
export const IDLE_CLOSE_MS = 60_000
/**
 * Bytes of unsent heads above which a connection takes no requests: otherwise, with a slow server, the backlog would end the connection
 * (CLIENT_SIDE_LIMITS.maxBacklogBytes).
 */
const FULL_BACKLOG_BYTES = 1024 * 1024
/** Bytes in transit that count as one more stream, so that small responses do not queue behind a large list. */
const BYTES_PER_LOAD_BITS = 13
/**
 * A connection with fewer streams and recent bytes takes the next request, too: requests on one connection share its writes and reads. With four
 * connections for 64 requests in flight, instead of one, a request took 1.12 x the CPU (bench/README.md).
 */
const LIGHT_STREAMS = 80
const LIGHT_BYTES = 256 * 1024

export class UpstreamConnection implements ClientEvents, EngineSocketEvents, Carrier {
  readonly #owner: ConnectionOwner
  readonly #driver: EngineSocket
  readonly #connection: ClientConnection
  readonly #expiresAtMs: number
  #expired = false
  #ready = false
  #readyAtMs = 0
  #retired: CloseCause | undefined
  /** Whether it has responded. */
  #proven = false
  /** Number of streams opened so far, and its value when `#idleSinceMs` was set. */
  #opened = 0
  #openedSeen = 0
  #idleSinceMs: number
  #gone = false
  /** Whether its head backlog was full after the last request. */
  #full = false

  /**
   * @param chance in [0, 1)
   * @param isBulk see EngineSocket
   * @param head see Connection
   */
  constructor(
    socket: Duplex,
    counters: Http2Counters,
    owner: ConnectionOwner,
    nowMs: number,
    chance: number,
    isBulk: boolean,
    head?: HeadMemory,
  ) {
    this.#owner = owner
    this.#expiresAtMs = nowMs + MAX_AGE_MS * (1 - AGE_JITTER + 2 * AGE_JITTER * chance)
    this.#idleSinceMs = nowMs
    this.#driver = new EngineSocket(socket, this, { counters, isBulk })
    this.#connection = new ClientConnection(CLIENT_SIDE_LIMITS, counters, this.#driver, this, nowMs, head)
    this.#driver.start(this.#connection, AT.upstream)
  }

  /** Has a free stream. */
  get takesMore(): boolean {
    return this.free > 0
  }

  /** Streams that can be opened now. */
  get free(): number {
    const connection = this.#connection
    if (this.#retired !== undefined || !this.#ready || this.#full || !connection.usable) return 0
    const { maxStreams } = connection
    const most = this.#proven || maxStreams < SLOW_START_STREAMS ? maxStreams : SLOW_START_STREAMS
    return Math.max(0, most - connection.takenStreams)
  }

  /** Accepts new requests in principle, though perhaps not at the moment. */
  get active(): boolean {
    return this.#retired === undefined && this.#ready && this.#connection.usable
  }

  /** Free streams, once slow start is over. */
  get room(): number {
    return this.#connection.maxStreams - this.#connection.takenStreams
  }

  get proven(): boolean {
    return this.#proven
  }

  /** The source of every open stream. */
  charges(): Iterable<Charge | undefined> {
    return this.#connection.charges()
  }

  get streams(): number {
    return this.#connection.openStreams
  }

  /** So lightly loaded that requests need not be spread to other connections. */
  get isLight(): boolean {
    return this.#connection.takenStreams < LIGHT_STREAMS && this.#driver.recentBytes < LIGHT_BYTES
  }

  /** Load that a new request would share: streams, and recent bytes. */
  get load(): number {
    return this.#connection.takenStreams + (this.#driver.recentBytes >> BYTES_PER_LOAD_BITS)
  }

  /** The server's SETTINGS_MAX_HEADER_LIST_SIZE (RFC 9113 section 6.5.2); infinite if not sent. */
  get maxListBytes(): number {
    return this.#connection.maxListBytes
  }

  /** Old enough to be retired as soon as another connection can replace it. */
  get expired(): boolean {
    return this.#expired && this.#retired === undefined
  }

  /** Requires `takesMore`. */
  open(head: HeaderList, shared: SharedFields | undefined, end: boolean, events: StreamEvents, charge: Charge): Stream {
    this.#opened++
    const heard = this.#proven ? events : new FirstAnswer(events, this)
    const stream = this.#connection.open(head, shared, end, heard, charge)
    this.#full = this.#connection.backlogBytes >= FULL_BACKLOG_BYTES
    return stream ?? new UnsentStream(events, 'head-too-large')
  }

  /** It has responded: slow start is over. */
  prove(): void {
    if (this.#proven) return
    this.#proven = true
    this.#owner.onRoom()
  }

  /** Takes no new requests; closes when the last one has ended. */
  retire(cause: CloseCause, nowMs: number): void {
    this.#retired ??= cause
    this.#closeWhenEmpty(nowMs)
  }

  /** Our GOAWAY comes last: some servers process nothing after it, not even earlier requests. */
  #closeWhenEmpty(nowMs: number): void {
    if (this.#connection.openStreams === 0 && !this.#gone) this.#connection.drain(nowMs)
  }

  destroy(): void {
    this.#retired ??= 'closedByDrain'
    this.#driver.destroy(0)
  }

  /** Retires an idle connection; the owner decides about others. */
  tick(nowMs: number, idleCloseMs: number = IDLE_CLOSE_MS): void {
    if (this.#retired !== undefined) {
      this.#closeWhenEmpty(nowMs)
      return
    }
    if (!this.#ready) return
    if (nowMs >= this.#expiresAtMs) this.#expired = true
    // A server that allows no streams at all has not responded.
    if (!this.#proven && this.#connection.maxStreams > 0 && nowMs - this.#readyAtMs >= SLOW_START_MS) this.prove()
    if (this.#connection.openStreams > 0 || this.#opened !== this.#openedSeen) {
      this.#openedSeen = this.#opened
      this.#idleSinceMs = nowMs
    } else if (nowMs - this.#idleSinceMs >= idleCloseMs) this.retire('closedByIdle', nowMs)
  }

  // === called by the engine ===

  onReady(): void {
    if (this.#ready) {
      this.#owner.onRoom()
      return
    }
    this.#ready = true
    this.#readyAtMs = performance.now()
    this.#owner.onReady()
  }

  onWritten(): void {
    if (!this.#full || this.#connection.backlogBytes >= FULL_BACKLOG_BYTES) return
    this.#full = false
    this.#owner.onRoom()
  }

  onStreamGone(charge: Charge | undefined, byUs: boolean): void {
    this.#owner.onStreamGone(charge, byUs)
  }

  onSuspects(charges: readonly Charge[], certain: boolean): void {
    // A retired connection is closed by us, or by a server that was told to.
    if (this.#ready && (certain || this.#retired === undefined))
      this.#owner.onSuspects(charges, certain, this.#readyAtMs)
  }

  onEnding(streams: number): void {
    if (streams > 0) this.#owner.onStreamsEnded(streams)
  }

  onSlotFree(): void {
    if (this.#retired !== undefined) this.#closeWhenEmpty(performance.now())
    else this.#owner.onRoom()
  }

  onGoaway(_code: number): void {
    this.retire('closedByGoaway', performance.now())
  }

  onClosed(code: number, message: string): void {
    if (this.#gone) return
    this.#gone = true
    const broken = this.#retired === undefined ? new Error(message) : undefined
    this.#owner.onGone(this, this.#retired ?? closeCause(code, message), broken, this.#ready)
  }
}

function closeCause(code: number, message: string): CloseCause {
  if (code === SETTINGS_TIMEOUT) return 'closedBySettingsTimeout'
  return message === PING_UNANSWERED ? 'closedByPingTimeout' : 'closedByLoss'
}

/** Waits for the first response on a connection that has had none. */
class FirstAnswer implements StreamEvents {
  readonly #events: StreamEvents
  readonly #connection: UpstreamConnection

  constructor(events: StreamEvents, connection: UpstreamConnection) {
    this.#events = events
    this.#connection = connection
  }

  onHeaders(list: HeaderList, end: boolean): void {
    this.#events.onHeaders(list, end)
    this.#connection.prove()
  }

  onBody(chunk: Buffer, end: boolean): void {
    this.#events.onBody(chunk, end)
  }

  onTrailers(list: HeaderList): void {
    this.#events.onTrailers(list)
  }

  onDrained(): void {
    this.#events.onDrained()
  }

  onReset(reason: ResetReason): void {
    this.#events.onReset(reason)
  }
}
