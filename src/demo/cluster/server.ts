// DEMO ONLY. The HTTP part of an apiserver of the demo: HTTP/2 and HTTP/1.1 on one TLS port, on Node's own server.
// This is not the gateway and shares no server code with it: it stands for the kube-apiservers behind one.

import { randomUUID } from 'node:crypto'
import { type IncomingMessage, ServerResponse } from 'node:http'
import { createSecureServer, Http2ServerRequest, type Http2ServerResponse } from 'node:http2'
import type { AddressInfo, Socket } from 'node:net'
import type { Writable } from 'node:stream'
import { TLSSocket } from 'node:tls'
import type { UserInfo } from '../../api/kube/user.ts'
import { parseRequestInfo } from '../../core/request/request-info.ts'
import type { KeyPair } from '../../io/pki/pki.ts'
import { ApiError, badRequest, statusOf } from './api-error.ts'
import { type Answer, type Call, type ClusterState, jsonAnswer } from './call.ts'
import { certificateUser, identify } from './identity.ts'
import { answerCall } from './routes.ts'

export interface Replica {
  readonly port: number
  stop(): Promise<void>
}

type Incoming = IncomingMessage | Http2ServerRequest
type Outgoing = ServerResponse | Http2ServerResponse

const MAX_BODY_BYTES = 3 * 1024 * 1024
/** A watcher that is so far behind is cut off, as kube-apiserver does. */
const MAX_BEHIND_BYTES = 8 * 1024 * 1024

/** One apiserver on a free port of 127.0.0.1, or on `port`. `name` is in the x-demo-apiserver field of every answer. */
export async function startReplica(
  state: ClusterState,
  name: string,
  tls: { readonly clientCA: string; readonly serving: KeyPair },
  port = 0,
): Promise<Replica> {
  const server = createSecureServer({
    allowHTTP1: true,
    cert: tls.serving.certPem,
    key: tls.serving.keyPem,
    ca: tls.clientCA,
    requestCert: true,
    rejectUnauthorized: false,
    settings: { maxConcurrentStreams: 250 },
  })
  const sockets = new Set<Socket>()
  const users = new WeakMap<object, UserInfo>()
  server.on('connection', (socket: Socket) => {
    socket.setNoDelay(true)
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
  })
  server.on('secureConnection', (socket) => {
    socket.on('error', () => socket.destroy())
    const user = certificateUser(socket)
    if (user !== undefined) users.set(socket, user)
  })
  // An HTTP/2 request does not show its TLS socket, but its session was made with it.
  server.on('session', (session) => {
    const { socket } = session
    const user = socket instanceof TLSSocket ? certificateUser(socket) : undefined
    if (user !== undefined) users.set(session, user)
  })
  server.on('request', (request: Incoming, response: Outgoing) => {
    const connection = request instanceof Http2ServerRequest ? request.stream.session : request.socket
    const user = connection === undefined ? undefined : users.get(connection)
    serve(state, name, user, request, response).catch(() => request.destroy())
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, '127.0.0.1', resolve)
  })
  const address = server.address() as AddressInfo
  return {
    port: address.port,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        for (const socket of sockets) socket.destroy()
      }),
  }
}

async function serve(
  state: ClusterState,
  name: string,
  certificate: UserInfo | undefined,
  request: Incoming,
  response: Outgoing,
): Promise<void> {
  // A client that went away is no error of ours.
  const body: Writable = response
  body.on('error', () => undefined)
  let answer: Answer
  try {
    answer = answerCall(state, await readCall(state, certificate, request))
  } catch (error) {
    const known = error instanceof ApiError ? error : new ApiError(500, 'InternalError', String(error))
    answer = jsonAnswer(statusOf(known), known.code)
  }
  send(name, answer, request, response)
}

async function readCall(state: ClusterState, certificate: UserInfo | undefined, request: Incoming): Promise<Call> {
  const method = request.method ?? 'GET'
  const target = request.url ?? '/'
  const user = identify(state, certificate, request.rawHeaders)
  const info = parseRequestInfo(method, target)
  if ('failure' in info) throw badRequest(info.failure)
  const queryAt = target.indexOf('?')
  const { headers } = request
  return {
    method,
    info,
    query: queryAt < 0 ? '' : target.slice(queryAt + 1),
    accept: headers.accept ?? '',
    contentType: (headers['content-type'] ?? '').split(';')[0]?.trim().toLowerCase() ?? '',
    ifNoneMatch: headers['if-none-match'] ?? '',
    user,
    body: await readBody(request),
  }
}

async function readBody(request: Incoming): Promise<Buffer> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length
    if (size > MAX_BODY_BYTES) throw new ApiError(413, 'RequestEntityTooLarge', 'limit is 3145728')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

function send(name: string, answer: Answer, request: Incoming, response: Outgoing): void {
  const { stream } = answer
  const body: Writable = response
  response.statusCode = answer.code
  response.setHeader('content-type', answer.contentType)
  response.setHeader('cache-control', 'no-cache, private')
  response.setHeader('x-demo-apiserver', name)
  const auditId = request.headers['audit-id']
  response.setHeader('audit-id', typeof auditId === 'string' ? auditId : randomUUID())
  for (const [field, value] of Object.entries(answer.headers ?? {})) response.setHeader(field, value)
  if (stream === undefined) {
    body.end(request.method === 'HEAD' ? '' : answer.body)
    return
  }
  // Clients wait for the head of a watch, and the first event may be long in coming.
  if (response instanceof ServerResponse) response.flushHeaders()
  else response.writeHead(answer.code)
  let ended = false
  const stop = stream({
    write(text) {
      if (ended) return
      if (body.writableLength > MAX_BEHIND_BYTES) request.destroy()
      else body.write(text)
    },
    end() {
      ended = true
      body.end()
    },
  })
  body.on('close', () => {
    ended = true
    stop()
  })
}
