// The order of admission. Cheap and absolute decisions come first; what takes something (a token, a slot) comes late, so that
// nothing is spent on a request that another filter refuses; what has to ask somebody comes last.

import { accessList } from './access-list.ts'
import { degrade } from './degrade.ts'
import { dispatchAction } from './dispatch-action.ts'
import type { Admission, Filter } from './filter.ts'
import { flowControl } from './flow-control.ts'

export const FILTER_ORDER = [
  // Who is not to be served at all learns nothing about the rest.
  'access-list',
  // A policy that denies does so with or without an incident.
  'dispatch-action',
  // The switch of an incident: before limits, so that a frozen cluster spends no tokens.
  'degrade',
  // Takes a token or a slot: after all that refuses for nothing.
  'flow-control',
] as const

export type FilterName = (typeof FILTER_ORDER)[number]

/** A filter for each name: what is missing does not compile. */
export type FilterSet<A, Later = never> = Readonly<Record<FilterName, Filter<A, Later>>>

/** Those that need nothing but what an Admission says: the same for the request path and for `explain`. */
export const PURE_FILTERS: FilterSet<Admission> = {
  'access-list': accessList,
  'dispatch-action': dispatchAction,
  degrade,
  'flow-control': flowControl,
}
