// The open watches of a gateway thread: ticked once a second, and asked again from time to time whether their callers still may.

import type { Tickable } from '../../kit/io/world/coarse-ticker.ts'
import type { WatchRead } from '../core/requests/read-request.ts'
import { rightTo } from './rights.ts'
import type { WatchAnswer } from './watch-answer.ts'

/** How often a watch is authorized again; kube-apiserver itself does that once. */
export const RECHECK_MS = 30_000

interface OpenWatch {
  readonly request: WatchRead
  checkedMs: number
  isChecking: boolean
}

export class OpenWatches implements Tickable {
  readonly #open = new Map<WatchAnswer, OpenWatch>()
  readonly #monotonic: () => number

  /** @param monotonic milliseconds, of the clock of requests */
  constructor(monotonic: () => number) {
    this.#monotonic = monotonic
  }

  get watches(): Iterable<WatchAnswer> {
    return this.#open.keys()
  }

  add(watch: WatchAnswer, request: WatchRead): void {
    this.#open.set(watch, { request, checkedMs: this.#monotonic(), isChecking: false })
  }

  readonly left = (watch: WatchAnswer): void => {
    this.#open.delete(watch)
  }

  tick(): void {
    const nowMs = this.#monotonic()
    for (const [watch, open] of this.#open) {
      watch.tick(nowMs)
      if (nowMs - open.checkedMs >= RECHECK_MS && !open.isChecking) void this.#recheck(watch, open)
    }
  }

  /** A cluster that does not answer has not taken the right away. */
  async #recheck(watch: WatchAnswer, open: OpenWatch): Promise<void> {
    open.isChecking = true
    const right = await rightTo(open.request, watch.permit).catch(() => 'unknown')
    open.isChecking = false
    open.checkedMs = this.#monotonic()
    if (right === 'denied' && this.#open.has(watch)) watch.end()
  }
}
