// One watch that is answered from what is kept: its state first if it asks for it, then each change as soon as the client takes it. Once that
// is sent it keeps a place in the history and nothing of its own, so a slow client costs nothing, and ends when it is too far behind.

import { threadScheduler } from '../../gateway/io/scheduling/thread-scheduler.ts'
import type { Permit } from '../../gateway/request/exchange/decision.ts'
import { type AnswerSource, OwnAnswer } from '../../gateway/request/exchange/own-answer.ts'
import type { HeaderList } from '../../kit/api/stream.ts'
import { compareResourceVersions } from '../../kube/core/objects/resource-version.ts'
import type { AnswerForm } from '../core/bytes/answer-form.ts'
import { MalformedError } from '../core/bytes/malformed.ts'
import { type PartReader, WholeParts } from '../core/bytes/part-reader.ts'
import type { CachedCollection, CollectionWatcher } from '../state/cached-collection.ts'
import type { CachedChange } from '../state/history.ts'
import type { RecentChange, RecentChanges } from '../state/recent-changes.ts'
import { type Warned, warningFields } from './deliver-read.ts'
import { deliveryMs, memoryFor } from './delivery-limits.ts'
import type { OpenWatches, Watching } from './open-watches.ts'
import { Pieces } from './pieces.ts'
import type { Right } from './rights.ts'
import type { Selects } from './selection.ts'
import { TakingTime } from './taking-time.ts'

/** How far behind a client may be that has its state. */
export const MOST_BEHIND_BYTES: number = 1024 * 1024
/** kube-apiserver's own: once a minute. */
const BOOKMARK_MS = 60_000
/** A client that takes nothing of its state, or not the rest of the last event, for this long is ended: that is kept for it alone. */
export const STALLED_MS = 60_000
/** How long a watch that does not say so lasts, at least; at most twice that (apiserver: --min-request-timeout). */
const LEAST_WATCH_SECONDS = 1_800
const SECOND_MS = 1_000
/** Changes of which the client gets nothing, after which others have their turn; each is charged as so many bytes that are sent. */
const MOST_LOOKED_AT = 64
const LOOK_BYTES = 512

/** What one watch is answered from. It is asked for what is sent in that order, and remembers what its client knows. */
export interface WatchSource<Change extends RecentChange> {
  readonly watched: {
    readonly watchers: Set<CollectionWatcher>
    /** Nothing comes any more. */
    readonly isGone: boolean
    readonly history: Pick<RecentChanges<Change>, 'at' | 'end' | 'has' | 'bytesFrom'>
  }
  /** There may have been more behind the version with which it began than the changes tell of. */
  readonly isInGap: boolean
  /** undefined = the client does not get it: it is not selected, or known. */
  eventOf(change: Change): Buffer | undefined
  /** The bookmark behind the state; undefined = there is none, or it comes later. */
  endOfState(): Buffer | undefined
  /** The same when it comes later: asked when all changes were sent. undefined = not yet, or not again. */
  lateEnd?(): LateEnd | undefined
  /** That all changes were sent; undefined = the client knows it. */
  bookmark(): Buffer | undefined
}

/** What is sent at the end of a state that is not known to be all when it is sent. */
export interface LateEnd {
  readonly event: Buffer
  /** The watch ends with it. */
  readonly isLast: boolean
}

/** What a watch begins with: an event for each object. */
interface WatchState {
  readonly events: PartReader
  /** How many. */
  readonly objects: number
  /** As they are kept. */
  readonly bytes: number
  /** Bytes of events that are written already, whose memory is the caller's, too. Default: none. */
  readonly ownBytes?: number
}

export interface WatchStart {
  readonly streamType: string
  /** Fields of the answer that opens a WebSocket, whose frames the events are then. Default: they are sent over HTTP. */
  readonly webSocket?: HeaderList | undefined
  readonly warned: Warned
  /** Given up as soon as it is sent: objects that have changed since are kept for it. undefined = only changes. */
  state: WatchState | undefined
  /** Index in the history of the first change to send. */
  readonly from: number
  readonly bookmarks: boolean
  /** 0 = not said. */
  readonly timeoutSeconds: number
  /** When the end of the state is known. Default: when it is sent. */
  readonly late?: Promise<unknown> | undefined
}

