// One TLS port: opens it, accepts, and hands each socket to its connections. How a socket is accepted is decided here, what is done
// with it in connections.ts.

import { createServer, type Server, type Socket } from 'node:net'
import { Connections, type ConnectionsOptions } from './connections.ts'

export interface ListenerOptions extends ConnectionsOptions {
  readonly host: string
  readonly port: number
  /** Several threads listen on the port, and the kernel spreads the connections (SO_REUSEPORT). Default false. */
  readonly reusePort?: boolean
  /**
   * Takes every socket that is accepted, and of which nothing was read: `accept` of this listener, or of another thread's on the same
   * port, gets it in the end. Default: `accept` at once.
   */
  readonly onSocket?: (socket: Socket) => void
}

export interface Listener {
  readonly port: number
  /** Takes over a connection to this port that was accepted elsewhere, and from which nothing was read. */
  accept(socket: Socket): void
  /** Stops accepting; HTTP/2 clients get GOAWAY, idle HTTP/1.1 connections close, running requests go on. */
  drain(): void
  /** Ends every connection. */
  close(): void
  connections(): number
}

const KEEP_ALIVE_MS = 30_000
const LISTEN_BACKLOG = 4096

/** @throws when the port cannot be opened */
export async function listen(options: ListenerOptions): Promise<Listener> {
  const connections = new Connections(options)
  const { onSocket } = options
  const server = createServer(
    { noDelay: true, keepAlive: true, keepAliveInitialDelay: KEEP_ALIVE_MS, pauseOnConnect: onSocket !== undefined },
    onSocket ?? ((socket) => connections.accept(socket)),
  )
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    const { host, port, reusePort = false } = options
    server.listen({ host, port, reusePort, backlog: LISTEN_BACKLOG }, () => resolve())
  })
  server.on('error', () => undefined)
  const address = server.address()
  return {
    port: typeof address === 'object' && address !== null ? address.port : options.port,
    accept: (socket) => connections.accept(socket),
    drain() {
      closeListening(server)
      connections.drain()
    },
    close() {
      closeListening(server)
      connections.close()
    },
    connections: () => connections.size,
  }
}

function closeListening(server: Server): void {
  if (server.listening) server.close()
}
