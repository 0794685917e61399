// How often users may give requests up before they are answered. To upstream each of these is a stream that is reset, and
// connections to upstream are shared by all users: without a budget for each of them, one takes the streams of the others.

import { Budget, type BudgetSize } from '../http2/budget.ts'

/** An honest user gives up what he has asked on some connections at once, and few requests every second. */
export const CANCELLED_REQUESTS: BudgetSize = { burst: 500, perSecond: 100 }
/** Users who have given requests up of late. Beyond it the one who did so longest ago is forgotten. */
const MAX_USERS = 4096

/** Of one thread. */
export class CancelBudgets {
  /** By cluster and user; in the order in which they last gave up a request. */
  readonly #budgets = new Map<string, Budget>()

  /** A request of theirs that had gone upstream was given up. `who`: a user, or the source of somebody anonymous. */
  spend(cluster: string, who: string, nowMs: number): void {
    const key = keyOf(cluster, who)
    const budget = this.#budgets.get(key) ?? new Budget(CANCELLED_REQUESTS, nowMs)
    budget.take(nowMs)
    this.#budgets.delete(key)
    this.#budgets.set(key, budget)
    if (this.#budgets.size <= MAX_USERS) return
    for (const oldest of this.#budgets.keys()) {
      this.#budgets.delete(oldest)
      return
    }
  }

  /** Whether they have nothing left: no request of theirs is to be sent now. */
  isSpent(cluster: string, who: string, nowMs: number): boolean {
    const key = keyOf(cluster, who)
    const budget = this.#budgets.get(key)
    if (budget === undefined) return false
    const left = budget.left(nowMs)
    if (left === CANCELLED_REQUESTS.burst) this.#budgets.delete(key)
    return left < 1
  }

  /** How many have given up requests of late. */
  get size(): number {
    return this.#budgets.size
  }
}

/** Names of clusters have no line breaks. */
function keyOf(cluster: string, who: string): string {
  return `${cluster}\n${who}`
}
