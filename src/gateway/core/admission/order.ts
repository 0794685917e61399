// The order of admission. Cheap and absolute decisions come first; filters that take something (a token, a slot) come late, so that nothing
// is spent on a request that another filter refuses; filters that need a remote call come last.

import type { Admission, Filter } from './filter.ts'
import { flowControl } from './flow-control.ts'
import { accessList, degrade, dispatchAction, listGuard } from './rule-filters.ts'

export const FILTER_ORDER = [
  // A caller that is not to be served learns nothing about the rest.
  'access-list',
  // A policy that denies does so with or without an incident.
  'dispatch-action',
  // The incident switch: before limits, so that a frozen cluster spends no tokens.
  'degrade',
  // Takes nothing, so it comes before what does: a refused list costs no seats.
  'list-guard',
  // Takes nothing either: a session that must be recorded and cannot be is refused.
  'session-recording',
  // Takes a token or a slot: after every filter that refuses at no cost.
  'flow-control',
  // Answers, or refuses, everything that is for a cluster with members: before what would ask its servers, of which it has none.
  'federation',
  // Reads bodies and calls upstream: only for what the limits admitted. Takes from the rate of mode Limited, so before what reserves.
  'disruption',
  // Reads the body and the group: only if a group is backed off.
  'scale-up-guard',
  // Reads from upstream and writes the ledger: only for what everything else admitted.
  'protection',
  // Same for what deletes pods by lowering a replica count: reads from upstream.
  'scale-protection',
  // Changes pods for a scale-down that everything else admitted, and waits for it.
  'scale-down-policy',
  // May answer in place of the cluster, so it comes after everything that admits, like forwarding itself.
  'read-cache',
] as const

export type FilterName = (typeof FILTER_ORDER)[number]

/** These need only an Admission, and answer synchronously: the request path and `explain` run them. */
export const PURE_FILTERS = {
  'access-list': accessList,
  'dispatch-action': dispatchAction,
  degrade,
  'list-guard': listGuard,
  'flow-control': flowControl,
} satisfies Partial<Record<FilterName, Filter<Admission>>>

/** The others need a remote call or the body: only the request path has them, and `explain` names them. */
export type AskingFilter = Exclude<FilterName, keyof typeof PURE_FILTERS>

/** Those that ask belong to other subjects: one that is left out takes its filters along, and their places stay empty. */
export type FilterSet<A, Later = never> = Readonly<
  Record<keyof typeof PURE_FILTERS, Filter<A, Later>> & Partial<Record<AskingFilter, Filter<A, Later>>>
>
