// The loopback address at which the browser delivers the code of a login (RFC 8252, section 7.3). What else arrives there is answered and forgotten:
// every program and every web page on this machine can send requests to it.

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { errorMessage } from '../../kit/api/validation/error-message.ts'
import { UserError } from '../../kit/api/validation/field-errors.ts'
import type { RedirectAddress } from '../core/login-spec.ts'

export interface RedirectListener {
  /** The redirect_uri of the authorization request. */
  readonly redirectUri: string
  /** Requests to it that belonged to another login. */
  readonly strayed: number
  /** The first request with this state. @throws (rejects) with the signal's reason */
  response(state: string, signal: AbortSignal): Promise<RedirectResponse>
  close(): void
}

export interface RedirectResponse {
  readonly url: URL
  /** Tells the user in the browser how it went. */
  show(succeeded: boolean, text: string): Promise<void>
}

/** A port that is free at one of the addresses of localhost may be taken at the other. */
const ATTEMPTS = 5
const REQUEST_TIMEOUT_MS = 10_000
/** The port of http://, which URLs and `Host` leave out. */
const DEFAULT_PORT = 80
const HEADERS = {
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'",
  'content-type': 'text/html; charset=utf-8',
  'referrer-policy': 'no-referrer',
}

/** @throws {UserError} if the port is taken */
export async function listenForRedirect({ host, port, path }: RedirectAddress): Promise<RedirectListener> {
  const addresses = host === 'localhost' ? ['127.0.0.1', '::1'] : [host.replace(/^\[|\]$/g, '')]
  for (let attempt = 1; ; attempt++) {
    try {
      return new Redirects(await listenOn(addresses, port), host, path)
    } catch (error) {
      const taken = error instanceof Error && 'code' in error && error.code === 'EADDRINUSE'
      if (taken && port === 0 && attempt < ATTEMPTS) continue
      const fix =
        'end the program that uses it, or register another address at the provider and give it as --redirect-url'
      const problem = taken ? 'the port is taken' : errorMessage(error)
      throw new UserError(`cannot listen on ${host}:${port}, to which the browser is redirected: ${problem}`, fix)
    }
  }
}

async function listenOn(addresses: readonly string[], port: number): Promise<readonly Server[]> {
  const servers: Server[] = []
  let found = port
  try {
    for (const address of addresses) {
      const server = createServer({ requestTimeout: REQUEST_TIMEOUT_MS, headersTimeout: REQUEST_TIMEOUT_MS })
      try {
        await listen(server, address, found)
      } catch (error) {
        // localhost has one address where IPv6 is switched off.
        if (servers.length > 0 && isAbsent(error)) continue
        throw error
      }
      servers.push(server)
      found = (server.address() as AddressInfo).port
    }
    return servers
  } catch (error) {
    for (const server of servers) server.close()
    throw error
  }
}

function isAbsent(error: unknown): boolean {
  return error instanceof Error && 'code' in error && ['EADDRNOTAVAIL', 'EAFNOSUPPORT'].includes(String(error.code))
}

function listen(server: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen({ host, port, exclusive: true }, () => {
      server.removeListener('error', reject)
      resolve()
    })
  })
}

class Redirects implements RedirectListener {
  readonly redirectUri: string
  strayed = 0
  readonly #servers: readonly Server[]
  readonly #origin: string
  /** What `Host` may be: browsers leave the port of the scheme out. */
  readonly #hosts: readonly string[]
  readonly #path: string

  constructor(servers: readonly Server[], host: string, path: string) {
    this.#servers = servers
    this.#path = path
    const { port } = servers[0]?.address() as AddressInfo
    this.redirectUri = `http://${host}:${port}${path}`
    this.#origin = new URL(this.redirectUri).origin
    this.#hosts = port === DEFAULT_PORT ? [host, `${host}:${port}`] : [`${host}:${port}`]
  }

  response(state: string, signal: AbortSignal): Promise<RedirectResponse> {
    return new Promise((resolve, reject) => {
      signal.throwIfAborted()
      const onRequest = (request: IncomingMessage, response: ServerResponse): void => {
        const found = this.#match(request, state)
        if (typeof found === 'number') {
          void answer(response, found, false, 'No login with this state is waiting for an answer.')
          return
        }
        for (const server of this.#servers) server.off('request', onRequest).on('request', refuse)
        resolve({ url: found, show: (succeeded, text) => answer(response, succeeded ? 200 : 400, succeeded, text) })
      }
      for (const server of this.#servers) server.on('request', onRequest)
      signal.addEventListener('abort', () => reject(signal.reason), { once: true })
    })
  }

  /** A status, if it does not belong to this login. The name in `Host` keeps out pages whose own name leads to this machine. */
  #match({ method, url = '', headers: { host = '' } }: IncomingMessage, state: string): URL | number {
    const found = URL.canParse(url, this.#origin) && url.startsWith('/') ? new URL(url, this.#origin) : undefined
    if (found?.pathname !== this.#path || found.origin !== this.#origin) return 404
    if (method !== 'GET') return 405
    if (this.#hosts.includes(host) && found.searchParams.getAll('state').join(' ') === state) return found
    this.strayed++
    return 400
  }

  close(): void {
    for (const server of this.#servers) {
      server.close()
      server.closeAllConnections()
    }
  }
}

function refuse(_: IncomingMessage, response: ServerResponse): void {
  void answer(response, 404, false, 'The login is over.')
}

/** Resolves when it is sent, or cannot be. */
function answer(response: ServerResponse, status: number, succeeded: boolean, text: string): Promise<void> {
  return new Promise((resolve) => {
    // Its browser may have left while the provider was asked.
    if (response.destroyed || response.closed) return resolve()
    response.once('close', resolve)
    response.writeHead(status, { ...HEADERS, connection: 'close' }).end(resultPage(succeeded, text))
  })
}

// What the browser shows when it has brought the code: how the login went. Without scripts; nothing in it is loaded.

function resultPage(succeeded: boolean, text: string): string {
  const title = succeeded ? 'Logged in' : 'Not logged in'
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>${title} - Portcullis</title>
<style>body { font: 1rem/1.5 system-ui, sans-serif; margin: 4rem auto; max-width: 36rem; padding: 0 1rem }</style>
<h1>${title}</h1>
<p>${escaped(text)}</p>
</html>
`
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

function escaped(text: string): string {
  return text.replaceAll(/[&<>"']/g, (character) => ENTITIES[character] ?? '')
}
