// A condition that begins and ends only after it has been seen for a while: one bad moment starts nothing, one good moment ends nothing.

/** What is seen of a condition now. `between`: too good to begin, too bad to end. `unknown`: nothing that could decide anything. */
export type Observation = 'bad' | 'between' | 'good' | 'unknown'

export interface HysteresisOptions {
  /** How long it has to be bad without a break until the condition begins. Milliseconds */
  readonly enterAfterMs: number
  /** How long it has to be good without a break until it ends. Milliseconds */
  readonly exitAfterMs: number
}

export interface HysteresisState {
  readonly active: boolean
  /** Since when it is active, or is not. Monotonic milliseconds */
  readonly sinceMs: number
  /** Since when the observation has spoken for a change; undefined = it does not. */
  readonly changingSinceMs: number | undefined
}

export function inactive(nowMs: number): HysteresisState {
  return { active: false, sinceMs: nowMs, changingSinceMs: undefined }
}

/** The same object when nothing changed. */
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
