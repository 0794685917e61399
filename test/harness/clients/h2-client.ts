// An HTTP/2 client for tests: header fields in and out as flat lists, and a clean end distinguished from a reset.

import { type ClientHttp2Session, type ClientHttp2Stream, connect, constants } from 'node:http2'
import { connect as tlsConnect } from 'node:tls'
import type { KeyPair } from '../../../src/pki/io/pki.ts'

export interface ClientOptions {
  /** Default 127.0.0.1. */
  readonly host?: string
  readonly port: number
  /** SNI; undefined = none, as for an IP address. */
  readonly serverName?: string
  readonly certificate?: KeyPair
  /** Address of this side; another one of 127.0.0.0/8 is another client. */
  readonly localAddress?: string
  /** What the gateway may send ahead on a stream, bytes. Default 1 MiB. */
  readonly streamWindow?: number
}

export interface Response {
  readonly status: number
  /** Flat list, pseudo-headers included. */
  readonly head: readonly string[]
  readonly interim: readonly (readonly string[])[]
  readonly body: Buffer
  readonly trailers: readonly string[]
  /** 0 = ended cleanly. */
  readonly resetCode: number
}

export function h2Connect(options: ClientOptions): ClientHttp2Session {
  const { host = '127.0.0.1', port, serverName, certificate } = options
  const session = connect(`https://${host}:${port}`, {
    createConnection: () =>
      tlsConnect({
        host,
        port,
        ALPNProtocols: ['h2'],
        // The gateway's certificate is not what these tests are about.
        rejectUnauthorized: false,
        ...(options.localAddress === undefined ? {} : { localAddress: options.localAddress }),
        ...(serverName === undefined ? {} : { servername: serverName }),
        ...(certificate === undefined ? {} : { cert: certificate.certPem, key: certificate.keyPem }),
      }),
    maxHeaderListPairs: 10_000,
    strictSingleValueFields: false,
    maxSendHeaderBlockLength: 8 * 1024 * 1024,
    settings: { initialWindowSize: options.streamWindow ?? 1024 * 1024 },
  } as Parameters<typeof connect>[1])
  session.on('error', () => undefined)
  return session
}

/** `head` holds pseudo-headers too; what is missing of them is added. */
export function h2Open(
  session: ClientHttp2Session,
  head: readonly string[],
  options: { endStream?: boolean } = {},
): ClientHttp2Stream {
  const list = [...head]
  const defaults = [':method', 'GET', ':path', '/api/v1/pods', ':authority', 'prod.example.com', ':scheme', 'https']
  for (let i = defaults.length - 2; i >= 0; i -= 2) {
    const name = defaults[i] ?? ''
    if (!list.includes(name)) list.unshift(name, defaults[i + 1] ?? '')
  }
  const stream = session.request(list, { endStream: options.endStream ?? true })
  stream.on('error', () => undefined)
  return stream
}

/** Everything about the answer, once the stream is closed. */
export function h2Response(stream: ClientHttp2Stream): Promise<Response> {
  return new Promise((resolve) => {
    let head: string[] = []
    let trailers: string[] = []
    const interim: string[][] = []
    const chunks: Buffer[] = []
    stream.on('headers', (_h, _f, raw?: unknown[]) => interim.push((raw ?? []).map(String)))
    stream.on('response', (_h, _f, raw?: unknown[]) => {
      head = (raw ?? []).map(String)
    })
    stream.on('trailers', (_h, _f, raw?: unknown[]) => {
      trailers = (raw ?? []).map(String)
    })
    stream.on('data', (chunk: Buffer) => chunks.push(chunk))
    let early: number | undefined
    stream.on('end', () => {
      if (stream.writableFinished) return
      // The answer came before the whole body was sent: Node would wait forever for the window that the rest of the body needs.
      early = stream.rstCode ?? 0
      if (!stream.closed) stream.close(constants.NGHTTP2_CANCEL)
      stream.destroy()
    })
    stream.on('close', () => {
      const status = Number(head[head.indexOf(':status') + 1] ?? 0)
      const resetCode = early ?? stream.rstCode ?? 0
      resolve({ status, head, interim, body: Buffer.concat(chunks), trailers, resetCode })
    })
  })
}

export function h2Request(session: ClientHttp2Session, head: readonly string[], body?: Buffer): Promise<Response> {
  const stream = h2Open(session, head, { endStream: body === undefined })
  if (body !== undefined) stream.end(body)
  return h2Response(stream)
}

/** Values of a header field in a flat list. */
export function valuesOf(list: readonly string[], name: string): string[] {
  return list.filter((_, i) => i % 2 === 1 && list[i - 1] === name)
}
