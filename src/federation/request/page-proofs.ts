// The first page of a consistent list does not wait for the proof that all that is kept of each member is current, which takes a quiet kube-apiserver a second.
// Each member is asked for its own list instead: for as many objects as the page will have of it, one at least, whose list names the version of the moment.
// The page is made of what is kept, and sent if that has the same objects in the same versions: then it is the state of the version of that list, up to
// its last object. A page that goes on asks members in the same way that what is kept has not reached by then, for their state at the versions of the first.

import { objectKey } from '../../cache/core/keys/object-key.ts'
import type { CachedCollections } from '../../cache/state/cached-collections.ts'
import { aroundKey } from '../../cache/state/object-range.ts'
import type { Decision } from '../../gateway/request/exchange/decision.ts'
import type { ContinuePlace } from '../core/continue.ts'
import type { FederatedRead } from '../core/federated-read.ts'
import type { ListedPage, PageQuestion } from '../core/listed-page.ts'
import { compareSlots } from '../core/vectors.ts'
import type { Versions } from '../state/federated-collection.ts'
import type { AskedMember, InFront, KeptPlace, ReachedMember } from './asked-members.ts'
import { endOfKept, type NextPage } from './list-pages.ts'
import { LISTED_MS, listedPage, MOST_LISTED } from './listed-pages.ts'
import { type Awaited, reachInMember } from './reach-versions.ts'
import type { ObjectPlace, SelectedObjects } from './select-objects.ts'

/** What is missing may be on its way. */
const MOMENT_MS = 30

interface ProofsOf {
  readonly caches: Pick<CachedCollections, 'currentVersion' | 'told' | 'reachTold'>
  readonly read: FederatedRead
  /** undefined = it begins. */
  readonly after: ContinuePlace | undefined
  readonly awaited: Awaited
}

/** What can be answered: of which versions, and up to where. */
interface Part {
  readonly at: Versions
  /** The last object of which it is known; undefined = it is known of all. */
  readonly upTo: ObjectPlace | undefined
  /** Slots of which that is known if the page is the same as the member's list. */
  readonly unproved: ReadonlySet<number>
}

export class PageProofs {
  readonly #decision: Decision
  readonly #of: ProofsOf
  /** By slot. */
  readonly #pages = new Map<number, ListedPage>()
  /** By slot: objects of what is kept that the page may have. */
  readonly #counts = new Map<number, number>()
  readonly #limit: number
  readonly #hasSelectors: boolean
  readonly #isFirst: boolean

