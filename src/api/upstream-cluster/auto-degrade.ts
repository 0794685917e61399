// spec.degrade.auto: when the gateway itself sets spec.degrade.mode, and status.degrade.auto: what it sees and does.

import type { LabelSelector } from '../pod-protector/pod-protector.ts'

/** At least one of `nodes` and `upstream`. Durations as Go writes them: `30s`. */
export interface AutoDegrade {
  /** Enters NoDisruption when many nodes are unready. */
  readonly nodes?: AutoDegradeNodes
  /** Enters Limited when upstream is overloaded. */
  readonly upstream?: AutoDegradeUpstream
  /** What spec.degrade.recovery gets when the cluster is good again; default: its defaults. */
  readonly recovery?: AutoDegradeRecovery
  /** Says what it would do, and does nothing. */
  readonly shadow?: boolean
}

/** As spec.degrade.recovery. */
export interface AutoDegradeRecovery {
  readonly hold?: string
  readonly ramp?: string
}

export interface AutoDegradeNodes {
  /** Only these nodes count; default: all. */
  readonly selector?: LabelSelector
  /** Up to this many unready nodes are not an incident in any cluster. */
  readonly okUnready?: number
  /** It begins with strictly more than so many per cent unready, and strictly more than `okUnready`. */
  readonly maxUnreadyPercent?: number
  /** How long without a break. */
  readonly enterAfter?: string
  /** It ends with at most so many per cent unready, or at most `okUnready`. */
  readonly exitPercent?: number
  /** How long without a break. */
  readonly exitAfter?: string
  /** A node that is not ready counts as unready only this long after its creation. */
  readonly maxStartupTime?: string
  /** Older than this, what is known of the nodes decides nothing. */
  readonly staleAfter?: string
}

export interface AutoDegradeUpstream {
  /** It begins with more than so many per cent of the requests answered with 5xx, or not at all. */
  readonly maxErrorPercent?: number
  /** Or with a median latency above this; 0s = latency does not count. */
  readonly maxLatency?: string
  /** With fewer requests in the window nothing is decided. */
  readonly minRequests?: number
  readonly window?: string
  readonly enterAfter?: string
  readonly exitAfter?: string
}

/**
 * `Normal`: nothing speaks for it. `Suspect`: something does, but not for long enough yet. `Degraded`: it has begun, and not ended;
 * whether a mode was entered is in `mode`. `Unknown`: too little is known for a decision.
 */
export type AutoDegradePhase = 'Normal' | 'Suspect' | 'Degraded' | 'Unknown'

/** status.degrade.auto. */
export interface AutoDegradeStatus {
  readonly phase: AutoDegradePhase
  /** For people: `12 of 20 nodes unready (60 %)`. */
  readonly reason: string
  /** When the phase began, RFC 3339. */
  readonly since: string
  /** What has begun: `Nodes`, `Upstream`, or both. */
  readonly causes?: readonly AutoDegradeCause[]
  /** What has been done about it; absent = nothing was to be done. */
  readonly action?: AutoDegradeAction
  /** Which mode it entered, or would have entered in shadow mode; absent = none. */
  readonly mode?: string
}

export type AutoDegradeCause = 'Nodes' | 'Upstream'

/**
 * `Entered`: the mode was set. `Shadow`: it would have been. `Stricter`: a mode that is at least as strict was in force already.
 * `Overruled`: somebody has set a less strict mode since; it is not entered again before the cluster was good once.
 */
export type AutoDegradeAction = 'Entered' | 'Shadow' | 'Stricter' | 'Overruled'
