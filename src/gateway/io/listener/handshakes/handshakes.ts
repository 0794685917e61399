// Schedules TLS handshakes of accepted connections. A handshake is the most expensive operation available to unauthenticated clients: it blocks a
// thread for half a millisecond. So each begins in its own turn of the event loop, and source addresses take turns. A client that sends nothing, or
// its ClientHello slowly, gets no handshake.

import type { Socket } from 'node:net'
import { RoundRobinQueue } from '../../../../kit/core/queues/round-robin-queue.ts'
import { addTickable, removeTickable, type Tickable } from '../../../../kit/io/world/coarse-ticker.ts'
import { ClientHelloReader, MAX_CLIENT_HELLO_BYTES } from '../../../core/handshakes/client-hello.ts'
import { socketReads } from '../../socket/engine-socket.ts'
import { Expected, ReadRotation, startReading, stopReading } from './read-rotation.ts'

export interface HandshakesOptions {
  /** Timeout for the whole ClientHello, and then again for what the client sends after our part. Milliseconds. */
  readonly timeoutMs: number
  /** Maximum handshakes in progress, waiting for the client. Default 1024. */
  readonly maxInProgress?: number
  /** A connection was closed for this reason. */
  onFailed?(source: string, reason: HandshakeFailure): void
  /** Whether this source's handshakes begin only when no others wait. Default: never. */
  isBlocked?(source: string): boolean
  /** A counter that grows with other work of the thread. Default: reads of HTTP/2 connections. */
  otherWork?(): number
}

export type HandshakeFailure =
  /** The data is not a ClientHello, or too large. */
  | 'not-tls'
  /** No part of a ClientHello arrived in time. */
  | 'silent'
  /** The ClientHello, or what follows, was not complete in time. */
  | 'timeout'
  /** Too many in progress: the address with the most loses its oldest. */
  | 'overflow'

/** Sockets awaiting a ClientHello that are read at a time; each costs about 10 us when it arrives. */
const READ_FOR_HELLO = 32
/** Handshakes in progress that are read at a time: the next message, a client certificate, costs about 0.3 ms. */
const READ_IN_PROGRESS = 2
/** How often, and how many, other sockets get their turn, in case those being read are silent. */
const ROTATE_MS = 1
const ROTATED_FOR_HELLO = 16
const ROTATED_IN_PROGRESS = 2
/** If the thread did other work this turn, the minimum time between the previous handshake and the next. */
const YIELD_MS = 0.5
/** Clients give up after 10 s (client-go) to 30 s; those that did are detected before their handshake begins. */
const LONGEST_WAIT_MS = 30_000
const MAX_IN_PROGRESS = 1024
/** Go's net/http recognizes plain HTTP by the same first bytes. */
const HTTP_START = /^(?:GET \/|HEAD |POST |PUT \/|OPTIO)/
const NOT_HTTPS = 'HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n'

/** Callbacks of a connection. */
interface HandshakeSteps {
  /** The ClientHello is complete: from now on the client is waiting for us. */
  onHello?(): void
  /** Hands the socket to TLS, which reads it from the first byte. */
  begin(): void
}

class Waiting extends Expected {
  readonly steps: HandshakeSteps
  stage: 'hello' | 'queued' | 'in-progress' | 'over' = 'hello'
  sinceMs: number = performance.now()
  readonly hello: ClientHelloReader = new ClientHelloReader()
  readonly chunks: Buffer[] = []
  bytes = 0
  onData: (chunk: Buffer) => void = () => undefined
  onEnd: () => void = () => undefined

  constructor(socket: Socket, source: string, steps: HandshakeSteps) {
    super(socket, source)
    this.steps = steps
  }
}

