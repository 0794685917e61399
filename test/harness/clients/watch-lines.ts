// A watch in JSON over HTTP/1.1, by its lines as they came.

import type { ClientRequest, IncomingMessage } from 'node:http'
import { request } from 'node:https'
import type { KubeRequest } from '../clusters/kube-request.ts'

interface WatchEvent {
  readonly type: string
  // biome-ignore lint/suspicious/noExplicitAny: an object of any kind, or a bookmark
  readonly object: any
}

export class WatchLines {
  readonly lines: string[] = []
  ended = false
  /** 0 = not answered yet. */
  status = 0
  readonly #request: ClientRequest

  constructor({
    server: url,
    serverName,
    path,
    user = {},
  }: Pick<KubeRequest, 'server' | 'serverName' | 'path' | 'user'>) {
    const { cert, token } = user
    const server = new URL(url)
    this.#request = request({
      host: server.hostname,
      port: server.port,
      path,
      rejectUnauthorized: false,
      agent: false,
      headers: {
        ...(serverName !== undefined && { host: `${serverName}:${server.port}` }),
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
      },
      ...(serverName !== undefined && { servername: serverName }),
      ...(cert !== undefined && { cert: cert.certPem, key: cert.keyPem }),
    })
    this.#request.on('error', () => undefined)
    this.#request.on('response', (response: IncomingMessage) => {
      this.status = response.statusCode ?? 0
      let rest = ''
      response.setEncoding('utf8')
      response.on('data', (text: string) => {
        const lines = (rest + text).split('\n')
        rest = lines.pop() ?? ''
        this.lines.push(...lines)
      })
      response.on('end', () => {
        this.ended = true
      })
    })
    this.#request.end()
  }

  get events(): readonly WatchEvent[] {
    return this.lines.map((line) => JSON.parse(line))
  }

  stop(): void {
    this.#request.destroy()
  }
}
