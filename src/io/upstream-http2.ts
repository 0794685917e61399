// HTTP/2 connections to one endpoint, one group for each class of requests, so that a large list, thousands of watches or
// a 401 (which makes kube-apiserver close the connection) never disturb requests of another class.

import type { TLSSocket } from 'node:tls'
import type { HeaderList, Stream, StreamEvents } from '../api/stream.ts'
import { type Http2Connector, Session, STREAMS_BEFORE_SETTINGS } from './upstream-http2-session.ts'
import { ClientStream } from './upstream-http2-stream.ts'

/** Connections of a class at most; beyond it requests queue inside a connection. */
const MAX_SESSIONS = 64
/** Connections that may close under a waiting request before it is given up. */
const MAX_LOST_CONNECTIONS = 2

interface Waiting {
  readonly head: HeaderList
  readonly end: boolean
  readonly stream: ClientStream
  /** Connections that closed before they could take it. */
  tries: number
}

/** A group of HTTP/2 sessions to one endpoint. */
export class Http2Sessions {
  readonly #connector: Http2Connector
  /** Those whose peer has sent its SETTINGS. */
  readonly #sessions: Session[] = []
  readonly #opening = new Set<Session>()
  #waiting: Waiting[] = []
  /** Connections on their way, from the call until the SETTINGS. */
  #connecting = 0
  #state: 'open' | 'draining' | 'destroyed' = 'open'

  constructor(connector: Http2Connector) {
    this.#connector = connector
  }

  get size(): number {
    return this.#sessions.length
  }

  /** Sends a request; never fails at once: what goes wrong is told by `events.onReset`. */
  open(head: HeaderList, end: boolean, events: StreamEvents): Stream {
    const stream = new ClientStream(events)
    const session = this.#free()
    if (session !== undefined) session.request(head, end, stream)
    else this.#enqueue({ head, end, stream, tries: 0 })
    return stream
  }

  /** No new requests; those that were taken go on until they end, also when they wait for a connection. */
  drain(): void {
    if (this.#state === 'open') this.#state = 'draining'
    for (const session of this.#sessions) session.drain()
  }

  destroy(): void {
    this.#state = 'destroyed'
    for (const session of [...this.#sessions, ...this.#opening]) session.destroy()
  }

  #free(): Session | undefined {
    let best: Session | undefined
    for (const session of this.#sessions) {
      if (!session.usable || session.streams >= session.maxStreams) continue
      if (best === undefined || session.streams < best.streams) best = session
    }
    return best
  }

  #enqueue(waiting: Waiting): void {
    const total = this.#sessions.length + this.#connecting
    if (total >= MAX_SESSIONS) {
      const least = this.#sessions.filter((session) => session.usable).sort((a, b) => a.streams - b.streams)[0]
      if (least !== undefined) {
        least.request(waiting.head, waiting.end, waiting.stream)
        return
      }
    }
    this.#waiting.push(waiting)
    if (this.#waiting.length > this.#connecting * STREAMS_BEFORE_SETTINGS) this.#connect()
  }

  #connect(): void {
    this.#connecting++
    this.#connector.connect().then(
      (socket) => this.#start(socket),
      (error: Error) => {
        this.#connector.onBroken(error)
        this.#onConnectFailed()
      },
    )
  }

  #start(socket: TLSSocket): void {
    if (this.#state === 'destroyed') {
      socket.destroy()
      this.#onConnectFailed()
      return
    }
    const session = new Session(socket, this.#connector, {
      onReady: () => {
        this.#opening.delete(session)
        this.#connecting--
        this.#sessions.push(session)
        this.#dispatch()
        if (this.#state === 'draining') session.drain()
      },
      onGone: () => {
        if (this.#opening.delete(session)) this.#onConnectFailed()
        const at = this.#sessions.indexOf(session)
        if (at >= 0) this.#sessions.splice(at, 1)
      },
    })
    this.#opening.add(session)
  }

  #dispatch(): void {
    const waiting = this.#waiting
    this.#waiting = []
    for (const next of waiting) {
      if (next.stream.aborted) continue
      const session = this.#free()
      if (session !== undefined) session.request(next.head, next.end, next.stream)
      else if (++next.tries <= MAX_LOST_CONNECTIONS) this.#enqueue(next)
      // A server that accepts and closes is as good as one that refuses: no loop.
      else next.stream.fail('refused')
    }
  }

  /** Nothing of those that wait has been sent: every one may be sent elsewhere. */
  #onConnectFailed(): void {
    this.#connecting--
    if (this.#connecting > 0) return
    const waiting = this.#waiting
    this.#waiting = []
    for (const next of waiting) next.stream.fail('refused')
  }
}
