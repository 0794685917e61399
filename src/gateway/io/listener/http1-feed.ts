// Feeds node:http's parser piece by piece within the thread's time slices: a single read may contain hundreds of pipelined requests, or thousands of
// small body chunks, and the parser processes everything it is given.

import type { Socket } from 'node:net'
import type { Charge } from '../../../kit/api/stream.ts'
import type { Refusal } from '../../../kit/core/refusal/refusal.ts'
import { AT, beginStep, endStep } from '../../../kit/io/stalls/steps.ts'
import type { Account, Waiter } from '../../core/thread-time/accounts.ts'
import { threadScheduler } from '../scheduling/thread-scheduler.ts'
import type { Http1OpenHead } from './http1-open-head.ts'

/** Bytes passed to the parser at once: initially a handful of requests, more while they are cheap. */
const FIRST_PIECE = 512
const LEAST_PIECE = 128
const LARGEST_PIECE = 64 * 1024
/** Target milliseconds per piece: above it the next piece is smaller, below half of it larger. */
const PIECE_MS = 0.1
/** Within a large head, smaller pieces are passed only at a line end: each call takes time proportional to all of the field so far. */
const LEAST_LARGE_BYTES = 4096
const LINE_FEED = 0x0a
const NOTHING = Buffer.alloc(0)

/** Accounts for what the parser keeps. */
interface CountedHead {
  readonly head: Http1OpenHead
  /** Out of memory for it: the connection must end. */
  onNoRoom(refusal: Refusal): void
}

export class Http1Feed implements Waiter {
  readonly #socket: Socket
  readonly #payer: { readonly charge: Charge }
  readonly #parse: (chunk: Buffer) => void
  /** Bytes read but waiting: about as much as the socket reads ahead. */
  #kept: Buffer[] = []
  #piece = FIRST_PIECE
  /** Bytes of a large head read since, waiting for more. */
  #few: Buffer = NOTHING
  #fewBytes = 0
  /** node:http has paused reading: its responses, or a body, are waiting for a consumer. */
  #held = false
  #inQueue = false
  #over = false
  #account: Account | undefined
  #charged: Charge | undefined
  readonly #counted: CountedHead | undefined

