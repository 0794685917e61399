// The gateway that one gets off the shelf in Node, for comparison: node:http2 in front, http2-proxy behind it. It does what any
// gateway must: identity from a client certificate or a token (TokenReview, remembered), Impersonate headers in the place of
// the client's, round robin over the servers. No policies, no limits, no metrics.

import { readFileSync } from 'node:fs'
import { createSecureServer, type Http2ServerRequest, type Http2ServerResponse } from 'node:http2'
import { Agent, request as send } from 'node:https'
import process from 'node:process'
import type { TLSSocket } from 'node:tls'
import { parseArgs } from 'node:util'
import proxy from 'http2-proxy'

const { values } = parseArgs({
  options: {
    port: { type: 'string', default: '0' },
    upstreams: { type: 'string', default: '' },
    ca: { type: 'string', default: '' },
    cert: { type: 'string', default: '' },
    key: { type: 'string', default: '' },
    servername: { type: 'string', default: '' },
  },
})

interface Identity {
  readonly user: string
  readonly groups: readonly string[]
}

interface TokenReview {
  readonly status: { readonly authenticated: boolean; readonly user: { username: string; groups: string[] } }
}

const REVIEW_PATH = '/apis/authentication.k8s.io/v1/tokenreviews'
const GATEWAY_TOKEN = 'Bearer gateway'

const ca = readFileSync(values.ca)
const servers = values.upstreams.split(',').map(Number)
const agent = new Agent({ keepAlive: true, ca, servername: values.servername })
const remembered = new Map<string, Identity>()
/** Reading a certificate costs more than all the rest of a request: once for each connection. */
const certified = new WeakMap<object, Identity>()
let turn = 0

const server = createSecureServer({
  cert: readFileSync(values.cert),
  key: readFileSync(values.key),
  ca,
  requestCert: true,
  rejectUnauthorized: false,
  allowHTTP1: true,
})
server.on('request', (request, response) => {
  // node:http2 says by events, too, that a client has gone.
  response.on('error', () => undefined)
  serve(request, response).catch(() => {
    if (!response.headersSent) response.writeHead(502)
    response.end()
  })
})
server.listen(Number(values.port), '127.0.0.1')
process.on('SIGTERM', () => process.exit(0))

async function serve(request: Http2ServerRequest, response: Http2ServerResponse): Promise<void> {
  const identity = await authenticate(request)
  if (identity === undefined) {
    response.writeHead(401)
    response.end()
    return
  }
  await proxy.web(request, response, {
    onReq: (_request, { method, path, headers }) => {
      for (const name of Object.keys(headers)) if (name.startsWith('impersonate-')) delete headers[name]
      headers['authorization'] = GATEWAY_TOKEN
      headers['impersonate-user'] = identity.user
      headers['impersonate-group'] = [...identity.groups]
      return send({ method, path, headers, agent, host: '127.0.0.1', port: nextServer() })
    },
  })
}

function nextServer(): number | undefined {
  turn = (turn + 1) % servers.length
  return servers[turn]
}

async function authenticate(request: Http2ServerRequest): Promise<Identity | undefined> {
  const connection = request.stream.session ?? request.socket
  const certificate = certified.get(connection) ?? identityOf(request.socket as TLSSocket)
  if (certificate !== undefined) {
    certified.set(connection, certificate)
    return certificate
  }
  const token = /^Bearer (.+)$/.exec(request.headers.authorization ?? '')?.[1]
  if (token === undefined) return undefined
  const known = remembered.get(token) ?? (await review(token))
  if (known !== undefined) remembered.set(token, known)
  return known
}

function identityOf(socket: TLSSocket): Identity | undefined {
  if (!socket.authorized) return undefined
  return { user: String(socket.getPeerCertificate().subject.CN), groups: ['system:authenticated'] }
}

function review(token: string): Promise<Identity | undefined> {
  return new Promise((resolve, reject) => {
    const headers = { authorization: GATEWAY_TOKEN, 'content-type': 'application/json' }
    const options = { method: 'POST', path: REVIEW_PATH, headers, agent, host: '127.0.0.1', port: nextServer() }
    const asked = send(options, (answer) => {
      let text = ''
      answer.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk
      })
      answer.on('end', () => {
        const { status } = JSON.parse(text) as TokenReview
        resolve(status.authenticated ? { user: status.user.username, groups: status.user.groups } : undefined)
      })
    })
    asked.on('error', reject)
    asked.end(JSON.stringify({ spec: { token } }))
  })
}
