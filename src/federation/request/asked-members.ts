// The members that an answer is made of: those that have what is asked for, that let the caller read it, and of which something is known. Each is asked for
// the right and then for the proof that it is current, all at the same time, and all until one moment: what answers does not wait for what does not. What is
// left out, and what is older than the caller may expect, is said in Warnings.

import type { Right } from '../../cache/request/rights.ts'
import type { CachedCollection } from '../../cache/state/cached-collection.ts'
import type { CompiledFederation } from '../../gateway/core/cluster/compiled-cluster.ts'
import { type MemberName, originalNames, startOfOriginals } from '../../gateway/core/federation/names.ts'
import type { RequestInfo } from '../../gateway/core/request/request-info.ts'
import type { Decision } from '../../gateway/request/exchange/decision.ts'
import { type Refusal, refuse } from '../../kit/core/refusal/refusal.ts'
import { type AskedScope, type MemberScope, type NamedResource, scopeInMember } from '../core/member-scope.ts'
import type { FederatedCollection } from '../state/federated-collection.ts'
import type { KnownRights } from '../state/known-rights.ts'
import { MEMBER_MS, type MemberRead, rightInMember } from './member-rights.ts'
import { memberForbidden, refuseAhead } from './refusals.ts'

/** A member that has a part of the answer. */
export interface AskedMember {
  readonly slot: number
  readonly name: string
  readonly read: MemberRead
  readonly scope: AskedScope
  readonly kept: CachedCollection
}

/** A member of which something is asked. */
export type KeptPlace = Pick<AskedMember, 'slot' | 'scope' | 'kept'>

export type InFront = () => Promise<readonly KeptPlace[]>

/** expired = the member has never had the version: it was restored from a backup. */
export type ReachedMember = 'reached' | 'unproved' | 'ahead' | 'expired'

export interface AskedOf {
  readonly federation: CompiledFederation
  readonly collection: FederatedCollection
  readonly asked: AskedScope & { readonly labelSelector: string }
  readonly resource: NamedResource
  readonly known: KnownRights
  /**
   * Waits until what is kept of a member, which the caller may read, is new enough: for `ms` at most.
   * @param inFront members in front of it that the caller may read, too, as far as that is known within a moment
   */
  readonly reach: (member: AskedMember, ms: number, inFront: InFront) => Promise<ReachedMember>
}

/** What a member says to the caller. */
interface MemberAnswer {
  readonly name: string
  readonly right: Right
  /** undefined = it is not read. */
  readonly found?: AskedMember
  readonly reached?: ReachedMember
}

/** How long the list of a member waits for the rights in those whose objects come first. */
const IN_FRONT_MS = 50

interface Found {
  readonly members: readonly AskedMember[]
  readonly warnings: readonly string[]
  /** Every member has answered, is followed, and is as new as the answer has to be. */
  readonly isWhole: boolean
  /** A member never had the version behind which it is to go on. */
  readonly isExpired: boolean
}

/** @throws {SyntaxError} if the field selector cannot be read */
export async function askedMembers(decision: Decision, of: AskedOf): Promise<Found | Refusal> {
  const { federation } = of
  const { gw, monotonicMs, nowMs } = decision.exchange
  const untilMs = gw.clock.monotonic() + MEMBER_MS
  const leftMs = (): number => Math.max(0, untilMs - gw.clock.monotonic())
  const allowed: AskedMember[] = []
  let rightsInFront: Promise<unknown> = Promise.resolve()
  const answers = await Promise.all(
    rightsInMembers(decision, of, leftMs).map(async (asked): Promise<MemberAnswer> => {
      const ofThoseInFront = rightsInFront
      rightsInFront = Promise.allSettled([ofThoseInFront, asked])
      const right = await asked
      const { found } = right
      if (found === undefined) return right
      allowed.push(found)
      const inFront: InFront = async () => {
        await within(IN_FRONT_MS, ofThoseInFront)
        return allowed.filter(({ slot }) => slot < found.slot)
      }
      return { ...right, reached: await of.reach(found, leftMs(), inFront) }
    }),
  )
  const members: AskedMember[] = []
  const warnings: string[] = []
  let isDenied = false
  let isWhole = true
  for (const { name, right, found, reached } of answers) {
    if (right === 'denied') {
      if (!federation.omitsDenied) return memberForbidden(decision, name)
      isDenied = true
      warnings.push(`${name} is left out: it does not allow this`)
    } else if (found === undefined) {
      if (!federation.omitsUnread)
        return refuse('member-unavailable', `cluster "${name}" does not answer`, { rule: name })
      isWhole = false
      warnings.push(`${name} is left out: it does not answer`)
    } else {
      const awayMs = found.kept.awayFor(monotonicMs)
      if (awayMs > 0 || reached === 'unproved') isWhole = false
      if (awayMs > 0) warnings.push(`${name} as of ${timeOf(nowMs - awayMs)}`)
      if (reached === 'unproved') warnings.push(unprovedWarning(name))
      members.push(found)
    }
  }
  const ahead = answers.find(({ reached }) => reached === 'ahead')
  if (ahead !== undefined) return refuseAhead(ahead.name)
  const isExpired = answers.some(({ reached }) => reached === 'expired')
  if (members.length > 0 || answers.length === 0) return { members, warnings, isWhole, isExpired }
  // An empty list would say that there is nothing.
  const all = answers.map(({ name }) => name).join(', ')
  return isDenied ? memberForbidden(decision, all) : refuse('member-unavailable', `no member answers: ${all}`)
}