  /**
   * @param socket one that node:http has just taken over
   * @param counted default: the parser's memory is not counted
   */
  constructor(socket: Socket, payer: { readonly charge: Charge }, counted?: CountedHead) {
    this.#socket = socket
    this.#payer = payer
    this.#counted = counted
    const listeners = socket.listeners('data')
    this.#parse = (chunk) => {
      for (const listener of listeners) Reflect.apply(listener, socket, [chunk])
    }
    for (const listener of listeners) socket.off('data', listener as () => void)
    // This also detaches the handle from the parser, which otherwise reads by itself.
    socket.on('data', this.#onData)
    socket.once('close', () => {
      this.end()
      counted?.head.end()
    })
    // node:http resumes when a response is sent or a body was read; delay that until it is this user's turn.
    const [pause, resume] = [socket.pause, socket.resume]
    Object.assign(socket, {
      pause: (): Socket => {
        this.#held = true
        return Reflect.apply(pause, socket, [])
      },
      resume: (): Socket => {
        this.#held = false
        if (this.#kept.length === 0) return Reflect.apply(resume, socket, [])
        this.#enqueue()
        return socket
      },
    })
  }

  /** Not everything read has reached the parser. */
  get isWaiting(): boolean {
    return this.#kept.length > 0 || this.#fewBytes > 0
  }

  /** Stops feeding the parser. @returns the remaining bytes, for the next owner of the socket */
  end(): Buffer {
    if (this.#over) return NOTHING
    this.#over = true
    this.#socket.off('data', this.#onData)
    Reflect.deleteProperty(this.#socket, 'pause')
    Reflect.deleteProperty(this.#socket, 'resume')
    const rest = Buffer.concat(this.#kept)
    this.#kept = []
    this.#few = NOTHING
    this.#fewBytes = 0
    threadScheduler.keptBytes -= rest.length
    return rest
  }

  readonly #onData = (read: Buffer): void => {
    const chunk = this.#gather(read)
    if (chunk === undefined) return
    this.#kept.push(chunk)
    threadScheduler.keptBytes += chunk.length
    if (this.#kept.length === 1 && !this.#held) {
      const nowMs = performance.now()
      if (threadScheduler.begin(this.#accountNow(nowMs), nowMs)) {
        const endMs = this.#parseKept(nowMs, threadScheduler.untilMs)
        threadScheduler.charge(this.#accountNow(endMs), nowMs, endMs)
      }
    }
    if (this.#kept.length === 0) return
    // Reads ahead as little as possible, without node:http knowing.
    Object.getPrototypeOf(this.#socket).pause.call(this.#socket)
    if (!this.#held) this.#enqueue()
  }

  /** undefined = too little to pass to the parser. */
  #gather(read: Buffer): Buffer | undefined {
    if (this.#fewBytes === 0 && (this.#counted?.head.isInLarge !== true || this.#kept.length > 0)) return read
    const bytes = this.#fewBytes + read.length
    if (bytes > LEAST_LARGE_BYTES || read.includes(LINE_FEED)) {
      const all = this.#fewBytes === 0 ? read : Buffer.concat([this.#few.subarray(0, this.#fewBytes), read])
      this.#fewBytes = 0
      return all
    }
    if (this.#few.length === 0) this.#few = Buffer.allocUnsafeSlow(LEAST_LARGE_BYTES)
    read.copy(this.#few, this.#fewBytes)
    this.#fewBytes = bytes
    return undefined
  }

  #enqueue(): void {
    if (this.#inQueue) return
    this.#inQueue = true
    threadScheduler.wait(this.#accountNow(performance.now()), this)
  }

  /** Called by the thread's scheduler. */
  work(untilMs: number): boolean {
    if (!this.#held) this.#parseKept(performance.now(), untilMs)
    if (this.#kept.length > 0 && !this.#held) return true
    this.#inQueue = false
    if (this.#kept.length === 0 && !this.#held && !this.#over) this.#socket.resume()
    return false
  }

  /** Parses at least one piece. @returns when it ended */
  #parseKept(startMs: number, untilMs: number): number {
    let nowMs = startMs
    while (this.#kept.length > 0 && !this.#held) {
      const piece = this.#take()
      beginStep(AT.http1, nowMs)
      this.#parse(piece)
      this.#count(piece)
      const sinceMs = nowMs
      nowMs = performance.now()
      endStep(nowMs)
      const ms = nowMs - sinceMs
      if (ms > PIECE_MS) this.#piece = Math.max(LEAST_PIECE, this.#piece >> 1)
      else if (ms < PIECE_MS / 2) this.#piece = Math.min(LARGEST_PIECE, this.#piece << 1)
      if (nowMs >= untilMs) break
    }
    return nowMs
  }

  #count(piece: Buffer): void {
    const counted = this.#counted
    // After a connection is closed for what it sent, the parser keeps its data until the end.
    if (counted === undefined || this.#over) return
    const refusal = counted.head.onParsed(piece)
    if (refusal !== undefined) counted.onNoRoom(refusal)
  }

  #take(): Buffer {
    const first = this.#kept[0] ?? NOTHING
    const least = this.#counted?.head.isInLarge === true ? LEAST_LARGE_BYTES : LEAST_PIECE
    const piece = first.subarray(0, Math.max(least, this.#piece))
    threadScheduler.keptBytes -= piece.length
    if (piece.length === first.length) this.#kept.shift()
    else this.#kept[0] = first.subarray(piece.length)
    return piece
  }

  #accountNow(nowMs: number): Account {
    const { charge } = this.#payer
    const account = this.#account
    if (account?.open === true && charge === this.#charged) return account
    this.#charged = charge
    this.#account = threadScheduler.accountOf(charge, nowMs)
    return this.#account
  }
}
