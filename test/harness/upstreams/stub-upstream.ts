// A stub in the place of a kube-apiserver, for what a real one cannot be made to do: it records what arrives byte for byte and
// answers as a test tells it. Not a Kubernetes API.

import {
  createSecureServer,
  type Http2SecureServer,
  type Http2ServerRequest,
  type Http2ServerResponse,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
  type Settings,
} from 'node:http2'
import type { AddressInfo, Socket } from 'node:net'
import { createCA, issueCertificate, type KeyPair } from '../../../src/pki/io/pki.ts'
import { resetConnections } from './reset-connections.ts'

export interface SeenRequest {
  readonly method: string
  readonly path: string
  /** Header fields in order: name, value, ... */
  readonly raw: readonly string[]
  readonly stream: ServerHttp2Stream
  readonly session: ServerHttp2Session | undefined
  /** Values of a header field. */
  values(name: string): string[]
}

export type Answer = (request: SeenRequest) => void

/** A TokenReview or SubjectAccessReview as it arrived. */
export interface SeenReview {
  readonly request: SeenRequest
  /** The JSON body. */
  readonly review: Readonly<Record<string, unknown>>
  readonly spec: Readonly<Record<string, unknown>>
}

export interface StubUpstream {
  readonly url: string
  readonly port: number
  readonly caPem: string
  /** Everything but probes, reviews included. */
  readonly seen: SeenRequest[]
  /** What the next requests get. Default: 200 with a small JSON object. */
  answer: Answer
  /** TokenReviews, and SubjectAccessReviews where `answerAccess` is set. */
  readonly reviews: SeenReview[]
  /** Answers TokenReviews instead of `tokens`. */
  answerToken: ((review: SeenReview) => void) | undefined
  /** Answers SubjectAccessReviews; undefined: they are requests like any other. */
  answerAccess: ((review: SeenReview) => void) | undefined
  /** Answers TokenReviews; default: every token is rejected. */
  tokens: Map<string, { username: string; uid?: string; groups?: string[]; extra?: Record<string, string[]> }>
  /** Answers the gateway's questions for its own rights. Default: all are given. */
  answerRights: (review: SeenReview) => void
  /** Whether probes succeed. */
  healthy: boolean
  /** What probes get. Default: 200 or 500, by `healthy`. */
  probe: Answer
  /** Breaks every connection, as `kill -9` does. */
  breakConnections(): void
  sessions(): ServerHttp2Session[]
  stop(): Promise<void>
}

let serving: { ca: KeyPair; pair: KeyPair } | undefined

/** One CA and server certificate for all stubs of a process. */
export function stubServing(): { ca: KeyPair; pair: KeyPair } {
  if (serving === undefined) {
    const ca = createCA({ commonName: 'stub upstream CA' })
    const names = { dnsNames: ['localhost'], ipAddresses: ['127.0.0.1'] }
    serving = { ca, pair: issueCertificate(ca, { commonName: 'stub', usage: 'server', ...names }) }
  }
  return serving
}

export function reply(request: SeenRequest, status: number, body: string, fields: string[] = []): void {
  const { stream } = request
  if (stream.destroyed) return
  stream.respond([':status', String(status), 'content-type', 'application/json', ...fields])
  stream.end(body)
}

/**
 * @param settings its HTTP/2 SETTINGS, where they are not as usual
 * @param http1 answers HTTP/1.1, as the gateway's own clients of objects speak it. Default: it is not spoken
 */
