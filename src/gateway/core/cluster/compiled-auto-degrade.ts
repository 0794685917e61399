// spec.degrade.auto, compiled: when the gateway sets a stricter mode by itself, and when it starts the way back.

import type { LabelSelector } from '../../../kit/api/validation/label-selector-schema.ts'
import type { AutoDegradeRecovery } from '../../api/upstream-cluster/auto-degrade.ts'

/** spec.degrade.auto with its defaults. */
export interface AutoDegradeOptions {
  /** undefined = nodes trigger nothing. */
  readonly nodes: NodeTrigger | undefined
  /** undefined = upstream answers trigger nothing. */
  readonly upstream: UpstreamTrigger | undefined
  readonly shadow: boolean
  /** The value to set in spec.degrade.recovery. */
  readonly recovery: AutoDegradeRecovery
}

export interface NodeTrigger extends NodeHealthOptions, HysteresisOptions {
  /** undefined = all nodes. */
  readonly selector: LabelSelector | undefined
  /** A node that is not ready counts as unready only this long after its creation. Milliseconds */
  readonly startupMs: number
}

export interface UpstreamTrigger extends UpstreamHealthOptions, HysteresisOptions {
  readonly windowMs: number
}

/** When so many nodes are unready that the control plane has more likely lost contact than all of them failed. */
export interface NodeHealthOptions {
  /** Up to this many unready nodes are never an incident. */
  readonly okUnready: number
  /** Begins with strictly more than this percentage unready, and strictly more than `okUnready`. */
  readonly maxUnreadyPercent: number
  /** Ends with at most this percentage unready, or at most `okUnready`. */
  readonly exitPercent: number
  /** Node data older than this decides nothing. Milliseconds */
  readonly staleAfterMs: number
}

/** When the API servers are overloaded. */
export interface UpstreamHealthOptions {
  /** Begins when more than this percentage of requests got a 5xx from upstream, or no answer. */
  readonly maxErrorPercent: number
  /** Or when the median exceeds this, milliseconds; 0 = latency does not count. */
  readonly maxLatencyMs: number
  /** Nothing is decided with fewer requests in the window. */
  readonly minRequests: number
}

/** How long a condition must have been seen before it begins or ends. */
export interface HysteresisOptions {
  /** How long it must be continuously bad before the condition begins. Milliseconds */
  readonly enterAfterMs: number
  /** How long it must be continuously good before it ends. Milliseconds */
  readonly exitAfterMs: number
}
