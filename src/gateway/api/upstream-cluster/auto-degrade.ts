// spec.degrade.auto: when the gateway itself sets spec.degrade.mode, and status.degrade.auto: what it sees and does.

import type { ValueOf } from '../../../kit/api/json/json-schema.ts'
import type { AUTO_DEGRADE_SCHEMA, AUTO_DEGRADE_STATUS_SCHEMA } from './auto-degrade-schema.ts'

/** At least one of `nodes` and `upstream`. Durations as Go writes them: `30s`. */
export type AutoDegrade = ValueOf<typeof AUTO_DEGRADE_SCHEMA>
/** As spec.degrade.recovery. */
export type AutoDegradeRecovery = NonNullable<AutoDegrade['recovery']>
export type AutoDegradeNodes = NonNullable<AutoDegrade['nodes']>
export type AutoDegradeUpstream = NonNullable<AutoDegrade['upstream']>
/** status.degrade.auto. */
export type AutoDegradeStatus = ValueOf<typeof AUTO_DEGRADE_STATUS_SCHEMA>
/**
 * `Normal`: nothing speaks for it. `Suspect`: something does, but not for long enough yet. `Degraded`: it has begun, and not ended;
 * whether a mode was entered is in `mode`. `Unknown`: too little is known for a decision.
 */
export type AutoDegradePhase = AutoDegradeStatus['phase']
export type AutoDegradeCause = NonNullable<AutoDegradeStatus['causes']>[number]
/**
 * `Entered`: the mode was set. `Shadow`: it would have been. `Stricter`: a mode that is at least as strict was in force already.
 * `Overruled`: somebody has set a less strict mode since; it is not entered again before the cluster was good once.
 */
export type AutoDegradeAction = NonNullable<AutoDegradeStatus['action']>
