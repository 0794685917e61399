// The process of a hostile operator: the API server of one cluster for each kind of call, that answers this kind as it was told and all else
// honestly, and the client that makes the gateway ask. Told on standard input, in JSON lines.

import type { ClientHttp2Session, Http2ServerRequest, Http2ServerResponse } from 'node:http2'
import { request } from 'node:https'
import { setPriority } from 'node:os'
import process from 'node:process'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { setTimeout as pause } from 'node:timers/promises'
import type { TLSSocket } from 'node:tls'
import { encodePart } from '../../../src/pki/io/jwt.ts'
import { h2Connect, h2Open } from '../../harness/clients/h2-client.ts'
import { ANSWERS, type Answering, type AnswerKind } from './answers.ts'
import { type Asked, CALLS, type CallKind, callsIn, ISSUER_AUDIENCE, type Provocation } from './calls.ts'
import type { EndpointCommand, EndpointReport } from './endpoint-messages.ts'
import { type EndpointServer, startEndpointServer } from './endpoint-server.ts'
import { honest } from './honest.ts'

const LOWEST_PRIORITY = 19
/** Between two requests of a client. */
const BETWEEN_MS = 50
/** The client takes no more of an answer. */
const MOST_TAKEN_BYTES = 4 * 1024 * 1024
const IMPATIENT_MS = 2_000

let answer: AnswerKind | undefined
/** Answers of each kind of call since the last order. */
const answered = new Map<string, number>()
const servers: EndpointServer[] = []
/** Their ports, by kind of call. */
const ports: Record<string, number> = {}
let attack = new AbortController()
let number = 0

setPriority(LOWEST_PRIORITY)
for await (const line of createInterface({ input: process.stdin })) {
  const command = JSON.parse(line) as EndpointCommand
  if ('serve' in command) {
    for (const call of CALLS) ports[call.name] = await serve(call, command.serve)
    say({ ports })
  } else if ('attack' in command) {
    answer = ANSWERS.find(({ name }) => name === command.attack)
    answered.clear()
    attack = new AbortController()
    for (const call of CALLS) {
      const cluster = command.clusters[call.name]
      if (cluster === undefined || call.provocation === undefined) continue
      const begin = call.provocation.upgrade ? provokeUpgrades : provoke
      void begin(call, call.provocation, cluster, command, attack.signal).catch(() => undefined)
    }
    say({ began: true })
  } else if ('count' in command) say({ answered: Object.fromEntries(answered) })
  else {
    attack.abort()
    answer = undefined
    for (const { sockets } of servers) for (const socket of sockets) socket.destroy()
    say({ stopped: true })
  }
}
process.exit()

async function serve(call: CallKind, pair: { readonly cert: string; readonly key: string }): Promise<number> {
  const server = await startEndpointServer({
    ...pair,
    speaksH2: () => answer?.http1 !== true,
    onRequest: (request, response, socket) => void respond(call, request, response, socket).catch(() => undefined),
  })
  servers.push(server)
  return server.port
}

async function respond(
  call: CallKind,
  request: Http2ServerRequest,
  response: Http2ServerResponse,
  socket: TLSSocket,
): Promise<void> {
  const [path = '', query = ''] = request.url.split('?')
  const asked: Asked = { method: request.method, path, query }
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.on('error', () => undefined)
  response.on('error', () => undefined)
  await new Promise((resolve) => request.on('end', resolve))
  const body = Buffer.concat(chunks).toString()
  const answering = answeringOf(call, asked, body, response, socket)
  if (answer === undefined || !callsIn(answer.name).includes(call) || !call.is(asked)) return answering.honest()
  answered.set(call.name, (answered.get(call.name) ?? 0) + 1)
  await answer.answer(answering)
}

function answeringOf(
  call: CallKind,
  asked: Asked,
  body: string,
  response: Http2ServerResponse,
  socket: TLSSocket,
): Answering {
  const { signal } = attack
  // Absent over HTTP/1.1.
  const stream: Http2ServerResponse['stream'] | undefined = response.stream
  const isOver = (): boolean => signal.aborted || response.destroyed || stream?.destroyed === true
  const gone = new Promise<void>((resolve) => {
    response.on('close', resolve)
    signal.addEventListener('abort', () => resolve())
  })
  return {
    asked,
    stream: stream?.id ?? 0,
    head: (status, fields = {}) => void response.writeHead(status, { 'audit-id': 'hostile', ...fields }),
    async write(bytes) {
      if (isOver()) return false
      if (!response.write(bytes)) {
        await Promise.race([new Promise<void>((resolve) => response.once('drain', resolve)), gone])
      }
      return !isOver()
    },
    end: (bytes = '') => void (isOver() || response.end(bytes)),
    async raw(bytes) {
      if (socket.destroyed || isOver()) return false
      await new Promise<void>((resolve) => void socket.write(bytes, () => resolve()))
      return !socket.destroyed && !isOver()
    },
    honest() {
      const { status, text, open } = honest(asked, body, providerOf(call))
      response.writeHead(status, { 'content-type': 'application/json', 'audit-id': 'honest' })
      if (open) response.write(text)
      else response.end(text)
    },
    async pause(ms) {
      await pause(ms, undefined, { signal }).catch(() => undefined)
    },
  }
}

