// The order of admission. Cheap and absolute decisions come first; what takes something (a token, a slot) comes late, so that
// nothing is spent on a request that another filter refuses; what has to ask somebody comes last.

import { accessList } from './access-list.ts'
import { degrade } from './degrade.ts'
import { dispatchAction } from './dispatch-action.ts'
import type { Admission, Filter } from './filter.ts'
import { flowControl } from './flow-control.ts'
import { listGuard } from './list-guard.ts'

export const FILTER_ORDER = [
  // Who is not to be served at all learns nothing about the rest.
  'access-list',
  // A policy that denies does so with or without an incident.
  'dispatch-action',
  // The switch of an incident: before limits, so that a frozen cluster spends no tokens.
  'degrade',
  // Takes nothing, so before what does: a list that is refused costs no seats.
  'list-guard',
  // Takes a token or a slot: after all that refuses for nothing.
  'flow-control',
  // Reads bodies and asks upstream: only for what the limits have let pass. Takes of the rate of mode Limited, so before what reserves.
  'disruption',
  // Reads the body and the group: only where one is backed off.
  'scale-up-guard',
  // Reads from upstream and writes the ledger: only for what everything else has let through.
  'protection',
  // The same for what deletes pods by a smaller number: reads from upstream.
  'scale-protection',
  // Changes pods for a scale-down that everything else has let through, and waits for it.
  'scale-down-policy',
] as const

export type FilterName = (typeof FILTER_ORDER)[number]

/** A filter for each name: what is missing does not compile. */
export type FilterSet<A, Later = never> = Readonly<Record<FilterName, Filter<A, Later>>>

/** They need nothing but what an Admission says, and answer at once: the request path and `explain` run these. */
export const PURE_FILTERS = {
  'access-list': accessList,
  'dispatch-action': dispatchAction,
  degrade,
  'list-guard': listGuard,
  'flow-control': flowControl,
} satisfies Partial<FilterSet<Admission>>

/** All others have to ask somebody, or to read the body: the request path has them, and `explain` says who is asked. */
export type AskingFilter = Exclude<FilterName, keyof typeof PURE_FILTERS>
