// What users may make upstream begin for nothing: requests that they give up, and reads of theirs that break and are sent again.
// Connections to upstream and the retries of a cluster are shared by all: without a budget for each user, one takes those of others.

import { Budget, type BudgetSize } from '../http2/budget.ts'

/**
 * Requests given up before their answer is complete, watches and the like only before it begins. An honest user gives up what he has
 * asked on some connections at once, and few requests every second.
 */
export const CANCELLED_REQUESTS: BudgetSize = { burst: 500, perSecond: 100 }
/** Long-running requests (watches, logs, proxied requests) given up when they were answered: so watches end, all of a client at once. */
export const CANCELLED_LONG_RUNNING: BudgetSize = { burst: 1000, perSecond: 100 }
/**
 * Reads sent again because upstream reset their one stream. An endpoint that dies loses connections, which is not charged; this can
 * be what was asked for, so it is a part of the retries of a cluster (MINIMUM_RETRIES), half of them in ten seconds.
 */
export const REPEATED_READS: BudgetSize = { burst: 100, perSecond: 10 }
/** Users for whom each of these is remembered. Beyond it the one who drew on it longest ago is forgotten. */
const MAX_USERS = 4096

/** Of one thread. */
export class UserBudgets {
  readonly cancelledRequests: BudgetByUser = new BudgetByUser(CANCELLED_REQUESTS)
  readonly cancelledLongRunning: BudgetByUser = new BudgetByUser(CANCELLED_LONG_RUNNING)
  readonly repeatedReads: BudgetByUser = new BudgetByUser(REPEATED_READS)
}

/** A budget for each user of each cluster. */
export class BudgetByUser {
  readonly size: BudgetSize
  /** By cluster and user; in the order in which they last drew on it. */
  readonly #budgets = new Map<string, Budget>()

  constructor(size: BudgetSize) {
    this.size = size
  }

  /** Takes one; false = nothing was left. `who`: a user, or the source of somebody anonymous. */
  spend(cluster: string, who: string, nowMs: number): boolean {
    const key = keyOf(cluster, who)
    const budget = this.#budgets.get(key) ?? new Budget(this.size, nowMs)
    const taken = budget.take(nowMs)
    this.#budgets.delete(key)
    this.#budgets.set(key, budget)
    if (this.#budgets.size <= MAX_USERS) return taken
    for (const oldest of this.#budgets.keys()) {
      this.#budgets.delete(oldest)
      break
    }
    return taken
  }

  /** Whether they have nothing left. */
  isSpent(cluster: string, who: string, nowMs: number): boolean {
    // So that it costs nothing while nobody draws on it.
    if (this.#budgets.size === 0) return false
    const key = keyOf(cluster, who)
    const budget = this.#budgets.get(key)
    if (budget === undefined) return false
    const left = budget.left(nowMs)
    if (left === this.size.burst) this.#budgets.delete(key)
    return left < 1
  }

  /** How many have drawn on it of late. */
  get users(): number {
    return this.#budgets.size
  }
}

/** Names of clusters have no line breaks. */
function keyOf(cluster: string, who: string): string {
  return `${cluster}\n${who}`
}
