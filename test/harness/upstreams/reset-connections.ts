import type { Socket } from 'node:net'

/**
 * Breaks connections off with RST, in this turn of the event loop. A connection whose own end is still being sent takes no reset: libuv refuses it (EINVAL),
 * and Node then never closes the socket, and does not exit while one is left. So it is done after the turn's input, when what ended by that has been sent, and
 * one that was ended otherwise is closed.
 */
export function resetConnections(sockets: Iterable<Socket>): void {
  const chosen = [...sockets]
  setImmediate(() => {
    for (const socket of chosen) {
      if (socket.writableEnded) socket.destroy()
      else socket.resetAndDestroy()
    }
  })
}
