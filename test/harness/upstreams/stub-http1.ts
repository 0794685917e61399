// A stub upstream that speaks HTTP/1.1 only: for the pool of HTTP/1.1 upstreams, and for upgrades, where it shows every byte
// that arrives behind the request head.

import { createServer as createHttpServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { stubServing } from './stub-upstream.ts'

/** Connections that wait to be accepted: a thousand clusters probe it at once. One beyond it comes back after 1, 3, 7, 15, 31 s. */
const BACKLOG = 4096

export interface Http1Request {
  readonly method: string
  readonly path: string
  /** Header fields in order: name as sent, value, ... */
  readonly raw: readonly string[]
  /** Values of a header field; `name` in lower case. */
  values(name: string): string[]
}

export interface SeenHttp1 extends Http1Request {
  readonly message: IncomingMessage
  readonly response: ServerResponse
}

/** A request that asked for an upgrade: from here on the test controls everything. */
export interface SeenUpgrade extends Http1Request {
  readonly socket: Duplex
  /** Everything that came behind the head so far. */
  received(): string
  closed(): boolean
}

export interface Http1Stub {
  readonly url: string
  readonly port: number
  readonly caPem: string
  /** Everything but probes and upgrades. */
  readonly seen: SeenHttp1[]
  readonly upgrades: SeenUpgrade[]
  /** Default: 200 with a small JSON object, once the body has come. */
  answer: (request: SeenHttp1) => void
  /** Default: 101, and whatever comes is sent back. */
  answerUpgrade: (request: SeenUpgrade) => void
  /** TCP connections open. */
  connections(): number
  stop(): Promise<void>
}

export const SWITCH = 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n'

/** `plain`: http instead of https. */
export async function startHttp1Stub(options: { plain?: boolean } = {}): Promise<Http1Stub> {
  const { ca, pair } = stubServing()
  const server: Server =
    options.plain === true
      ? createHttpServer()
      : createHttpsServer({ cert: pair.certPem, key: pair.keyPem, ALPNProtocols: ['http/1.1'] })
  const sockets = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined)
    socket.on('close', () => sockets.delete(socket))
  })
  server.on('tlsClientError', () => undefined)
  const stub: Http1Stub = {
    url: '',
    port: 0,
    caPem: ca.certPem,
    seen: [],
    upgrades: [],
    answer: ({ message, response }) => {
      message.resume()
      message.on('end', () => response.writeHead(200, { 'content-type': 'application/json' }).end('{"kind":"Stub"}'))
    },
    answerUpgrade: ({ socket }) => {
      socket.write(SWITCH)
      socket.pipe(socket)
    },
    connections: () => sockets.size,
    stop: () =>
      new Promise((resolve) => {
        for (const socket of sockets) socket.destroy()
        server.close(() => resolve())
      }),
  }
  server.on('request', (message: IncomingMessage, response: ServerResponse) => {
    message.on('error', () => undefined)
    response.on('error', () => undefined)
    if (message.url === '/readyz') {
      response.end('ok')
      return
    }
    // The gateway checks its own rights, in addition to its probes.
    if (message.url?.endsWith('/selfsubjectaccessreviews') && message.headers['impersonate-user'] === undefined) {
      response.end('{"status":{"allowed":true}}')
      return
    }
    const request = { ...describe(message), message, response }
    stub.seen.push(request)
    stub.answer(request)
  })
  server.on('upgrade', (message: IncomingMessage, socket: Duplex, first: Buffer) => {
    const chunks: Buffer[] = [first]
    let closed = false
    socket.on('error', () => undefined)
    socket.on('data', (chunk: Buffer) => chunks.push(chunk))
    socket.on('close', () => {
      closed = true
    })
    const received = (): string => Buffer.concat(chunks).toString('latin1')
    const request = { ...describe(message), socket, received, closed: () => closed }
    stub.upgrades.push(request)
    stub.answerUpgrade(request)
  })
  await new Promise<void>((resolve) => server.listen({ port: 0, host: '127.0.0.1', backlog: BACKLOG }, resolve))
  const { port } = server.address() as AddressInfo
  return Object.assign(stub, { port, url: `${options.plain === true ? 'http' : 'https'}://127.0.0.1:${port}` })
}

function describe(message: IncomingMessage): Http1Request {
  const raw = message.rawHeaders
  return {
    method: message.method ?? '',
    path: message.url ?? '',
    raw,
    values: (name) => raw.filter((_, i) => i % 2 === 1 && raw[i - 1]?.toLowerCase() === name),
  }
}
