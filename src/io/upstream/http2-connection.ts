// One HTTP/2 connection to an endpoint: what it may take, how long it lives, and why it ended.

import type { Duplex } from 'node:stream'
import type { HeaderList, ResetReason, SharedFields, Stream, StreamEvents } from '../../api/ports/stream.ts'
import { ClientConnection, type ClientEvents } from '../../http2/client.ts'
import type { Http2Counters } from '../../http2/counters.ts'
import { PING_UNANSWERED } from '../../http2/deadlines.ts'
import { SETTINGS_TIMEOUT } from '../../http2/frames.ts'
import { CLIENT_LIMITS } from '../../http2/limits.ts'
import type { UpstreamCounters } from '../metrics/upstream-counters.ts'
import { Http2Socket, type Http2SocketEvents } from '../socket/http2-socket.ts'
import { UnsentStream } from './unsent-stream.ts'
import type { Carrier } from './waiting.ts'

/** Why a connection to an endpoint was closed: what counts it. */
export type CloseCause = Exclude<keyof UpstreamCounters, 'opened' | 'connectFailed'>

export interface ConnectionOwner {
  /** The server's SETTINGS have come. Once, and not after `onGone`. */
  onReady(): void
  /** It takes more than before. */
  onRoom(): void
  /**
   * It is over. Once.
   * @param broken nobody had asked for it
   * @param wasReady it had been able to carry requests
   */
  onGone(connection: UpstreamConnection, cause: CloseCause, broken: Error | undefined, wasReady: boolean): void
}

/** Streams that a new connection takes until its first response came, or a second went by. */
const SLOW_START_STREAMS = 32
const SLOW_START_MS = 1_000
/** Jittered by a fifth either way: connections that were opened together do not end together. */
const MAX_AGE_MS = 10 * 60_000
const AGE_JITTER = 0.2
/** Below the 90 s after which kube-apiserver closes idle connections, so that we never write into a closing one. */
const IDLE_CLOSE_MS = 60_000
/**
 * Heads that are not sent yet, above which a connection takes no requests: a server that is slow to read is not given more, or
 * what waits would come to be the end of the connection (CLIENT_LIMITS.maxBacklogBytes).
 */
const FULL_BACKLOG_BYTES = 1024 * 1024
/** Bytes under way that count as one stream more: small answers do not stand behind a large list. */
const BYTES_PER_LOAD_BITS = 13

export class UpstreamConnection implements ClientEvents, Http2SocketEvents, Carrier {
  readonly #owner: ConnectionOwner
  readonly #driver: Http2Socket
  readonly #connection: ClientConnection
  readonly #expiresAtMs: number
  #expired = false
  #ready = false
  #readyAtMs = 0
  #retired: CloseCause | undefined
  /** Whether it has shown that it answers. */
  #proven = false
  /** Streams ever opened, and as many as there were when `#idleSinceMs` was set. */
  #opened = 0
  #openedSeen = 0
  #idleSinceMs: number
  #gone = false
  /** Full of heads when it was last given one. */
  #full = false

  /** @param chance in [0, 1) */
  constructor(socket: Duplex, counters: Http2Counters, owner: ConnectionOwner, nowMs: number, chance: number) {
    this.#owner = owner
    this.#expiresAtMs = nowMs + MAX_AGE_MS * (1 - AGE_JITTER + 2 * AGE_JITTER * chance)
    this.#idleSinceMs = nowMs
    this.#driver = new Http2Socket(socket, counters, this)
    this.#connection = new ClientConnection(CLIENT_LIMITS, counters, this.#driver, this, nowMs)
    this.#driver.start(this.#connection)
  }

  /** Has a free stream. */
  get takesMore(): boolean {
    const connection = this.#connection
    if (this.#retired !== undefined || !this.#ready || this.#full || !connection.usable) return false
    const { maxStreams } = connection
    return connection.takenStreams < (this.#proven || maxStreams < SLOW_START_STREAMS ? maxStreams : SLOW_START_STREAMS)
  }

  /** Takes new requests, if not just now. */
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

  get streams(): number {
    return this.#connection.openStreams
  }

  /** How long a new request would have to share: streams, and bytes of late. */
  get load(): number {
    return this.#connection.takenStreams + (this.#driver.recentBytes >> BYTES_PER_LOAD_BITS)
  }

  /** Largest header list that the server takes, as RFC 9113 section 6.5.2 counts it; infinite when it does not say. */
  get maxListBytes(): number {
    return this.#connection.maxListBytes
  }

  /** To be retired as soon as another connection can take its place. */
  get expired(): boolean {
    return this.#expired && this.#retired === undefined
  }

  /** Only when `takesMore`. */
  open(head: HeaderList, shared: SharedFields | undefined, end: boolean, events: StreamEvents): Stream {
    this.#opened++
    const stream = this.#connection.open(head, shared, end, this.#proven ? events : new FirstAnswer(events, this))
    this.#full = this.#connection.backlogBytes >= FULL_BACKLOG_BYTES
    return stream ?? new UnsentStream(events, 'head-too-large')
  }

  /** It answers: slow start is over. */
  prove(): void {
    if (this.#proven) return
    this.#proven = true
    this.#owner.onRoom()
  }

  /** No new requests; it closes when the last one has ended. */
  retire(cause: CloseCause, nowMs: number): void {
    this.#retired ??= cause
    this.#closeWhenEmpty(nowMs)
  }

  /** Our GOAWAY comes last: some servers take nothing after it, not even what was sent before. */
  #closeWhenEmpty(nowMs: number): void {
    if (this.#connection.openStreams === 0 && !this.#gone) this.#connection.drain(nowMs)
  }

  destroy(): void {
    this.#retired ??= 'closedByDrain'
    this.#driver.destroy(0)
  }

  /** Retires what is idle; the rest is the owner's to decide. */
  tick(nowMs: number): void {
    if (this.#retired !== undefined) {
      this.#closeWhenEmpty(nowMs)
      return
    }
    if (!this.#ready) return
    if (nowMs >= this.#expiresAtMs) this.#expired = true
    // A server that allows no streams at all has not shown that it answers.
    if (!this.#proven && this.#connection.maxStreams > 0 && nowMs - this.#readyAtMs >= SLOW_START_MS) this.prove()
    if (this.#connection.openStreams > 0 || this.#opened !== this.#openedSeen) {
      this.#openedSeen = this.#opened
      this.#idleSinceMs = nowMs
    } else if (nowMs - this.#idleSinceMs >= IDLE_CLOSE_MS) this.retire('closedByIdle', nowMs)
  }

  // === what the engine says ===

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

/** Hears the first response on a connection that has not shown yet that it answers. */
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
