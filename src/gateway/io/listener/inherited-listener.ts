// Accepts connections on inherited sockets. Closing one closes only this process' descriptor: the socket and its accept queue remain with other
// holders.

import { createServer, type Server, type Socket } from 'node:net'

/** TCP keep-alive of accepted connections. */
export const KEEP_ALIVE_MS = 30_000
export const LISTEN_BACKLOG = 4096

export interface InheritedListener {
  /** Port of the first socket. */
  readonly port: number
  /** Stops accepting; accepted connections continue. */
  close(): void
}

/**
 * @param fds file descriptors not otherwise used in this process: an event loop closes its own
 * @param onSocket called in the turn in which a connection is accepted
 * @param untouched nothing is read from connections, so that they can be handed to another thread
 * @throws (rejects) if one of them is not a listening TCP socket
 */
export async function listenInherited(
  fds: readonly number[],
  onSocket: (socket: Socket) => void,
  untouched: boolean,
): Promise<InheritedListener> {
  const servers: Server[] = []
  const close = (): void => {
    for (const server of servers.splice(0)) server.close()
  }
  let port = 0
  try {
    for (const fd of fds) {
      const server = await listenOn(fd, onSocket, untouched)
      servers.push(server)
      const address = server.address()
      if (address === null || typeof address === 'string') throw new Error('is not a TCP socket')
      if (port === 0) port = address.port
    }
  } catch (error) {
    close()
    throw error
  }
  return { port, close }
}

function listenOn(fd: number, onSocket: (socket: Socket) => void, untouched: boolean): Promise<Server> {
  const options = { noDelay: true, keepAlive: true, keepAliveInitialDelay: KEEP_ALIVE_MS, pauseOnConnect: untouched }
  const server = createServer(options, onSocket)
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen({ fd, backlog: LISTEN_BACKLOG }, () => {
      server.off('error', reject)
      // Concerns a single connection that could not be accepted.
      server.on('error', () => undefined)
      resolve(server)
    })
  })
}
