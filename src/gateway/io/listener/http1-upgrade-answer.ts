// The response to an HTTP/1.1 upgrade request that is not switched.

import { STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import type { HeaderList, QueueMeter, ResetReason, Stream, StreamEvents } from '../../../kit/api/stream.ts'
import { closeAfter } from '../socket/socket-close.ts'

const EMPTY = Buffer.alloc(0)

/** Written by hand, because node:http has released the socket. The connection ends after it. */
export class UpgradeAnswer implements Stream {
  events: StreamEvents | undefined
  meter: QueueMeter | undefined = undefined
  readonly #socket: Duplex
  #chunked = false
  #ended = false

  constructor(socket: Duplex) {
    this.#socket = socket
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
    return this.#socket.writableLength
  }

  headers(list: HeaderList, end: boolean): void {
    const status = list[1] ?? '500'
    if (Number(status) < 200) return
    let head = `HTTP/1.1 ${status} ${STATUS_CODES[Number(status)] ?? ''}\r\n`
    let sized = false
    for (let i = 2; i + 1 < list.length; i += 2) {
      if (list[i] === 'content-length') sized = true
      head += `${list[i]}: ${list[i + 1]}\r\n`
    }
    const bodiless = status === '204' || status === '304'
    this.#chunked = !sized && !end && !bodiless
    if (this.#chunked) head += 'transfer-encoding: chunked\r\n'
    head += 'connection: close\r\n\r\n'
    this.#socket.write(head, 'latin1')
    if (end) this.#finish()
  }

  body(chunk: Buffer, end: boolean): void {
    if (this.#ended) return
    if (chunk.length > 0) {
      if (this.#chunked) this.#socket.write(`${chunk.length.toString(16)}\r\n`)
      this.#socket.write(chunk)
      if (this.#chunked) this.#socket.write('\r\n')
    }
    this.meter?.onQueued(this.#socket.writableLength)
    if (end) {
      if (this.#chunked) this.#socket.write('0\r\n\r\n')
      this.#finish()
    }
  }

  #finish(): void {
    this.#ended = true
    closeAfter(this.#socket, '')
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
