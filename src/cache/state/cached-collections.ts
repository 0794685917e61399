// All collections in a gateway thread, as the main thread tells of them, and the questions to it.

import type { Clock } from '../../kit/api/ports.ts'
import {
  type CollectionId,
  type CollectionNews,
  type CollectionProof,
  collectionKey,
  type FreshnessQuestion,
} from '../core/changes/collection.ts'
import { CachedCollection } from './cached-collection.ts'

interface Question {
  readonly asked: number
  readonly done: (proof: CollectionProof | undefined) => void
}

const ASK_AGAIN_MS = 1_000

export class CachedCollections {
  readonly #collections = new Map<string, CachedCollection>()
  readonly #questions = new Map<string, Set<Question>>()
  readonly #clock: Clock
  readonly #ask: (question: FreshnessQuestion) => void
  readonly #unknown: () => void
  /** Distinguishes threads. */
  readonly #asker: number
  #asked = 0
  #silentUntilMs = 0

  /** @param asker unique among the gateway threads @param unknown something is missing: all are to be told again */
  constructor(clock: Clock, asker: number, ask: (question: FreshnessQuestion) => void, unknown: () => void) {
    this.#clock = clock
    this.#asker = asker
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
        return
      case 'proof':
        if (news.asker === this.#asker) this.#answer(key, news)
    }
  }

  /** Whether the collection was current at some moment after this call. It then is in `collection.version` or a later one. */
  async isCurrent(collection: CachedCollection, ms: number, atOnce: boolean): Promise<boolean> {
    const key = collectionKey(collection.id)
    const asked = ++this.#asked
    const { promise, resolve } = Promise.withResolvers<CollectionProof | undefined>()
    const question = { asked, done: resolve }
    const questions = this.#questions.get(key) ?? new Set()
    this.#questions.set(key, questions.add(question))
    const timer = setTimeout(resolve, ms, undefined)
    this.#ask({ collection: collection.id, asker: this.#asker, asked, atOnce })
    const proof = await promise
    clearTimeout(timer)
    questions.delete(question)
    if (questions.size === 0) this.#questions.delete(key)
    const version = proof?.resourceVersion
    return version !== undefined && !collection.isGone && collection.isAtLeast(version)
  }

  /** Once in a while: the answer is long, and all threads get it. */
  #askAll(): void {
    const nowMs = this.#clock.monotonic()
    if (nowMs < this.#silentUntilMs) return
    this.#silentUntilMs = nowMs + ASK_AGAIN_MS
    this.#unknown()
  }

  #answer(key: string, proof: CollectionProof): void {
    for (const { asked, done } of this.#questions.get(key) ?? []) if (asked <= proof.asked) done(proof)
  }

  #end(key: string, collection: CachedCollection | undefined): void {
    this.#collections.delete(key)
    collection?.end()
  }
}
