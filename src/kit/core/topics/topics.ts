// Messages between the main thread and the gateway threads that belong to one subject. Both ends use the same object for a topic, which has the type
// of its messages: threads pass them on without knowing it.

/** Plain data that can be cloned. */
export interface TopicMessage<T = unknown> {
  readonly type: 'published'
  readonly topic: string
  readonly payload: T
}

export class Topic<T> {
  readonly name: string

  /** @param name unique */
  constructor(name: string) {
    this.name = name
  }

  message(payload: T): TopicMessage<T> {
    return { type: 'published', topic: this.name, payload }
  }

  isOf(message: TopicMessage): message is TopicMessage<T> {
    return message.topic === this.name
  }
}

/** One end. */
export interface TopicChannel {
  /**
   * To all gateway threads, including those that start later, which get the latest message of each topic; or from a gateway thread to the main thread.
   * @param about messages with different values do not replace each other. Default: all have the same
   */
  publish<T>(topic: Topic<T>, payload: T, about?: string): void
  /** Several listeners of one topic are called in the order in which they subscribed. */
  subscribe<T>(topic: Topic<T>, listener: (payload: T) => void): void
}

export class TopicSubscribers {
  readonly #listeners = new Map<string, ((message: TopicMessage) => void)[]>()

  subscribe<T>(topic: Topic<T>, listener: (payload: T) => void): void {
    const listeners = this.#listeners.get(topic.name) ?? []
    this.#listeners.set(topic.name, listeners)
    listeners.push((message) => {
      if (topic.isOf(message)) listener(message.payload)
    })
  }

  /** A message without a subscriber is dropped. */
  deliver(message: TopicMessage): void {
    for (const listener of this.#listeners.get(message.topic) ?? []) listener(message)
  }
}
