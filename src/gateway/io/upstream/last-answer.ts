// Reads the final response on connections that can no longer be written to.

import type { Socket } from 'node:net'
import type { Writable } from 'node:stream'

type WriteDone = Parameters<NonNullable<Writable['_write']>>[2]

/** The peer has closed the connection. */
const CLOSED_CODES = new Set(['EPIPE', 'ECONNRESET'])

/**
 * A server that responds before it has read the body may close its connection at once. The next write then fails, and Node destroys a socket whose
 * write fails, leaving the response unread in the kernel. From here on, such a write stays pending until received data is read.
 */
export function readBeforeWriteFails(socket: Socket): void {
  const { _write: write, _writev: writev } = socket
  // A stream has one pending write at a time, so one of these is enough.
  let done: WriteDone = () => undefined
  const onWritten: WriteDone = (error) => {
    if (!CLOSED_CODES.has(codeOf(error)) || socket.readableEnded || socket.destroyed) {
      done(error)
      return
    }
    // The kernel reports the end, or a read error, as soon as received data is read.
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
