// One TLS port: opens it, accepts, and hands each socket to its connections. How a socket is accepted is decided here, what is done
// with it in connections.ts.

import { createServer, type Server, type Socket } from 'node:net'
import { Connections, type ConnectionsOptions } from './connections.ts'
import { KEEP_ALIVE_MS, LISTEN_BACKLOG, listenInherited } from './inherited-listener.ts'

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
  /** Sockets that the process has inherited instead of a port of its own; none: it opens its own. */
  readonly fds?: readonly number[]
  /** Nothing is opened: all connections are accepted elsewhere, and come by `accept`. Default false. */
  readonly handed?: boolean
}

export interface Listener {
  readonly port: number
  /** Takes over a connection to this port that was accepted elsewhere, and from which nothing was read. */
  accept(socket: Socket): void
  /** A drain is to come: each answer over HTTP/1.1 is the last of its connection. */
  leave(): void
  /**
   * Stops accepting, but for what the kernel has accepted already; HTTP/2 clients get GOAWAY, idle HTTP/1.1 connections close, running
   * requests go on.
   */
  drain(): void
  /** Ends every connection. */
  close(): void
  /** Open ones, and one more as long as others may wait to be accepted. */
  connections(): number
}

/** @throws when the port cannot be opened */
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

/** @param accepted how many connections so far. Default: none waits in a queue that ends with the port */
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
 * Runs `then` when the event loop has accepted whatever waits in the queue of a port: closing the port resets it. libuv accepts one
 * connection in each turn, and the first turn may be past its look at the port. Whoever still connects is not waited for for ever.
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
