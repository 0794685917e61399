// The thread's side of streams: starts each with its handler, and never sends more events than it has credit for.

import { errorMessage } from '../../../kit/api/validation/error-message.ts'
import type { AskedStream, Emit, StartStream, StreamsToMain, ThreadStream } from '../../../kit/core/topics/streams.ts'
import type { FromStreams, Subscribed, ToStreams } from '../streams.ts'

interface Subscription {
  credit: number
  events: unknown[]
  dropped: number
  scheduled: boolean
  end: () => void
}

export class ThreadStreams implements StreamsToMain {
  readonly #post: (message: FromStreams) => void
  readonly #handlers = new Map<string, (asked: AskedStream, emit: Emit<unknown>) => () => void>()
  readonly #subscriptions = new Map<number, Subscription>()

  constructor(post: (message: FromStreams) => void) {
    this.#post = post
  }

  serve<Q, E>(stream: ThreadStream<Q, E>, start: StartStream<Q, E>): void {
    this.#handlers.set(stream.name, (asked, emit) => {
      if (!stream.isAsked(asked)) throw new Error(`${stream.name} was asked for ${asked.stream}`)
      return start(asked.question, emit)
    })
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

  #subscribe(asked: Subscribed): void {
    const { id, stream, credit } = asked
    const subscription: Subscription = { credit, events: [], dropped: 0, scheduled: false, end: () => undefined }
    this.#subscriptions.set(id, subscription)
    const emit: Emit<unknown> = (event) => {
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
      const start = this.#handlers.get(stream)
      if (start === undefined) throw new Error(`no handler streams ${stream}`)
      subscription.end = start(asked, emit)
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
