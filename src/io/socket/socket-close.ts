// How a connection of a client ends when the gateway wants it to, so that the client still reads what it was told.

import type { Duplex } from 'node:stream'

/**
 * How long a connection that we want to close is still read: closing on unread bytes makes TCP reset the connection, and
 * the client never sees the answer (RFC 9112 section 9.6; net/http's rstAvoidanceDelay).
 */
export const LINGER_MS: number = 500

/** Sends the last bytes and closes, once the client has closed or had time to read them. What it still sends is thrown away. */
export function closeAfter(socket: Duplex, last: string): void {
  const close = (): void => void socket.destroy()
  const deadline = setTimeout(close, LINGER_MS)
  socket.once('close', () => clearTimeout(deadline))
  socket.once('end', close)
  socket.on('error', () => undefined)
  // Takes the socket away from the parser of node:http, which hears of 'data' only.
  socket.removeAllListeners('data')
  socket.on('data', () => undefined)
  socket.resume()
  socket.end(last, 'latin1')
}
