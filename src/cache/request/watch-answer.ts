// One watch that is answered from what is kept: its state first if it asks for it, then each change as soon as the client takes it. Once that
// is sent it keeps a place in the history and nothing of its own, so a slow client costs nothing, and ends when it is too far behind.

import type { Permit } from '../../gateway/request/exchange/decision.ts'
import { type AnswerSource, OwnAnswer } from '../../gateway/request/exchange/own-answer.ts'
import { compareResourceVersions } from '../../kube/core/objects/resource-version.ts'
import { EVENT_END, eventHead, eventLine } from '../core/bytes/answers.ts'
import type { CachedCollection, CollectionWatcher } from '../state/cached-collection.ts'
import type { CachedObject } from '../state/cached-object.ts'
import { deliveryMs, memoryFor } from './delivery-limits.ts'
import { PIECE_BYTES, Pieces } from './pieces.ts'
import type { Selects } from './selection.ts'

/** How far behind a client may be that has its state. */
export const MOST_BEHIND_BYTES: number = 1024 * 1024
/** kube-apiserver's own: once a minute. */
const BOOKMARK_MS = 60_000
/** A client that takes nothing of its state, or not the rest of the last event, for this long is ended: that is kept for it alone. */
export const STALLED_MS = 60_000
const ADDED = eventHead('ADDED')

export interface WatchStart {
  readonly selects: Selects
  /** The state to begin with; undefined = only changes. */
  readonly initial: readonly CachedObject[] | undefined
  /** The initial objects are those of this version, and bookmarks are never older. */
  readonly version: string
  /** Index in the history of the first change to send. */
  readonly from: number
  readonly bookmarks: boolean
  readonly endsMs: number
}

export class WatchAnswer implements AnswerSource, CollectionWatcher {
  readonly #permit: Permit
  readonly #collection: CachedCollection
  readonly #start: WatchStart
  readonly #answer: OwnAnswer
  readonly #left: (watch: WatchAnswer) => void
  readonly #pieces = new Pieces()
  #initial: readonly CachedObject[]
  #initialParts: Iterator<Buffer, undefined>
  /** The state is sent, and its end has been marked. */
  #begun: boolean
  #next: number
  #caughtUp = false
  /** Version of the last bookmark. */
  #marked: string
  #markedMs: number
  #markDue = false
  #movedMs: number
  readonly #stateEndsMs: number
  /** Since when it should have ended. */
  #endingMs: number | undefined

  constructor(permit: Permit, collection: CachedCollection, start: WatchStart, left: (watch: WatchAnswer) => void) {
    this.#permit = permit
    this.#collection = collection
    this.#start = start
    this.#left = left
    this.#initial = start.initial ?? []
    this.#initialParts = addedParts(this.#initial)
    this.#begun = start.initial === undefined
    this.#next = start.from
    this.#marked = start.version
    this.#markedMs = permit.exchange.monotonicMs
    this.#movedMs = permit.exchange.monotonicMs
    const bytes = this.#initial.reduce((sum, object) => sum + object.bytes, 0)
    this.#stateEndsMs = permit.exchange.monotonicMs + deliveryMs(bytes)
    this.#answer = new OwnAnswer(permit, this)
  }

  get permit(): Permit {
    return this.#permit
  }

  get collection(): CachedCollection {
    return this.#collection
  }

  begin(): void {
    this.#collection.watchers.add(this)
    this.#answer.begin(['content-type', 'application/json'])
  }

  /** Ends between two events: the client resumes, here or at the cluster. */
  end(): void {
    this.#answer.end()
  }

  /** Called about once a second. */
  tick(nowMs: number): void {
    const { history } = this.#collection
    const isBehind = this.#begun && history.bytesFrom(this.#next, MOST_BEHIND_BYTES) > MOST_BEHIND_BYTES
    const isStalled = !this.#begun && (nowMs - this.#movedMs > STALLED_MS || nowMs > this.#stateEndsMs)
    if (nowMs >= this.#start.endsMs || isBehind || isStalled || !history.has(this.#next)) {
      if (this.#isIdle) this.#mark()
      this.end()
      // In the middle of an event, which the client does not take.
      this.#endingMs ??= nowMs
      if (nowMs - this.#endingMs > STALLED_MS) this.#answer.drop()
      return
    }
    if (this.#start.bookmarks && nowMs - this.#markedMs >= BOOKMARK_MS) {
      this.#markedMs = nowMs
      this.#markDue = true
      this.#answer.proceed()
    }
  }

  changed(): void {
    this.#answer.proceed()
  }

  ended(): void {
    this.end()
  }

  over(): void {
    this.#initial = []
    this.#initialParts = addedParts([])
    this.#collection.watchers.delete(this)
    this.#left(this)
  }

  next(): Buffer | undefined | 'end' {
    this.#movedMs = this.#permit.exchange.gw.clock.monotonic()
    if (!this.#begun) {
      const piece = this.#pieces.next(() => this.#initialParts.next().value)
      if (piece !== undefined) return piece
      this.#begun = true
      this.#permit.exchange.giveMemory(memoryFor(this.#initial))
      this.#initial = []
      if (this.#start.bookmarks) return this.#bookmark(this.#start.version, true)
    }
    if (!this.#pieces.hasRest && !this.#collection.history.has(this.#next)) return 'end'
    return this.#pieces.next(() => this.#nextChange()) ?? this.#dueBookmark()
  }

  get #isIdle(): boolean {
    return this.#start.bookmarks && this.#begun && this.#next >= this.#collection.history.end
  }

  /** The last thing that a client gets tells it where to resume. */
  #mark(): void {
    this.#markDue = true
    this.#answer.proceed()
  }

  #nextChange(): Buffer | undefined {
    const { history } = this.#collection
    for (;;) {
      const change = history.at(this.#next)
      if (change === undefined) return undefined
      this.#next++
      if (this.#isAhead(change.resourceVersion)) continue
      const line = change.lineFor(this.#start.selects)
      if (line !== undefined) return line
    }
  }

  /** A client may know versions that have not arrived here: it gets what is newer. */
  #isAhead(version: string): boolean {
    if (this.#caughtUp) return false
    this.#caughtUp = (compareResourceVersions(version, this.#start.version) ?? 0) > 0
    return !this.#caughtUp
  }

  #dueBookmark(): Buffer | undefined {
    if (!this.#markDue) return undefined
    this.#markDue = false
    const { version } = this.#collection
    if (version === this.#marked || !this.#collection.isAtLeast(this.#start.version)) return undefined
    return this.#bookmark(version, false)
  }

  #bookmark(version: string, endsInitial: boolean): Buffer {
    this.#marked = version
    return eventLine('BOOKMARK', this.#collection.bookmark.object(version, endsInitial))
  }
}

/** A large object is not copied: many clients may have it waiting. */
function* addedParts(objects: readonly CachedObject[]): Generator<Buffer, undefined> {
  for (const { json } of objects) {
    if (json.length <= PIECE_BYTES) yield eventLine('ADDED', json)
    else {
      yield Buffer.concat([ADDED, json.subarray(0, PIECE_BYTES)])
      yield json.subarray(PIECE_BYTES)
      yield EVENT_END
    }
  }
}
