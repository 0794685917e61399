// Accepts connections on sockets that the process has inherited. Closing one closes this process' own descriptor: the socket, and what
// waits in its queue, stay with whoever else has it.

import { createServer, type Server, type Socket } from 'node:net'

/** Of accepted connections. */
export const KEEP_ALIVE_MS = 30_000
export const LISTEN_BACKLOG = 4096

export interface InheritedListener {
  /** Of the first socket. */
  readonly port: number
  /** Accepts no more; what was accepted goes on. */
  close(): void
}

/**
 * @param fds file descriptors that nobody else in this process uses: an event loop closes what it has
 * @param onSocket called in the turn in which a connection is accepted
 * @param untouched nothing is read from connections, so that they can be handed to another thread
 * @throws (rejects) when one of them is not a TCP socket that can listen
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
      // Of a single connection that could not be accepted.
      server.on('error', () => undefined)
      resolve(server)
    })
  })
}