/** In the order of the members that may have something of it. */
function rightsInMembers(
  decision: Decision,
  { federation, collection, asked, resource, known }: AskedOf,
  leftMs: () => number,
): readonly Promise<MemberAnswer>[] {
  const candidates = federation.members.flatMap((member, slot) => {
    const scope: MemberScope = scopeInMember(member.name, asked, { ...resource, mode: federation.mode }, (hashed) =>
      originalOf(hashed, collection.member(slot)),
    )
    return scope === undefined ? [] : [{ member, slot, scope }]
  })
  return candidates.map(async ({ member, slot, scope }): Promise<MemberAnswer> => {
    const { name } = member
    const live = decision.exchange.gw.clusters.get(member.cluster)
    if (live === undefined) return { name, right: 'unknown' }
    const read: MemberRead = {
      trustsUsers: member.trustsUsers,
      live,
      info: memberInfo(decision.info, scope, resource),
      fieldSelector: scope.fieldSelector,
      labelSelector: asked.labelSelector,
    }
    const right = await rightInMember(read, decision, known, leftMs()).catch(() => 'unknown' as const)
    const kept = collection.member(slot)
    if (right !== 'allowed' || kept === undefined) return { name, right }
    return { name, right, found: { slot, name, read, scope, kept } }
  })
}

export function unprovedWarning(name: string): string {
  return `${name} could not be proved to be current`
}

/** Resolves when `awaited` has, or after `ms`. */
async function within(ms: number, awaited: Promise<unknown>): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, ms)
  await Promise.race([awaited, promise])
  clearTimeout(timer)
}

/** Whether the caller still may see as much as when its watch began. */
export async function stillMay(
  decision: Decision,
  members: readonly AskedMember[],
  known: KnownRights,
): Promise<'allowed' | 'denied' | 'unknown'> {
  const rights = await Promise.all(
    members.map(async ({ read }) => {
      const live = decision.exchange.gw.clusters.get(read.live.compiled.name)
      if (live !== read.live) return 'denied'
      return await rightInMember(read, decision, known, MEMBER_MS).catch(() => 'unknown' as const)
    }),
  )
  if (rights.includes('denied')) return 'denied'
  return rights.includes('unknown') ? 'unknown' : 'allowed'
}

/** As the request would come to the member. */
function memberInfo(
  info: RequestInfo,
  { namespace, name, fieldSelector }: AskedScope,
  resource: NamedResource,
): RequestInfo {
  // Requests for a namespace itself have its name for a namespace.
  return { ...info, namespace: resource.isNamespaces ? name : namespace, name, fieldSelector }
}

/** Among the names that are kept. Whether the caller may read any of them is not known yet: the others are not looked at. */
function originalOf(hashed: MemberName, kept: CachedCollection | undefined): string | undefined {
  const found = originalNames(hashed, kept?.names(startOfOriginals(hashed)) ?? [])
  return found.length === 1 ? found[0] : undefined
}

const DATE_CHARACTERS = 'YYYY-MM-DDT'.length
const TIME_CHARACTERS = 'HH:MM:SS'.length

function timeOf(ms: number): string {
  return new Date(ms).toISOString().slice(DATE_CHARACTERS, DATE_CHARACTERS + TIME_CHARACTERS)
}
