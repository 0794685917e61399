// One timer per thread for all deadlines of seconds: connections and pools are ticked once a second, so that no request or connection has its own
// timer.

/** Something with deadlines. */
export interface Tickable {
  /** @param nowMs monotonic, from `performance.now()` */
  tick(nowMs: number): void
}

const TICK_MS = 1_000

const members = new Set<Tickable>()
let timer: NodeJS.Timeout | undefined

/** Calls `member.tick` about once a second, until `removeTickable`. Does not keep the process alive. */
export function addTickable(member: Tickable): void {
  members.add(member)
  if (timer !== undefined) return
  timer = setInterval(() => tickAll(performance.now()), TICK_MS)
  timer.unref()
}

export function removeTickable(member: Tickable): void {
  members.delete(member)
  if (members.size > 0) return
  clearInterval(timer)
  timer = undefined
}

/** The timer's callback; tests may pass a later time. */
export function tickAll(nowMs: number): void {
  for (const member of members) member.tick(nowMs)
}
