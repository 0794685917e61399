// spec.degrade.auto: when the gateway sets spec.degrade.mode by itself; status.degrade.auto: what it observes and does.

import type { ValueOf } from '../../../kit/api/json/json-schema.ts'
import type { AUTO_DEGRADE_SCHEMA, AUTO_DEGRADE_STATUS_SCHEMA } from './auto-degrade-schema.ts'

/** At least one of `nodes` and `upstream`. Durations in Go's format: `30s`. */
export type AutoDegrade = ValueOf<typeof AUTO_DEGRADE_SCHEMA>
/** The same as spec.degrade.recovery. */
export type AutoDegradeRecovery = NonNullable<AutoDegrade['recovery']>
export type AutoDegradeNodes = NonNullable<AutoDegrade['nodes']>
export type AutoDegradeUpstream = NonNullable<AutoDegrade['upstream']>
/** status.degrade.auto. */
export type AutoDegradeStatus = ValueOf<typeof AUTO_DEGRADE_STATUS_SCHEMA>
/**
 * `Normal`: no sign of an incident. `Suspect`: there is one, but not for long enough yet. `Degraded`: an incident is in progress; whether a mode was
 * entered is in `mode`. `Unknown`: too little data for a decision.
 */
export type AutoDegradePhase = AutoDegradeStatus['phase']
export type AutoDegradeCause = NonNullable<AutoDegradeStatus['causes']>[number]
/**
 * `Entered`: the mode was set. `Shadow`: it would have been set. `Stricter`: a mode at least as strict was already in force. `Overruled`: the mode
 * was loosened by hand or another writer since; it is not entered again until the cluster has recovered once.
 */
export type AutoDegradeAction = NonNullable<AutoDegradeStatus['action']>
