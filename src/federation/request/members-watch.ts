// What a watch of several members is answered from: the changes of all of them in the order in which they came here. Each event has the version behind
// which the client goes on, at any replica.

import { objectAtVersion } from '../../cache/core/bytes/object-at-version.ts'
import type { Selects } from '../../cache/request/selection.ts'
import type { LateEnd, WatchSource } from '../../cache/request/watch-answer.ts'
import type { CachedCollection } from '../../cache/state/cached-collection.ts'
import type { CachedCollections } from '../../cache/state/cached-collections.ts'
import type { Decision, Permit } from '../../gateway/request/exchange/decision.ts'
import { OwnAnswer } from '../../gateway/request/exchange/own-answer.ts'
import type { HeaderList } from '../../kit/api/stream.ts'
import { refusalStatus } from '../../kit/core/refusal/refusal.ts'
import { compareSlots } from '../core/vectors.ts'
import type { FederatedCollection, MergedChange, Versions } from '../state/federated-collection.ts'
import type { AskedMember, ReachedMember } from './asked-members.ts'
import { LISTED_MS, listedPage } from './listed-pages.ts'
import { AT_ANY_RATE, reachInMember } from './reach-versions.ts'
import { refuseExpired, refuseUnproved } from './refusals.ts'
import type { MemberObject, ShownObjects } from './shown-objects.ts'

interface MembersStart {
  readonly shown: ShownObjects
  /** By slot. */
  readonly selects: readonly Selects[]
  /** It begins with the whole state, whose end is marked. */
  readonly isState: boolean
  /** What the client knows when it has what it begins with. */
  readonly versions: Versions
  /** Whether what is kept was proved to be as new as the watch. Default: it was before the watch began. */
  readonly late?: LateProof | undefined
}

/** What is awaited of a proof while a watch sends its state. */
export interface LateProof {
  /** undefined = it has not come yet. */
  readonly isProved: boolean | undefined
}

export class MembersWatch implements WatchSource<MergedChange> {
  readonly watched: FederatedCollection
  readonly #start: MembersStart
  /** What the client knows. No part of it falls. */
  #versions: Versions
  /** Version of the last bookmark. */
  #marked: string
  /** The end of the state is marked when that has come. */
  #awaited: LateProof | undefined

  constructor(watched: FederatedCollection, start: MembersStart) {
    this.watched = watched
    this.#start = start
    this.#versions = start.versions
    this.#marked = start.shown.version(start.versions)
  }

