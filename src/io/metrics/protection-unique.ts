// How many distinct pods and PodProtectors had a deletion evaluated in a window of time, without remembering them.

import { UniqueCount } from '../../core/protection/history/unique-count.ts'

export type UniqueThing = 'ppr' | 'pod'

interface Window {
  readonly window: string
  readonly lengthMs: number
}

interface Counting {
  readonly current: UniqueCount
  startedMs: number
  last: number
}

/** As Podseidon's gauges: the number of the last whole window. */
export class UniqueCounts {
  static readonly WINDOWS: readonly Window[] = [
    { window: '30s', lengthMs: 30_000 },
    { window: '5m', lengthMs: 300_000 },
    { window: '15m', lengthMs: 900_000 },
    { window: '1h', lengthMs: 3_600_000 },
    { window: '1d', lengthMs: 86_400_000 },
  ]

  readonly #monotonic: () => number
  readonly #countings = new Map<string, Counting>()

  /** @param monotonic milliseconds */
  constructor(monotonic: () => number) {
    this.#monotonic = monotonic
  }

  count(what: UniqueThing, rejected: string, name: string): void {
    for (const window of UniqueCounts.WINDOWS) this.#roll(what, rejected, window).current.add(name)
  }

  /** @param window a name of WINDOWS */
  last(what: UniqueThing, rejected: string, window: string): number {
    const found = UniqueCounts.WINDOWS.find((one) => one.window === window)
    return found === undefined ? 0 : this.#roll(what, rejected, found).last
  }

  #roll(what: UniqueThing, rejected: string, { window, lengthMs }: Window): Counting {
    const key = `${what} ${rejected} ${window}`
    const now = this.#monotonic()
    let counting = this.#countings.get(key)
    if (counting === undefined) {
      counting = { current: new UniqueCount(), startedMs: now, last: 0 }
      this.#countings.set(key, counting)
    }
    const passed = Math.floor((now - counting.startedMs) / lengthMs)
    if (passed > 0) {
      counting.last = passed === 1 ? counting.current.count() : 0
      counting.current.reset()
      counting.startedMs += passed * lengthMs
    }
    return counting
  }
}