export class Handshakes implements Tickable {
  readonly #options: HandshakesOptions
  readonly #otherWork: () => number
  /** Keyed by stage, longest first. */
  readonly #entries = { hello: new Set<Waiting>(), queued: new Set<Waiting>(), 'in-progress': new Set<Waiting>() }
  readonly #bySocket = new WeakMap<Socket, Waiting>()
  readonly #forHello = new ReadRotation<Waiting>(READ_FOR_HELLO)
  readonly #inProgress = new ReadRotation<Waiting>(READ_IN_PROGRESS)
  readonly #queue = new RoundRobinQueue<Waiting>()
  /** Waiters of blocked sources: behind all others. */
  readonly #blocked = new RoundRobinQueue<Waiting>()
  /** Read for one turn, which shows whether the client is still there. */
  #next: Waiting | undefined
  #scheduled = false
  /** A handshake has begun in this turn. */
  #begunNow = false
  #workSeen = 0
  #lastMs = 0
  #rotation: NodeJS.Timeout | undefined
  #ticked = false

  constructor(options: HandshakesOptions) {
    this.#options = options
    this.#otherWork = options.otherWork ?? socketReads
  }

  /** Number of connections by stage: awaiting a ClientHello, a turn, or the rest of the handshake. */
  counts(): { readonly hello: number; readonly queued: number; readonly inProgress: number } {
    const { hello, queued, 'in-progress': inProgress } = this.#entries
    return { hello: hello.size, queued: queued.size, inProgress: inProgress.size }
  }

  /** Waits for the ClientHello of a socket from which nothing was read (or all of it was unread), then for its turn. */
  add(socket: Socket, source: string, steps: HandshakeSteps): void {
    const entry = new Waiting(socket, source, steps)
    entry.onData = (chunk) => this.#onData(entry, chunk)
    // It can no longer receive a response: the end of the socket follows.
    entry.onEnd = () => this.#drop(entry)
    this.#bySocket.set(socket, entry)
    this.#entries.hello.add(entry)
    socket.on('data', entry.onData)
    socket.on('end', entry.onEnd)
    socket.once('close', () => this.#over(entry))
    // It may have been accepted without reading.
    socket.resume()
    this.#forHello.add(entry)
    this.#rotateLater()
    if (this.#ticked) return
    this.#ticked = true
    addTickable(this)
  }

  /** The handshake over this socket is complete. */
  secured(socket: Socket): void {
    const entry = this.#bySocket.get(socket)
    if (entry === undefined) return
    this.#lastMs = performance.now()
    this.#over(entry)
  }

  tick(nowMs: number): void {
    const { timeoutMs } = this.#options
    this.#expire(this.#entries.hello, nowMs - timeoutMs)
    this.#expire(this.#entries['in-progress'], nowMs - timeoutMs)
    this.#expire(this.#entries.queued, nowMs - LONGEST_WAIT_MS)
    const { hello, queued, inProgress } = this.counts()
    if (hello + queued + inProgress > 0) return
    this.#ticked = false
    removeTickable(this)
  }

  #expire(entries: Set<Waiting>, untilMs: number): void {
    for (const entry of entries) {
      if (entry.sinceMs > untilMs) return
      this.#fail(entry, entry.bytes === 0 ? 'silent' : 'timeout')
    }
  }

  // === the ClientHello ===

  #onData(entry: Waiting, chunk: Buffer): void {
    entry.chunks.push(chunk)
    entry.bytes += chunk.length
    // Nothing else may come before our response; TLS, not this file, reports that to the client.
    if (entry.stage !== 'hello') {
      if (entry.bytes > 2 * MAX_CLIENT_HELLO_BYTES) this.#fail(entry, 'not-tls')
      return
    }
    const hello = entry.hello.read(chunk)
    if (hello === 'incomplete') return
    if (hello === 'complete') this.#onHello(entry)
    else this.#refuse(entry)
  }

