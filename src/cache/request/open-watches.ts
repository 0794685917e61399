// The open watches of a gateway thread: ticked once a second, and asked again from time to time whether their callers still may.

import type { Tickable } from '../../kit/io/world/coarse-ticker.ts'
import { FanOut } from './fan-out.ts'
import type { Right } from './rights.ts'
import { busyThread } from './taking-time.ts'

/** How often a watch is authorized again; kube-apiserver itself does that once. */
export const RECHECK_MS = 30_000

/** One of them, whatever it is answered from. */
export interface Watching {
  /** Called about once a second. @param wasBusy this thread had something to do all the time since: clients may wait for it */
  tick(nowMs: number, wasBusy: boolean): void
  /** It is its turn. */
  proceed(): void
  /** Ends between two events. */
  end(): void
}

interface OpenWatch {
  /** Whether its caller still may. */
  readonly recheck: () => Promise<Right>
  checkedMs: number
  isChecking: boolean
}

export class OpenWatches implements Tickable {
  readonly #open = new Map<Watching, OpenWatch>()
  readonly #fanOut = new FanOut()
  readonly #monotonic: () => number
  readonly #wasBusy: () => boolean

  /** @param monotonic milliseconds, of the clock of requests @param wasBusy whether this thread was, since it was asked last */
  constructor(monotonic: () => number, wasBusy: () => boolean = busyThread()) {
    this.#monotonic = monotonic
    this.#wasBusy = wasBusy
  }

  get watches(): Iterable<Watching> {
    return this.#open.keys()
  }

  add(watch: Watching, recheck: () => Promise<Right>): void {
    this.#open.set(watch, { recheck, checkedMs: this.#monotonic(), isChecking: false })
  }

  readonly due = (watch: Watching): void => this.#fanOut.add(watch)

  readonly left = (watch: Watching): void => {
    this.#open.delete(watch)
    this.#fanOut.delete(watch)
  }

  tick(): void {
    const nowMs = this.#monotonic()
    const wasBusy = this.#wasBusy()
    for (const [watch, open] of this.#open) {
      watch.tick(nowMs, wasBusy)
      if (nowMs - open.checkedMs >= RECHECK_MS && !open.isChecking) void this.#recheck(watch, open)
    }
  }

  /** A cluster that does not answer has not taken the right away. */
  async #recheck(watch: Watching, open: OpenWatch): Promise<void> {
    open.isChecking = true
    const right = await open.recheck().catch(() => 'unknown')
    open.isChecking = false
    open.checkedMs = this.#monotonic()
    if (right === 'denied' && this.#open.has(watch)) watch.end()
  }
}
