// One HTTP/1.1 request to an apiserver or a gateway, for what the harness and tests ask without kubectl.

import { type Agent, type RequestOptions, request } from 'node:https'
import type { Credentials } from './kubeconfig.ts'

export interface KubeRequest {
  /** `https://host:port`, and a path prefix where the cluster is served under one. */
  readonly server: string
  /** PEM; absent = the certificate is not verified. */
  readonly ca?: string
  readonly user?: Credentials
  readonly method?: string
  /** Raw request target. */
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  /** Sent as JSON. */
  readonly body?: unknown
  /** Sent as it is, in the place of `body`; as JSON unless `headers` say otherwise. */
  readonly raw?: Buffer | string
  /** Sent as SNI; also the Host header unless `headers` has one. */
  readonly serverName?: string
  /** Default 30 s. */
  readonly timeoutMs?: number
  /** Keeps connections for later requests. Default: each has a connection of its own, so that those to a gateway meet all of its threads. */
  readonly agent?: Agent
}

export interface KubeResponse {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly text: string
  /** The body as it came. */
  readonly bytes: Buffer
  /** The body parsed; throws when it is not JSON. */
  // biome-ignore lint/suspicious/noExplicitAny: tests read objects of every kind
  json(): any
}

export function kubeRequest(options: KubeRequest): Promise<KubeResponse> {
  const { cert, token } = options.user ?? {}
  const body = options.raw ?? (options.body === undefined ? undefined : JSON.stringify(options.body))
  const server = new URL(options.server)
  const tls: RequestOptions = {
    host: server.hostname,
    port: server.port,
    method: options.method ?? 'GET',
    path: server.pathname.replace(/\/$/, '') + options.path,
    headers: {
      ...(options.serverName !== undefined && { host: `${options.serverName}:${server.port}` }),
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
      // Without a length Node sends no body with a DELETE.
      ...(body !== undefined && { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }),
      ...options.headers,
    },
    ...(options.ca === undefined ? { rejectUnauthorized: false } : { ca: options.ca }),
    ...(cert !== undefined && { cert: cert.certPem, key: cert.keyPem }),
    ...(options.serverName !== undefined && { servername: options.serverName }),
    timeout: options.timeoutMs ?? 30_000,
    agent: options.agent ?? false,
  }
  return new Promise((resolve, reject) => {
    const outgoing = request(tls, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('error', reject)
      response.on('end', () => {
        const bytes = Buffer.concat(chunks)
        const text = bytes.toString()
        const status = response.statusCode ?? 0
        resolve({ status, headers: response.headers, text, bytes, json: () => JSON.parse(text) })
      })
    })
    outgoing.on('timeout', () => outgoing.destroy(new Error(`no answer from ${options.server}${options.path}`)))
    outgoing.on('error', (error) => {
      // The server has closed a kept connection at the same moment: it has not read the request.
      if (outgoing.reusedSocket && 'code' in error && error.code === 'ECONNRESET') resolve(kubeRequest(options))
      else reject(error)
    })
    outgoing.end(body)
  })
}
