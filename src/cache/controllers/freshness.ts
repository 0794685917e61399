// Proves that a collection is current: a read that the cluster answers consistently names a version, and what is known has to reach it. A quiet
// collection reaches it only by a bookmark, which a short watch of its own brings within about a second.

import { recordOf, textOf } from '../../kit/api/json/object-shape.ts'
import type { Clock } from '../../kit/api/ports.ts'
import { OBJECT } from '../../kube/core/answers/answer-limits.ts'
import { compareResourceVersions } from '../../kube/core/objects/resource-version.ts'
import { AnswerBytes } from '../../kube/io/answers/thread-answers.ts'
import type { ResourcePages } from '../../kube/io/list.ts'
import { WatchLines } from '../../kube/io/watch-lines.ts'

/** How long clients wait for a proof. */
export const PROOF_MS = 3_000
/** kube-apiserver sends a bookmark two seconds before a watch ends. */
const SIDE_WATCH_SECONDS = 3
/** The collection's own watch may bring the version at any moment. */
const MOMENT_MS = 30

interface Provable {
  /** '' = nothing is known. */
  readonly version: string
  reaches(version: string, ms: number): Promise<boolean>
  /** Everything that has happened up to this version is known. */
  advance(version: string): void
  wentBack(): void
}

interface Proof {
  /** None of those that wait for it can wait longer. */
  atOnce: boolean
  readonly promise: Promise<string | undefined>
  readonly resolve: (version: string | undefined) => void
}

/** One proof at a time; a question that arrives meanwhile gets the next one, which begins later than the question. */
export class FreshnessProofs {
  readonly #collection: Provable
  readonly #pages: ResourcePages
  readonly #clock: Clock
  #next: Proof | undefined
  #running = false

  constructor(collection: Provable, pages: ResourcePages, clock: Clock) {
    this.#collection = collection
    this.#pages = pages
    this.#clock = clock
  }

  /** @returns the version that is known, if it is current; else undefined */
  prove(atOnce: boolean): Promise<string | undefined> {
    this.#next ??= { atOnce, ...Promise.withResolvers<string | undefined>() }
    const next = this.#next
    next.atOnce &&= atOnce
    if (!this.#running) void this.#run()
    return next.promise
  }

  async #run(): Promise<void> {
    this.#running = true
    for (let proof = this.#next; proof !== undefined; proof = this.#next) {
      this.#next = undefined
      const isProved = await this.#prove(proof.atOnce).catch(() => false)
      proof.resolve(isProved ? this.#collection.version : undefined)
    }
    this.#running = false
  }

  async #prove(atOnce: boolean): Promise<boolean> {
    const collection = this.#collection
    const endsMs = this.#clock.monotonic() + PROOF_MS
    const leftMs = (): number => endsMs - this.#clock.monotonic()
    if (collection.version === '') return false
    const known = collection.version
    const signal = AbortSignal.timeout(PROOF_MS)
    const page = await this.#pages.page({ limit: '1' }, OBJECT, signal)
    const current = textOf(recordOf(page['metadata'])['resourceVersion'])
    const order = compareResourceVersions(known, current)
    if (order === undefined) return false
    if (order > 0) {
      collection.wentBack()
      return false
    }
    if (await collection.reaches(current, Math.min(MOMENT_MS, leftMs()))) return true
    if (atOnce) return false
    const { last, upTo } = await this.#watch(known, current, signal)
    if (upTo === '' || !(await collection.reaches(last, leftMs()))) return false
    collection.advance(upTo)
    return true
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
