// Drives an HTTP/2 connection over a socket: bytes in, bytes out, and closing. Everything that was read in one turn of the
// event loop is answered in one write for each connection; at most one write is under way, so a peer that does not read leaves
// its data in the engine, where `Stream.queued` counts it.

import type { Duplex } from 'node:stream'
import type { Connection, ConnectionDriver } from '../../http2/connection.ts'
import type { Http2Counters } from '../../http2/counters.ts'
import { AT, beginStep, endStep } from '../stalls/steps.ts'
import { addTickable, removeTickable, type Tickable } from '../world/coarse-ticker.ts'
import { listenSharedRead } from './shared-read.ts'
import { LINGER_BYTES } from './socket-close.ts'

/** Bytes of DATA taken from the engine for one write: more would only wait in the kernel, less costs system calls. */
const WRITE_BYTES = 128 * 1024
/** The same while much is under way in the thread: thousands of clients that read slowly would have as many large writes. */
const SHORT_WRITE_BYTES = 16 * 1024
/** Bytes of all writes of a thread that are under way; above it they are short. */
const MANY_BYTES = 16 * 1024 * 1024
/** A peer that has not read a write by then is dead: less than 2 KiB/s is not reading. Peers pause streams by flow control. */
export const SLOW_READ_MS: number = 60_000
/** How long a connection that we have ended is still read, so that the peer receives our last frames (see socket-close.ts). */
const LINGER_MS = 1_000

/** Sockets with output, in order. Flushed once in each turn. */
let dirty: Http2Socket[] = []
let spare: Http2Socket[] = []
/** Bytes of all writes that are under way. */
let underway = 0
/** Number of turns in which something was written: a cheap clock for what is recent. */
let turn = 0
/** Chunks that HTTP/2 connections of this thread have received. */
let reads = 0

/** Grows with whatever clients and endpoints send over HTTP/2: shows that others than oneself have the thread to do something. */
export function socketReads(): number {
  return reads
}

function flushDirty(): void {
  const batch = dirty
  dirty = spare
  turn++
  beginStep(AT.write, performance.now())
  for (let i = 0; i < batch.length; i++) batch[i]?.flush()
  endStep(performance.now())
  batch.length = 0
  spare = batch
}

/** Listener for the end of a connection. */
export interface Http2SocketEvents {
  /**
   * The connection is closed and its streams were notified. Called once.
   * @param message '' for a clean end, else the reason: an error code of RFC 9113 section 7, or the error of the socket
   */
  onClosed(code: number, message: string): void
  /** The socket has taken a write; more may wait. */
  onWritten(): void
}

export class Http2Socket implements ConnectionDriver, Tickable {
  readonly #socket: Duplex
  readonly #counters: Http2Counters
  readonly #events: Http2SocketEvents
  #connection: Connection | undefined
  /** Reused for the pieces of each write. */
  readonly #parts: Buffer[] = []
  readonly #onWritten: (error?: Error | null) => void
  #step = AT.http2
  #dirty = false
  #writing = false
  /** Bytes of the write under way. */
  #writingBytes = 0
  /** Number of writes so far, and what it was when `#stuckSinceMs` was set. */
  #writes = 0
  #writesSeen = 0
  #stuckSinceMs = 0
  /** The engine is done. */
  #closed = false
  #ended = false
  /** When closing began. */
  #endingSinceMs = 0
  /** Bytes that came behind the end. */
  #discarded = 0
  /** The peer caused the close: unwritten data is not waited for. */
  #hasty = false
  #error = ''
  #recentBytes = 0
  #recentTurn = 0

  constructor(socket: Duplex, counters: Http2Counters, events: Http2SocketEvents) {
    this.#socket = socket
    this.#counters = counters
    this.#events = events
    this.#onWritten = () => this.#written()
  }

