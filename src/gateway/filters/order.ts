// The order of admission. Cheap and absolute decisions come first; what takes something (a token, a slot) comes last,
// so that nothing is spent on a request that another filter refuses.

import { accessList } from './access-list.ts'
import { degrade } from './degrade.ts'
import { dispatchAction } from './dispatch-action.ts'
import type { Filter } from './filter.ts'
import { flowControl } from './flow-control.ts'

export const FILTERS: readonly Filter[] = [
  // Who is not to be served at all learns nothing about the rest.
  accessList,
  // A policy that denies is a rule of the house, whatever the weather.
  dispatchAction,
  // The switch of an incident: before limits, so that a frozen cluster spends no tokens.
  degrade,
  // Takes a token or a slot: last.
  flowControl,
]
