// Connections on which the last answer is read although they cannot be written to any more.

import type { Socket } from 'node:net'
import type { Writable } from 'node:stream'

type WriteDone = Parameters<NonNullable<Writable['_write']>>[2]

/** The other side has closed the connection. */
const CLOSED_CODES = new Set(['EPIPE', 'ECONNRESET'])

/**
 * A server that answers a request before it has read the body may close its connection at once. The next write fails then, and a socket of Node
 * whose write fails is destroyed, with the answer unread in the kernel. From here on such a write is pending until what has come is read.
 */
export function readBeforeWriteFails(socket: Socket): void {
  const { _write: write, _writev: writev } = socket
  // Of a stream one write is under way at a time, so there is one of these for all.
  let done: WriteDone = () => undefined
  const onWritten: WriteDone = (error) => {
    if (!CLOSED_CODES.has(codeOf(error)) || socket.readableEnded || socket.destroyed) {
      done(error)
      return
    }
    // The kernel ends it, or fails to read, as soon as what has come is read.
    socket.once('end', () => done(error))
  }
  socket._write = (chunk, encoding, callback) => {
    done = callback
    write.call(socket, chunk, encoding, onWritten)
  }
  socket._writev = (chunks, callback) => {
    done = callback
    writev?.call(socket, chunks, onWritten)
  }
}

function codeOf(error: Error | null | undefined): string {
  return error !== null && error !== undefined && 'code' in error ? String(error.code) : ''
}
