// Drives an HTTP/2 connection over a socket: bytes in, bytes out, and closing. Everything that was read in one turn of the
// event loop is answered in one write for each connection; at most one write is under way, so a peer that does not read leaves
// its data in the engine, where `Stream.queued` counts it.

import type { Duplex } from 'node:stream'
import type { Connection, ConnectionDriver } from '../../../http2/connection.ts'
import type { Http2Counters } from '../../../http2/counters.ts'
import type { Charge } from '../../../kit/api/stream.ts'
import { AT, beginStep, endStep } from '../../../kit/io/stalls/steps.ts'
import { addTickable, removeTickable, type Tickable } from '../../../kit/io/world/coarse-ticker.ts'
import type { Account, Waiter } from '../../core/thread-time/accounts.ts'
import { Fifo } from '../../core/thread-time/fifo.ts'
import { turns } from '../turns/thread-turns.ts'
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
const NOTHING = Buffer.alloc(0)

/** Sockets with output, in order: of those within their part of the thread's time, and of others. */
const dirty = new Fifo<Http2Socket>()
const dirtyOver = new Fifo<Http2Socket>()
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

/** At least one of each list; what becomes dirty meanwhile is for the next turn. */
function flushDirty(startMs: number, untilMs: number): boolean {
  if (dirty.length === 0 && dirtyOver.length === 0) return false
  turn++
  beginStep(AT.write, startMs)
  let nowMs = flushSome(dirty, untilMs, startMs)
  nowMs = flushSome(dirtyOver, untilMs, nowMs)
  endStep(nowMs)
  return dirty.length > 0 || dirtyOver.length > 0
}

function flushSome(sockets: Fifo<Http2Socket>, untilMs: number, startMs: number): number {
  let nowMs = startMs
  for (let left = sockets.length; left > 0; left--) {
    const socket = sockets.shift()
    if (socket === undefined) break
    socket.flush()
    const sinceMs = nowMs
    nowMs = performance.now()
    socket.written(sinceMs, nowMs)
    if (nowMs >= untilMs) break
  }
  return nowMs
}

turns.setOutputs({ flush: flushDirty })

/** Whose connection it is, as far as it is known by now. */
export interface Payer {
  readonly charge: Charge
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

export class Http2Socket implements ConnectionDriver, Tickable, Waiter {
  readonly #socket: Duplex
  readonly #counters: Http2Counters
  readonly #events: Http2SocketEvents
  #connection: Connection | undefined
  /** Reused for the pieces of each write. */
  readonly #parts: Buffer[] = []
  readonly #onWritten: (error?: Error | null) => void
  #step = AT.http2
  readonly #payer: Payer | undefined
  readonly #isBulk: boolean
  /** Of the payer, and for which charge. */
  #account: Account | undefined
  #charged: Charge | undefined
  /** What it has cost while the payer was not known, milliseconds. */
  #unknownMs = 0
  /** What was read and waits; the socket is paused then. */
  readonly #kept: Buffer[] = []
  /** What is read is overwritten by the next read. */
  #isShared = false
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

  /**
   * @param payer who is charged for what it costs; default: nobody, what is read is charged answer by answer
   * @param isBulk what is read waits behind what others of nobody's have read
   */
  constructor(socket: Duplex, counters: Http2Counters, events: Http2SocketEvents, payer?: Payer, isBulk = false) {
    this.#payer = payer
    this.#isBulk = isBulk
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
    this.#isShared = listenSharedRead(socket, receive)
    if (!this.#isShared) socket.on('data', receive)
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
    if (this.#kept.length > 0) {
      this.#keep(chunk, 0)
      return
    }
    const nowMs = performance.now()
    const payer = this.#payer
    const begun =
      payer === undefined ? turns.beginShared(nowMs, this.#isBulk) : turns.begin(this.#accountOf(payer, nowMs), nowMs)
    const at = begun ? this.#read(chunk, 0, nowMs) : 0
    if (begun) {
      const endMs = performance.now()
      endStep(endMs)
      if (payer === undefined) turns.sharedDone(nowMs, endMs)
      else this.#charge(payer, nowMs, endMs)
    }
    if (at === chunk.length || this.#closed) return
    this.#keep(chunk, at)
    this.#socket.pause()
    if (payer === undefined) turns.waitShared(this, this.#isBulk)
    else turns.wait(this.#accountOf(payer, nowMs), this)
  }

  #read(chunk: Buffer, from: number, nowMs: number): number {
    beginStep(this.#step, nowMs)
    return this.#connection?.receive(chunk, nowMs, from, turns) ?? chunk.length
  }

  /** Of what is kept the socket reads no more than it has in hand. */
  #keep(chunk: Buffer, from: number): void {
    const rest = chunk.subarray(from)
    this.#kept.push(this.#isShared ? Buffer.from(rest) : rest)
    turns.keptBytes += rest.length
  }

  /** Reads what was kept; called by the thread's turns. */
  work(untilMs: number): boolean {
    const kept = this.#kept
    const nowMs = performance.now()
    turns.resumeSlice(nowMs, untilMs)
    while (kept.length > 0) {
      const chunk = kept[0] ?? NOTHING
      const at = this.#closed ? chunk.length : this.#read(chunk, 0, nowMs)
      turns.keptBytes -= at
      if (at < chunk.length) {
        kept[0] = chunk.subarray(at)
        break
      }
      kept.shift()
    }
    const endMs = performance.now()
    endStep(endMs)
    if (this.#payer === undefined) turns.sharedDone(nowMs, endMs)
    if (kept.length > 0) return true
    if (!this.#socket.destroyed && this.#discarded <= LINGER_BYTES) this.#socket.resume()
    return false
  }

  #accountOf(payer: Payer, nowMs: number): Account {
    const account = this.#account
    if (account?.open === true && payer.charge === this.#charged) return account
    this.#charged = payer.charge
    const found = turns.accountOf(payer.charge, nowMs)
    this.#account = found
    if (this.#unknownMs > 0 && found.known) {
      if (account !== undefined) turns.move(account, found, this.#unknownMs, nowMs)
      this.#unknownMs = 0
    }
    return found
  }

  #charge(payer: Payer, sinceMs: number, nowMs: number): void {
    const account = this.#accountOf(payer, nowMs)
    if (!account.known) this.#unknownMs += nowMs - sinceMs
    turns.charge(account, sinceMs, nowMs)
  }

  /** Output was written in this time. */
  written(sinceMs: number, nowMs: number): void {
    const payer = this.#payer
    if (payer !== undefined) this.#charge(payer, sinceMs, nowMs)
  }

  // === called by the engine ===

  onOutput(): void {
    if (this.#dirty) return
    this.#dirty = true
    if (this.#account?.over === true) dirtyOver.push(this)
    else dirty.push(this)
    turns.schedule()
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