/** @param source only for this watch @param recheck whether its caller still may */
export function beginWatch<Change extends RecentChange>(
  permit: Permit,
  source: WatchSource<Change>,
  start: WatchStart,
  watches: OpenWatches,
  recheck: () => Promise<Right>,
): Promise<undefined> {
  const watch = new WatchAnswer(permit, source, start, watches)
  watches.add(watch, recheck)
  watch.begin()
  void start.late?.then(() => watch.changed())
  return Promise.resolve(undefined)
}

class WatchAnswer<Change extends RecentChange> implements AnswerSource, CollectionWatcher, Watching {
  readonly #permit: Permit
  readonly #source: WatchSource<Change>
  readonly #start: WatchStart
  readonly #answer: OwnAnswer
  readonly #open: OpenWatches
  readonly #pieces = new Pieces()
  readonly #changes = new WholeParts(() => this.#nextChange())
  readonly #endsMs: number
  #next: number
  /** Changes in its present turn of which the client gets nothing. */
  #lookedAt = 0
  /** When a bookmark was sent last, or was not needed. */
  #markedMs: number
  #markDue = false
  /** Since it took something; and what it may take for the state. */
  readonly #sinceMove: TakingTime
  readonly #taking: TakingTime
  readonly #mostMs: number
  #isEnding = false
  /** Since when it is in the middle of an event, and should have ended. */
  #endingMs: number | undefined

  constructor(permit: Permit, source: WatchSource<Change>, start: WatchStart, open: OpenWatches) {
    this.#permit = permit
    this.#source = source
    this.#start = start
    this.#open = open
    this.#next = start.from
    const { clock, random } = permit.exchange.gw
    const nowMs = clock.monotonic()
    const seconds = start.timeoutSeconds > 0 ? start.timeoutSeconds : LEAST_WATCH_SECONDS * (1 + random())
    this.#endsMs = nowMs + seconds * SECOND_MS
    this.#markedMs = nowMs
    this.#sinceMove = new TakingTime(nowMs)
    this.#taking = new TakingTime(nowMs)
    this.#mostMs = deliveryMs(start.state?.bytes ?? 0)
    this.#answer = new OwnAnswer(permit, this)
  }

  begin(): void {
    const { watched } = this.#source
    const { streamType, warned, webSocket } = this.#start
    watched.watchers.add(this)
    this.#answer.begin(['content-type', streamType, ...warningFields(warned)], webSocket)
    // It may be so since the request was looked at.
    if (watched.isGone) this.end()
  }

  /** Ends between two events: the client resumes, here or at the cluster. */
  end(): void {
    this.#isEnding = true
    this.#answer.end()
  }

