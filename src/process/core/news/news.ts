// News between the main thread and the gateway threads that belong to one subject. Both ends name a topic by the same object, which says what its
// news are: threads carry them without knowing any of them.

/** Plain data that can be cloned. */
export interface NewsMessage<T = unknown> {
  readonly type: 'news'
  readonly topic: string
  readonly news: T
}

export class Topic<T> {
  readonly name: string

  /** @param name the only one of this name */
  constructor(name: string) {
    this.name = name
  }

  message(news: T): NewsMessage<T> {
    return { type: 'news', topic: this.name, news }
  }

  isOf(message: NewsMessage): message is NewsMessage<T> {
    return message.topic === this.name
  }
}

/** One end. */
export interface NewsLine {
  /** To all gateway threads, also to those that start later, which get the latest news of each topic; or from a gateway thread to the main thread. */
  tell<T>(topic: Topic<T>, news: T): void
  /** One listener for each topic. */
  follow<T>(topic: Topic<T>, listener: (news: T) => void): void
}

export class NewsListeners {
  readonly #listeners = new Map<string, (message: NewsMessage) => void>()

  follow<T>(topic: Topic<T>, listener: (news: T) => void): void {
    this.#listeners.set(topic.name, (message) => {
      if (topic.isOf(message)) listener(message.news)
    })
  }

  /** What no listener follows is dropped. */
  hear(message: NewsMessage): void {
    this.#listeners.get(message.topic)?.(message)
  }
}
