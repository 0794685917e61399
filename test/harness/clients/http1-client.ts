// An HTTP/1.1 client for tests: sends the bytes it is given and parses the responses, one after the other, by RFC 9112 alone.

import { waitFor } from '../wait.ts'
import { openRaw, type RawConnection, type RawOptions } from './raw-clients.ts'

export interface Http1Response {
  readonly status: number
  /** Header fields in order: name in lower case, value, ... */
  readonly head: readonly string[]
  readonly body: Buffer
  readonly trailers: readonly string[]
  /** False when the connection closed before the message was complete. */
  readonly complete: boolean
  values(name: string): string[]
}

export interface Http1Client {
  readonly raw: RawConnection
  send(bytes: string | Buffer): void
  /** The next response, interim ones included. `noBody`: the answer to a HEAD. Throws when the connection closes before its head. */
  response(options?: { noBody?: boolean }): Promise<Http1Response>
  /** Whether the peer has closed. */
  closed(): boolean
  destroy(): void
}

export async function http1Connect(options: RawOptions): Promise<Http1Client> {
  const raw = await openRaw({ alpn: ['http/1.1'], ...options })
  let at = 0
  let closed = false
  void raw.closed.then(() => {
    closed = true
  })
  return {
    raw,
    send: (bytes) => raw.send(bytes),
    closed: () => closed,
    destroy: () => raw.destroy(),
    async response(how = {}) {
      const found = await waitFor(
        'a response',
        () => {
          const over = closed
          const parsed = parseResponse(raw.received().subarray(at), how.noBody === true, over)
          if (parsed === undefined && over) return 'closed' as const
          return parsed
        },
        { intervalMs: 5 },
      )
      if (found === 'closed') throw new Error(`closed without a response; received: ${raw.text().slice(at)}`)
      at += found.length
      return found.response
    },
  }
}

/** One request on a connection of its own. */
export async function http1Request(options: RawOptions, bytes: string | Buffer): Promise<Http1Response> {
  const client = await http1Connect(options)
  client.send(bytes)
  try {
    return await client.response({ noBody: bytes.toString().startsWith('HEAD ') })
  } finally {
    client.destroy()
  }
}

/** A request head, CRLF between the lines, and the empty line behind it. `Host` is added when no line has it. */
export function requestHead(line: string, fields: readonly string[] = [], host = 'prod.example.com'): string {
  const hosts = fields.some((field) => /^host:/i.test(field)) ? [] : [`Host: ${host}`]
  return `${[`${line} HTTP/1.1`, ...hosts, ...fields].join('\r\n')}\r\n\r\n`
}

interface Parsed {
  readonly response: Http1Response
  readonly length: number
}

/** undefined = more is needed. */
function parseResponse(bytes: Buffer, noBody: boolean, closed: boolean): Parsed | undefined {
  const headEnd = bytes.indexOf('\r\n\r\n')
  if (headEnd < 0) return undefined
  const [first = '', ...lines] = bytes.toString('latin1', 0, headEnd).split('\r\n')
  const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(first)?.[1])
  if (Number.isNaN(status)) throw new Error(`not a status line: ${first}`)
  const head = lines.flatMap(splitField)
  const values = (name: string): string[] => head.filter((_, i) => i % 2 === 1 && head[i - 1] === name)
  const start = headEnd + 4
  const done = (body: Buffer, length: number, trailers: string[] = [], complete = true): Parsed => ({
    response: { status, head, body, trailers, complete, values },
    length,
  })
  const rest = bytes.subarray(start)
  if (noBody || status < 200 || status === 204 || status === 304) return done(Buffer.alloc(0), start)
  if (values('transfer-encoding').includes('chunked')) {
    const chunked = parseChunked(rest)
    if (chunked !== undefined) return done(chunked.body, start + chunked.length, chunked.trailers)
    return closed ? done(rest, bytes.length, [], false) : undefined
  }
  const [length] = values('content-length')
  if (length !== undefined) {
    const size = Number(length)
    if (rest.length >= size) return done(rest.subarray(0, size), start + size)
    return closed ? done(rest, bytes.length, [], false) : undefined
  }
  return closed ? done(rest, bytes.length) : undefined
}

function parseChunked(bytes: Buffer): { body: Buffer; trailers: string[]; length: number } | undefined {
  const chunks: Buffer[] = []
  let at = 0
  for (;;) {
    const lineEnd = bytes.indexOf('\r\n', at)
    if (lineEnd < 0) return undefined
    const size = Number.parseInt(bytes.toString('latin1', at, lineEnd), 16)
    at = lineEnd + 2
    if (size === 0) break
    if (bytes.length < at + size + 2) return undefined
    chunks.push(bytes.subarray(at, at + size))
    at += size + 2
  }
  const trailers: string[] = []
  for (;;) {
    const lineEnd = bytes.indexOf('\r\n', at)
    if (lineEnd < 0) return undefined
    const line = bytes.toString('latin1', at, lineEnd)
    at = lineEnd + 2
    if (line === '') return { body: Buffer.concat(chunks), trailers, length: at }
    trailers.push(...splitField(line))
  }
}

function splitField(line: string): string[] {
  const colon = line.indexOf(':')
  return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()]
}
