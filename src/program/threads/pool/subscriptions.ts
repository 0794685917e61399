// What gateway threads are told whenever they start: the latest messages, and who subscribes to their streams.

import type { Logger } from '../../../kit/api/ports.ts'
import type { SubscribeOptions, SubscribesToThreads, ThreadStream } from '../../../kit/core/topics/streams.ts'
import type { ToThread } from '../messages.ts'
import type { FromStreams, Subscribed } from '../streams.ts'
import type { WorkerSlot } from './worker-slot.ts'

// State that every gateway thread needs, whenever it starts: the latest message of each kind. Running threads get it at once, later ones when they
// come online.

export class StandingMessages {
  readonly #slots: readonly WorkerSlot[]
  /** Messages with the same key replace each other; in the order first sent. */
  readonly #latest = new Map<string, ToThread>()

  constructor(slots: readonly WorkerSlot[]) {
    this.#slots = slots
  }

  /** Sends it to all threads, and remembers it for later ones. `about` distinguishes messages of one type that do not replace each other. */
  send(message: ToThread, about = ''): void {
    this.#latest.set(`${message.type} ${about}`, message)
    this.sendOnce(message)
  }

  /** Sends it to running threads: ends an earlier message with the same `about`. */
  withdraw(message: ToThread, about: string): void {
    this.#latest.delete(`${message.type} ${about}`)
    this.sendOnce(message)
  }

  /** Sends it to running threads, except one. */
  sendOnce(message: ToThread, except?: WorkerSlot): void {
    for (const slot of this.#slots) if (slot !== except && slot.takesMessages) slot.post(message)
  }

  /** A thread has come online. */
  welcome(slot: WorkerSlot): void {
    for (const message of this.#latest.values()) slot.post(message)
  }
}

const CREDIT = 256

interface Subscription {
  readonly message: Subscribed
  readonly take: (events: readonly unknown[], dropped: number, thread: number) => Promise<void> | void
}

export class ThreadSubscriptions implements SubscribesToThreads {
  readonly #slots: readonly WorkerSlot[]
  readonly #log: Logger
  readonly #subscriptions = new Map<number, Subscription>()
  #nextId = 1

  constructor(slots: readonly WorkerSlot[], log: Logger) {
    this.#slots = slots
    this.#log = log
  }

  /** Subscribes to all threads, including later ones, until the returned function is called. */
  subscribe<Q, E>(
    stream: ThreadStream<Q, E>,
    question: Q,
    { onEvents, credit = CREDIT }: SubscribeOptions<E>,
  ): () => void {
    const id = this.#nextId++
    const message: Subscribed = { type: 'subscribe', id, ...stream.asked(question), credit }
    // The events are of the stream's type: the thread's handler ensures that.
    this.#subscriptions.set(id, { message, take: onEvents as Subscription['take'] })
    for (const slot of this.#slots) if (slot.takesMessages) slot.post(message)
    return () => this.#unsubscribe(id)
  }

  /** A thread now takes messages. */
  online(slot: WorkerSlot): void {
    for (const { message } of this.#subscriptions.values()) slot.post(message)
  }

  receive(slot: WorkerSlot, message: FromStreams): void {
    if (message.type === 'events') void this.#take(slot, message.id, message.events, message.dropped)
    else if (this.#subscriptions.has(message.id))
      this.#log.warn('a gateway thread does not stream', { thread: slot.index, reason: message.reason })
  }

  async #take(slot: WorkerSlot, id: number, events: readonly unknown[], dropped: number): Promise<void> {
    const { threadId } = slot
    try {
      await this.#subscriptions.get(id)?.take(events, dropped, slot.index)
    } catch (error) {
      this.#log.debug('a subscription of threads has ended', { error })
      this.#unsubscribe(id)
    }
    const same = slot.threadId === threadId && slot.takesMessages
    if (same && this.#subscriptions.has(id)) slot.post({ type: 'credit', id, events: events.length })
  }

  #unsubscribe(id: number): void {
    if (!this.#subscriptions.delete(id)) return
    for (const slot of this.#slots) if (slot.takesMessages) slot.post({ type: 'unsubscribe', id })
  }
}
