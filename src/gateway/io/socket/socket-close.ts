// Closes client connections such that the client can still read the response.

import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { listenSharedRead } from './shared-read.ts'

/**
 * How long we read on before closing a connection: closing with unread bytes makes TCP reset it, and the client never sees the response (RFC 9112
 * section 9.6; net/http's rstAvoidanceDelay).
 */
export const LINGER_MS: number = 500
/** How much is read meanwhile. TCP holds back the rest: decrypting it only to discard it would take time from the thread's other clients. */
export const LINGER_BYTES: number = 256 * 1024
const NOTHING = Buffer.alloc(0)

/** Sends the last bytes and closes, once the client has closed or had time to read them. Further input is discarded. */
export function closeAfter(socket: Duplex, last: string): void {
  const close = (): void => void socket.destroy()
  const deadline = setTimeout(close, LINGER_MS)
  socket.once('close', () => clearTimeout(deadline))
  socket.once('end', close)
  socket.on('error', () => undefined)
  // Detaches node:http's parser, which only listens to 'data'.
  socket.removeAllListeners('data')
  let discarded = 0
  listenSharedRead(socket, (chunk) => {
    discarded += chunk.length
    if (discarded > LINGER_BYTES) socket.pause()
  })
  socket.resume()
  socket.end(last, 'latin1')
}

/** The same once all that was written before has left: a client that is slow to read it gets it. */
export function closeBehind(socket: Duplex, last: string): void {
  if (socket.writableLength === 0) closeAfter(socket, last)
  else socket.write(NOTHING, () => closeAfter(socket, last))
}

/**
 * node:http closes a connection right after its last response. This makes it linger: the request's body is still arriving.
 * @param release detaches the socket from its parser
 */
export function lingerBehindAnswer(socket: Socket, release: () => void): void {
  socket.destroySoon = () => {
    release()
    closeAfter(socket, '')
  }
}
