// Streams of one subject from the gateway threads to the main thread. Both ends use the same object for a stream, which has the types of the question
// that begins it and of its events: the messages in between know neither.

/** Plain data that can be cloned, as are the events. */
export interface AskedStream<Q = unknown> {
  readonly stream: string
  readonly question: Q
}

/** Passes an event on, unless the subscriber has no room for it now: it is then counted as dropped, and the result is false. Cheap in that case. */
export type Emit<E> = (event: E) => boolean

/** Starts a stream; returns a function that ends it. May throw: the thread is then omitted. */
export type StartStream<Q, E> = (question: Q, emit: Emit<E>) => () => void

/** @typeParam Q its question @typeParam E its events */
export class ThreadStream<Q, E> {
  readonly name: string
  /** Type-only, never set. */
  declare readonly event?: E

  /** @param name unique */
  constructor(name: string) {
    this.name = name
  }

  asked(question: Q): AskedStream<Q> {
    return { stream: this.name, question }
  }

  isAsked(asked: AskedStream): asked is AskedStream<Q> {
    return asked.stream === this.name
  }
}

export interface SubscribeOptions<E> {
  /**
   * Receives a thread's events, in order, and how many it dropped before them. The thread may send as many more once the result has resolved; a
   * rejection ends the subscription.
   */
  readonly onEvents: (events: readonly E[], dropped: number, thread: number) => Promise<void> | void
  /** Events of one thread that may be in transit or waiting. Default 256. */
  readonly credit?: number
}

/** The main thread's end. */
export interface SubscribesToThreads {
  /** Subscribes to the stream of all threads, including later ones, until the returned function is called. */
  subscribe<Q, E>(stream: ThreadStream<Q, E>, question: Q, options: SubscribeOptions<E>): () => void
}

/** A gateway thread's end. */
export interface StreamsToMain {
  /** One handler for each stream. */
  serve<Q, E>(stream: ThreadStream<Q, E>, start: StartStream<Q, E>): void
}
