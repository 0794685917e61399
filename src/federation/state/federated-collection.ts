// One resource of all members in a gateway thread: their changes in one order, each with the versions of all members at that moment. Objects and
// histories are those of the read cache; nothing is kept twice but the order.

import type { CachedCollection, CollectionWatcher } from '../../cache/state/cached-collection.ts'
import type { CachedObject } from '../../cache/state/cached-object.ts'
import type { CachedChange } from '../../cache/state/history.ts'
import { RecentChanges } from '../../cache/state/recent-changes.ts'
import type { Clock } from '../../kit/api/ports.ts'
import { compareSlots } from '../core/vectors.ts'

/** By slot; '' = nothing of it is known. */
export type Versions = readonly string[]

export class MergedChange {
  readonly slot: number
  readonly change: CachedChange
  /** Those of all members, as soon as it was applied. */
  readonly versions: Versions
  /** By the form in which it is sent. */
  readonly #events = new Map<string, Buffer>()
  #madeBytes = 0

  constructor(slot: number, change: CachedChange, versions: Versions) {
    this.slot = slot
    this.change = change
    this.versions = versions
  }

  get object(): CachedObject {
    return this.change.object
  }

  get bytes(): number {
    return this.change.bytes
  }

  get atMs(): number {
    return this.change.atMs
  }

  get madeBytes(): number {
    return this.#madeBytes
  }

  forgetEvents(): void {
    this.#events.clear()
    this.#madeBytes = 0
  }

  /** @param name of the form */
  event(name: string, write: () => Buffer): Buffer {
    const known = this.#events.get(name)
    if (known !== undefined) return known
    const event = write()
    if (this.#events.size >= MOST_SHARED) return event
    this.#events.set(name, event)
    this.#madeBytes += event.length
    return event
  }
}

/** Callers who may see different members are shown different versions: of so many kinds, the event is kept. */
const MOST_SHARED = 4

/** Where a watch goes on. */
export type ResumePlace =
  | { readonly kind: 'from'; readonly index: number }
  /** Some changes behind it are gone. */
  | { readonly kind: 'expired' }

export class FederatedCollection {
  readonly watchers = new Set<CollectionWatcher>()
  readonly history = new RecentChanges<MergedChange>()
  readonly #parts: MemberPart[] = []
  /** All later changes of each member are there. */
  readonly #since: string[]
  #versions: string[]
  #isGone = false
  /** By slot: the version from which it was followed first. */
  readonly #first: string[]
  /** By slot: those of all members when what is kept of it now began to be followed. */
  readonly #atFollow: Versions[] = []
  /** Objects that have changed since the members are followed here. */
  readonly #stamps = new WeakMap<CachedObject, Versions>()

  readonly #clock: Pick<Clock, 'monotonic'>

  constructor(slots: number, clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock
    this.#since = Array.from({ length: slots }, () => '')
    this.#versions = [...this.#since]
    this.#first = [...this.#since]
  }

  /** Everything up to them is known. */
  get versions(): Versions {
    return this.#versions
  }

  /** It is not followed any more: nothing comes. */
  get isGone(): boolean {
    return this.#isGone
  }

  /** What is kept of a member; undefined = nothing. */
  member(slot: number): CachedCollection | undefined {
    return this.#parts[slot]?.collection
  }

  /** Follows what is kept of a member now. */
  follow(slot: number, collection: CachedCollection | undefined): void {
    const before = this.#parts[slot]
    if (before?.collection === collection) return
    before?.leave()
    delete this.#parts[slot]
    // What is there of it belongs to the one before. Those who watch begin again, so indexes mean nothing any more.
    this.history.keepOnly((change) => change.slot !== slot)
    if (collection !== undefined) {
      const part: MemberPart = new MemberPart(collection, () => this.#take(slot, part))
      this.#parts[slot] = part
      this.#since[slot] = collection.version
      this.#versions = withVersion(this.#versions, slot, collection.version)
      this.#first[slot] ||= collection.version
      this.#atFollow[slot] = this.#versions
    }
    this.#end()
  }

  /** Nothing is followed any more. */
  leave(): void {
    this.#isGone = true
    for (const part of this.#parts) part?.leave()
    this.#parts.length = 0
    this.#end()
  }

  /**
   * The versions that an object was given when it was applied. One that has not changed since is given those of other members with which it was read, or the
   * first that came of them later: never older ones than a process before this one gave it, and the same in all threads.
   */
  stampOf(slot: number, object: CachedObject): Versions {
    const known = this.#stamps.get(object)
    // It may have changed before anything was known of another member.
    if (known?.includes('') === true) return known.map((version, at) => version || (this.#first[at] ?? ''))
    if (known !== undefined) return known
    const others = this.#atFollow[slot] ?? this.#first
    return this.#first.map((first, at) => (at === slot ? object.facts.resourceVersion : others[at] || first))
  }

  /** Whether a member may have had more changes than are known around the version that a client has of it. */
  isInGap(versions: Versions): boolean {
    return this.#parts.some((part, slot) => {
      const version = versions[slot] ?? ''
      return version !== '' && part?.collection.history.isInGap(version) === true
    })
  }

  /** Where a client goes on that knows these versions. */
  behind(versions: Versions): ResumePlace {
    const isKept = this.#since.every((since, slot) => {
      const version = versions[slot] ?? ''
      return version === '' || this.#parts[slot] === undefined || compareSlots(version, since) >= 0
    })
    if (!isKept || this.isInGap(versions)) return { kind: 'expired' }
    const index = this.history.behindKnown((change) =>
      change.versions.every((version, slot) => compareSlots(versions[slot] ?? '', version) >= 0),
    )
    return { kind: 'from', index }
  }

  /** There is news of a member. */
  #take(slot: number, part: MemberPart): void {
    const { collection } = part
    const { history } = collection
    if (!history.has(part.next)) {
      // So much at once that the history does not have all of it.
      part.next = history.end
      this.#advance(slot, collection.version)
      this.#forgotten(this.history.forgetAll())
      this.#since[slot] = collection.version
      this.#end()
      return
    }
    for (let change = history.at(part.next); change !== undefined; change = history.at(++part.next)) {
      this.#advance(slot, change.resourceVersion)
      this.history.push(new MergedChange(slot, change, this.#versions))
      this.#stamps.set(change.object, this.#versions)
    }
    this.#advance(slot, collection.version)
    this.#forgotten(this.history.forgetOld(this.#clock.monotonic()))
    for (const watcher of this.watchers) watcher.changed()
  }

  #advance(slot: number, version: string): void {
    if (compareSlots(version, this.#versions[slot] ?? '') <= 0) return
    // Changes that were told keep theirs.
    this.#versions = withVersion(this.#versions, slot, version)
  }

  /** Who knows less begins again. */
  #forgotten(changes: readonly MergedChange[]): void {
    for (const { slot, change } of changes) this.#since[slot] = change.resourceVersion
  }

  #end(): void {
    for (const watcher of [...this.watchers]) watcher.ended()
  }
}

function withVersion(versions: Versions, slot: number, version: string): string[] {
  return versions.map((known, at) => (at === slot ? version : known))
}

/** A member's collection is followed, and not watched: no client of its own is behind it. */
class MemberPart {
  readonly collection: CachedCollection
  /** Index in its history. */
  next: number
  readonly #news: () => void

  constructor(collection: CachedCollection, news: () => void) {
    this.collection = collection
    this.next = collection.history.end
    this.#news = news
    collection.followers.add(news)
  }

  leave(): void {
    this.collection.followers.delete(this.#news)
  }
}
