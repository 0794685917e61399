// Feeds node:http's parser, which the admin listener uses, piece by piece within the thread's time slices: a single read may contain hundreds of pipelined
// requests, or thousands of small body chunks, and the parser processes everything it is given.

import type { Socket } from 'node:net'
import type { Charge } from '../../../../kit/api/stream.ts'
import { AT, beginStep, endStep } from '../../../../kit/io/stalls/steps.ts'
import type { Account, Waiter } from '../../../core/thread-time/accounts.ts'
import { threadScheduler } from '../../scheduling/thread-scheduler.ts'

/** Bytes passed to the parser at once: initially a handful of requests, more while they are cheap. */
const FIRST_PIECE = 512
const LEAST_PIECE = 128
const LARGEST_PIECE = 64 * 1024
/** Target milliseconds per piece: above it the next piece is smaller, below half of it larger. */
const PIECE_MS = 0.1
const NOTHING = Buffer.alloc(0)

export class Http1Feed implements Waiter {
  readonly #socket: Socket
  readonly #payer: { readonly charge: Charge }
  readonly #parse: (chunk: Buffer) => void
  /** Bytes read but waiting: about as much as the socket reads ahead. */
  #kept: Buffer[] = []
  #piece = FIRST_PIECE
  /** node:http has paused reading: its responses, or a body, are waiting for a consumer. */
  #held = false
  #inQueue = false
  #over = false
  #account: Account | undefined
  #charged: Charge | undefined

  /** @param socket one that node:http has just taken over */
  constructor(socket: Socket, payer: { readonly charge: Charge }) {
    this.#socket = socket
    this.#payer = payer
    const listeners = socket.listeners('data')
    this.#parse = (chunk) => {
      for (const listener of listeners) Reflect.apply(listener, socket, [chunk])
    }
    for (const listener of listeners) socket.off('data', listener as () => void)
    // This also detaches the handle from the parser, which otherwise reads by itself.
    socket.on('data', this.#onData)
    socket.once('close', () => this.end())
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

  /** Stops feeding the parser: the rest is discarded. */
  end(): void {
    if (this.#over) return
    this.#over = true
    this.#socket.off('data', this.#onData)
    Reflect.deleteProperty(this.#socket, 'pause')
    Reflect.deleteProperty(this.#socket, 'resume')
    for (const chunk of this.#kept.splice(0)) threadScheduler.keptBytes -= chunk.length
  }

  readonly #onData = (chunk: Buffer): void => {
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

  #take(): Buffer {
    const first = this.#kept[0] ?? NOTHING
    const piece = first.subarray(0, this.#piece)
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