export async function startStub(
  port = 0,
  settings: Settings = {},
  host = '127.0.0.1',
  http1?: (request: Http2ServerRequest, response: Http2ServerResponse) => void,
): Promise<StubUpstream> {
  const { ca, pair } = stubServing()
  const server: Http2SecureServer = createSecureServer({
    cert: pair.certPem,
    key: pair.keyPem,
    allowHTTP1: http1 !== undefined,
    // Asked for, so that a test can see which one the gateway shows.
    requestCert: true,
    rejectUnauthorized: false,
    settings: { maxConcurrentStreams: 250, initialWindowSize: 1024 * 1024, ...settings },
    maxHeaderListPairs: 10_000,
    strictSingleValueFields: false,
    maxSendHeaderBlockLength: 8 * 1024 * 1024,
    // Node refuses streams above it (10 by default), as an API server does not: answers of 4 MiB that were cancelled count until they are gone.
    maxSessionMemory: 1024,
  })
  const sockets = new Set<Socket>()
  const sessions = new Set<ServerHttp2Session>()
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
  })
  server.on('session', (session) => {
    sessions.add(session)
    session.on('error', () => undefined)
    session.on('close', () => sessions.delete(session))
  })
  if (http1 !== undefined) {
    server.on('request', (request, response) => {
      if (request.httpVersionMajor === 1) http1(request, response)
    })
  }
  server.on('sessionError', () => undefined)
  server.on('tlsClientError', () => undefined)
  const stub: StubUpstream = {
    url: '',
    port: 0,
    caPem: ca.certPem,
    seen: [],
    answer: (request) => reply(request, 200, '{"kind":"Stub"}'),
    reviews: [],
    answerToken: undefined,
    answerAccess: undefined,
    answerRights: (seen) => replyReview(seen, { allowed: true }),
    tokens: new Map(),
    healthy: true,
    // As a kube-apiserver: an answer without Audit-Id is one of a proxy.
    probe: (request) => reply(request, stub.healthy ? 200 : 500, 'ok', ['audit-id', 'probe']),
    breakConnections: () => resetConnections(sockets),
    sessions: () => [...sessions],
    stop: () =>
      new Promise((resolve) => {
        for (const session of sessions) session.destroy()
        for (const socket of sockets) socket.destroy()
        server.close(() => resolve())
      }),
  }
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
      if (request.path === '/readyz') stub.probe(request)
      else if (request.path.endsWith('/tokenreviews')) reviewToken(stub, request)
      else if (isOwnReview(request)) readReview(request, (seen) => stub.answerRights(seen))
      else if (request.path.endsWith('/subjectaccessreviews') && stub.answerAccess !== undefined)
        takeReview(stub, request, stub.answerAccess)
      else {
        stub.seen.push(request)
        stub.answer(request)
      }
    },
  )
  await new Promise<void>((resolve) => server.listen(port, host, resolve))
  const bound = (server.address() as AddressInfo).port
  return Object.assign(stub, { port: bound, url: `https://${host}:${bound}` })
}

/** Answers a TokenReview by `stub.tokens`, or as `stub.answerToken` says. */
function reviewToken(stub: StubUpstream, request: SeenRequest): void {
  const byTokens = (seen: SeenReview): void => {
    const user = stub.tokens.get(String(seen.spec['token']))
    replyReview(seen, user === undefined ? {} : { authenticated: true, user })
  }
  takeReview(stub, request, (seen) => (stub.answerToken ?? byTokens)(seen))
}

/** 201 with the review and this status. */
export function replyReview(seen: SeenReview, status: object): void {
  reply(seen.request, 201, JSON.stringify({ ...seen.review, status }))
}

/** Whether the gateway asks for itself: not the same question of a user, who is impersonated. */
function isOwnReview({ path, values }: SeenRequest): boolean {
  return /\/selfsubject(access)?reviews$/.test(path) && values('impersonate-user').length === 0
}

function takeReview(stub: StubUpstream, request: SeenRequest, answer: (review: SeenReview) => void): void {
  readReview(request, (seen) => {
    stub.reviews.push(seen)
    answer(seen)
  })
}

function readReview(request: SeenRequest, answer: (review: SeenReview) => void): void {
  const chunks: Buffer[] = []
  request.stream.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.stream.on('end', () => {
    const review = JSON.parse(Buffer.concat(chunks).toString()) as Record<string, unknown>
    answer({ request, review, spec: (review['spec'] ?? {}) as Record<string, unknown> })
  })
}
