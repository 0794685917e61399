// The objects that a list, a page of it, or a watch begins with: of all members as they were at one moment, or as they were at an earlier version that the
// histories still reach. The members are one behind the other, each in the order of its keys.

import { compareKeys } from '../../cache/core/keys/object-key.ts'
import { memoryFor } from '../../cache/request/delivery-limits.ts'
import { scanParts } from '../../cache/request/scan.ts'
import type { Selects } from '../../cache/request/selection.ts'
import type { CachedObject } from '../../cache/state/cached-object.ts'
import { aroundKey, type ObjectRange } from '../../cache/state/object-range.ts'
import { threadScheduler } from '../../gateway/io/scheduling/thread-scheduler.ts'
import type { Exchange } from '../../gateway/request/exchange/exchange.ts'
import type { Charge } from '../../kit/api/stream.ts'
import type { ContinuePlace } from '../core/continue.ts'
import { compareSlots } from '../core/vectors.ts'
import type { FederatedCollection, Versions } from '../state/federated-collection.ts'
import type { AskedMember } from './asked-members.ts'
import type { MemberObject } from './shown-objects.ts'

export interface SelectedObjects {
  readonly objects: readonly MemberObject[]
  /** Objects behind the last of these that were not looked at, of all members. */
  readonly left: number
  /** Those of them that the part must not have. */
  readonly beyond: number
  /** They are the state at these. */
  readonly versions: Versions
}

/** expired = the histories do not go back so far. */
type NotSelected = 'memory' | 'gone' | 'expired'

/** Which of the objects. Default: all, as they are now. */
export interface SelectedPart {
  /** The versions of which they are to be the state. */
  readonly at?: Versions | undefined
  /** They are behind it. */
  readonly after?: ObjectPlace | undefined
  /** So many at most; 0 = all. */
  readonly limit?: number
  /** This object of this member is the last that it may have. */
  readonly upTo?: ObjectPlace | undefined
  /** Slots of which it is not known whether what is kept is of the version. */
  readonly unproved?: ReadonlySet<number>
}

export type ObjectPlace = Pick<ContinuePlace, 'slot' | 'token'>

/**
 * The memory for them is the caller's, until they are sent. It is not looked at more objects than have to be for as many as are wanted.
 * @param selects by slot
 */
export async function selectObjects(
  exchange: Pick<Exchange, 'charge' | 'gone' | 'takeMemory' | 'giveMemory'>,
  collection: FederatedCollection,
  present: readonly Pick<AskedMember, 'slot' | 'scope' | 'kept'>[],
  selects: readonly Selects[],
  { at, after = BEGINNING, limit = 0, upTo, unproved = NONE_UNPROVED }: SelectedPart = {},
): Promise<SelectedObjects | NotSelected> {
  // One that joined later had no part of it.
  const candidates = present.filter(({ slot }) => slot >= after.slot && at?.[slot] !== '')
  const members = candidates.filter(({ slot }) => upTo === undefined || slot <= upTo.slot)
  const known = members.filter(({ slot }) => !unproved.has(slot))
  const earlier = at === undefined ? NOTHING_EARLIER : earlierObjects(collection, at, known, exchange.charge)
  if (earlier === undefined) return 'expired'
  const versions = at ?? collection.versions
  let beyond = 0
  const parts = candidates.flatMap(({ slot, scope: { namespace }, kept }) => {
    const whole = kept.range(namespace)
    const behind = slot === after.slot ? aroundKey(whole, after.token).behind : whole
    const range = rangeUpTo(behind, slot, upTo)
    beyond += behind.to - range.to
    if (upTo !== undefined && slot > upTo.slot) return []
    const ranges = asTheyWere(range, changedIn(earlier.get(slot), namespace, slot === after.slot ? after.token : ''))
    return ranges.map((one) => ({ slot, range: one, selects: selects[slot] ?? NONE }))
  })
  const all = parts.reduce((sum, { range }) => sum + range.to - range.from, 0)
  const most = limit === 0 ? all : Math.min(limit, all)
  if (!exchange.takeMemory(memoryFor(most))) return 'memory'
  const { found, left } = await scanParts(exchange, parts, most, () => {
    for (const { kept } of members) kept.lend()
  })
  const isGone = isReplaced(collection, members)
  const objects = isGone ? [] : parts.flatMap(({ slot }, of) => (found[of] ?? []).map((object) => ({ slot, object })))
  exchange.giveMemory(memoryFor(most - objects.length))
  return isGone ? 'gone' : { objects, left: left + beyond, beyond, versions }
}

