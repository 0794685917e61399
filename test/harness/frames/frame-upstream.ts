// An upstream that speaks HTTP/2 frame by frame: for what no HTTP/2 server would do. It answers probes by itself.

import type { AddressInfo } from 'node:net'
import { createServer } from 'node:tls'
import { DECODED, HpackDecoder } from '../../../src/http2/hpack/decoder.ts'
import { stubServing } from '../upstreams/stub-upstream.ts'
import { FrameConnection } from './frame-connection.ts'
import {
  CONTINUATION,
  data,
  END_HEADERS,
  END_STREAM,
  type Frame,
  HEADERS,
  headerBlock,
  headersFrames,
  PADDED,
  PREFACE,
  settings,
  WITH_PRIORITY,
} from './h2-frames.ts'

export interface FrameRequest {
  readonly connection: FrameConnection
  readonly stream: number
  /** Name, value, ... */
  readonly head: readonly string[]
  /** The request has no body. */
  readonly end: boolean
}

export interface FrameUpstream {
  readonly url: string
  readonly caPem: string
  /** In the order in which they came; those that carry probes only, too. */
  readonly connections: readonly FrameConnection[]
  /** All requests but probes and the gateway's questions for its own rights. */
  readonly requests: FrameRequest[]
  /** What requests get; default: 200 with `ok`. */
  onRequest: (request: FrameRequest) => void
  /** What a new connection begins with. Default: SETTINGS without any. */
  greeting: Buffer
  stop(): Promise<void>
}

/** HEADERS without CONTINUATION. `fields` follow `:status`. */
export function answerHead(stream: number, status: number, fields: readonly string[] = [], flags = 0): Buffer {
  return headersFrames(stream, headerBlock([':status', String(status), ...fields]), flags)
}

/** 200 with a short body. */
export function answerOk({ connection, stream }: FrameRequest, body = 'ok'): void {
  connection.send(answerHead(stream, 200), data(stream, body, END_STREAM))
}

export async function startFrameUpstream(): Promise<FrameUpstream> {
  const { ca, pair } = stubServing()
  const server = createServer({ cert: pair.certPem, key: pair.keyPem, ALPNProtocols: ['h2'] })
  const connections: FrameConnection[] = []
  const upstream: FrameUpstream = {
    url: '',
    caPem: ca.certPem,
    connections,
    requests: [],
    onRequest: (request) => answerOk(request),
    greeting: settings(),
    stop: () =>
      new Promise((resolve) => {
        for (const connection of connections) connection.destroy()
        server.close(() => resolve())
      }),
  }
  server.on('secureConnection', (socket) => {
    const connection = new FrameConnection(socket, PREFACE.length)
    connections.push(connection)
    const heads = new Heads()
    connection.onFrame = (received) => {
      const head = heads.read(received)
      if (head === undefined) return
      const request = { connection, stream: received.stream, ...head }
      if (request.head.includes('/readyz')) answerOk(request)
      else if (isOwnReview(request)) answerOk(request, '{"status":{"allowed":true}}')
      else {
        upstream.requests.push(request)
        upstream.onRequest(request)
      }
    }
    connection.send(upstream.greeting)
  })
  server.on('tlsClientError', () => undefined)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return Object.assign(upstream, { url: `https://127.0.0.1:${(server.address() as AddressInfo).port}` })
}

/** The gateway checks its own rights, in addition to its probes. */
function isOwnReview({ head }: FrameRequest): boolean {
  return head.some((value) => value.endsWith('/selfsubjectaccessreviews')) && !head.includes('impersonate-user')
}

/** Reads the heads of one connection. */
class Heads {
  readonly #decoder = new HpackDecoder(4096)
  #parts: Buffer[] = []
  #end = false

  /** The fields, once the block is complete. Throws when it cannot be read. */
  read({ type, flags, payload }: Frame): { head: string[]; end: boolean } | undefined {
    if (type !== HEADERS && type !== CONTINUATION) return undefined
    if (type === HEADERS) {
      if ((flags & (PADDED | WITH_PRIORITY)) !== 0) throw new Error('the gateway sends neither padding nor priorities')
      this.#end = (flags & END_STREAM) !== 0
      this.#parts = []
    }
    this.#parts.push(payload)
    if ((flags & END_HEADERS) === 0) return undefined
    const block = Buffer.concat(this.#parts)
    if (this.#decoder.decode(block, 0, block.length, 10_000_000) !== DECODED)
      throw new Error('a head that cannot be read')
    return { head: this.#decoder.fields, end: this.#end }
  }
}
