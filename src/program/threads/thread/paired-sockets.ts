// TLS connections with both ends in this thread, and no socket of the system below: no other program can see or reach them.

import { lookup } from 'node:dns'
import { once } from 'node:events'
import { type Duplex, duplexPair } from 'node:stream'
import { createServer, type Server, type TLSSocket, connect as tlsConnect } from 'node:tls'
import type { ServingPair } from '../../../gateway/io/listener/tls-contexts.ts'
import { DialRules } from '../../../kit/core/dial/dial-rules.ts'
import { DialGuard, GuardedServer, type ServerTarget } from '../../../kit/io/dial/dial-guard.ts'

const PROTOCOLS = ['h2']

export class PairedServer {
  readonly #server: Server
  /** What is open, with and without TLS. */
  readonly #open = new Set<Duplex>()
  #closed = false

  constructor(pair: ServingPair, serve: (socket: TLSSocket) => void) {
    this.#server = createServer({ ...pair, ALPNProtocols: PROTOCOLS })
    this.#server.on('secureConnection', (socket) => {
      this.#keep(socket)
      serve(socket)
    })
    this.#server.on('tlsClientError', (_, socket) => socket.destroy())
  }

  /** The client's end of a new connection, on which it speaks TLS. @throws once closed */
  dial(): Duplex {
    if (this.#closed) throw new Error('the server is closed')
    const [near, far] = duplexPair()
    this.#keep(near)
    this.#keep(far)
    this.#server.emit('connection', far)
    return near
  }

  /** A client's connection. Its certificate is not verified: there is only this one. @throws (rejects) OpenSSL's error */
  async connect(): Promise<TLSSocket> {
    const socket = tlsConnect({ socket: this.dial(), rejectUnauthorized: false, ALPNProtocols: PROTOCOLS })
    this.#keep(socket)
    await once(socket, 'secureConnect')
    return socket
  }

  #keep(socket: Duplex): void {
    this.#open.add(socket)
    socket.on('error', () => undefined)
    socket.once('close', () => this.#open.delete(socket))
  }

  /** Resolves when everything is closed. */
  async close(): Promise<void> {
    this.#closed = true
    const closed = [...this.#open].map((socket) => new Promise((resolve) => socket.once('close', resolve)))
    for (const socket of this.#open) socket.destroy()
    await Promise.all(closed)
  }
}

/** Leads every connection of the gateway to a server in this thread, whatever its address. */
export class PairedGuard extends DialGuard {
  readonly #server: PairedServer

  constructor(server: PairedServer) {
    super([])
    this.#server = server
  }

  override to(host: string, port: number): GuardedServer {
    return new PairedTarget(this.#server, host, port)
  }
}

class PairedTarget extends GuardedServer {
  readonly #server: PairedServer

  constructor(server: PairedServer, host: string, port: number) {
    super(new DialRules([], () => false), lookup, host, port)
    this.#server = server
  }

  override target(): ServerTarget {
    return { ...super.target(), socket: this.#server.dial() }
  }
}
