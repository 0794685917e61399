// Whether a write of a node group's replicas may pass while the group is in backoff.

/** Outcome of a write to the replicas of a node group in backoff; each is a label value. */
export type GuardedWrite = 'refused' | 'warned' | 'shadow' | 'unchecked' | 'passed'

/** The backoff of a node group, as every replica of the gateway reads it from the guard's status. */
export interface GroupBackoff {
  readonly group: string
  readonly untilMs: number
  /** Number of consecutive failures of the group. */
  readonly attempt: number
  readonly failed: number
  readonly machines: number
  /** The first reason among the failures. */
  readonly reason: string
}

/** The message of a refusal, of which the autoscaler shows 500 characters. '' = the write passes. */
export function raiseRefusal(backoff: GroupBackoff | undefined, from: number, to: number, nowMs: number): string {
  // Lowering, or rewriting the current value, never makes anything worse.
  if (backoff === undefined || to <= from || backoff.untilMs < nowMs) return ''
  const { group, failed, machines, reason, attempt, untilMs } = backoff
  const until = `${new Date(untilMs).toISOString().slice(11, 19)}Z`
  return (
    `scale-up of ${group.slice(0, MAX_GROUP)} refused: ${failed} of ${machines} machines failed (${reason.slice(0, MAX_REASON)}); ` +
    `backing off until ${until} (attempt ${attempt}). Other groups are not affected.`
  )
}

/** Keeps the whole message below 400 characters. */
const MAX_GROUP = 180
const MAX_REASON = 60
