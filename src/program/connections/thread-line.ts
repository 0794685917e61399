// A line between two gateway threads, over which they pass new connections. A connection is first offered, and passed when the other thread accepts,
// so that no client waits in a busy thread's queue.

import { Socket } from 'node:net'
import type { MessagePort } from 'node:worker_threads'

/** Callbacks of the thread at this end. */
interface LineOwner {
  /** Whether it accepts a connection now. */
  isOpen(): boolean
  /** A connection accepted by the other thread now belongs to this one. */
  onPassed(listener: number, socket: Socket): void
  /** An offered connection will not come: its place is free. */
  onWithdrawn(): void
  /** The other thread accepts the connection offered under this id. */
  onTaken(id: number): void
  /** It declines. */
  onRefused(id: number): void
  /** The thread at the other end has ended. */
  onClosed(): void
}

type LineMessage =
  | { readonly type: 'offer'; readonly id: number }
  /** The responses. */
  | { readonly type: 'take'; readonly id: number }
  | { readonly type: 'refuse'; readonly id: number }
  /** The offer is withdrawn; the place was returned. */
  | { readonly type: 'cancel'; readonly id: number }
  | { readonly type: 'socket'; readonly id: number; readonly listener: number; readonly socket: unknown }

export class ThreadLine {
  readonly #port: MessagePort
  readonly #owner: LineOwner
  /** Offers of the other thread that were accepted, but whose socket has not arrived. */
  readonly #expected = new Set<number>()
  /** Whether it has left an offer unanswered, and been silent since. */
  silent = false

  constructor(port: MessagePort, owner: LineOwner) {
    this.#port = port
    this.#owner = owner
    port.on('message', (message: LineMessage) => this.#onMessage(message))
    // The socket could not be received: for example, no descriptor is free. Which one it was is unknown.
    port.on('messageerror', () => {
      const [id] = this.#expected
      if (id !== undefined) this.#withdraw(id)
    })
    port.on('close', () => {
      for (const id of this.#expected) this.#withdraw(id)
      owner.onClosed()
    })
  }

  /** Connections that will arrive, or be withdrawn. */
  get expected(): number {
    return this.#expected.size
  }

  offer(id: number): void {
    this.#send({ type: 'offer', id })
  }

  cancel(id: number): void {
    this.#send({ type: 'cancel', id })
  }

  /** @throws if this socket, or this version of Node, cannot be passed: the socket is then unchanged */
  pass(id: number, listener: number, socket: Socket): void {
    const message: LineMessage = { type: 'socket', id, listener, socket }
    // Sockets can be transferred since Node 24.20; the type does not know that yet.
    Reflect.apply(this.#port.postMessage, this.#port, [message, [socket]])
  }

  close(): void {
    this.#port.close()
  }

  #send(message: LineMessage): void {
    this.#port.postMessage(message)
  }

  #onMessage(message: LineMessage): void {
    this.silent = false
    const { id } = message
    switch (message.type) {
      case 'offer':
        if (!this.#owner.isOpen()) {
          this.#send({ type: 'refuse', id })
          return
        }
        this.#expected.add(id)
        this.#send({ type: 'take', id })
        return
      case 'take':
        this.#owner.onTaken(id)
        return
      case 'refuse':
        this.#owner.onRefused(id)
        return
      case 'cancel':
        // If withdrawn, its place has already been returned.
        this.#expected.delete(id)
        return
      case 'socket':
        this.#expected.delete(id)
        if (message.socket instanceof Socket) this.#owner.onPassed(message.listener, message.socket)
    }
  }

  #withdraw(id: number): void {
    if (this.#expected.delete(id)) this.#owner.onWithdrawn()
  }
}