  /** Joins the two. Not in the constructor, because a connection is created with its driver, and writes at once. */
  start(connection: Connection): void {
    this.#connection = connection
    this.#step = connection.isServer ? AT.http2 : AT.upstream
    const socket = this.#socket
    const receive = (chunk: Buffer): void => this.#receive(chunk)
    if (!listenSharedRead(socket, receive)) socket.on('data', receive)
    socket.on('error', (error: Error) => {
      this.#error = error.message
    })
    // A peer that has sent FIN cannot receive anything more: HTTP/2 has no half-closed connections.
    socket.on('end', () => this.#onSocketClose())
    socket.on('close', () => {
      // A write that is cut off need not be reported.
      underway -= this.#writingBytes
      this.#writingBytes = 0
      this.#onSocketClose()
      removeTickable(this)
    })
    addTickable(this)
  }

  /** Recently received bytes, halved with each turn: shows which connection carries a bulk transfer now. */
  get recentBytes(): number {
    const turns = turn - this.#recentTurn
    return turns > 30 ? 0 : this.#recentBytes >> turns
  }

  #receive(chunk: Buffer): void {
    reads++
    if (this.#closed) {
      this.#discarded += chunk.length
      if (this.#discarded > LINGER_BYTES) this.#socket.pause()
      return
    }
    this.#recentBytes = this.recentBytes + chunk.length
    this.#recentTurn = turn
    const nowMs = performance.now()
    beginStep(this.#step, nowMs)
    this.#connection?.receive(chunk, nowMs)
    endStep(performance.now())
  }

  // === called by the engine ===

  onOutput(): void {
    if (this.#dirty) return
    this.#dirty = true
    if (dirty.push(this) === 1) setImmediate(flushDirty)
  }

  onClosed(code: number, message: string): void {
    if (this.#closed) return
    this.#closed = true
    this.#hasty = code !== 0
    this.onOutput()
    this.#events.onClosed(code, message)
  }

  // === writing ===

  /** Called once in a turn when there is output; not while a write is under way. */
  flush(): void {
    const connection = this.#connection
    const socket = this.#socket
    const parts = this.#parts
    const able = !this.#writing && connection !== undefined && !socket.destroyed && !this.#ended
    // Still marked dirty: output that appears while the engine gathers it is included.
    const some = able && connection.takeOutput(underway > MANY_BYTES ? SHORT_WRITE_BYTES : WRITE_BYTES, parts)
    this.#dirty = false
    if (!some) {
      if (able && this.#closed) this.#end()
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

  /** The socket has finished a write, or failed: then 'close' follows. */
  #written(): void {
    this.#writing = false
    underway -= this.#writingBytes
    this.#writingBytes = 0
    const connection = this.#connection
    if (connection === undefined) return
    connection.releaseOutput()
    if (this.#closed || connection.hasOutput) this.onOutput()
    this.#events.onWritten()
  }

  // === closing ===

  /** After the last byte: the peer may still read what is under way. */
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

  /** Closes at once: GOAWAY if it still fits, every stream is reset. */
  destroy(code: number): void {
    this.#connection?.destroy(code)
    this.flush()
    this.#end()
    this.#socket.destroy()
  }

  tick(nowMs: number): void {
    if (!this.#closed) this.#connection?.tick(nowMs)
    if (this.#ended || this.#hasty) {
      if (this.#endingSinceMs === 0) this.#endingSinceMs = nowMs
      else if (nowMs - this.#endingSinceMs >= LINGER_MS) this.#socket.destroy()
      return
    }
    if (!this.#writing || this.#writes !== this.#writesSeen) {
      this.#writesSeen = this.#writes
      this.#stuckSinceMs = nowMs
    } else if (nowMs - this.#stuckSinceMs >= SLOW_READ_MS) {
      this.#counters.slowRead++
      this.#socket.destroy(new Error('the peer does not read'))
    }
  }
}

function sizeOf(parts: readonly Buffer[]): number {
  let size = 0
  for (let i = 0; i < parts.length; i++) size += parts[i]?.length ?? 0
  return size
}
