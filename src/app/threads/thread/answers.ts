// The thread's side of questions and streams of the main thread: answers by the handler of the kind, and never sends more events than it has
// credit for.

import { errorMessage } from '../../../api/validation/error-message.ts'
import type {
  Asked,
  Emit,
  FromAnswering,
  QuestionHandlers,
  QuestionKind,
  StreamHandlers,
  StreamKind,
  Subscribed,
  ToAnswering,
} from '../questions.ts'

interface Subscription {
  credit: number
  events: unknown[]
  dropped: number
  scheduled: boolean
  end: () => void
}

export class ThreadAnswers {
  readonly #post: (message: FromAnswering) => void
  readonly #questions: QuestionHandlers
  readonly #streams: StreamHandlers
  readonly #subscriptions = new Map<number, Subscription>()

  constructor(post: (message: FromAnswering) => void, questions: QuestionHandlers, streams: StreamHandlers) {
    this.#post = post
    this.#questions = questions
    this.#streams = streams
  }

  receive(message: ToAnswering): void {
    switch (message.type) {
      case 'ask':
        void this.#answer(message)
        return
      case 'subscribe':
        this.#subscribe(message)
        return
      case 'credit': {
        const subscription = this.#subscriptions.get(message.id)
        if (subscription === undefined) return
        subscription.credit += message.events
        // The subscriber learns what it has missed even when nothing else comes.
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

  /** Ends all streams, each with what it has emitted so far: the thread is stopping. */
  end(): void {
    for (const [id, subscription] of this.#subscriptions) {
      subscription.end()
      this.#send(id, subscription)
    }
    this.#subscriptions.clear()
  }

  async #answer<K extends QuestionKind>({ id, kind, question }: Asked<K>): Promise<void> {
    try {
      const answer = await this.#questions[kind](question)
      this.#post({ type: 'answer', id, answer })
    } catch (error) {
      this.#post({ type: 'no-answer', id, reason: errorMessage(error) })
    }
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
      subscription.end = this.#streams[kind](question, emit)
    } catch (error) {
      // A bug, which must not end the thread.
      this.#subscriptions.delete(id)
      this.#post({ type: 'no-answer', id, reason: errorMessage(error) })
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
