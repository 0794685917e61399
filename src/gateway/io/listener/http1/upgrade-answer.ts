// The response to an HTTP/1.1 upgrade request that is not passed on to upstream: an ordinary one, or a WebSocket of the gateway's own.

import { STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import type { HeaderList, Peer, QueueMeter, ResetReason, Stream, StreamEvents } from '../../../../kit/api/stream.ts'
import { headerValue } from '../../../core/request/hop-headers.ts'
import { closeBehind } from '../../socket/socket-close.ts'
import { Http1WebSocket } from './websocket.ts'

const EMPTY = Buffer.alloc(0)

const SWITCHING_PROTOCOLS = '101'

/** Written by hand, because node:http has released the socket. The connection ends after it. */
export class UpgradeAnswer implements Stream {
  events: StreamEvents | undefined
  meter: QueueMeter | undefined = undefined
  readonly #socket: Duplex
  /** Bytes that followed the request head. */
  readonly #first: Buffer
  readonly #peer: Peer
  /** Set once it is switched: then the body is frames. */
  #webSocket: Http1WebSocket | undefined
  #chunked = false
  #ended = false

  constructor(socket: Duplex, first: Buffer, peer: Peer) {
    this.#socket = socket
    this.#first = first
    this.#peer = peer
    socket.on('drain', () => {
      this.meter?.onQueued(socket.writableLength)
      this.events?.onDrained()
    })
  }

  onClosed(): void {
    this.meter?.onQueued(0)
    if (!this.#ended) this.events?.onReset('connection')
    this.#ended = true
  }

  get queued(): number {
    const socket = this.#socket
    return socket.writableNeedDrain || socket.writableEnded ? socket.writableLength : 0
  }

  headers(list: HeaderList, end: boolean): void {
    const status = list[1] ?? '500'
    if (status === SWITCHING_PROTOCOLS) {
      this.#switch(list)
      return
    }
    if (Number(status) < 200) return
    let head = headText(list)
    const sized = headerValue(list, 'content-length') !== undefined
    const bodiless = status === '204' || status === '304'
    this.#chunked = !sized && !end && !bodiless
    if (this.#chunked) head += 'transfer-encoding: chunked\r\n'
    head += 'connection: close\r\n\r\n'
    this.#socket.write(head, 'latin1')
    if (end) this.#finish()
  }

  #switch(list: HeaderList): void {
    this.#socket.write(`${headText(list)}\r\n`, 'latin1')
    this.#webSocket = new Http1WebSocket(this.#socket, this.#first, this.#peer.charge, () => {
      if (!this.#ended) this.events?.onReset('cancel')
      this.#ended = true
    })
  }

  body(chunk: Buffer, end: boolean): void {
    if (this.#ended) return
    if (chunk.length > 0) this.#write(chunk)
    this.meter?.onQueued(this.#socket.writableLength)
    if (end) {
      if (this.#chunked) this.#socket.write('0\r\n\r\n')
      this.#finish()
    }
  }

  #write(chunk: Buffer): void {
    if (this.#webSocket !== undefined) {
      this.#webSocket.send(chunk)
      return
    }
    if (this.#chunked) this.#socket.write(`${chunk.length.toString(16)}\r\n`)
    // A copy: it waits in the socket, but the chunk is only valid during this call.
    this.#socket.write(Buffer.from(chunk))
    if (this.#chunked) this.#socket.write('\r\n')
  }

  #finish(): void {
    this.#ended = true
    if (this.#webSocket === undefined) closeBehind(this.#socket, '')
    else this.#webSocket.end()
  }

  trailers(_list: HeaderList): void {
    this.body(EMPTY, true)
  }

  credit(_bytes: number): void {
    // An upgrade request has no body.
  }

  reset(_reason: ResetReason): void {
    this.#ended = true
    this.#socket.destroy()
  }
}

function headText(list: HeaderList): string {
  const status = Number(list[1])
  let head = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\n`
  for (let i = 2; i + 1 < list.length; i += 2) head += `${list[i]}: ${list[i + 1]}\r\n`
  return head
}
