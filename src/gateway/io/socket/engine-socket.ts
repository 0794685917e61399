// Drives a connection over HTTP/2 or HTTP/1.1 on a socket: bytes in, bytes out, and closing. Everything read in one turn of the event
// loop is answered in one write per connection; at most one write is pending, so a peer that does not read leaves its data in the engine, where
// `Stream.queued` counts it.

import type { Duplex } from 'node:stream'
import type { ConnectionDriver } from '../../../http2/connection.ts'
import type { Http2Counters } from '../../../http2/counters.ts'
import type { Pace } from '../../../http2/frame-reader.ts'
import { AT, beginStep, endStep } from '../../../kit/io/stalls/steps.ts'
import { addTickable, removeTickable, type Tickable } from '../../../kit/io/world/coarse-ticker.ts'
import type { Waiter } from '../../core/thread-time/accounts.ts'
import { threadScheduler } from '../scheduling/thread-scheduler.ts'
import { KeptInput } from './kept-input.ts'
import { type Payer, PayingAccount } from './paying-account.ts'
import { endSharedRead, listenSharedRead } from './shared-read.ts'
import { LINGER_BYTES } from './socket-close.ts'
import { type TurnOutput, writeAtTurnEnd, writingTurns } from './turn-outputs.ts'

/** DATA bytes taken from the engine per write: more would only wait in the kernel, less costs system calls. */
const WRITE_BYTES = 128 * 1024
/** The same while the thread has many bytes pending: otherwise thousands of slow readers would each have a large write. */
const SHORT_WRITE_BYTES = 16 * 1024
/** Pending write bytes of a thread above which writes are short. */
const MANY_BYTES = 16 * 1024 * 1024
/** A peer that has not read a write by then is dead: less than 2 KiB/s is not reading. Peers pause streams by flow control. */
export const SLOW_READ_MS: number = 60_000
/** How long we read on after closing a connection, so that the peer receives our last frames (see socket-close.ts). */
const LINGER_MS = 1_000

/** Bytes of all pending writes. */
let underway = 0
/** Chunks received by connections of this thread. */
let reads = 0

/** Grows with all input from clients and endpoints: tells whether the thread has other work. */
export function socketReads(): number {
  return reads
}

/** A connection without I/O: src/http2/connection.ts has the meaning of its methods. */
export interface SocketEngine {
  receive(chunk: Buffer, nowMs: number, from: number, pace: Pace): number
  takeOutput(budget: number, into: Buffer[]): boolean
  releaseOutput(): void
  readonly hasOutput: boolean
  onSocketClosed(): void
  destroy(code: number): void
  tick(nowMs: number): void
  /** Takes no input until it calls `goOn`; HTTP/2 has windows instead. Default: false */
  readonly held?: boolean
  /** Input that waits when the peer has closed is read all the same: HTTP/1.1 may end so. Default: false */
  readonly readsToEnd?: boolean
}

interface EngineSocketOptions {
  /** Counts peers that do not read, whose connections end. Default: a peer may pause, as only HTTP/1.1, without windows, needs it. */
  readonly counters?: Http2Counters
  /** Who is charged for its cost. Default: none, input is charged response by response. */
  readonly payer?: Payer
  /** Its input waits behind that of other connections without a payer. Default: false */
  readonly isBulk?: boolean
}

/** Listener for the end of a connection. */
export interface EngineSocketEvents {
  /**
   * The connection is closed and its streams were notified. Called once.
   * @param message '' for a clean end, else the reason: an error code of RFC 9113 section 7, or the socket's error
   */
  onClosed(code: number, message: string): void
  /** The socket has completed a write; more may be waiting. */
  onWritten(): void
}

