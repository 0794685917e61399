// Whether a write of a node group's replicas may pass while the group is backed off.

/** The backoff of a node group, as all replicas of the gateway know it from the guard's status. */
export interface GroupBackoff {
  readonly group: string
  readonly untilMs: number
  /** How often the group has failed in a row. */
  readonly attempt: number
  readonly failed: number
  readonly machines: number
  /** Of the failures: the first reason. */
  readonly reason: string
}

/** The message of a refusal; the autoscaler shows 500 characters of it. '' = the write passes. */
export function raiseRefusal(backoff: GroupBackoff | undefined, from: number, to: number, nowMs: number): string {
  // Lowering, and writing what is there, never makes anything worse.
  if (backoff === undefined || to <= from || backoff.untilMs < nowMs) return ''
  const { group, failed, machines, reason, attempt, untilMs } = backoff
  const until = `${new Date(untilMs).toISOString().slice(11, 19)}Z`
  return (
    `scale-up of ${group.slice(0, MAX_GROUP)} refused: ${failed} of ${machines} machines failed (${reason.slice(0, MAX_REASON)}); ` +
    `backing off until ${until} (attempt ${attempt}). Other groups are not affected.`
  )
}

/** Together with the rest below 400 characters. */
const MAX_GROUP = 180
const MAX_REASON = 60
