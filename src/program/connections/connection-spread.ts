// Gives every accepted connection to the gateway thread with the fewest: the kernel distributes them randomly over listening threads (SO_REUSEPORT),
// and very unevenly if threads share a listening socket.

import type { Socket } from 'node:net'
import type { MessagePort } from 'node:worker_threads'
import type { ConnectionPlace, ConnectionPlaces } from '../../gateway/state/connection-places.ts'
import { ThreadLine } from './thread-line.ts'

interface SpreadOptions {
  /** This thread. */
  readonly thread: number
  readonly places: ConnectionPlaces
  /** Serves a connection here. `listener`: the index of the accepting port's address. */
  serve(listener: number, socket: Socket): void
  /** Result of offering a connection to another thread. */
  onOffered(result: OfferResult): void
  /** This version of Node cannot pass sockets between threads: reported once. */
  onUnsupported(error: Error): void
}

/** After `unanswered` and `refused` the connection is offered to the next thread, or served by this one. */
export type OfferResult = 'passed' | 'unanswered' | 'refused'

/** How long a thread may make no progress before it answers an offer; the client waits meanwhile. */
const OFFER_MS = 250
/** This many times as long for a thread that makes progress: hundreds of clients may arrive at once, each with a handshake. */
const MOST_LOOKS = 8
/** Threads to which a connection is offered, one after the other. */
const MOST_OFFERS = 2

interface Offer {
  readonly listener: number
  readonly socket: Socket
  readonly place: ConnectionPlace
  readonly line: ThreadLine
  /** When the other thread was last checked, its progress by then, and the number of checks. */
  lookedMs: number
  beat: number
  looks: number
  /** Number of this connection's offer, from 1. */
  readonly turn: number
}

export class ConnectionSpread {
  readonly #options: SpreadOptions
  readonly #lines = new Map<number, ThreadLine>()
  readonly #offers = new Map<number, Offer>()
  readonly #life: number
  #nextId = 1
  #timer: NodeJS.Timeout | undefined
  #open = false
  #supported = true

  constructor(options: SpreadOptions) {
    this.#options = options
    this.#life = options.places.lifeOf(options.thread)
  }

  /** Adds the line to another thread; replaces that of the index's previous thread. */
  addLine(thread: number, port: MessagePort): void {
    const line: ThreadLine = new ThreadLine(port, {
      isOpen: () => this.#open,
      onPassed: (listener, socket) => this.#serve(listener, socket),
      onWithdrawn: () => this.#release(),
      onTaken: (id) => this.#pass(id),
      onRefused: (id) => this.#onFailed(id, 'refused'),
      onClosed: () => this.#onLineClosed(thread, line),
    })
    this.#lines.set(thread, line)
  }

  /** Ports are open: accepts connections from other threads, too. */
  open(): void {
    this.#setOpen(true)
  }

  /** Accepts no more. */
  drain(): void {
    this.#setOpen(false)
  }

  /** Connections in transit between this thread and others: not served anywhere yet. */
  connections(): number {
    let sum = this.#offers.size
    for (const line of this.#lines.values()) sum += line.expected
    return sum
  }

  close(): void {
    this.#setOpen(false)
    clearTimeout(this.#timer)
    this.#timer = undefined
    for (const { socket, place } of this.#offers.values()) {
      this.#options.places.release(place)
      socket.destroy()
    }
    this.#offers.clear()
    for (const line of this.#lines.values()) line.close()
    this.#lines.clear()
  }

  /** A connection accepted here, from which nothing was read: it is served here, or soon elsewhere. */
  accepted(listener: number, socket: Socket): void {
    this.#options.places.beat(this.#options.thread)
    socket.on('error', () => undefined)
    this.#place(listener, socket, 1)
  }

  /** A connection accepted by the main thread, with a place taken in this thread. */
  handed(listener: number, socket: Socket): void {
    socket.on('error', () => undefined)
    this.#serve(listener, socket)
  }

  #place(listener: number, socket: Socket, turn: number): void {
    const { places, thread } = this.#options
    const mayPass = this.#supported && this.#open && turn <= MOST_OFFERS
    const place = places.take(thread, (other) => mayPass && this.#lines.get(other)?.silent === false)
    const line = place.thread === thread ? undefined : this.#lines.get(place.thread)
    if (line === undefined) {
      this.#serve(listener, socket)
      return
    }
    const id = this.#nextId++
    const beat = places.beatOf(place.thread)
    this.#offers.set(id, { listener, socket, place, line, lookedMs: performance.now(), beat, looks: 0, turn })
    line.offer(id)
    this.#timer ??= setTimeout(() => setImmediate(() => this.#expire()), OFFER_MS)
  }

  /** Its place in this thread is taken. */
  #serve(listener: number, socket: Socket): void {
    this.#options.places.beat(this.#options.thread)
    if (socket.destroyed) {
      this.#release()
      return
    }
    // Undoes the pause since it was accepted: the first reader decides how to read.
    Reflect.set(socket, 'readableFlowing', null)
    socket.once('close', () => this.#release())
    this.#options.serve(listener, socket)
  }

  #release(): void {
    this.#options.places.release({ thread: this.#options.thread, life: this.#life })
  }

  #pass(id: number): void {
    const offer = this.#offers.get(id)
    if (offer === undefined) return
    const { line, listener, socket } = offer
    try {
      line.pass(id, listener, socket)
    } catch (error) {
      line.cancel(id)
      if (!socket.destroyed) this.#cannotPass(error instanceof Error ? error : new Error(String(error)))
      this.#onFailed(id, 'refused')
      return
    }
    this.#offers.delete(id)
    this.#options.onOffered('passed')
  }

  /** For any reason: each thread keeps what it accepts, as if there were no lines. */
  #cannotPass(error: Error): void {
    if (!this.#supported) return
    this.#supported = false
    this.#options.onUnsupported(error)
  }

  /** The other thread does not take it. */
  #onFailed(id: number, result: OfferResult): void {
    const offer = this.#offers.get(id)
    if (offer === undefined) return
    this.#offers.delete(id)
    const { places, onOffered } = this.#options
    places.release(offer.place)
    onOffered(result)
    if (!offer.socket.destroyed) this.#place(offer.listener, offer.socket, offer.turn + 1)
  }

  /** Runs after messages that waited while this thread itself was busy: their answers are not overdue. */
  #expire(): void {
    this.#timer = undefined
    const nowMs = performance.now()
    for (const [id, offer] of this.#offers) {
      if (nowMs - offer.lookedMs < OFFER_MS) continue
      const { line, place } = offer
      const beat = this.#options.places.beatOf(place.thread)
      if (beat !== offer.beat && offer.looks < MOST_LOOKS) {
        offer.beat = beat
        offer.looks++
        offer.lookedMs = nowMs
        continue
      }
      line.silent = true
      line.cancel(id)
      this.#onFailed(id, 'unanswered')
    }
    if (this.#offers.size > 0) this.#timer ??= setTimeout(() => setImmediate(() => this.#expire()), OFFER_MS)
  }

  #onLineClosed(thread: number, line: ThreadLine): void {
    if (this.#lines.get(thread) === line) this.#lines.delete(thread)
    for (const [id, offer] of this.#offers) if (offer.line === line) this.#onFailed(id, 'unanswered')
  }

  #setOpen(open: boolean): void {
    const { places, thread } = this.#options
    this.#open = open
    places.setOpen(thread, open)
  }
}
