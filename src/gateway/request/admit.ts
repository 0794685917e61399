// Runs the filters of the program for a request: the pure ones, and those that need a remote call or the body.

import type { Refusal } from '../../kit/core/refusal/refusal.ts'
import type { Decision, Permit, Recheck } from './exchange/decision.ts'

type Later = Promise<Refusal | undefined>

/** Returns a promise if a filter has to wait; pass its result to `resumeAdmission`. */
export function admit(decision: Decision): Permit | Refusal | Later {
  return decision.filters.run(decision)
}

export function resumeAdmission(decision: Decision, refusal: Refusal | undefined): Permit | Refusal | Later {
  return decision.filters.resume(decision, refusal)
}

/** Restarts at the filter that asked for the recheck; pass the result to `resumeAdmission`. */
export function recheck(decision: Decision, { filter, check }: Recheck): Later {
  decision.recheck = undefined
  decision.filters.rewind(decision, filter)
  return check()
}
