// The line from one gateway thread to another, by which they pass fresh connections to each other. A connection is offered first and
// passed when the other one answers, so that a thread that is busy never has a client waiting in its line.

import { Socket } from 'node:net'
import type { MessagePort } from 'node:worker_threads'

/** What the thread at this end does. */
export interface LineOwner {
  /** Whether it takes a connection now. */
  isOpen(): boolean
  /** A connection that the other thread has accepted is this thread's now. */
  onPassed(listener: number, socket: Socket): void
  /** A connection that was offered will not come: its place is free. */
  onWithdrawn(): void
  /** The other thread takes a connection that was offered under this id. */
  onTaken(id: number): void
  /** It does not take it. */
  onRefused(id: number): void
  /** The thread at the other end has ended. */
  onClosed(): void
}

type LineMessage =
  | { readonly type: 'offer'; readonly id: number }
  /** The answers to it. */
  | { readonly type: 'take'; readonly id: number }
  | { readonly type: 'refuse'; readonly id: number }
  /** The offer is off; the place was given back. */
  | { readonly type: 'cancel'; readonly id: number }
  | { readonly type: 'socket'; readonly id: number; readonly listener: number; readonly socket: unknown }

export class ThreadLine {
  readonly #port: MessagePort
  readonly #owner: LineOwner
  /** Offers of the other thread that were taken, and whose socket has not come yet. */
  readonly #expected = new Set<number>()
  /** Whether it has left an offer unanswered, and said nothing since. */
  silent = false

  constructor(port: MessagePort, owner: LineOwner) {
    this.#port = port
    this.#owner = owner
    port.on('message', (message: LineMessage) => this.#onMessage(message))
    // The receiver cannot make a socket of it: no descriptor is free, for instance. Which one it was is not known.
    port.on('messageerror', () => {
      const [id] = this.#expected
      if (id !== undefined) this.#withdraw(id)
    })
    port.on('close', () => {
      for (const id of this.#expected) this.#withdraw(id)
      owner.onClosed()
    })
  }

  /** Connections that will come, or be cancelled. */
  get expected(): number {
    return this.#expected.size
  }

  offer(id: number): void {
    this.#send({ type: 'offer', id })
  }

  cancel(id: number): void {
    this.#send({ type: 'cancel', id })
  }

  /** @throws when this socket, or this version of Node, cannot do it: the socket is as it was then */
  pass(id: number, listener: number, socket: Socket): void {
    const message: LineMessage = { type: 'socket', id, listener, socket }
    // Sockets can be transferred since Node 24.20; the type of the list does not know it yet.
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
        // Whoever has cancelled it has given its place back.
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
