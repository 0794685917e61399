// The server side of a connection: requests arrive as header blocks on new streams.

import type { HeaderList, Peer, RequestHandler } from '../kit/api/stream.ts'
import { Connection, type ConnectionDriver } from './connection.ts'
import type { Http2Counters } from './counters.ts'
import * as frame from './frames.ts'
import type { HeadMemory } from './header-frames.ts'
import { DECODED, TOO_LARGE } from './hpack/decoder.ts'
import { PSEUDO_AUTHORITY, PSEUDO_METHOD, PSEUDO_PATH, PSEUDO_SCHEME } from './hpack/field-rules.ts'
import { LateBodies, type LateBodyHost, type LateBodyShare } from './late-bodies.ts'
import type { ServerLimits } from './limits.ts'
import { ANY_LENGTH, type Http2Stream } from './stream.ts'

const { NO_ERROR, PROTOCOL_ERROR, REFUSED_STREAM, STREAM_CLOSED } = frame
const REQUEST = PSEUDO_METHOD | PSEUDO_SCHEME | PSEUDO_PATH
const CONNECT_REQUEST = PSEUDO_METHOD | PSEUDO_AUTHORITY

const TOO_LARGE_ANSWER: HeaderList = [':status', '431', 'content-length', '0']
/** The gateway is not a tunnel: CONNECT is not implemented (RFC 9110 section 15.6.2). */
const CONNECT_ANSWER: HeaderList = [':status', '501', 'content-length', '0']

export class ServerConnection extends Connection implements LateBodyHost {
  override readonly isServer = true
  readonly #peer: Peer
  readonly #handler: RequestHandler
  readonly #firstRequestMs: number
  readonly #idleTimeoutMs: number
  readonly #lateBodies: LateBodies
  /** Approximately when the last stream ended, and the last stream opened by then. */
  #idleSinceMs: number
  #lastSeen = 0

  constructor(
    limits: ServerLimits,
    counters: Http2Counters,
    driver: ConnectionDriver,
    peer: Peer,
    handler: RequestHandler,
    nowMs: number,
    head?: HeadMemory,
    lateBodies?: LateBodyShare,
  ) {
    super(limits, counters, driver, frame.PREFACE, nowMs, head)
    this.#peer = peer
    this.#handler = handler
    this.#firstRequestMs = Math.min(limits.firstRequestMs, limits.idleTimeoutMs)
    this.#idleTimeoutMs = limits.idleTimeoutMs
    this.#idleSinceMs = nowMs
    this.#lateBodies = new LateBodies(this, limits, counters, lateBodies)
    this.sendSettings([
      frame.HEADER_TABLE_SIZE,
      limits.headerTableBytes,
      frame.MAX_CONCURRENT_STREAMS,
      limits.maxConcurrentStreams,
      frame.INITIAL_WINDOW_SIZE,
      limits.streamWindowBytes,
      frame.MAX_FRAME_SIZE,
      limits.maxFrameBytes,
      frame.MAX_HEADER_LIST_SIZE,
      limits.maxHeaderListBytes,
    ])
  }

  /** Bytes of heads and control frames not yet read by the client. */
  get unreadBytes(): number {
    return this.sender.bytes
  }

  /** A request was authenticated: from here on the client gets the full window of a user. */
  widenWindow(): void {
    this.window.widen()
  }