export class EngineSocket implements ConnectionDriver, Tickable, TurnOutput, Waiter {
  readonly #socket: Duplex
  readonly #counters: Http2Counters | undefined
  readonly #events: EngineSocketEvents
  #connection: SocketEngine | undefined
  /** Reused for the buffers of each write. */
  readonly #parts: Buffer[] = []
  readonly #onWritten: (error?: Error | null) => void
  #step = AT.http2
  readonly #payer: PayingAccount | undefined
  readonly #isBulk: boolean
  /** The socket is paused meanwhile. */
  readonly #kept = new KeptInput()
  /** The socket is not read. */
  #isPaused = false
  /** It is among those whose input waits. */
  #isInTurn = false
  /** The socket was given away. */
  #isReleased = false
  /** Input is overwritten by the next read. */
  #isShared = false
  #isInputOver = false
  /** The socket is closed; what has come before may wait. */
  #isSocketClosed = false
  #dirty = false
  #writing = false
  /** Bytes of the pending write. */
  #writingBytes = 0
  /** Number of writes so far, and its value when `#stuckSinceMs` was set. */
  #writes = 0
  #writesSeen = 0
  #stuckSinceMs = 0
  /** The engine is done. */
  #closed = false
  /** It writes no more. */
  #ending = false
  #ended = false
  /** When closing began. */
  #endingSinceMs = 0
  /** Bytes received after the end. */
  #discarded = 0
  /** The peer caused the close: unwritten data is dropped. */
  #hasty = false
  #error = ''
  #recentBytes = 0
  #recentTurn = 0

  constructor(socket: Duplex, events: EngineSocketEvents, { counters, payer, isBulk = false }: EngineSocketOptions) {
    this.#payer = payer && new PayingAccount(payer)
    this.#isBulk = isBulk
    this.#socket = socket
    this.#counters = counters
    this.#events = events
    this.#onWritten = () => this.#written()
  }

