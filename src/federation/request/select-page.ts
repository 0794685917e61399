// The objects of a list or of a page of it, and where the next page goes on: proved by lists of the members themselves where that is faster than to wait.

import { memoryFor } from '../../cache/request/delivery-limits.ts'
import type { Selects } from '../../cache/request/selection.ts'
import type { Exchange } from '../../gateway/request/exchange/exchange.ts'
import { type Refusal, refuse } from '../../kit/core/refusal/refusal.ts'
import type { ContinuePlace } from '../core/continue.ts'
import type { FederatedCollection, Versions } from '../state/federated-collection.ts'
import { type AskedMember, unprovedWarning } from './asked-members.ts'
import type { NextPage } from './list-pages.ts'
import { MEMBER_MS } from './member-rights.ts'
import type { PageProofs } from './page-proofs.ts'
import { outOfMemory, refuseAhead, refuseExpired } from './refusals.ts'
import { type SelectedObjects, selectObjects } from './select-objects.ts'

interface PageOf {
  readonly exchange: Exchange
  readonly collection: FederatedCollection
  readonly members: readonly AskedMember[]
  /** By slot. */
  readonly selects: readonly Selects[]
  readonly proofs: PageProofs
  /** It has to be the state of versions that were told before. */
  readonly isExact: boolean
  readonly after: ContinuePlace | undefined
  /** 0 = none. */
  readonly limit: number
  /** Without those that the caller may not see. */
  readonly visibleOf: (versions: Versions) => Versions
}

interface SelectedPage {
  readonly selected: SelectedObjects
  readonly end: NextPage
  readonly warnings: readonly string[]
}

/** The second time, what was on its way may be there; the third one needs no lists of the members. */
const TRIES = 3

export async function selectPage(of: PageOf): Promise<SelectedPage | Refusal> {
  const { exchange, collection, members, selects, proofs, isExact, after, limit } = of
  let warnings: readonly string[] = []
  for (let tries = 1; tries <= TRIES; tries++) {
    if (tries === TRIES) {
      const reached = await reachedWithout(of)
      if ('refused' in reached) return reached
      warnings = reached
    }
    const part = proofs.part(members, collection.versions)
    // What a caller may not see has no part in it: neither its objects, nor whether its history goes back so far.
    const at = isExact || proofs.isUsed ? of.visibleOf(part.at) : undefined
    const { unproved, upTo } = part
    const wanted = { at, after, limit, unproved, upTo }
    const selected = await selectObjects(exchange, collection, members, selects, wanted)
    if (selected === 'memory') return outOfMemory()
    if (selected === 'gone') return refuse('member-unavailable', 'a member was read again in the meantime')
    if (selected === 'expired') {
      if (isExact || !proofs.isUsed) return refuseExpired()
      continue
    }
    if (proofs.proves(selected, part)) {
      proofs.tell(members, part)
      const { objects, left, ...end } = proofs.end(selected, part)
      exchange.giveMemory(memoryFor(selected.objects.length - objects.length))
      return { selected: { ...selected, objects, left }, end, warnings }
    }
    exchange.giveMemory(memoryFor(selected.objects.length))
    await proofs.moment(members, part)
  }
  return refuse('member-unavailable', 'a member was read again in the meantime')
}

/** @returns Warnings */
async function reachedWithout({ exchange, members, proofs }: PageOf): Promise<readonly string[] | Refusal> {
  const leftMs = exchange.monotonicMs + MEMBER_MS - exchange.gw.clock.monotonic()
  const reached = await proofs.reachWithout(members, Math.max(0, leftMs))
  const ahead = members.find((_, at) => reached[at] === 'ahead')
  if (ahead !== undefined) return refuseAhead(ahead.name)
  return members.flatMap(({ name }, at) => (reached[at] === 'unproved' ? [unprovedWarning(name)] : []))
}
