// Endpoint sockets read into one buffer per thread: a new buffer for every read would cost a list of 200 MB as much memory outside V8's heap, and
// full garbage collections. Each chunk is consumed before the next read.

import type { OnReadOpts, Socket } from 'node:net'

/** A TLS record has at most 16 KiB. */
const READ_BYTES = 64 * 1024

const memory: Buffer = Buffer.allocUnsafeSlow(READ_BYTES)
const readers = new WeakMap<Socket, SharedReader>()

/** Receives what a socket reads from the first byte on, before a listener exists. */
class SharedReader {
  #receive: ((chunk: Buffer) => void) | undefined
  #early: Buffer[] = []

  readonly options: OnReadOpts = {
    buffer: memory,
    callback: (bytes) => {
      const chunk = memory.subarray(0, bytes)
      if (this.#receive === undefined) this.#early.push(Buffer.from(chunk))
      else this.#receive(chunk)
      return true
    },
  }

  listen(receive: (chunk: Buffer) => void): void {
    const early = this.#early
    this.#early = []
    this.#receive = receive
    for (const chunk of early) receive(chunk)
  }
}

/** Opens a socket with `connect`, passing the `onread` option that makes it read into the shared buffer. */
export function connectSharedRead<S extends Socket>(connect: (onread: OnReadOpts) => S): S {
  const reader = new SharedReader()
  const socket = connect(reader.options)
  readers.set(socket, reader)
  return socket
}

/** Listens on a socket from `connectSharedRead`: each chunk is valid during the call. False: not such a socket. */
export function listenSharedRead(socket: object, receive: (chunk: Buffer) => void): boolean {
  const reader = readers.get(socket as Socket)
  reader?.listen(receive)
  return reader !== undefined
}
