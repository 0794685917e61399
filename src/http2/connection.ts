// One HTTP/2 connection without I/O (RFC 9113): bytes in, events and bytes out. Its parts receive (receiver.ts), send
// (sender.ts) and manage the streams (streams.ts); this file joins them: the driver, errors, and closing. How a stream begins
// and what its heads must contain is in server.ts and client.ts.

import type { Budget } from '../kit/api/limits/budget.ts'
import { PeerBudgets } from './budget.ts'
import { ControlFrames, type ControlHost } from './control-frames.ts'
import type { AbuseKind, Http2Counters } from './counters.ts'
import { DataFrames } from './data-frames.ts'
import { Deadlines, type DeadlinesHost } from './deadlines.ts'
import { type Pace, WITHOUT_PAUSE } from './frame-reader.ts'
import * as frame from './frames.ts'
import { Goaway, type GoawayHost } from './goaway.ts'
import { HeaderFrames, type HeaderHost, type HeadMemory } from './header-frames.ts'
import { DECODED, HpackDecoder } from './hpack/decoder.ts'
import type { Http2Limits } from './limits.ts'
import { PeerSettings, type SettingsHost } from './peer-settings.ts'
import { ReceiveWindow } from './receive-window.ts'
import { Receiver } from './receiver.ts'
import { Sender, type SenderHost } from './sender.ts'
import type { Http2Stream } from './stream.ts'
import { ConnectionStreams, type StreamsHost } from './streams.ts'

/** Moves the bytes: src/gateway/io/socket/engine-socket.ts. */
export interface ConnectionDriver {
  /** There is output: call `takeOutput` soon. Not repeated until then. */
  onOutput(): void
  /** The connection is done: send what `takeOutput` still returns, then close the socket. */
  onClosed(code: number, message: string): void
}

/** The interface of a connection for its parts. */
interface Host extends ControlHost, DeadlinesHost, GoawayHost, HeaderHost, SenderHost, SettingsHost, StreamsHost {}

const { NO_ERROR, PROTOCOL_ERROR, ENHANCE_YOUR_CALM, INTERNAL_ERROR } = frame

export abstract class Connection implements Host {
  protected readonly limits: Http2Limits
  protected readonly counters: Http2Counters
  protected readonly driver: ConnectionDriver
  protected readonly decoder: HpackDecoder
  protected readonly sender: Sender
  protected readonly streams: ConnectionStreams
  protected readonly window: ReceiveWindow
  protected readonly settings: PeerSettings
  protected readonly goaway: Goaway
  readonly #receiver: Receiver
  readonly #deadlines: Deadlines
  readonly #resets: Budget
  /** Input is ignored, and no more output is produced. */
  protected over = false
  /** Time of the driver's last call. */
  nowMs: number
  /** Server side only: a client's peer opens no streams. */
  lastPeerStream = 0

  /** @param head grants memory for heads that span several frames. Default: unlimited */
  constructor(
    limits: Http2Limits,
    counters: Http2Counters,
    driver: ConnectionDriver,
    preface: string,
    nowMs: number,
    head?: HeadMemory,
  ) {
    const budgets = new PeerBudgets(nowMs)
    const sender = new Sender(this, budgets.windowUpdates)
    const window = new ReceiveWindow(this, sender, limits)
    const streams = new ConnectionStreams(this, sender, window, limits, counters)
    const settings = new PeerSettings(this, sender, streams.open, budgets.settings)
    const goaway = new Goaway(this, sender, counters)
    const decoder = new HpackDecoder(limits.headerTableBytes)
    const parts = {
      settings,
      headers: new HeaderFrames(this, decoder, counters, budgets.emptyFrames, limits, head),
      data: new DataFrames(this, streams, window, budgets.emptyFrames),
      control: new ControlFrames(this, sender, streams, goaway, budgets, counters),
    }
    this.limits = limits
    this.counters = counters
    this.driver = driver
    this.decoder = decoder
    this.sender = sender
    this.streams = streams
    this.window = window
    this.settings = settings
    this.goaway = goaway
    this.#receiver = new Receiver(this, parts, budgets.ignored, limits.maxFrameBytes, preface)
    this.#deadlines = new Deadlines(this, limits, counters, settings, sender, nowMs)
    this.#resets = budgets.resets
    this.nowMs = nowMs
    counters.connectionsOpened++
  }

  get openStreams(): number {
    return this.streams.open.size
  }

  get takenStreams(): number {
    return this.streams.open.size
  }

  get closed(): boolean {
    return this.over
  }

  get hasOutput(): boolean {
    return this.sender.hasOutput
  }

  // === for the driver ===

  /**
   * Bytes from the peer, starting at `from`. `onBody` passes on parts of `chunk`, whose memory may be reused afterwards. Never throws.
   * @param pace may interrupt between two frames. Default: never
   * @returns how far it got; the rest has to be received before anything else
   */
  receive(chunk: Buffer, nowMs: number, from: number = 0, pace: Pace = WITHOUT_PAUSE): number {
    if (this.over) return chunk.length
    this.nowMs = nowMs
    this.#deadlines.lastReceivedMs = nowMs
    const at = this.#receiver.read(chunk, from, nowMs, pace)
    if (this.sender.bytes > this.limits.maxBacklogBytes && !this.over) this.abuse('slowRead')
    return at
  }

