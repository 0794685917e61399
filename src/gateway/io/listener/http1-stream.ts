// One request and its response on a client's HTTP/1.1 connection, as a Stream.

import type { IncomingMessage, ServerResponse } from 'node:http'
import { SERVER_LIMITS } from '../../../http2/limits.ts'
import {
  type HeaderList,
  HIGH_WATER_BYTES,
  type Peer,
  type QueueMeter,
  type ResetReason,
  type Stream,
  type StreamEvents,
} from '../../../kit/api/stream.ts'
import { LINGER_MS } from '../socket/socket-close.ts'
import type { Http1OpenHead } from './http1-open-head.ts'

/** The server's state of one connection. */
export interface Http1Connection {
  readonly peer: Peer
  readonly server: { draining: boolean }
  /** The next response on it is the last. */
  draining: boolean
  /** It ends with the current response: node:http would still serve requests pipelined behind it. */
  closing: boolean
  /** A malformed message was answered. */
  refused: boolean
  /** Requests whose response has not been sent yet. */
  answering: number
  /** The response to the newest request: others are ahead of it if the client pipelines. */
  newest: ServerResponse | undefined
  /** What the parser keeps; undefined = not counted. */
  readonly head: Http1OpenHead | undefined
}

const EMPTY = Buffer.alloc(0)

export class Http1Stream implements Stream {
  readonly #request: IncomingMessage
  readonly #response: ServerResponse
  readonly #connection: Http1Connection
  #uncredited = 0
  #paused = false
  #requestEnded: boolean
  #over = false
  /** The response is complete; the rest of the body is discarded. */
  #isLate = false
  meter: QueueMeter | undefined = undefined

  constructor(request: IncomingMessage, response: ServerResponse, connection: Http1Connection, requestEnded: boolean) {
    this.#request = request
    this.#response = response
    this.#connection = connection
    this.#requestEnded = requestEnded
    response.sendDate = false
  }

  start(events: StreamEvents): void {
    const request = this.#request
    const response = this.#response
    request.on('error', () => undefined)
    response.on('error', () => undefined)
    response.on('drain', () => {
      this.meter?.onQueued(response.writableLength)
      events.onDrained()
    })
    response.on('close', () => {
      this.meter?.onQueued(0)
      if (response.writableFinished || this.#over) return
      this.#over = true
      events.onReset('connection')
    })
    if (this.#requestEnded) {
      request.resume()
      return
    }
    request.on('data', (chunk: Buffer) => {
      if (this.#isLate) return
      this.#uncredited += chunk.length
      if (this.#uncredited >= this.#mostUncredited) {
        this.#paused = true
        request.pause()
      }
      events.onBody(chunk, false)
    })
    request.on('end', () => {
      this.#requestEnded = true
      if (this.#isLate) return
      if (request.rawTrailers.length > 0) events.onTrailers(lowerNames(request.rawTrailers))
      else events.onBody(EMPTY, true)
    })
  }

  /** As over HTTP/2: little before the caller is authenticated. */
  get #mostUncredited(): number {
    return this.#connection.peer.charge.known ? HIGH_WATER_BYTES : SERVER_LIMITS.initialConnectionWindowBytes
  }

  /** Bytes that the socket accepts without reporting completion do not count as queued. */
  get queued(): number {
    const response = this.#response
    return response.writableNeedDrain || response.writableEnded ? response.writableLength : 0
  }

  headers(list: HeaderList, end: boolean): void {
    const response = this.#response
    if (response.destroyed || response.headersSent) return
    const status = Number(list[1])
    if (status < 200) {
      // RFC 9110 section 15.2: HTTP/1.0 has no interim responses, and node:http sends only these two by itself.
      if (status === 100 && this.#request.httpVersionMinor > 0) response.writeContinue()
      return
    }
    this.#mayBeLast()
    try {
      // node:http takes `:status` separately.
      response.writeHead(status, list.slice(2))
    } catch {
      // A field that HTTP/1.1 cannot carry; nothing has been sent yet.
      this.reset('internal')
      return
    }
    if (end) this.#end()
    // flushHeaders() would write the head alone, and as UTF-8: with an empty piece it is written as latin1, in one write with what follows in this
    // turn. node:http ignores pieces of a response that has no body: its head waits for the end.
    else response.write(EMPTY)
  }

  /**
   * Whether the connection ends with this response: because the request's body will not be read and must not be taken for the next request, because
   * of a drain, or because too many requests are open. Requests pipelined behind this one have already begun and are answered first: `close` goes
   * into the last response (RFC 9112 section 9.6), and no more requests are accepted.
   */
  #mayBeLast(): void {
    const connection = this.#connection
    const { newest } = connection
    const goesOn = !connection.draining && !connection.server.draining && !connection.closing
    if (this.#requestEnded && goesOn) return
    if (newest === this.#response) this.#response.shouldKeepAlive = false
    // The last response's head may already be sent: then the next request's response ends the connection.
    if (newest?.headersSent !== true) connection.closing = true
  }

  body(chunk: Buffer, end: boolean): void {
    const response = this.#response
    if (response.destroyed || response.writableEnded) return
    // A copy: it waits in the socket, but the chunk is only valid during this call.
    if (chunk.length > 0) response.write(Buffer.from(chunk))
    if (end) this.#end()
    this.meter?.onQueued(response.writableLength)
  }

  #end(): void {
    if (!this.#requestEnded) this.#linger()
    this.#response.end()
  }

  /**
   * A client in the middle of an upload gets the whole response at once, with time to read it: the rest of its body is discarded, and the connection,
   * whose last response this is (`#mayBeLast`), is closed afterwards, or after a period of silence, or when it takes too long.
   */
  #linger(): void {
    const request = this.#request
    const { socket } = request
    this.#isLate = true
    // node:http would close it right after the response.
    socket.destroySoon = () => void socket.end()
    const silence = setTimeout(() => socket.destroy(), LINGER_MS)
    const deadline = setTimeout(() => socket.destroy(), SERVER_LIMITS.lateBodyMs)
    request.on('data', () => silence.refresh())
    socket.once('close', () => {
      clearTimeout(silence)
      clearTimeout(deadline)
    })
    request.once('end', () => {
      Reflect.deleteProperty(socket, 'destroySoon')
      if (socket.writableEnded) socket.destroySoon()
    })
    // A handler that responds without reading the body returns no credit.
    request.resume()
  }

  trailers(list: HeaderList): void {
    const headers: [string, string][] = []
    for (let i = 0; i + 1 < list.length; i += 2) headers.push([list[i] ?? '', list[i + 1] ?? ''])
    this.#response.addTrailers(headers)
    this.#end()
  }

  credit(bytes: number): void {
    this.#uncredited = Math.max(0, this.#uncredited - bytes)
    if (!this.#paused || this.#uncredited >= this.#mostUncredited) return
    this.#paused = false
    this.#request.resume()
  }

  /** HTTP/1.1 can only reset by closing the connection: an unfinished message never ends cleanly. */
  reset(_reason: ResetReason): void {
    this.#over = true
    this.#request.socket.destroy()
  }
}

function lowerNames(raw: readonly string[]): HeaderList {
  return raw.map((text, i) => (i % 2 === 0 ? text.toLowerCase() : text))
}