  override tick(nowMs: number): void {
    super.tick(nowMs)
    if (this.#lateBodies.size > 0) this.#lateBodies.tick(nowMs)
    if (this.over || this.goaway.state !== 'no') return
    if (this.streams.open.size > 0 || this.lastPeerStream !== this.#lastSeen) {
      this.#lastSeen = this.lastPeerStream
      this.#idleSinceMs = nowMs
      return
    }
    const allowedMs = this.lastPeerStream === 0 ? this.#firstRequestMs : this.#idleTimeoutMs
    if (nowMs - this.#idleSinceMs < allowedMs) return
    this.counters.idleTimeouts++
    this.drain(nowMs)
  }

  override onHead(id: number, end: boolean, outcome: number): void {
    const known = this.streams.open.get(id)
    if (known !== undefined) {
      if (known.remoteEnded) this.blame(known, STREAM_CLOSED)
      else this.onTrailers(known, end, outcome)
      return
    }
    if ((id & 1) === 0) {
      this.fail(PROTOCOL_ERROR, 'a client opens streams of odd numbers')
      return
    }
    if (id <= this.lastPeerStream) {
      this.#onOldStream(id)
      return
    }
    // After the final GOAWAY no new stream is served; the client knows that it can retry elsewhere.
    if (this.goaway.state === 'final') return
    this.lastPeerStream = id
    if (this.streams.open.size >= this.limits.maxConcurrentStreams) {
      this.counters.streamLimit++
      this.#refuse(id, REFUSED_STREAM)
    } else if (outcome === TOO_LARGE) {
      this.counters.headerListTooLarge++
      this.#answer(id, end, TOO_LARGE_ANSWER)
    } else if (outcome !== DECODED) this.#refuse(id, PROTOCOL_ERROR)
    else this.#onRequest(id, end)
  }

  #onRequest(id: number, end: boolean): void {
    const { decoder } = this
    const { pseudoMask, contentLength, fields } = decoder
    if ((pseudoMask & ~PSEUDO_AUTHORITY) !== REQUEST) {
      const connect = pseudoMask === CONNECT_REQUEST && fields.includes('CONNECT')
      if (connect) this.#answer(id, end, CONNECT_ANSWER)
      else this.#refuse(id, PROTOCOL_ERROR)
      return
    }
    if (contentLength < ANY_LENGTH || (end && contentLength > 0) || !hasPath(fields)) {
      this.#refuse(id, PROTOCOL_ERROR)
      return
    }
    const stream = this.streams.add(id, this.settings.windowBytes)
    stream.remoteEnded = end
    if (!end) stream.expectedBytes = contentLength
    const events = this.#handler(this.#peer, stream, fields, end)
    // The response may already be complete, or the connection closed.
    if (!stream.dead && !stream.localEnded) stream.events = events
  }

  /** HEADERS on a stream that is closed or was skipped (RFC 9113 section 5.1.1). */
  #onOldStream(id: number): void {
    if (this.streams.closed.wasResetByUs(id)) return
    if (!this.streams.closed.wasEndedByPeer(id)) {
      if (this.streams.closed.isForgotten(id)) return
      this.fail(PROTOCOL_ERROR, 'a stream number below one that was used')
      return
    }
    this.fail(STREAM_CLOSED, 'HEADERS on a stream that is over')
  }

  #refuse(id: number, code: number): void {
    this.streams.closed.add(id, true)
    this.blameGone(id, code)
  }

  /** Answers requests that never reach the request path. */
  #answer(id: number, end: boolean, head: HeaderList): void {
    const stream = this.streams.add(id, this.settings.windowBytes)
    stream.remoteEnded = end
    stream.headers(head, true)
  }

  /** The response is complete while the client is still sending. */
  override onLocalEnd(stream: Http2Stream): void {
    if (this.#lateBodies.begin(stream, this.#peer.charge, this.nowMs)) return
    this.counters.lateBodiesCut++
    this.cutBody(stream)
  }

  /** Tells the client to stop sending (RFC 9113 section 8.1). */
  cutBody(stream: Http2Stream): void {
    this.streams.resetStream(stream, NO_ERROR)
  }

  protected override onEnding(): void {
    this.#lateBodies.loseAll()
  }

  override isIdle(id: number): boolean {
    // After the final GOAWAY, new streams and their frames are ignored (RFC 9113 section 6.8).
    return (id & 1) === 0 || (id > this.lastPeerStream && this.goaway.state !== 'final')
  }

  override onPeerSettings(): void {
    // Nothing waits for them here.
  }

  override onPeerGoaway(): void {
    // The client will open no streams; open ones continue.
  }

  override onStreamGone(stream: Http2Stream, byUs: boolean): void {
    if (this.#lateBodies.size > 0) this.#lateBodies.onStreamGone(stream, byUs)
  }
}

/** `:path` is not empty (RFC 9113 section 8.3.1). */
function hasPath(fields: readonly string[]): boolean {
  for (let i = 0; i < fields.length; i += 2) if (fields[i] === ':path') return fields[i + 1] !== ''
  return false
}