  /** @param wasBusy the thread had no moment left since the last call */
  tick(nowMs: number, wasBusy: boolean): void {
    const { history } = this.#source.watched
    const isBegun = this.#start.state === undefined
    // Not one that only waits for its turn.
    const isTaking = isBegun && this.#lookedAt < MOST_LOOKED_AT && !wasBusy
    const isBehind = isTaking && history.bytesFrom(this.#next, MOST_BEHIND_BYTES) > MOST_BEHIND_BYTES
    const stalledMs = this.#sinceMove.pass(nowMs, wasBusy)
    const takingMs = this.#taking.pass(nowMs, wasBusy)
    const isStalled = !isBegun && (stalledMs > STALLED_MS || takingMs > this.#mostMs)
    if (this.#isEnding || nowMs >= this.#endsMs || isBehind || isStalled || !history.has(this.#next)) {
      // The last thing that a client gets tells it where to resume.
      if (this.#start.bookmarks && isBegun && !this.#isEnding && this.#next >= history.end) this.#mark()
      this.end()
      // In the middle of an event, which the client does not take.
      this.#endingMs ??= nowMs
      if (nowMs - this.#endingMs > STALLED_MS) this.#answer.drop()
      return
    }
    if (this.#start.bookmarks && nowMs - this.#markedMs >= BOOKMARK_MS) {
      this.#markedMs = nowMs
      this.#mark()
    }
  }

  changed(): void {
    this.#open.due(this)
  }

  /** It is its turn. */
  proceed(): void {
    this.#lookedAt = 0
    this.#answer.proceed()
  }

  ended(): void {
    this.end()
  }

  over(): void {
    this.#start.state = undefined
    this.#source.watched.watchers.delete(this)
    this.#open.left(this)
  }

  next(): Buffer | undefined | 'end' {
    this.#sinceMove.restart(this.#permit.exchange.gw.clock.monotonic())
    try {
      return this.#following()
    } catch (error) {
      // What upstream sent cannot be written in this form: the client resumes, or begins again.
      if (error instanceof MalformedError) return 'end'
      throw error
    }
  }

  #following(): Buffer | undefined | 'end' {
    const { state, bookmarks } = this.#start
    if (state !== undefined) {
      const piece = this.#pieces.next(state.events)
      if (piece !== undefined) return piece
      this.#start.state = undefined
      this.#permit.exchange.giveMemory(memoryFor(state.objects) + (state.ownBytes ?? 0))
      const mark = bookmarks ? this.#source.endOfState() : undefined
      if (mark !== undefined) return mark
    }
    if (!this.#pieces.hasRest) {
      const { watched, isInGap } = this.#source
      if (this.#isEnding || isInGap || !watched.history.has(this.#next)) return 'end'
    }
    return this.#pieces.next(this.#changes) ?? this.#lateEnd() ?? this.#dueBookmark()
  }

  #mark(): void {
    this.#markDue = true
    this.#answer.proceed()
  }

  #nextChange(): Buffer | undefined {
    if (this.#isEnding) return undefined
    const { history } = this.#source.watched
    for (;;) {
      const change = history.at(this.#next)
      if (change === undefined) return undefined
      if (this.#lookedAt >= MOST_LOOKED_AT) {
        this.#open.due(this)
        return undefined
      }
      this.#next++
      const event = this.#source.eventOf(change)
      if (event !== undefined) return event
      if (++this.#lookedAt === MOST_LOOKED_AT)
        threadScheduler.chargeAnswer(this.#permit.exchange.charge, MOST_LOOKED_AT * LOOK_BYTES)
    }
  }

  #lateEnd(): Buffer | undefined {
    if (this.#isEnding || this.#next < this.#source.watched.history.end) return undefined
    const end = this.#source.lateEnd?.()
    if (end?.isLast === true) this.#isEnding = true
    return end?.event
  }

  #dueBookmark(): Buffer | undefined {
    if (!this.#markDue || this.#next < this.#source.watched.history.end) return undefined
    this.#markDue = false
    return this.#source.bookmark()
  }
}

// What a watch of one collection is answered from.

export class CollectionWatch implements WatchSource<CachedChange> {
  readonly watched: CachedCollection
  readonly #form: AnswerForm
  readonly #selects: Selects
  readonly #version: string
  #caughtUp = false
  /** Version of the last bookmark. */
  #marked: string

  /** @param version of the state with which it begins, or behind which it goes on: bookmarks are never older */
  constructor(watched: CachedCollection, form: AnswerForm, selects: Selects, version: string) {
    this.watched = watched
    this.#form = form
    this.#selects = selects
    this.#version = version
    this.#marked = version
  }

  get isInGap(): boolean {
    return this.watched.history.isInGap(this.#version)
  }

  eventOf(change: CachedChange): Buffer | undefined {
    if (this.#isAhead(change.resourceVersion)) return undefined
    return this.watched.history.eventOf(change, this.#selects, this.#form)
  }

  endOfState(): Buffer {
    return this.#bookmark(this.#version, true)
  }

  bookmark(): Buffer | undefined {
    const { version } = this.watched
    if (version === this.#marked || !this.watched.isAtLeast(this.#version)) return undefined
    return this.#bookmark(version, false)
  }

  /** A client may know versions that have not arrived here: it gets what is newer. */
  #isAhead(version: string): boolean {
    if (this.#caughtUp) return false
    this.#caughtUp = (compareResourceVersions(version, this.#version) ?? 0) > 0
    return !this.#caughtUp
  }

  #bookmark(version: string, endsState: boolean): Buffer {
    this.#marked = version
    return Buffer.concat(this.#form.event('BOOKMARK', this.watched.bookmarks.object(version, endsState)))
  }
}
