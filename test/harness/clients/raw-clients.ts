// Clients that send exactly what a test gives them, for requests that no well-behaved client would send.

import {
  type ClientHttp2Session,
  connect as connectHttp2,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
} from 'node:http2'
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls'
import type { KeyPair } from '../../../src/pki/io/pki.ts'
import { waitFor } from '../wait.ts'

export interface RawOptions {
  readonly port: number
  /** Default 127.0.0.1. */
  readonly host?: string
  /** Address of this side. Default: the system's choice. */
  readonly localAddress?: string
  /** SNI. Default: none. */
  readonly serverName?: string
  readonly cert?: KeyPair
  /** Default: no ALPN on a raw connection, h2 on an HTTP/2 session. */
  readonly alpn?: readonly string[]
  /** PEM; absent = the server's certificate is not verified. */
  readonly ca?: string
  /** A TLS session to resume, from an earlier connection's 'session' event. */
  readonly session?: Buffer
  readonly tls?: ConnectionOptions
}

export interface RawConnection {
  readonly socket: TLSSocket
  send(bytes: string | Buffer): void
  /** Everything received so far. */
  received(): Buffer
  /** The same as text, one character a byte. */
  text(): string
  /** Resolves with the match once the received text has it. Throws when the connection closes before. */
  until(pattern: RegExp): Promise<RegExpExecArray>
  /** Resolves when the peer has closed or reset the connection. */
  readonly closed: Promise<void>
  destroy(): void
}

/** A TLS connection, bytes in and bytes out. Rejects when the handshake fails. */
export async function openRaw(options: RawOptions): Promise<RawConnection> {
  const socket = await openTls(options)
  const chunks: Buffer[] = []
  let isClosed = false
  socket.on('data', (chunk: Buffer) => chunks.push(chunk))
  socket.on('error', () => undefined) // a reset is an answer like any other: 'close' follows
  const closed = new Promise<void>((resolve) => {
    socket.once('close', () => {
      isClosed = true
      resolve()
    })
  })
  const text = (): string => Buffer.concat(chunks).toString('latin1')
  return {
    socket,
    send: (bytes) => void socket.write(bytes),
    received: () => Buffer.concat(chunks),
    text,
    async until(pattern) {
      const found = await waitFor(
        `${pattern}`,
        () => {
          const match = pattern.exec(text())
          return match ?? (isClosed && 'closed')
        },
        { intervalMs: 10 },
      )
      if (found === 'closed') throw new Error(`closed before ${pattern}; received: ${text()}`)
      return found
    },
    closed,
    destroy: () => socket.destroy(),
  }
}

/** An HTTP/2 session with a chosen SNI, ALPN and client certificate. Rejects when the handshake fails. */
export async function openHttp2(options: RawOptions): Promise<ClientHttp2Session> {
  const socket = await openTls({ alpn: ['h2'], ...options })
  const session = connectHttp2(`https://${options.serverName ?? options.host ?? '127.0.0.1'}:${options.port}`, {
    createConnection: () => socket,
  })
  session.on('error', () => undefined) // seen by the requests on it
  return session
}

export interface Http2Answer {
  /** 0 when the stream was reset before an answer. */
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
  readonly trailers: IncomingHttpHeaders
  /** RST_STREAM code; 0 = ended cleanly. */
  readonly rstCode: number
}

/** One request on a session. Never rejects: a reset is an answer like any other. */
export function requestHttp2(
  session: ClientHttp2Session,
  headers: OutgoingHttpHeaders,
  body?: string | Buffer,
): Promise<Http2Answer> {
  return new Promise((resolve) => {
    const stream = session.request(headers, { endStream: body === undefined })
    const chunks: Buffer[] = []
    let responseHeaders: IncomingHttpHeaders = {}
    let trailers: IncomingHttpHeaders = {}
    stream.on('response', (received) => {
      responseHeaders = received
    })
    stream.on('trailers', (received) => {
      trailers = received
    })
    stream.on('data', (chunk: Buffer) => chunks.push(chunk))
    stream.on('error', () => undefined)
    stream.on('close', () => {
      const status = Number(responseHeaders[':status'] ?? 0)
      const text = Buffer.concat(chunks).toString()
      resolve({ status, headers: responseHeaders, text, trailers, rstCode: stream.rstCode ?? 0 })
    })
    if (body !== undefined) stream.end(body)
  })
}

function openTls(options: RawOptions): Promise<TLSSocket> {
  return new Promise((resolve, reject) => {
    const socket = connect({
      port: options.port,
      host: options.host ?? '127.0.0.1',
      ...(options.localAddress !== undefined && { localAddress: options.localAddress }),
      ...(options.serverName !== undefined && { servername: options.serverName }),
      ...(options.cert !== undefined && { cert: options.cert.certPem, key: options.cert.keyPem }),
      ...(options.alpn !== undefined && { ALPNProtocols: [...options.alpn] }),
      ...(options.ca === undefined ? { rejectUnauthorized: false } : { ca: options.ca }),
      ...(options.session !== undefined && { session: options.session }),
      ...options.tls,
    })
    socket.once('secureConnect', () => {
      socket.off('error', reject)
      socket.setNoDelay(true)
      resolve(socket)
    })
    socket.once('error', reject)
  })
}
