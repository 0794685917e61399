// Requests sent straight through the pool of an endpoint, without the gateway around it, and upstreams to send them to.

import {
  createSecureServer,
  type Http2SecureServer,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
  type Settings,
} from 'node:http2'
import type { AddressInfo, Socket } from 'node:net'
import { createServer as createTlsServer, type TLSSocket } from 'node:tls'
import { Offenders } from '../../../src/gateway/core/upstream/offenders.ts'
import type { SharedByCluster } from '../../../src/gateway/io/upstream/offences.ts'
import {
  createUpstreamEndpoint,
  type RequestKind,
  type UpstreamEndpoint,
} from '../../../src/gateway/io/upstream/pool.ts'
import { Relists } from '../../../src/gateway/io/upstream/relists.ts'
import { createUpstreamCounters } from '../../../src/gateway/metrics/upstream-counters.ts'
import { createHttp2Counters } from '../../../src/http2/counters.ts'
import type { Charge, ResetReason, Stream, StreamEvents } from '../../../src/kit/api/stream.ts'
import { localGuard } from './local-guard.ts'
import { resetConnections } from './reset-connections.ts'
import { type Answer, type SeenRequest, stubServing } from './stub-upstream.ts'

const CLIENT = { insecure: true, bearerToken: '', key: '', cert: '', ca: '', serverName: '', qps: 0, burst: 0 }

export interface TestEndpoint {
  readonly pool: UpstreamEndpoint
  readonly shared: SharedByCluster
  /** The arguments of `onBroken`. */
  readonly broken: Error[]
}

/** @param idleCloseMs after how long a connection without requests is closed. Default: a minute */
export function endpointAt(port: number, idleCloseMs: number = 60_000): TestEndpoint {
  const url = `https://127.0.0.1:${port}`
  const compiled = { url, scheme: 'https', host: '127.0.0.1', port, disabled: false, weight: 100 } as const
  const broken: Error[] = []
  const counters = { http2: createHttp2Counters(), pool: createUpstreamCounters() }
  const onBroken = (error: Error): void => void broken.push(error)
  const shared = {
    cluster: 'prod.example.com',
    relists: new Relists(),
    offenders: new Offenders(),
    idleCloseMs: () => idleCloseMs,
    onQuarantined: () => undefined,
  }
  return {
    pool: createUpstreamEndpoint(compiled, CLIENT, { onBroken }, counters, shared, localGuard()),
    shared,
    broken,
  }
}

export interface Outcome {
  readonly status: string
  readonly text: string
  readonly reset: ResetReason | undefined
}

export interface Exchange {
  readonly stream: Stream
  /** What has come so far. */
  readonly received: { status: string; bytes: number }
  readonly outcome: Promise<Outcome>
}

export interface AskOptions {
  readonly kind?: RequestKind
  readonly method?: string
  readonly path?: string
  /** False: the caller sends the body. Default true. */
  readonly end?: boolean
  /** False: nothing of the answer is taken. Default true. */
  readonly read?: boolean
  /** The user that is charged. Default: one of its own. */
  readonly source?: string
}

export function ask(pool: UpstreamEndpoint, options: AskOptions = {}): Exchange {
  const { kind = 'unary', method = 'GET', path = '/', end = true, read = true, source = 'somebody' } = options
  const { promise, resolve } = Promise.withResolvers<Outcome>()
  const received = { status: '', bytes: 0 }
  const chunks: Buffer[] = []
  const done = (reset: ResetReason | undefined): void =>
    resolve({ status: received.status, text: Buffer.concat(chunks).toString(), reset })
  const head = [':method', method, ':path', path, ':authority', 'upstream', ':scheme', 'https']
  const charge = chargeOf(source)
  const events: StreamEvents = {
    onHeaders(list, last) {
      received.status = list[1] ?? ''
      if (last) done(undefined)
    },
    onBody(chunk, last) {
      received.bytes += chunk.length
      if (read) {
        chunks.push(Buffer.from(chunk))
        stream.credit(chunk.length)
      }
      if (last) done(undefined)
    },
    onTrailers: () => done(undefined),
    onDrained: () => undefined,
    onReset: (reason) => done(reason),
  }
  const stream = pool.open(kind, head, { list: ['x-shared', 'yes'], encoded: undefined }, end, events, charge)
  return { stream, received, outcome: promise }
}

export interface TestUpstream {
  readonly port: number
  readonly seen: SeenRequest[]
  readonly sessions: ServerHttp2Session[]
  answer: Answer
  /** Breaks every connection, as `kill -9` does. */
  breakConnections(): void
  stop(): Promise<void>
}

/** An HTTP/2 server that remembers its connections in the order in which they came, closed ones too. */
export async function startUpstream(settings: Settings = {}): Promise<TestUpstream> {
  const { pair } = stubServing()
  const server: Http2SecureServer = createSecureServer({
    cert: pair.certPem,
    key: pair.keyPem,
    settings,
    maxSessionMemory: 256,
  })
  const sockets: Socket[] = []
  server.on('connection', (socket: Socket) => sockets.push(socket))
  const upstream: TestUpstream = {
    port: 0,
    seen: [],
    sessions: [],
    answer: ({ stream }) => {
      stream.respond([':status', '200'])
      stream.end('ok')
    },
    breakConnections: () => resetConnections(sockets),
    stop: () =>
      new Promise((resolve) => {
        for (const session of upstream.sessions) session.destroy()
        // Those of which there is no session yet, too.
        for (const socket of sockets) socket.destroy()
        server.close(() => resolve())
      }),
  }
  server.on('session', (session) => {
    upstream.sessions.push(session)
    session.on('error', () => undefined)
  })
  server.on('sessionError', () => undefined)
  server.on(
    'stream',
    (stream: ServerHttp2Stream, headers: IncomingHttpHeaders, _flags: number, rawHeaders: unknown) => {
      stream.on('error', () => undefined)
      const raw = (rawHeaders as unknown[]).map(String)
      const request: SeenRequest = {
        method: String(headers[':method']),
        path: String(headers[':path']),
        raw,
        stream,
        session: stream.session as ServerHttp2Session | undefined,
        values: (name) => raw.filter((_, i) => i % 2 === 1 && raw[i - 1] === name),
      }
      upstream.seen.push(request)
      upstream.answer(request)
    },
  )
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return Object.assign(upstream, { port: (server.address() as AddressInfo).port })
}

export interface RawUpstream {
  readonly port: number
  readonly sockets: TLSSocket[]
  stop(): Promise<void>
}

/** A TLS server that negotiates a protocol, by default h2, and leaves all the rest to the test. */
export async function startRawUpstream(
  onSocket: (socket: TLSSocket) => void,
  protocol: 'h2' | 'http/1.1' = 'h2',
): Promise<RawUpstream> {
  const { pair } = stubServing()
  const sockets: TLSSocket[] = []
  const server = createTlsServer({ cert: pair.certPem, key: pair.keyPem, ALPNProtocols: [protocol] }, (socket) => {
    sockets.push(socket)
    socket.on('error', () => undefined)
    onSocket(socket)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    port: (server.address() as AddressInfo).port,
    sockets,
    stop: () =>
      new Promise((resolve) => {
        for (const socket of sockets) socket.destroy()
        server.close(() => resolve())
      }),
  }
}

export function chargeOf(source: string): Charge {
  return { source, weight: 1, known: true }
}
