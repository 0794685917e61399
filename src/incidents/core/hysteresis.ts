// A condition that begins and ends only after it has been seen for a while: one bad moment starts nothing, one good moment ends nothing.

import type { HysteresisOptions } from '../../gateway/core/cluster/compiled-auto-degrade.ts'

/** What is observed now. `between`: too good to begin, too bad to end. `unknown`: no basis for a decision. */
export type Observation = 'bad' | 'between' | 'good' | 'unknown'

export interface HysteresisState {
  readonly active: boolean
  /** Since when it has been active, or inactive. Monotonic milliseconds */
  readonly sinceMs: number
  /** Since when the observations have called for a change; undefined = they do not. */
  readonly changingSinceMs: number | undefined
}

export function inactive(nowMs: number): HysteresisState {
  return { active: false, sinceMs: nowMs, changingSinceMs: undefined }
}

/** Returns the same object if nothing changed. */
export function observe(
  state: HysteresisState,
  observation: Observation,
  { enterAfterMs, exitAfterMs }: HysteresisOptions,
  nowMs: number,
): HysteresisState {
  const { active, sinceMs } = state
  if (observation !== (active ? 'good' : 'bad')) {
    return state.changingSinceMs === undefined ? state : { ...state, changingSinceMs: undefined }
  }
  const changingSinceMs = state.changingSinceMs ?? nowMs
  if (nowMs - changingSinceMs >= (active ? exitAfterMs : enterAfterMs)) {
    return { active: !active, sinceMs: nowMs, changingSinceMs: undefined }
  }
  return state.changingSinceMs === undefined ? { active, sinceMs, changingSinceMs } : state
}
