// Sockets read into one buffer per thread: a new buffer for every read would cost a list of 200 MB as much memory outside V8's heap, and full garbage
// collections. Each chunk is consumed before the next read.

import { type OnReadOpts, Socket } from 'node:net'
import type { Duplex } from 'node:stream'

/** A TLS record has at most 16 KiB. */
const READ_BYTES = 64 * 1024

const memory: Buffer = Buffer.allocUnsafeSlow(READ_BYTES)

/** The part of node:net's system handle used here. */
interface UserBufferHandle {
  useUserBuffer(buffer: Buffer): void
}

/** Where node:net keeps its option `onread`, which only a socket that it opens can be given, and none that node:http reads from. */
interface OnReadKeys {
  readonly buffer: symbol
  readonly callback: symbol
}

const keys: OnReadKeys | undefined = findKeys()

function findKeys(): OnReadKeys | undefined {
  const symbols = Object.getOwnPropertySymbols(new Socket())
  const named = (name: string): symbol | undefined => symbols.find(({ description }) => description === name)
  const [buffer, callback] = [named('kBuffer'), named('kBufferCb')]
  return buffer === undefined || callback === undefined ? undefined : { buffer, callback }
}

/**
 * Listens for what a socket reads, in place of who did so before by this function. @returns whether it reads into the shared buffer, as with `onread`: then each chunk is valid during the call only.
 * False: it is not an open socket of the system, or this version of Node does it in another way.
 */
export function listenSharedRead(socket: Duplex, receive: (chunk: Buffer) => void): boolean {
  // If it shares the buffer, these are the chunks that it has read until now.
  socket.on('data', receive)
  if (!(socket instanceof Socket) || keys === undefined) return false
  const handle: unknown = Reflect.get(socket, '_handle')
  if (!takesUserBuffer(handle)) return false
  const callback: OnReadOpts['callback'] = (bytes) => {
    receive(memory.subarray(0, bytes))
    return true
  }
  Reflect.set(socket, keys.callback, callback)
  if (Reflect.get(socket, keys.buffer) === memory) return true
  Reflect.set(socket, keys.buffer, memory)
  handle.useUserBuffer(memory)
  return true
}

/**
 * The socket is an ordinary stream again: what it reads from now on is copied, and waits for its next owner, who may call `listenSharedRead` again.
 * Its system handle keeps the shared buffer, which Node cannot take from it.
 */
export function endSharedRead(socket: Duplex): void {
  if (!(socket instanceof Socket) || keys === undefined || Reflect.get(socket, keys.buffer) !== memory) return
  const callback: OnReadOpts['callback'] = (bytes) => socket.push(Buffer.from(memory.subarray(0, bytes)))
  Reflect.set(socket, keys.callback, callback)
}

function takesUserBuffer(handle: unknown): handle is UserBufferHandle {
  return typeof handle === 'object' && handle !== null && 'useUserBuffer' in handle
}