  constructor(decision: Decision, of: ProofsOf) {
    const { read, awaited } = of
    this.#decision = decision
    this.#of = of
    this.#isFirst = awaited.kind === 'proof'
    const isExact = awaited.kind === 'versions' && awaited.isExact
    const isPage = read.kind === 'list' && read.limit <= MOST_LISTED && (this.#isFirst || isExact)
    this.#limit = isPage ? read.limit : 0
    this.#hasSelectors = read.labelSelector !== '' || read.fieldSelector !== ''
  }

  /** Whether any member was asked for its list. */
  get isUsed(): boolean {
    return this.#pages.size > 0
  }

  /** As `reachInMember`, or until the member's own list is there. @param inFront members whose objects come first */
  async reach(member: AskedMember, ms: number, inFront: InFront): Promise<ReachedMember> {
    const { clock } = this.#decision.exchange.gw
    const endsMs = clock.monotonic() + ms
    const leftMs = (): number => Math.max(0, endsMs - clock.monotonic())
    const question = await this.#question(member, inFront)
    if (question === 'done') return 'reached'
    if (question === undefined) return await this.#reached(member, leftMs())
    if (!this.#isFirst) return await this.#reachedOrListed(member, question, leftMs())
    const before = member.kept.version
    const page = await listedPage(this.#decision, member, question, Math.min(leftMs(), LISTED_MS))
    // An older one says that the cluster has gone back, or that a server of it is behind: another proof finds that out.
    if (page === undefined || compareSlots(page.version, before) < 0) return await this.#reached(member, leftMs())
    this.#pages.set(member.slot, page)
    return 'reached'
  }

  /** @param present versions of what is kept */
  part(members: readonly AskedMember[], present: Versions): Part {
    const { awaited, after } = this.#of
    const exact = awaited.kind === 'versions' ? awaited.versions : undefined
    const at = exact ?? present.map((version, slot) => this.#pages.get(slot)?.version ?? version)
    const unproved = new Set<number>()
    for (const { slot, kept } of members) {
      const version = at[slot] ?? ''
      if (slot < (after?.slot ?? 0) || version === '' || kept.isAtLeast(version)) continue
      unproved.add(slot)
      const page = this.#pages.get(slot)
      const begin: ObjectPlace = { slot, token: slot === after?.slot ? after.token : '' }
      if (page === undefined) return { at, unproved, upTo: begin }
      if (page.next === '') continue
      return { at, unproved, upTo: { slot, token: lastKey(page) ?? begin.token } }
    }
    return { at, unproved, upTo: undefined }
  }

  /**
   * Where the next page can be proved, too: where a list of a member ends, or at the beginning of one.
   * @returns also the objects, without those of a member of which the page had no room for all that it has listed
   */
  end(selected: SelectedObjects, { upTo, unproved }: Part): NextPage & Pick<SelectedObjects, 'objects' | 'left'> {
    const { objects, left, beyond } = selected
    const last = objects.at(-1)
    // What these have listed was not compared: it is of the next page, though nothing of it may be kept yet.
    const isCut = last !== undefined && objects.length === this.#limit && [...unproved].some((slot) => slot > last.slot)
    if (upTo !== undefined && left === beyond && !isCut)
      return { objects, left, place: upTo, next: this.#pages.get(upTo.slot)?.next ?? '' }
    const page = last && unproved.has(last.slot) ? this.#pages.get(last.slot) : undefined
    if (last === undefined || (left === 0 && !isCut)) return { objects, left, ...endOfKept(selected) }
    if (page === undefined) return { objects, left, place: { slot: last.slot, token: last.object.key }, next: '' }
    const { slot, object } = last
    if (lastKey(page) === object.key) {
      const place = page.next === '' ? { slot: slot + 1, token: '' } : { slot, token: object.key }
      return { objects, left, place, next: page.next }
    }
    if (slot === this.#of.after?.slot) return { objects, left, ...endOfKept(selected) }
    const kept = objects.filter((one) => one.slot !== slot)
    return { objects: kept, left: left + objects.length - kept.length, place: { slot, token: '' }, next: '' }
  }

  /** Whether what was selected of the members that are unproved is what they have listed. */
  proves({ objects }: SelectedObjects, { unproved }: Part): boolean {
    const isFull = this.#limit > 0 && objects.length === this.#limit
    const lastSlot = objects.at(-1)?.slot ?? 0
    for (const slot of unproved) {
      if (isFull && slot > lastSlot) continue
      const listed = this.#pages.get(slot)?.objects ?? []
      const found = objects.flatMap((one) => (one.slot === slot ? [one.object] : []))
      const mayBeMore = isFull && slot === lastSlot
      if (mayBeMore ? found.length > listed.length : found.length !== listed.length) return false
      const isSame = found.every(({ key, facts: { uid, resourceVersion } }, at) => {
        const one = listed[at]
        return (
          one !== undefined &&
          key === objectKey(one.namespace, one.name) &&
          uid === one.uid &&
          resourceVersion === one.resourceVersion
        )
      })
      if (!isSame) return false
    }
    return true
  }

  /** Until there is news of one of the members, for a moment. */
  async moment(members: readonly AskedMember[], { at, unproved }: Part): Promise<void> {
    const waiting = members.filter(({ slot }) => unproved.has(slot))
    await Promise.all(waiting.map(({ slot, kept }) => kept.reaches(at[slot] ?? '', MOMENT_MS)))
  }

  /** What was listed is of no use: what is kept has to be as new as the answer, as ever. @returns by member */
  async reachWithout(members: readonly AskedMember[], ms: number): Promise<readonly ReachedMember[]> {
    const asked = this.#pages
    const waiting = members.map((one) => (asked.has(one.slot) ? this.#reached(one, ms) : ('reached' as const)))
    const reached = await Promise.all(waiting)
    asked.clear()
    return reached
  }

  /** The client gets these versions, and will come back with them. */
  tell(members: readonly AskedMember[], { at }: Part): void {
    for (const { slot, kept } of members) {
      const version = this.#pages.get(slot)?.version
      if (version !== undefined && version === at[slot] && !kept.isAtLeast(version)) this.#of.caches.told(kept, version)
    }
  }

  async #reached(member: AskedMember, ms: number): Promise<ReachedMember> {
    const { caches, awaited } = this.#of
    const { monotonicMs, gw } = this.#decision.exchange
    const endsMs = gw.clock.monotonic() + ms
    const reached = await reachInMember(caches, member, awaited, ms, monotonicMs)
    // Others than pages were never proved by a list that names a version, and need not wait for one that another client was told of.
    if (this.#isFirst && this.#limit > 0 && reached === 'reached' && member.kept.awayFor(monotonicMs) === 0)
      await caches.reachTold(member.kept, Math.max(0, endsMs - gw.clock.monotonic()))
    return reached
  }

  /** Both at the same time: the server may not have the version any more, or what is kept may reach it at any moment. */
  async #reachedOrListed(member: AskedMember, question: PageQuestion, ms: number): Promise<ReachedMember> {
    let isOver = false
    const reached = this.#reached(member, ms)
    const listed = listedPage(this.#decision, member, question, ms).then((page) => {
      if (page !== undefined && !isOver) this.#pages.set(member.slot, page)
      return page === undefined ? reached : ('reached' as const)
    })
    const first = await Promise.race([listed, reached])
    isOver = true
    return first
  }

  /** @returns done = nothing of it is needed for this page; undefined = its list is not asked for */
  async #question({ slot, kept }: AskedMember, inFront: InFront): Promise<PageQuestion | 'done' | undefined> {
    const { awaited, after } = this.#of
    if (this.#limit === 0 || kept.awayFor(this.#decision.exchange.monotonicMs) > 0) return undefined
    const rest = this.#restFor(await inFront())
    if (awaited.kind !== 'versions') return { version: '', next: '', limit: Math.max(1, rest) }
    const version = awaited.versions[slot] ?? ''
    const isDone = after !== undefined && slot < after.slot
    if (isDone || rest <= 0 || version === '' || kept.isAtLeast(version)) return 'done'
    const isInside = slot === after?.slot && after.token !== ''
    if (isInside && after.next === '') return undefined
    return { version, next: slot === after?.slot ? after.next : '', limit: rest }
  }

  /** How many objects the page has room for behind those of other members, as far as is known. Those that the caller may not read would show in its length. */
  #restFor(inFront: readonly KeptPlace[]): number {
    const { after } = this.#of
    const before = inFront.filter(({ slot }) => slot >= (after?.slot ?? 0))
    if (before.length > 0 && this.#hasSelectors) return this.#isFirst ? 1 : 0
    return before.reduce((rest, place) => rest - this.#countOf(place), this.#limit)
  }

  /** Looked for once: each of many members may be in front of all others. */
  #countOf({ slot, scope, kept }: KeptPlace): number {
    const known = this.#counts.get(slot)
    if (known !== undefined) return known
    const { after } = this.#of
    const whole = kept.range(scope.namespace)
    const { from, to } = slot === after?.slot ? aroundKey(whole, after.token).behind : whole
    this.#counts.set(slot, to - from)
    return to - from
  }
}

/** undefined = it has no objects. */
function lastKey({ objects }: ListedPage): string | undefined {
  const last = objects.at(-1)
  return last && objectKey(last.namespace, last.name)
}