/** What is kept of a member is another collection now: indexes of the history mean nothing any more. */
export function isReplaced(
  collection: FederatedCollection,
  members: readonly Pick<AskedMember, 'slot' | 'kept'>[],
): boolean {
  return members.some(({ slot, kept }) => kept.isGone || collection.member(slot) !== kept)
}

/** A change that is looked at is charged as so many bytes that are sent. */
const LOOK_BYTES = 64

/** By key what an object was; undefined = it was not there. */
type ChangedObjects = ReadonlyMap<string, CachedObject | undefined>

/** By slot. */
type Earlier = ReadonlyMap<number, ChangedObjects>

const NOTHING_EARLIER: Earlier = new Map()
const NONE: Selects = () => false
const NONE_UNPROVED: ReadonlySet<number> = new Set()
const BEGINNING = { slot: 0, token: '' }

/** Up to the last object that the part may have. */
function rangeUpTo(range: ObjectRange, slot: number, upTo: ObjectPlace | undefined): ObjectRange {
  if (upTo === undefined || slot < upTo.slot) return range
  return { ...range, to: slot === upTo.slot ? aroundKey(range, upTo.token).behind.from : range.from }
}

/**
 * What has changed since, as it was; undefined = the histories do not go back so far.
 * @param members whose objects have to be those of these versions
 */
function earlierObjects(
  collection: FederatedCollection,
  at: Versions,
  members: readonly Pick<AskedMember, 'slot'>[],
  charge: Charge,
): Earlier | undefined {
  const { history } = collection
  const place = collection.behind(at)
  const isUnknown = members.some(({ slot }) => isAhead(at[slot] ?? '', collection.versions[slot]))
  if (place.kind === 'expired' || isUnknown) return undefined
  threadScheduler.chargeAnswer(charge, (history.end - place.index) * LOOK_BYTES)
  const earlier = new Map<number, Map<string, CachedObject | undefined>>()
  for (let index = place.index, merged = history.at(index); merged !== undefined; merged = history.at(++index)) {
    const { slot, change } = merged
    if (compareSlots(change.resourceVersion, at[slot] ?? '') <= 0) continue
    const ofMember = earlier.get(slot) ?? new Map<string, CachedObject | undefined>()
    earlier.set(slot, ofMember)
    const { key } = change.object
    if (!ofMember.has(key)) ofMember.set(key, change.before)
  }
  return earlier
}

function isAhead(version: string, known = ''): boolean {
  return compareSlots(version, known) > 0
}

/** In the order of their keys. */
function changedIn(
  changed: ChangedObjects | undefined,
  namespace: string,
  after: string,
): readonly (readonly [string, CachedObject | undefined])[] {
  if (changed === undefined) return []
  const start = namespace === '' ? '' : `${namespace}/`
  return [...changed]
    .filter(([key]) => key.startsWith(start) && compareKeys(key, after) > 0)
    .sort(([a], [b]) => compareKeys(a, b))
}

/** What has not changed between those that have, each of which is what it was. */
function asTheyWere(
  range: ObjectRange,
  changed: readonly (readonly [string, CachedObject | undefined])[],
): readonly ObjectRange[] {
  const ranges: ObjectRange[] = []
  let rest = range
  for (const [key, before] of changed) {
    const { front, behind } = aroundKey(rest, key)
    ranges.push(front)
    if (before !== undefined) ranges.push({ objects: [before], from: 0, to: 1 })
    rest = behind
  }
  return [...ranges, rest]
}