function providerOf({ name }: CallKind): { issuer: string; keys: string } {
  const issuer = originOf(name)
  return { issuer, keys: name === 'oidc-discovery' ? originOf('oidc-keys') : issuer }
}

function originOf(call: string): string {
  return `https://localhost:${ports[call]}`
}

/** Valid but for its signature, which is of a key that the gateway does not know. */
function idTokenOf(call: string): string {
  const seconds = Math.floor(Date.now() / 1000)
  const claims = { iss: originOf(call), aud: ISSUER_AUDIENCE, sub: `user-${number}`, iat: seconds, exp: seconds + 600 }
  return `${encodePart({ alg: 'ES256', kid: 'unknown' })}.${encodePart(claims)}.${'A'.repeat(86)}`
}

/** As `provoke`, with a connection for each. */
async function provokeUpgrades(
  _call: CallKind,
  { method, path }: Provocation,
  cluster: string,
  { gateway, certificate }: Extract<EndpointCommand, { attack: string }>,
  signal: AbortSignal,
): Promise<void> {
  const headers = {
    host: cluster,
    connection: 'Upgrade',
    upgrade: 'websocket',
    'sec-websocket-version': '13',
    'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
    'sec-websocket-protocol': 'v5.channel.k8s.io',
  }
  const target = { host: '127.0.0.1', port: gateway, servername: cluster, rejectUnauthorized: false, agent: false }
  while (!signal.aborted) {
    const { certPem: cert, keyPem: key } = certificate
    const sent = request({ ...target, cert, key, method, path, headers, timeout: IMPATIENT_MS })
    const destroy = (): void => void sent.destroy()
    sent.on('error', () => undefined).on('timeout', destroy)
    sent.on('response', (response) => takeSome(response, destroy))
    sent.on('upgrade', (_response, socket) =>
      takeSome(
        socket.on('error', () => undefined),
        destroy,
      ),
    )
    sent.end()
    const late = setTimeout(destroy, IMPATIENT_MS)
    await new Promise((resolve) => sent.on('close', resolve))
    clearTimeout(late)
    await pause(BETWEEN_MS, undefined, { signal }).catch(() => undefined)
  }
}

function takeSome(from: Readable, destroy: () => void): void {
  let taken = 0
  from.on('data', (chunk: Buffer) => {
    taken += chunk.length
    if (taken > MOST_TAKEN_BYTES) destroy()
  })
}

/** One request after the other, until told to stop. Connects again, since its cluster may not exist yet. */
async function provoke(
  call: CallKind,
  provocation: Provocation,
  cluster: string,
  { gateway, certificate }: Extract<EndpointCommand, { attack: string }>,
  signal: AbortSignal,
): Promise<void> {
  const connect = (): ClientHttp2Session =>
    h2Connect({ port: gateway, serverName: cluster, ...(provocation.anonymous !== true && { certificate }) })
  let session = connect()
  signal.addEventListener('abort', () => session.destroy())
  while (!signal.aborted) {
    if (session.closed || session.destroyed) session = connect()
    await requestOnce(call, session, cluster, provocation)
    await pause(BETWEEN_MS, undefined, { signal }).catch(() => undefined)
  }
}

async function requestOnce(
  call: CallKind,
  session: ClientHttp2Session,
  cluster: string,
  provocation: Provocation,
): Promise<void> {
  const { method, path, body, contentType = 'application/json', fields = {} } = provocation
  number++
  const own = Object.entries(fields).flat()
  const head = [':method', method, ':path', path, ':authority', cluster, ...own].map((text) =>
    text.replace('NUMBER', String(number)).replace('TOKEN', () => idTokenOf(call.name)),
  )
  if (body !== undefined) head.push('content-type', contentType)
  const stream = h2Open(session, head, { endStream: body === undefined })
  if (body !== undefined) stream.end(JSON.stringify(body))
  takeSome(stream, () => stream.destroy())
  const late = setTimeout(() => stream.destroy(), IMPATIENT_MS)
  await new Promise((resolve) => stream.on('close', resolve))
  clearTimeout(late)
}

function say(report: EndpointReport): void {
  process.stdout.write(`${JSON.stringify(report)}\n`)
}
