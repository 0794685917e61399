// One TLS port: opens it, accepts sockets and hands them to its connections. This file decides how sockets are accepted, connections.ts what is done
// with them.

import { createServer, type Server, type Socket } from 'node:net'
import { Connections, type ConnectionsOptions } from './connections.ts'
import { KEEP_ALIVE_MS, LISTEN_BACKLOG, listenInherited } from './inherited-listener.ts'

export interface ListenerOptions extends ConnectionsOptions {
  readonly host: string
  readonly port: number
  /** Several threads listen on the port, and the kernel distributes connections (SO_REUSEPORT). Default false. */
  readonly reusePort?: boolean
  /**
   * Receives every accepted socket before anything is read from it, and eventually passes it to `accept` of this listener, or of another thread's on
   * the same port. Default: `accept` at once.
   */
  readonly onSocket?: (socket: Socket) => void
  /** Inherited sockets to use instead of opening a port; none: opens its own. */
  readonly fds?: readonly number[]
  /** Opens nothing: all connections are accepted elsewhere and arrive through `accept`. Default false. */
  readonly handed?: boolean
}

export interface Listener {
  readonly port: number
  /** Takes over a connection to this port that was accepted elsewhere, and from which nothing was read. */
  accept(socket: Socket): void
  /** A drain is coming: each HTTP/1.1 response is the last of its connection. */
  leave(): void
  /**
   * Stops accepting, except for what the kernel has already accepted; HTTP/2 clients get GOAWAY, idle HTTP/1.1 connections are closed, running
   * requests continue.
   */
  drain(): void
  /** Closes every connection. */
  close(): void
  /** Open connections, plus one while others may be waiting to be accepted. */
  connections(): number
}

/** @throws if the port cannot be opened */
export async function listen(options: ListenerOptions): Promise<Listener> {
  const connections = new Connections(options)
  if (options.handed === true) return listenerOf(connections, options.port, () => undefined)
  const { fds = [] } = options
  if (fds.length > 0) {
    const inherited = await listenInherited(fds, (socket) => connections.accept(socket), false)
    return listenerOf(connections, inherited.port, () => inherited.close())
  }
  const { onSocket = (socket: Socket) => connections.accept(socket) } = options
  let accepted = 0
  const server = createServer(
    {
      noDelay: true,
      keepAlive: true,
      keepAliveInitialDelay: KEEP_ALIVE_MS,
      pauseOnConnect: options.onSocket !== undefined,
    },
    (socket) => {
      accepted++
      onSocket(socket)
    },
  )
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    const { host, port, reusePort = false } = options
    server.listen({ host, port, reusePort, backlog: LISTEN_BACKLOG }, () => resolve())
  })
  server.on('error', () => undefined)
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : options.port
  return listenerOf(
    connections,
    port,
    () => closeListening(server),
    () => accepted,
  )
}

/** @param accepted connections accepted so far. Default: no queue that ends with the port */
function listenerOf(
  connections: Connections,
  port: number,
  stopAccepting: () => void,
  accepted: () => number = () => 0,
): Listener {
  let state: 'open' | 'stopping' | 'stopped' = 'open'
  const stop = (): void => {
    state = 'stopped'
    stopAccepting()
  }
  return {
    port,
    accept: (socket) => connections.accept(socket),
    leave: () => connections.leave(),
    drain() {
      if (state === 'open') {
        state = 'stopping'
        whenQueueIsEmpty(accepted, stop)
      }
      connections.drain()
    },
    close() {
      stop()
      connections.close()
    },
    connections: () => connections.size + (state === 'stopping' ? 1 : 0),
  }
}

/**
 * Runs `then` once the event loop has accepted everything in the port's queue: closing the port resets queued connections. libuv accepts one
 * connection per turn, and the first turn may be past its poll of the port. The wait for new connections is bounded.
 */
function whenQueueIsEmpty(accepted: () => number, then: () => void, turnsLeft: number = LISTEN_BACKLOG): void {
  const before = accepted()
  setImmediate(() =>
    setImmediate(() => {
      if (accepted() > before && turnsLeft > 0) whenQueueIsEmpty(accepted, then, turnsLeft - 1)
      else then()
    }),
  )
}

function closeListening(server: Server): void {
  if (server.listening) server.close()
}
