// The share of Ready nodes of each cluster while its switch is off: the target of a recovery. The best of the last minutes,
// because the switch is thrown when nodes are already being lost.

import type { NodesSeen } from '../../api/cluster-health.ts'

const WINDOW_MS = 600_000

interface Shares {
  /** The best of this window, and of the previous one. Per cent */
  now: number
  before: number
  beganMs: number
}

export class ReadyBefore {
  readonly #shares = new Map<string, Shares>()

  /** @param nowMs monotonic milliseconds */
  record(cluster: string, { ready, total, complete }: NodesSeen, nowMs: number): void {
    if (!complete || total === 0) return
    const percent = Math.floor((ready * 100) / total)
    const known = this.#shares.get(cluster)
    if (known === undefined || nowMs - known.beganMs >= 2 * WINDOW_MS) {
      this.#shares.set(cluster, { now: percent, before: 0, beganMs: nowMs })
    } else if (nowMs - known.beganMs >= WINDOW_MS) {
      this.#shares.set(cluster, { now: percent, before: known.now, beganMs: nowMs })
    } else known.now = Math.max(known.now, percent)
  }

  /** In per cent; undefined = not observed by this process. */
  of(cluster: string): number | undefined {
    const known = this.#shares.get(cluster)
    return known === undefined ? undefined : Math.max(known.now, known.before)
  }

  forget(cluster: string): void {
    this.#shares.delete(cluster)
  }
}
