// The main thread's side of streams: who receives which events, and how many a thread may send before its subscriber has processed them.

import type { Logger } from '../../../kit/api/ports.ts'
import type { SubscribeOptions, SubscribesToThreads, ThreadStream } from '../../../kit/core/topics/streams.ts'
import type { FromStreams, Subscribed } from '../streams.ts'
import type { WorkerSlot } from './worker-slot.ts'

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
