// The request side of one exchange with upstream over HTTP/2; it exists before the connection that will carry it.

import { type ClientHttp2Stream, constants } from 'node:http2'
import type { HeaderList, ResetReason, Stream, StreamEvents } from '../api/stream.ts'
import { flatHeaders, Http2Body, resetStream } from './http2-stream.ts'

export class ClientStream implements Stream {
  readonly #events: StreamEvents
  #raw: ClientHttp2Stream | undefined
  #body: Http2Body | undefined
  #trailers: HeaderList | undefined
  /** Body given before the connection was there. */
  #early: Buffer[] = []
  #earlyBytes = 0
  #earlyEnd = false
  #over = false

  constructor(events: StreamEvents) {
    this.#events = events
  }

  get aborted(): boolean {
    return this.#over
  }

  get queued(): number {
    return this.#raw === undefined ? this.#earlyBytes : this.#raw.writableLength
  }

  attach(raw: ClientHttp2Stream, connectionLost: () => boolean): void {
    this.#raw = raw
    const body = new Http2Body(raw, connectionLost, () => this.#over || body.ended)
    this.#body = body
    body.events = this.#events
    raw.on('headers', (_headers: unknown, _flags: number, list?: readonly unknown[]) => {
      if (list !== undefined && !this.#over) this.#events.onHeaders(flatHeaders(list), false)
    })
    raw.on('response', (_headers: unknown, flags: number, list?: readonly unknown[]) => {
      if (this.#over) return
      const end = (flags & constants.NGHTTP2_FLAG_END_STREAM) !== 0
      if (end) body.ended = true
      this.#events.onHeaders(flatHeaders(list ?? []), end)
      if (end) raw.resume()
      else body.read()
    })
    raw.on('wantTrailers', () => raw.sendTrailers(this.#trailerRecord()))
    for (const chunk of this.#early) raw.write(chunk)
    if (this.#earlyEnd) raw.end()
    if (this.#early.length > 0) this.#events.onDrained()
    this.#early = []
    this.#earlyBytes = 0
  }

  #trailerRecord(): Record<string, string> {
    const record: Record<string, string> = {}
    const list = this.#trailers ?? []
    for (let i = 0; i + 1 < list.length; i += 2) record[list[i] ?? ''] = list[i + 1] ?? ''
    return record
  }

  fail(reason: ResetReason): void {
    if (this.#over) return
    this.#over = true
    this.#events.onReset(reason)
  }

  /** Never inside `open()`: the caller does not have the stream yet. */
  failSoon(reason: ResetReason): void {
    queueMicrotask(() => this.fail(reason))
  }

  headers(_list: HeaderList, _end: boolean): void {
    // The request head was sent by open().
  }

  body(chunk: Buffer, end: boolean): void {
    if (this.#over) return
    const raw = this.#raw
    if (raw === undefined) {
      if (chunk.length > 0) this.#early.push(chunk)
      this.#earlyBytes += chunk.length
      this.#earlyEnd ||= end
      return
    }
    if (raw.destroyed || raw.writableEnded) return
    if (chunk.length > 0) raw.write(chunk)
    if (end) raw.end()
  }

  trailers(list: HeaderList): void {
    this.#trailers = list
    this.body(Buffer.alloc(0), true)
  }

  credit(bytes: number): void {
    this.#body?.credit(bytes)
  }

  reset(reason: ResetReason): void {
    if (this.#over) return
    this.#over = true
    if (this.#raw !== undefined) resetStream(this.#raw, reason)
  }
}
