// All collections in a gateway thread, as the main thread tells of them, and what it is asked.

import type { Clock } from '../../kit/api/ports.ts'
import {
  type CollectionId,
  type CollectionNews,
  type CompressedRoom,
  type CurrentState,
  collectionKey,
  type FreshnessQuestion,
  type ToldVersion,
} from '../core/changes/collection.ts'
import { CachedCollection } from './cached-collection.ts'

const ASK_AGAIN_MS = 1_000
/** How often the main thread is told that a collection is wanted: often enough for one that ends when it is not wanted for ten minutes. */
const WANT_AGAIN_MS = 60_000
/** One that is not there yet: the message may have been before the configuration. */
const WANT_MISSING_MS = 1_000

export class CachedCollections {
  readonly #collections = new Map<string, CachedCollection>()
  readonly #clock: Clock
  readonly #ask: (question: FreshnessQuestion, ms: number) => Promise<CurrentState | undefined>
  readonly #unknown: () => void
  readonly #want: (id: CollectionId) => void
  readonly #wantRoom: (wanted: CompressedRoom) => void
  readonly #tell: (told: ToldVersion) => void
  /** The last version that clients were told of, until it is known here. */
  readonly #told = new WeakMap<CachedCollection, string>()
  #silentUntilMs = 0
  /** When the main thread is told again: monotonic, by key, of those that it has been told of lately. */
  readonly #wantedUntilMs = new Map<string, number>()

  /**
   * @param ask resolves with what is current, after `ms` at most; undefined = that is not proved
   * @param unknown something is missing: all are to be told again
   * @param want a client asks for a collection that is kept only as long as it is wanted
   * @param wantRoom clients get lists that could be kept compressed
   * @param tell a client has been told of a version that is not known here
   */
  constructor(
    clock: Clock,
    ask: (question: FreshnessQuestion, ms: number) => Promise<CurrentState | undefined>,
    unknown: () => void,
    want: (id: CollectionId) => void,
    wantRoom: (wanted: CompressedRoom) => void,
    tell: (told: ToldVersion) => void = () => undefined,
  ) {
    this.#tell = tell
    this.#want = want
    this.#wantRoom = wantRoom
    this.#clock = clock
    this.#ask = ask
    this.#unknown = unknown
  }

  get(id: CollectionId): CachedCollection | undefined {
    return this.#collections.get(collectionKey(id))
  }

  /** Whether `wanted` would tell the main thread now. */
  isWantDue(id: CollectionId): boolean {
    return this.#clock.monotonic() >= (this.#wantedUntilMs.get(collectionKey(id)) ?? 0)
  }

  /** A client that may read it asks for one that is kept only as long as it is wanted. */
  wanted(id: CollectionId): void {
    if (!this.isWantDue(id)) return
    const key = collectionKey(id)
    const nowMs = this.#clock.monotonic()
    for (const [other, untilMs] of this.#wantedUntilMs) if (untilMs <= nowMs) this.#wantedUntilMs.delete(other)
    const againMs = this.#collections.has(key) ? WANT_AGAIN_MS : WANT_MISSING_MS
    this.#wantedUntilMs.set(key, nowMs + againMs)
    this.#want(id)
  }

  /** A list of it is in use that could be kept compressed. */
  askRoom({ id, compressed }: CachedCollection): void {
    const bytes = compressed.toAsk()
    if (bytes !== undefined) this.#wantRoom({ collection: id, bytes })
  }

  /** A client has been told of this version of the cluster's, with which it may come back. */
  told(collection: CachedCollection, version: string): void {
    this.#told.set(collection, version)
    this.#tell({ collection: collection.id, version })
  }

  /** Once it is known here, or `ms` are over: a list after one that named it must not name an older version. A version that never comes delays one list. */
  async reachTold(collection: CachedCollection, ms: number): Promise<void> {
    const version = this.#told.get(collection)
    if (version === undefined) return
    if (!collection.isAtLeast(version)) await collection.reaches(version, ms)
    if (this.#told.get(collection) === version) this.#told.delete(collection)
  }

  /** Collections that the main thread is not told of again for now. */
  get wantedLately(): number {
    return this.#wantedUntilMs.size
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
      case 'room':
        if (known?.epoch === news.epoch) known.compressed.allow(news.bytes)
        return
      case 'gone':
        this.#end(key, known)
    }
  }

  /** @returns the version, later than this call, whose state the collection is; undefined = that is not proved */
  async currentVersion(
    collection: CachedCollection,
    ms: number,
    of: Pick<FreshnessQuestion, 'atOnce' | 'whole'>,
  ): Promise<string | undefined> {
    const proved = await this.#ask({ collection: collection.id, ...of }, ms)
    if (proved === undefined || collection.isGone) return undefined
    if (collection.isAtLeast(proved.current)) return collection.version
    // Nothing has come since: otherwise it would be the state of neither version.
    return collection.version === proved.known ? proved.current : undefined
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
