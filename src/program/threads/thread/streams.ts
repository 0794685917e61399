// The thread's side of streams: starts them with the kind's handler, and never sends more events than it has credit for.

import { errorMessage } from '../../../kit/api/validation/error-message.ts'
import type { Emit, FromStreams, StreamHandlers, StreamKind, Subscribed, ToStreams } from '../streams.ts'

interface Subscription {
  credit: number
  events: unknown[]
  dropped: number
  scheduled: boolean
  end: () => void
}

export class ThreadStreams {
  readonly #post: (message: FromStreams) => void
  readonly #handlers: StreamHandlers
  readonly #subscriptions = new Map<number, Subscription>()

  constructor(post: (message: FromStreams) => void, handlers: StreamHandlers) {
    this.#post = post
    this.#handlers = handlers
  }

  receive(message: ToStreams): void {
    switch (message.type) {
      case 'subscribe':
        this.#subscribe(message)
        return
      case 'credit': {
        const subscription = this.#subscriptions.get(message.id)
        if (subscription === undefined) return
        subscription.credit += message.events
        // The subscriber learns what it has missed even if nothing else follows.
        if (subscription.dropped > 0) this.#schedule(message.id, subscription)
        return
      }
      case 'unsubscribe': {
        const subscription = this.#subscriptions.get(message.id)
        this.#subscriptions.delete(message.id)
        subscription?.end()
      }
    }
  }

  /** Ends all streams, flushing what they have emitted so far: the thread is stopping. */
  end(): void {
    for (const [id, subscription] of this.#subscriptions) {
      subscription.end()
      this.#send(id, subscription)
    }
    this.#subscriptions.clear()
  }

  #subscribe<K extends StreamKind>({ id, kind, question, credit }: Subscribed<K>): void {
    const subscription: Subscription = { credit, events: [], dropped: 0, scheduled: false, end: () => undefined }
    this.#subscriptions.set(id, subscription)
    const emit: Emit<K> = (event) => {
      if (subscription.credit <= 0) {
        subscription.dropped++
        return false
      }
      subscription.credit--
      subscription.events.push(event)
      this.#schedule(id, subscription)
      return true
    }
    try {
      subscription.end = this.#handlers[kind](question, emit)
    } catch (error) {
      // A bug, which must not end the thread.
      this.#subscriptions.delete(id)
      this.#post({ type: 'no-stream', id, reason: errorMessage(error) })
    }
  }

  #schedule(id: number, subscription: Subscription): void {
    if (subscription.scheduled) return
    subscription.scheduled = true
    setImmediate(() => {
      subscription.scheduled = false
      if (this.#subscriptions.has(id)) this.#send(id, subscription)
    })
  }

  #send(id: number, subscription: Subscription): void {
    const { events, dropped } = subscription
    if (events.length === 0 && dropped === 0) return
    subscription.events = []
    subscription.dropped = 0
    this.#post({ type: 'events', id, events, dropped })
  }
}