  /** Connects the two: a connection is created with its driver, and writes at once. @param step what reading its input is (steps.ts) */
  start(connection: SocketEngine, step: number): void {
    this.#connection = connection
    this.#step = step
    const socket = this.#socket
    this.#isShared = listenSharedRead(socket, this.#onData)
    socket.on('error', (error: Error) => {
      this.#error = error.message
    })
    // A peer that has sent FIN counts as one that no longer receives: HTTP/2 has no half-closed connections.
    socket.on('end', this.#onEnd)
    socket.on('close', () => {
      // A write that is cut off may never be reported.
      underway -= this.#writingBytes
      this.#writingBytes = 0
      this.#isSocketClosed = true
      removeTickable(this)
      if (this.#hasMore) return
      this.#kept.clear()
      this.#onSocketClose()
    })
    addTickable(this)
  }

  /** Recently received bytes, halved each turn: identifies connections with a bulk transfer in progress. */
  get recentBytes(): number {
    const turns = writingTurns() - this.#recentTurn
    return turns > 30 ? 0 : this.#recentBytes >> turns
  }

  /** The peer sends no more; what it has sent may wait. */
  get isInputOver(): boolean {
    return this.#isInputOver
  }

  /** The socket's error has closed it. */
  get hasFailed(): boolean {
    return this.#error !== ''
  }

  /** Input of a peer that sends no more is to be read first. */
  get #hasMore(): boolean {
    return !this.#closed && !this.#kept.isEmpty && this.#connection?.readsToEnd === true
  }

  readonly #onEnd = (): void => {
    this.#isInputOver = true
    if (this.#hasMore) return
    // An answer that is complete in this turn.
    this.writeOut()
    this.#onSocketClose()
  }

  readonly #onData = (chunk: Buffer): void => {
    reads++
    if (this.#closed) {
      this.#discarded += chunk.length
      if (this.#discarded > LINGER_BYTES) this.#socket.pause()
      return
    }
    this.#recentBytes = this.recentBytes + chunk.length
    this.#recentTurn = writingTurns()
    if (!this.#kept.isEmpty || this.#isHeld) {
      this.#keep(chunk, 0)
      this.#pause()
      return
    }
    const nowMs = performance.now()
    const payer = this.#payer
    const begun =
      payer === undefined
        ? threadScheduler.beginShared(nowMs, this.#isBulk)
        : threadScheduler.begin(payer.account(nowMs), nowMs)
    const at = begun ? this.#read(chunk, 0, nowMs) : 0
    if (begun) {
      const endMs = performance.now()
      endStep(endMs)
      if (payer === undefined) threadScheduler.sharedDone(nowMs, endMs)
      else payer.paysFor(nowMs, endMs)
    }
    if (this.#closed || (at === chunk.length && !this.#isHeld)) return
    if (at < chunk.length) this.#keep(chunk, at)
    this.#pause()
    if (!this.#isHeld) this.#wait(nowMs)
  }

  #pause(): void {
    this.#isPaused = true
    this.#socket.pause()
  }

  #wait(nowMs: number): void {
    if (this.#isInTurn) return
    this.#isInTurn = true
    const payer = this.#payer
    if (payer === undefined) threadScheduler.waitShared(this, this.#isBulk)
    else threadScheduler.wait(payer.account(nowMs), this)
  }

  get #isHeld(): boolean {
    return this.#connection?.held === true
  }

  /** Input waits for its turn of the thread. */
  get isWaiting(): boolean {
    return !this.#kept.isEmpty
  }

  /** All output has been written, and the end behind it. */
  get isEnded(): boolean {
    return this.#ended
  }

  /** The engine takes input again. */
  goOn(): void {
    if (!this.#kept.isEmpty) this.#wait(performance.now())
    else if (!this.#isInTurn) this.#readOn()
  }

  #readOn(): void {
    this.#isPaused = false
    if (!this.#socket.destroyed && !this.#isReleased && this.#discarded <= LINGER_BYTES) this.#socket.resume()
  }

  #read(chunk: Buffer, from: number, nowMs: number): number {
    beginStep(this.#step, nowMs)
    return this.#connection?.receive(chunk, nowMs, from, threadScheduler) ?? chunk.length
  }

  /** While input is kept, the socket reads no more than it already has. */
  #keep(chunk: Buffer, from: number): void {
    const rest = chunk.subarray(from)
    this.#kept.add(this.#isShared ? Buffer.from(rest) : rest)
  }

  /** Processes kept input; called by the thread's scheduler. */
  work(untilMs: number): boolean {
    const kept = this.#kept
    const nowMs = performance.now()
    threadScheduler.resumeSlice(nowMs, untilMs)
    const read = (chunk: Buffer): number => (this.#closed ? chunk.length : this.#read(chunk, 0, nowMs))
    while (!kept.isEmpty && !this.#isHeld && kept.readFirst(read));
    const endMs = performance.now()
    endStep(endMs)
    if (this.#payer === undefined) threadScheduler.sharedDone(nowMs, endMs)
    this.#isInTurn = !kept.isEmpty && !this.#isHeld
    if (kept.isEmpty && (this.#isInputOver || this.#isSocketClosed)) this.#onSocketClose()
    else if (kept.isEmpty && !this.#isHeld) this.#readOn()
    return this.#isInTurn
  }

  /** Charges the time spent writing output. */
  written(sinceMs: number, nowMs: number): void {
    this.#payer?.paysFor(sinceMs, nowMs)
  }

  // === called by the engine ===

  onOutput(): void {
    if (this.#dirty) return
    this.#dirty = true
    writeAtTurnEnd(this, this.#payer?.isOver === true)
  }

  onClosed(code: number, message: string): void {
    if (this.#closed) return
    this.#closed = true
    this.#hasty = code !== 0
    if (this.#isSocketClosed) this.#kept.clear()
    this.onOutput()
    this.#events.onClosed(code, message)
  }

  // === writing ===

  /** Called once per turn if there is output and no pending write. */
  writeOut(): void {
    const connection = this.#connection
    const socket = this.#socket
    const parts = this.#parts
    const able = !this.#writing && connection !== undefined && !socket.destroyed && !this.#ended
    // Still marked dirty, so that output produced while gathering is included.
    const some = able && connection.takeOutput(underway > MANY_BYTES ? SHORT_WRITE_BYTES : WRITE_BYTES, parts)
    this.#dirty = false
    // The engine may have waited for room in its output.
    if (this.#isPaused && !this.#isHeld) this.goOn()
    if (!some) {
      if (able && (this.#closed || this.#ending)) this.#end()
      return
    }
    this.#writing = true
    this.#writes++
    this.#writingBytes = sizeOf(parts)
    underway += this.#writingBytes
    const last = parts.length - 1
    if (last === 0) socket.write(parts[0], this.#onWritten)
    else {
      socket.cork()
      for (let i = 0; i < last; i++) socket.write(parts[i])
      socket.write(parts[last], this.#onWritten)
      socket.uncork()
    }
    parts.length = 0
  }

  /** The socket has completed a write, or failed: then 'close' follows. */
  #written(): void {
    this.#writing = false
    underway -= this.#writingBytes
    this.#writingBytes = 0
    const connection = this.#connection
    if (connection === undefined) return
    connection.releaseOutput()
    if (this.#closed || this.#ending || connection.hasOutput) this.onOutput()
    this.#events.onWritten()
  }

  // === closing ===

  /** Closes for writing behind the output; input is still passed on. */
  endOutput(): void {
    this.#ending = true
    this.onOutput()
  }

  /** After the last byte: the peer may still read what is in transit. */
  #end(): void {
    if (this.#ended) return
    this.#ended = true
    this.#socket.end()
  }

  #onSocketClose(): void {
    if (this.#closed) return
    this.#closed = true
    this.#connection?.onSocketClosed()
    this.#end()
    this.#events.onClosed(0, this.#error === '' ? 'connection closed' : this.#error)
  }

  /** Closes at once: GOAWAY if it still fits; every stream is reset. */
  destroy(code: number): void {
    this.#connection?.destroy(code)
    this.writeOut()
    this.#end()
    this.#socket.destroy()
  }

  /** Closes at once, without TLS' close_notify: what was sent is not complete. */
  abort(): void {
    this.#ended = true
    this.#connection?.destroy(0)
    this.#socket.destroy()
  }

  /** Gives the socket away, behind all output. What was read, and not passed on, is its next input. */
  release(): void {
    const socket = this.#socket
    this.#isReleased = true
    this.#closed = true
    this.#ended = true
    removeTickable(this)
    this.#events.onClosed(0, '')
    socket.off('data', this.#onData)
    endSharedRead(socket)
    socket.off('end', this.#onEnd)
    this.#writeRest()
    const rest = this.#kept.take()
    // As before its first listener: it flows again when its new owner says so, and reports its end until then.
    Object.assign(socket, { readableFlowing: null })
    if (rest.length > 0) socket.unshift(rest)
  }

  /** Copied, because this driver no longer releases the memory of a write. */
  #writeRest(): void {
    const parts = this.#parts
    if (this.#connection?.takeOutput(WRITE_BYTES, parts) === true) this.#socket.write(Buffer.concat(parts))
    parts.length = 0
    if (!this.#writing) this.#connection?.releaseOutput()
  }

  tick(nowMs: number): void {
    if (!this.#closed) this.#connection?.tick(nowMs)
    if (this.#closed && (this.#ended || this.#hasty)) {
      if (this.#endingSinceMs === 0) this.#endingSinceMs = nowMs
      else if (nowMs - this.#endingSinceMs >= LINGER_MS) this.#socket.destroy()
      return
    }
    const counters = this.#counters
    if (counters === undefined) return
    if (!this.#writing || this.#writes !== this.#writesSeen) {
      this.#writesSeen = this.#writes
      this.#stuckSinceMs = nowMs
    } else if (nowMs - this.#stuckSinceMs >= SLOW_READ_MS) {
      counters.slowRead++
      this.#socket.destroy(new Error('the peer does not read'))
    }
  }
}

function sizeOf(parts: readonly Buffer[]): number {
  let size = 0
  for (let i = 0; i < parts.length; i++) size += parts[i]?.length ?? 0
  return size
}