  get isInGap(): boolean {
    return this.watched.isInGap(this.#start.versions)
  }

  endOfState(): Buffer | undefined {
    const { shown, versions, isState, late } = this.#start
    this.#awaited = late
    return isState && late === undefined ? shown.bookmark(versions, true) : undefined
  }

  /** The versions are those of all that was sent. */
  lateEnd(): LateEnd | undefined {
    const isProved = this.#awaited?.isProved
    if (isProved === undefined) return undefined
    this.#awaited = undefined
    const { shown } = this.#start
    if (!isProved) return { event: shown.plainEvent('ERROR', refusalStatus(refuseUnproved())), isLast: true }
    this.#versions = later(this.#versions, this.watched.versions).values
    this.#marked = shown.version(this.#versions)
    return { event: shown.bookmark(this.#versions, true), isLast: false }
  }

  /** It may have learned of a change from another replica. */
  eventOf(merged: MergedChange): Buffer | undefined {
    const { shown, selects } = this.#start
    const { slot, change } = merged
    if (!shown.isVisible(slot) || compareSlots(change.resourceVersion, this.#versions[slot] ?? '') <= 0)
      return undefined
    const versions = later(this.#versions, merged.versions)
    const told = change.toldTo(selects[slot] ?? NONE)
    // What is not told moves it on too, with the next that is.
    this.#versions = versions.values
    if (told === undefined) return undefined
    const write = (): Buffer => Buffer.concat(eventParts(shown, merged, told, versions.values))
    // As all who know as much are sent it, except that the first of a watch of Tables has the columns.
    if (!versions.isSecond || shown.areTables) return write()
    return this.watched.history.made(merged, () => merged.event(`${shown.name} ${told}`, write))
  }

  bookmark(): Buffer | undefined {
    // The first one that a client gets is the mark of the end of the state.
    if (this.#awaited !== undefined) return undefined
    this.#versions = later(this.#versions, this.watched.versions).values
    const { shown } = this.#start
    const version = shown.version(this.#versions)
    if (version === this.#marked) return undefined
    this.#marked = version
    return shown.bookmark(this.#versions, false)
  }
}

/**
 * How the event of each object is written with which a watch begins.
 * @param before what the client knows before: each object moves it on. undefined = they are the state of one moment
 */
export function addedEvent(shown: ShownObjects, before: Versions | undefined): (one: MemberObject) => Buffer {
  const versions = before && [...before]
  return (one) => {
    if (versions !== undefined) versions[one.slot] = one.object.facts.resourceVersion
    // One part, so that pieces end between two events.
    return Buffer.concat(shown.event('ADDED', shown.stamped(one, versions)))
  }
}

export function* addedEvents(
  objects: readonly MemberObject[],
  write: (one: MemberObject) => Buffer,
): Generator<Buffer, undefined> {
  for (const one of objects) yield write(one)
}

const NONE: Selects = () => false

function eventParts(
  shown: ShownObjects,
  { slot, change }: MergedChange,
  told: 'ADDED' | 'MODIFIED' | 'DELETED' | 'LEFT',
  versions: Versions,
): readonly Buffer[] {
  if (told !== 'LEFT') return shown.event(told, shown.stampedBytes(slot, change.object, versions))
  const left = objectAtVersion(change.before ?? change.object, change.resourceVersion)
  return shown.event('DELETED', shown.stampedBytes(slot, left, versions))
}

/** The later of each. `isSecond`: that is all of `second`. */
function later(first: Versions, second: Versions): { readonly values: Versions; readonly isSecond: boolean } {
  if (first.every((version, slot) => compareSlots(version, second[slot] ?? '') <= 0))
    return { values: second, isSecond: true }
  const values = second.map((version, slot) =>
    compareSlots(first[slot] ?? '', version) > 0 ? (first[slot] ?? '') : version,
  )
  return { values, isSecond: false }
}

// A watch that cannot go on where its client left: answered as a kube-apiserver does, by one event.

/** @param webSocket fields of the answer that opens one; undefined = it is sent over HTTP */
export function expiredWatch(
  shown: ShownObjects,
  webSocket: HeaderList | undefined,
): (permit: Permit) => Promise<undefined> {
  return (permit) => {
    const parts = [shown.plainEvent('ERROR', refusalStatus(refuseExpired()))]
    const answer = new OwnAnswer(permit, { next: () => parts.pop() ?? 'end', over: () => undefined })
    answer.begin(['content-type', shown.form.streamType], webSocket)
    return Promise.resolve(undefined)
  }
}

// A watch that asks for the state and for the mark of its end begins before all that is kept is proved to be current: as soon as each member has named the
// version of the moment, so that one that does not answer is known by then. The mark is what says that a client has all of the state as of its request
// (meta/v1 ListOptions.sendInitialEvents: "the bookmark event is send when the state is synced at least to the moment when request started being
// processed"), and waits for the proof. What changes until then is told in front of it.

/** A list that names the version of the moment. */
const SMALLEST = { version: '', next: '', limit: 1 }

const PROOF = { kind: 'proof' } as const

/** How long a mark waits for the proof, and after how long that is tried again. */
const LATE_MS = 10_000
const AGAIN_MS = 250

/** By what is kept of it: members of which the last proof did not come in time. Watches do not begin before it. */
const UNPROVED = new WeakSet<object>()

export class StateProofs {
  readonly #decision: Decision
  readonly #caches: Pick<CachedCollections, 'currentVersion'>
  readonly #late: Promise<boolean>[] = []

  constructor(decision: Decision, caches: Pick<CachedCollections, 'currentVersion'>) {
    this.#decision = decision
    this.#caches = caches
  }

  /** Whether all that was awaited after `reach` is proved now; undefined = nothing was. */
  get late(): Promise<boolean> | undefined {
    if (this.#late.length === 0) return undefined
    return Promise.all(this.#late).then((proved) => proved.every((one) => one))
  }

  /** As `reachInMember`, or until the member has named a version. */
  async reach(member: AskedMember, ms: number): Promise<ReachedMember> {
    const { gw, monotonicMs } = this.#decision.exchange
    const endsMs = gw.clock.monotonic() + ms
    const mayBegin = !UNPROVED.has(member.kept) && member.kept.awayFor(monotonicMs) === 0
    const page = mayBegin ? await listedPage(this.#decision, member, SMALLEST, Math.min(ms, LISTED_MS)) : undefined
    if (page === undefined) return await this.#reached(member, Math.max(0, endsMs - gw.clock.monotonic()))
    this.#late.push(this.#provedLate(member.kept))
    return 'reached'
  }

  async #reached(member: AskedMember, ms: number): Promise<ReachedMember> {
    const reached = await reachInMember(this.#caches, member, PROOF, ms, this.#decision.exchange.monotonicMs)
    if (reached === 'reached') UNPROVED.delete(member.kept)
    return reached
  }

  /** The client has begun to get the state: it takes less of everyone to wait than to begin again. */
  async #provedLate(kept: CachedCollection): Promise<boolean> {
    const { exchange } = this.#decision
    const { clock } = exchange.gw
    const endsMs = clock.monotonic() + LATE_MS
    for (let leftMs = LATE_MS; leftMs > 0 && kept.awayFor(clock.monotonic()) === 0; ) {
      const proved = await this.#caches.currentVersion(kept, leftMs, AT_ANY_RATE).catch(() => undefined)
      if (proved !== undefined) return true
      if (kept.isGone || exchange.gone) return false
      await new Promise((resolve) => setTimeout(resolve, AGAIN_MS))
      leftMs = endsMs - clock.monotonic()
    }
    UNPROVED.add(kept)
    return false
  }
}
