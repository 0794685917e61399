// Counts how many requests each limit refused, and would refuse. The log does not say how full a limit was at its beginning, and for as
// long as a client stays above its rate, a fraction of a token decides which of two requests is refused. So only totals are reported.

import { type ReplayComparison, refusingLimits } from './outcome.ts'

export interface LimitTotal {
  readonly cluster: string
  /** Name of the limit; in shadow mode `flow-control/NAME`. */
  readonly limit: string
  readonly refused: number
  readonly wouldRefuse: number
}

/** Limits counted separately; names come from logs, which may contain anything. */
const MAX_LIMITS = 500
const MAX_TEXT = 256
const OTHERS = '(others)'

export class LimitTotals {
  readonly #totals = new Map<string, { cluster: string; limit: string; refused: number; wouldRefuse: number }>()

  add(cluster: string, { was, wouldBe }: ReplayComparison): void {
    for (const limit of refusingLimits(was)) this.#totalOf(cluster, limit).refused++
    for (const limit of refusingLimits(wouldBe)) this.#totalOf(cluster, limit).wouldRefuse++
  }

  /** The most frequent refusals first. */
  totals(): LimitTotal[] {
    const most = (total: LimitTotal): number => Math.max(total.refused, total.wouldRefuse)
    return [...this.#totals.values()].sort((a, b) => most(b) - most(a))
  }

  #totalOf(cluster: string, limit: string): { refused: number; wouldRefuse: number } {
    const names = [cluster.slice(0, MAX_TEXT), limit.slice(0, MAX_TEXT)] as const
    const key = JSON.stringify(names)
    const known = this.#totals.get(key) ?? (this.#totals.size < MAX_LIMITS ? undefined : this.#totals.get(''))
    if (known !== undefined) return known
    const full = this.#totals.size >= MAX_LIMITS
    const total = { cluster: full ? OTHERS : names[0], limit: full ? OTHERS : names[1], refused: 0, wouldRefuse: 0 }
    this.#totals.set(full ? '' : key, total)
    return total
  }
}