  /**
   * The next output, in order; false = none. Heads and control frames first, then about `budget` bytes of
   * bodies, a frame of each stream in turn. The memory is the reader's until `releaseOutput`.
   */
  takeOutput(budget: number, into: Buffer[]): boolean {
    if (!this.over) this.sender.fill(budget)
    return this.sender.take(into)
  }

  releaseOutput(): void {
    this.sender.release()
  }

  /** Checks deadlines; call it about every second. */
  tick(nowMs: number): void {
    if (this.over) return
    this.nowMs = nowMs
    this.#deadlines.tick(nowMs)
    this.goaway.tick(nowMs)
  }

  /** No new streams; open ones finish. False: it was called before, or the connection is over. */
  drain(nowMs: number): boolean {
    if (this.over || this.goaway.state !== 'no') return false
    this.nowMs = nowMs
    this.goaway.begin(nowMs)
    return true
  }

  /** Ends the connection with GOAWAY; every open stream gets onReset. */
  destroy(code: number): void {
    this.end(code, code === NO_ERROR ? '' : 'ended by the gateway')
  }

  /** The socket has closed: nothing more can be sent. */
  onSocketClosed(): void {
    if (!this.over) this.#close(INTERNAL_ERROR, 'connection lost')
  }

  // === what differs between the sides ===

  /** SETTINGS and the window of the connection: the first frames of each side. */
  protected sendSettings(pairs: readonly number[]): void {
    this.sender.settings(pairs)
    const more = this.window.bytes - frame.DEFAULT_WINDOW_BYTES
    if (more > 0) this.sender.windowUpdate(0, more)
  }

  /** After a body (RFC 9113 section 8.1): no pseudo-header fields, and END_STREAM. */
  protected onTrailers(stream: Http2Stream, end: boolean, outcome: number): void {
    if (!end || outcome !== DECODED || this.decoder.pseudoCount > 0) {
      this.blame(stream, PROTOCOL_ERROR)
      return
    }
    if (!this.streams.lengthFits(stream)) return
    stream.remoteEnded = true
    stream.events.onTrailers(this.decoder.fields)
    this.streams.afterRemoteEnd(stream)
  }

  // === for the parts of a connection: their host interfaces ===

  abstract readonly isServer: boolean
  abstract isIdle(id: number): boolean
  abstract onHead(id: number, end: boolean, outcome: number): void
  abstract onPeerSettings(): void
  abstract onPeerGoaway(lastStream: number, code: number): void
  /** The connection is over, and its open streams are about to be notified. */
  protected onEnding(_code: number): void {
    // A client learns it from its socket.
  }

  abstract onStreamGone(stream: Http2Stream, byUs: boolean): void

  onPingAnswered(payload: number): void {
    this.goaway.onPingAnswered(payload)
  }

  onResetByUs(_stream: Http2Stream): void {
    // A client gets RST_STREAM, and need not do anything.
  }

  get heldSinceMs(): number {
    return this.#receiver.heldSinceMs
  }

  onBytes(): void {
    this.driver.onOutput()
  }

  onEndSent(stream: Http2Stream): void {
    this.streams.afterLocalEnd(stream)
  }

  onLocalEnd(_stream: Http2Stream): void {
    // A client waits for the response; the server side overrides this.
  }

  onRemoteEnd(_stream: Http2Stream): void {
    // A server still has to respond; the client side overrides this.
  }

  fail(code: number, message: string): void {
    if (this.over) return
    this.counters.protocolErrors++
    this.end(code, message)
  }

  abuse(kind: AbuseKind, why = ''): void {
    if (this.over) return
    this.counters[kind]++
    this.end(ENHANCE_YOUR_CALM, kind, why)
  }

  blame(stream: Http2Stream, code: number): void {
    const { events } = stream
    this.streams.sendReset(stream.id, code)
    this.streams.kill(stream, true)
    this.#countBlame()
    events.onReset('protocol')
    this.closeIfIdle()
  }

  blameGone(id: number, code: number): void {
    this.streams.sendReset(id, code)
    this.#countBlame()
  }

  /** Only for clients: an upstream that resets streams causes no work that we have not asked for. */
  #countBlame(): void {
    if (this.isServer && !this.#resets.take(this.nowMs)) this.abuse('madeYouReset')
  }

  /** Closes cleanly when the connection is no longer needed. */
  closeIfIdle(): void {
    if (this.over || this.streams.open.size > 0) return
    if (this.goaway.state === 'final' || this.goaway.received) this.end(NO_ERROR, '')
  }

  /** The stream of the current frame, or the last one. */
  protected get receivingStream(): number {
    return this.#receiver.stream
  }

  /** @param why debug data for the peer. Default: none */
  end(code: number, message: string, why = ''): void {
    if (this.over) return
    this.goaway.end(code, why)
    this.#close(code, message)
  }

  #close(code: number, message: string): void {
    this.over = true
    this.counters.connectionsClosed++
    this.#receiver.stop()
    this.onEnding(code)
    this.streams.loseAll()
    this.driver.onClosed(code, message)
  }
}
