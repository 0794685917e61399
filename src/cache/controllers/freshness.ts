// Proves that a collection is current: a read that the cluster answers consistently names a version, and what is known has to reach it. A quiet
// collection reaches it only by a bookmark, which a short watch of its own brings within about a second. Of a small collection that read is a list
// of it all, if it takes the place of several, or of that second: if its objects are those that are known, nothing else has to be awaited.

import type { JsonObject } from '../../kit/api/json/json-object.ts'
import { recordOf, textOf } from '../../kit/api/json/object-shape.ts'
import type { Clock } from '../../kit/api/ports.ts'
import { OBJECT, PAGE } from '../../kube/core/answers/answer-limits.ts'
import { AnswerTooLargeError } from '../../kube/core/answers/call-errors.ts'
import { endOf, itemsOf } from '../../kube/core/answers/paged-list.ts'
import { compareResourceVersions } from '../../kube/core/objects/resource-version.ts'
import { AnswerBytes } from '../../kube/io/answers/thread-answers.ts'
import type { ResourcePages } from '../../kube/io/list.ts'
import { WatchLines } from '../../kube/io/watch-lines.ts'
import { type CurrentState, type FreshnessQuestion, SMALL_BYTES } from '../core/changes/collection.ts'
import { type ListedObject, listedObject } from '../core/changes/listed-object.ts'

/** How long clients wait for a proof. */
export const PROOF_MS = 3_000
/** kube-apiserver sends a bookmark two seconds before a watch ends. */
const SIDE_WATCH_SECONDS = 3
/** The collection's own watch may bring the version at any moment. */
const MOMENT_MS = 30
const CONFIRM_AGAIN_MS = 1_000
/** So many lists of all objects are answered with one of the cluster's. */
const TOGETHER = 2

/** Lists of all objects may have so many bytes of the cluster and the main thread: those who ask meanwhile get the next one together. */
const LISTED_BYTES_PER_MS = 4 * 1024
/** When one is tried again that was more than a page may be. */
const TOO_LARGE_MS = 60_000

/** A list that names the current version. */
const SMALLEST = { limit: '1' }

type ReadPages = Pick<ResourcePages, 'charge' | 'page' | 'watch'>

interface Provable {
  /** '' = nothing is known. */
  readonly version: string
  /** How many all its objects have. */
  readonly bytes: number
  reaches(version: string, ms: number): Promise<boolean>
  /** Everything that has happened up to this version is known. */
  advance(version: string): void
  wentBack(): void
  /** Whether these are the objects that are known, and that the threads have been told of. */
  holds(listed: readonly ListedObject[]): boolean
}

interface Proof {
  /** None of those that wait for it can wait longer. */
  atOnce: boolean
  /** How many of those want all objects. */
  wholes: number
  readonly promise: Promise<CurrentState | undefined>
  readonly resolve: (state: CurrentState | undefined) => void
}

/** One proof at a time; a question that arrives meanwhile gets the next one, which begins later than the question. */
export class FreshnessProofs {
  readonly #collection: Provable
  readonly #pages: ReadPages
  readonly #clock: Clock
  #next: Proof | undefined
  #running = false
  /** When all objects may be listed again, and when that is tried again after it was too much: monotonic. */
  #listAgainMs = 0
  #fitsAgainMs = 0
  #confirming = false
  /** The latest version that clients were told of while one is reached. */
  #toReach = ''
  #reaching = false

  constructor(collection: Provable, pages: ReadPages, clock: Clock) {
    this.#collection = collection
    this.#pages = pages
    this.#clock = clock
  }

