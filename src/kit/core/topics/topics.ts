// Messages between the main thread and the gateway threads that belong to one subject. Both ends name a topic by the same object, which says what its
// messages hold: threads carry them without knowing any of them.

/** Plain data that can be cloned. */
export interface TopicMessage<T = unknown> {
  readonly type: 'published'
  readonly topic: string
  readonly payload: T
}

export class Topic<T> {
  readonly name: string

  /** @param name the only one of this name */
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
  /** To all gateway threads, also to those that start later, which get the latest message of each topic; or from a gateway thread to the main thread. */
  publish<T>(topic: Topic<T>, payload: T): void
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
