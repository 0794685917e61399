// State of a cluster-autoscaler and its node groups.

export interface AutoscalerStatus {
  /** `Running` or `Initializing`; '' = unknown. */
  readonly state: string
  /** Milliseconds since the epoch; 0 = unknown. */
  readonly writtenAtMs: number
  readonly health: string
  readonly scaleUp: string
  readonly scaleDown: string
  readonly groups: readonly NodeGroupStatus[]
}

export interface NodeGroupStatus {
  readonly name: string
  /** `Healthy` or `Unhealthy`. */
  readonly health: string
  /** `InProgress`, `NoActivity`, `Backoff`, `Unhealthy`. */
  readonly scaleUp: string
  /** `CandidatesPresent` or `NoCandidates`. */
  readonly scaleDown: string
  readonly minSize: number
  readonly maxSize: number
  readonly target: number
  readonly registered: number
  readonly ready: number
  readonly unready: number
  /** Instances without a Node, for longer than `--max-node-provision-time`. */
  readonly longUnregistered: number
  /** With `Backoff`. */
  readonly errorCode: string
  readonly errorMessage: string
  /** When `scaleUp` last changed, milliseconds since the epoch; 0 = unknown. */
  readonly scaleUpSinceMs: number
}

const GO_TIME = /^(\d{4}-\d{2}-\d{2})[ T](\d{2}:\d{2}:\d{2})(\.\d{1,9})? ?(Z|[+-]\d{2}:?\d{2})/

/** Parses `2006-01-02 15:04:05.999999999 -0700 MST` and RFC 3339. @returns 0 = it is neither */
export function goTime(text: string): number {
  const [, date = '', time = '', fraction = '', zone = ''] = GO_TIME.exec(text) ?? []
  const offset = /^[+-]\d{4}$/.test(zone) ? `${zone.slice(0, 3)}:${zone.slice(3)}` : zone
  const ms = Date.parse(`${date}T${time}${fraction.slice(0, 4)}${offset}`)
  return Number.isFinite(ms) ? ms : 0
}

// Strips what changes on every write: the autoscaler writes every ten seconds, and mostly only the times change.
const PROBE_TIMES = /^(?:time: |[ -]*lastProbeTime: ).*$/gm
const HEAD_TIME = /^time: "?(.{1,100})/m

/** When the status was written according to itself, milliseconds since the epoch; 0 = unknown. */
export function writtenAt(text: string): number {
  return goTime(HEAD_TIME.exec(text)?.[1] ?? '')
}

/** Statuses with equal results are equal, apart from when they were written. */
export function withoutProbeTimes(text: string): string {
  return text.replaceAll(PROBE_TIMES, '')
}
