// All collections in a gateway thread, as the main thread tells of them, and what it is asked.

import type { Clock } from '../../kit/api/ports.ts'
import {
  type CollectionId,
  type CollectionNews,
  collectionKey,
  type FreshnessQuestion,
} from '../core/changes/collection.ts'
import { CachedCollection } from './cached-collection.ts'

const ASK_AGAIN_MS = 1_000

export class CachedCollections {
  readonly #collections = new Map<string, CachedCollection>()
  readonly #clock: Clock
  readonly #ask: (question: FreshnessQuestion, ms: number) => Promise<string | undefined>
  readonly #unknown: () => void
  #silentUntilMs = 0

  /**
   * @param ask resolves with a version that is current, after `ms` at most; undefined = that is not proved
   * @param unknown something is missing: all are to be told again
   */
  constructor(
    clock: Clock,
    ask: (question: FreshnessQuestion, ms: number) => Promise<string | undefined>,
    unknown: () => void,
  ) {
    this.#clock = clock
    this.#ask = ask
    this.#unknown = unknown
  }

  get(id: CollectionId): CachedCollection | undefined {
    return this.#collections.get(collectionKey(id))
  }

  values(): Iterable<CachedCollection> {
    return this.#collections.values()
  }

  apply(news: CollectionNews): void {
    const key = collectionKey(news.collection)
    const known = this.#collections.get(key)
    switch (news.type) {
      case 'reset':
        if (known?.epoch === news.epoch && known.number === news.number) return
        this.#end(key, known)
        this.#collections.set(key, new CachedCollection(news, this.#clock.monotonic()))
        return
      case 'update':
        if (known?.epoch === news.epoch && known.number + 1 === news.number) {
          known.update(news, this.#clock.monotonic())
          return
        }
        this.#end(key, known)
        this.#askAll()
        return
      case 'gone':
        this.#end(key, known)
    }
  }

  /** Whether the collection was current at some moment after this call. It then is in `collection.version` or a later one. */
  async isCurrent(collection: CachedCollection, ms: number, atOnce: boolean): Promise<boolean> {
    const version = await this.#ask({ collection: collection.id, atOnce }, ms)
    return version !== undefined && !collection.isGone && collection.isAtLeast(version)
  }

  /** Once in a while: the answer is long, and all threads get it. */
  #askAll(): void {
    const nowMs = this.#clock.monotonic()
    if (nowMs < this.#silentUntilMs) return
    this.#silentUntilMs = nowMs + ASK_AGAIN_MS
    this.#unknown()
  }

  #end(key: string, collection: CachedCollection | undefined): void {
    this.#collections.delete(key)
    collection?.end()
  }
}
