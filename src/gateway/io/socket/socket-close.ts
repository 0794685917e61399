// How the gateway closes a client's connection so that the client still reads the response.

import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'

/**
 * How long a connection that we want to close is still read: closing on unread bytes makes TCP reset the connection, and
 * the client never sees the answer (RFC 9112 section 9.6; net/http's rstAvoidanceDelay).
 */
export const LINGER_MS: number = 500
/**
 * How much of what it still sends is read meanwhile. TCP holds back the rest: decrypting it to throw it away would cost the others of this
 * thread their time.
 */
export const LINGER_BYTES: number = 256 * 1024

/** Sends the last bytes and closes, once the client has closed or had time to read them. What it still sends is discarded. */
export function closeAfter(socket: Duplex, last: string): void {
  const close = (): void => void socket.destroy()
  const deadline = setTimeout(close, LINGER_MS)
  socket.once('close', () => clearTimeout(deadline))
  socket.once('end', close)
  socket.on('error', () => undefined)
  // Takes the socket away from the parser of node:http, which only listens to 'data'.
  socket.removeAllListeners('data')
  let discarded = 0
  socket.on('data', (chunk: Buffer) => {
    discarded += chunk.length
    if (discarded > LINGER_BYTES) socket.pause()
  })
  socket.resume()
  socket.end(last, 'latin1')
}

/**
 * node:http closes a connection right behind its last answer. From here on it lingers there: the request's body still comes.
 * @param release takes the socket away from its parser
 */
export function lingerBehindAnswer(socket: Socket, release: () => void): void {
  socket.destroySoon = () => {
    release()
    closeAfter(socket, '')
  }
}