  /** @returns what is known, if it is current; else undefined */
  prove({ atOnce, whole }: Pick<FreshnessQuestion, 'atOnce' | 'whole'>): Promise<CurrentState | undefined> {
    this.#next ??= { atOnce, wholes: 0, ...Promise.withResolvers<CurrentState | undefined>() }
    const next = this.#next
    next.atOnce &&= atOnce
    if (whole) next.wholes++
    if (!this.#running) void this.#run()
    return next.promise
  }

  /**
   * Clients have been told of this version of the cluster's: what is known is brought to it, once. A quiet collection would hear of it in the next bookmark
   * of its own watch, within a minute. Proofs do not wait for it.
   */
  async reach(version: string): Promise<void> {
    if (isBehind(this.#toReach, version)) this.#toReach = version
    if (this.#reaching) return
    this.#reaching = true
    for (let tried = ''; tried !== this.#toReach; ) {
      tried = this.#toReach
      const { version: known } = this.#collection
      if (known === '' || !isBehind(known, tried)) continue
      const endsMs = this.#clock.monotonic() + PROOF_MS
      const leftMs = (): number => endsMs - this.#clock.monotonic()
      await this.#catchUp(known, tried, leftMs, AbortSignal.timeout(PROOF_MS)).catch(() => false)
    }
    this.#reaching = false
    // Whether the cluster has it is not known: one that it has made up must not hide later ones.
    this.#toReach = ''
  }

  /** Whether the cluster still has what is known. Asks until it has answered, once a second. */
  async confirm(): Promise<void> {
    if (this.#confirming) return
    this.#confirming = true
    for (let isKnown = false; !isKnown && this.#collection.version !== ''; ) {
      const known = this.#collection.version
      const page = await this.#pages.page(SMALLEST, OBJECT, AbortSignal.timeout(PROOF_MS)).catch(() => undefined)
      isKnown = page !== undefined && this.#currentOf(page, known) !== undefined
      if (!isKnown) await new Promise((resolve) => setTimeout(resolve, CONFIRM_AGAIN_MS).unref())
    }
    this.#confirming = false
  }

  async #run(): Promise<void> {
    this.#running = true
    for (let proof = this.#next; proof !== undefined; proof = this.#next) {
      const restMs = proof.atOnce ? 0 : this.#listAgainMs - this.#clock.monotonic()
      if (restMs > 0) await new Promise((resolve) => setTimeout(resolve, restMs))
      this.#next = undefined
      proof.resolve(await this.#prove(proof).catch(() => undefined))
    }
    this.#running = false
  }

  async #prove({ atOnce, wholes }: Proof): Promise<CurrentState | undefined> {
    const collection = this.#collection
    const endsMs = this.#clock.monotonic() + PROOF_MS
    const leftMs = (): number => endsMs - this.#clock.monotonic()
    if (collection.version === '') return undefined
    const known = collection.version
    const signal = AbortSignal.timeout(PROOF_MS)
    const all = (atOnce ? wholes >= TOGETHER : collection.bytes < SMALL_BYTES) ? await this.#all(signal) : undefined
    const page = all ?? (await this.#pages.page(SMALLEST, OBJECT, signal))
    const current = this.#currentOf(page, known)
    if (current === undefined) return undefined
    const listed = all !== undefined && endOf(all).next === '' ? itemsOf(all).map(listedObject) : undefined
    const state = await this.#compare(listed, current, leftMs())
    if (state !== undefined || atOnce) return state
    return (await this.#catchUp(known, current, leftMs, signal)) ? this.#known() : undefined
  }

  /** @param known from which a watch goes on @returns whether all is known up to `current` */
  async #catchUp(known: string, current: string, leftMs: () => number, signal: AbortSignal): Promise<boolean> {
    const { last, upTo } = await this.#watch(known, current, signal)
    if (upTo === '' || !(await this.#collection.reaches(last, leftMs()))) return false
    this.#collection.advance(upTo)
    return true
  }

  /** @returns undefined = they are more than is parsed at once, though they may have few bytes: many values, or keys */
  async #all(signal: AbortSignal): Promise<JsonObject | undefined> {
    if (this.#clock.monotonic() < this.#fitsAgainMs) return undefined
    try {
      return await this.#pages.page({}, PAGE, signal)
    } catch (error) {
      if (!(error instanceof AnswerTooLargeError)) throw error
      this.#fitsAgainMs = this.#clock.monotonic() + TOO_LARGE_MS
      return undefined
    } finally {
      this.#listAgainMs = this.#clock.monotonic() + Math.min(this.#collection.bytes, SMALL_BYTES) / LISTED_BYTES_PER_MS
    }
  }

  #known(): CurrentState {
    const { version } = this.#collection
    return { known: version, current: version }
  }

  /**
   * Objects that are the same at both versions say nothing of what came and went in between: what is known stays at its version, and its own watch
   * brings the rest.
   */
  async #compare(
    listed: readonly ListedObject[] | undefined,
    current: string,
    ms: number,
  ): Promise<CurrentState | undefined> {
    const collection = this.#collection
    const isSame = (): boolean => listed !== undefined && collection.holds(listed)
    if (isSame()) return { known: collection.version, current }
    if (await collection.reaches(current, Math.min(MOMENT_MS, ms))) return this.#known()
    return isSame() ? { known: collection.version, current } : undefined
  }

  /** @param known when the page was asked for: with an older one the cluster has gone back @returns undefined = it has, or did not say */
  #currentOf(page: JsonObject, known: string): string | undefined {
    const current = textOf(recordOf(page['metadata'])['resourceVersion'])
    const order = compareResourceVersions(known, current)
    if (order !== undefined && order > 0) this.#collection.wentBack()
    return order !== undefined && order <= 0 ? current : undefined
  }

  /** @returns the last change that a watch from `known` brings, and up to which version there is no other; '' = it did not say */
  async #watch(known: string, current: string, signal: AbortSignal): Promise<{ last: string; upTo: string }> {
    const query = {
      watch: '1',
      allowWatchBookmarks: 'true',
      resourceVersion: known,
      timeoutSeconds: String(SIDE_WATCH_SECONDS),
    }
    const end = new AbortController()
    const body = await this.#pages.watch(query, PROOF_MS, AbortSignal.any([signal, end.signal]))
    const lines = new WatchLines(new AnswerBytes(this.#pages.charge))
    let last = known
    try {
      for await (const chunk of body) {
        for (const { type, object } of lines.push(chunk)) {
          const version = textOf(recordOf(object['metadata'])['resourceVersion'])
          const order = compareResourceVersions(version, current)
          if (type === 'ERROR' || order === undefined) return { last, upTo: '' }
          if (type !== 'BOOKMARK') last = version
          if (order >= 0) return { last, upTo: version }
        }
      }
      return { last, upTo: '' }
    } finally {
      lines.drop()
      end.abort()
    }
  }
}

/** @param known '' = nothing */
function isBehind(known: string, version: string): boolean {
  if (known === '') return true
  const order = compareResourceVersions(known, version)
  return order !== undefined && order < 0
}