  #refuse(entry: Waiting): void {
    const { socket, chunks } = entry
    const isHttp = HTTP_START.test(chunks[0]?.toString('latin1', 0, 5) ?? '')
    if (isHttp && socket.writable) socket.write(NOT_HTTPS)
    this.#fail(entry, 'not-tls')
  }

  #onHello(entry: Waiting): void {
    this.#forHello.delete(entry)
    this.#enter(entry, 'queued')
    entry.steps.onHello?.()
    if (this.#next === undefined && this.#queue.count + this.#blocked.count === 0 && !this.#begunNow) {
      this.#begin(entry)
      return
    }
    stopReading(entry.socket)
    const blocked = this.#options.isBlocked?.(entry.source) === true
    const queue = blocked ? this.#blocked : this.#queue
    queue.add(entry, entry.source)
    this.#schedule()
  }

  #enter(entry: Waiting, stage: 'queued' | 'in-progress'): void {
    if (entry.stage === 'over') return
    this.#entries[entry.stage].delete(entry)
    entry.stage = stage
    entry.sinceMs = performance.now()
    this.#entries[stage].add(entry)
  }

  // === its turn ===

  #schedule(): void {
    if (this.#scheduled) return
    this.#scheduled = true
    setImmediate(() => this.#turn())
  }

  /** Runs once per event loop turn while one is waiting or has begun. */
  #turn(): void {
    this.#scheduled = false
    this.#begunNow = false
    const work = this.#otherWork()
    const others = work !== this.#workSeen
    this.#workSeen = work
    if (others && performance.now() - this.#lastMs < YIELD_MS) {
      if (this.#next !== undefined || this.#queue.count + this.#blocked.count > 0) this.#schedule()
      return
    }
    const entry = this.#next
    this.#next = this.#queue.next() ?? this.#blocked.next()
    if (this.#next !== undefined) {
      startReading(this.#next.socket)
      this.#schedule()
    }
    if (entry !== undefined) this.#begin(entry)
  }

  #begin(entry: Waiting): void {
    const { socket, chunks } = entry
    this.#begunNow = true
    this.#schedule()
    this.#enter(entry, 'in-progress')
    if (this.#entries['in-progress'].size > (this.#options.maxInProgress ?? MAX_IN_PROGRESS)) this.#giveWay()
    if (entry.stage === 'over') return
    socket.off('data', entry.onData)
    socket.off('end', entry.onEnd)
    socket.pause()
    socket.unshift(chunks.length === 1 ? chunks[0] : Buffer.concat(chunks))
    chunks.length = 0
    entry.steps.begin()
    // node:tls takes the ClientHello in the next tick, which it scheduled earlier.
    process.nextTick(() => {
      this.#lastMs = performance.now()
      if (entry.stage !== 'in-progress') return
      this.#inProgress.add(entry)
      this.#rotateLater()
    })
  }

  /** Evicts the oldest of the address with the most in progress. */
  #giveWay(): void {
    const counts = new Map<string, number>()
    let most = 0
    for (const { source } of this.#entries['in-progress']) {
      const count = (counts.get(source) ?? 0) + 1
      counts.set(source, count)
      most = Math.max(most, count)
    }
    for (const entry of this.#entries['in-progress']) {
      if (counts.get(entry.source) !== most) continue
      this.#fail(entry, 'overflow')
      return
    }
  }

  #rotateLater(): void {
    if (this.#rotation !== undefined || this.#forHello.parked + this.#inProgress.parked === 0) return
    this.#rotation = setTimeout(() => {
      this.#rotation = undefined
      this.#forHello.rotate(ROTATED_FOR_HELLO)
      this.#inProgress.rotate(ROTATED_IN_PROGRESS)
      this.#rotateLater()
    }, ROTATE_MS)
    this.#rotation.unref()
  }

  // === the end ===

  #fail(entry: Waiting, reason: HandshakeFailure): void {
    this.#drop(entry)
    this.#options.onFailed?.(entry.source, reason)
  }

  #drop(entry: Waiting): void {
    this.#over(entry)
    entry.socket.destroy()
  }

  #over(entry: Waiting): void {
    const { stage } = entry
    if (stage === 'over') return
    this.#entries[stage].delete(entry)
    entry.stage = 'over'
    if (stage === 'hello') this.#forHello.delete(entry)
    else if (stage === 'in-progress') this.#inProgress.delete(entry)
    else if (this.#next === entry) this.#next = undefined
    else {
      this.#queue.remove(entry)
      this.#blocked.remove(entry)
    }
  }
}
