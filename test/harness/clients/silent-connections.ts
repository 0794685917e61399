// Connections on which nothing is sent, not even a ClientHello.

import { connect, type Socket } from 'node:net'

export interface SilentConnections {
  /** How many the other side has not closed. */
  open(): number
  destroy(): void
}

export function openSilent(port: number, count: number, localAddress: string): SilentConnections {
  const sockets = new Set<Socket>()
  for (let i = 0; i < count; i++) {
    const socket = connect({ port, host: '127.0.0.1', localAddress })
    sockets.add(socket)
    socket.on('error', () => undefined)
    socket.on('close', () => sockets.delete(socket))
    socket.resume()
  }
  return {
    open: () => [...sockets].filter(({ readyState }) => readyState === 'open').length,
    destroy() {
      for (const socket of sockets) socket.destroy()
    },
  }
}
