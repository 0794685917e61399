// Limits the wasted work that each user may cause upstream: cancelled requests, and broken reads that are retried.
// Connections to upstream and a cluster's retries are shared: without a budget per user, one could use up everyone's.

import { Budget, type BudgetSize } from '../../kit/api/limits/budget.ts'

/**
 * Requests cancelled before their response is complete, long-running ones before it begins. A well-behaved client cancels all requests
 * of a few connections at once, and few requests per second.
 */
export const CANCELLED_REQUESTS: BudgetSize = { burst: 500, perSecond: 100 }
/** Long-running requests (watches, logs, proxied requests) cancelled after the response began: the way watches end, all of a client at once. */
const CANCELLED_LONG_RUNNING: BudgetSize = { burst: 1000, perSecond: 100 }
/**
 * Reads retried because upstream reset only their stream. A dying endpoint breaks connections, which is not charged; this may
 * be caused by the request, so the budget is a part of the retries of a cluster (MINIMUM_RETRIES): half of them in ten seconds.
 */
export const REPEATED_READS: BudgetSize = { burst: 100, perSecond: 10 }
/** Heartbeats of a node that pass beyond a limit: a kubelet renews its Lease every 10 s, and tries five times in a row. */
export const HEARTBEATS: BudgetSize = { burst: 20, perSecond: 1 }
/**
 * Reviews of unknown tokens from a blocked address, per gateway thread: a new client behind the address gets
 * in, and a guesser gains no more than the rate allows. Returned for accepted tokens.
 */
export const UNKNOWN_TOKENS: BudgetSize = { burst: 3, perSecond: 0.2 }
/** Users remembered for each budget. Beyond that, the least recent one is dropped. */
const MAX_USERS = 4096

/** Budgets of one thread. */
export class UserBudgets {
  readonly cancelledRequests: BudgetByUser = new BudgetByUser(CANCELLED_REQUESTS)
  readonly cancelledLongRunning: BudgetByUser = new BudgetByUser(CANCELLED_LONG_RUNNING)
  readonly repeatedReads: BudgetByUser = new BudgetByUser(REPEATED_READS)
  /** By address, independent of the cluster. */
  readonly unknownTokens: BudgetByUser = new BudgetByUser(UNKNOWN_TOKENS)
}

/** A budget for each user of each cluster. */
export class BudgetByUser {
  readonly size: BudgetSize
  /** By cluster and user, least recently used first. */
  readonly #budgets = new Map<string, Budget>()

  constructor(size: BudgetSize) {
    this.size = size
  }

  /** Takes one; false = nothing left. `who`: a user, or the source address of an anonymous one. */
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

  /** Returns one that turned out to be legitimate. */
  giveBack(cluster: string, who: string): void {
    this.#budgets.get(keyOf(cluster, who))?.add(1)
  }

  /** Whether the user's budget is exhausted. */
  isSpent(cluster: string, who: string, nowMs: number): boolean {
    // Fast path: no budgets in use.
    if (this.#budgets.size === 0) return false
    const key = keyOf(cluster, who)
    const budget = this.#budgets.get(key)
    if (budget === undefined) return false
    const left = budget.left(nowMs)
    if (left === this.size.burst) this.#budgets.delete(key)
    return left < 1
  }

  /** Number of users who used it recently. */
  get users(): number {
    return this.#budgets.size
  }
}

/** Cluster names have no line breaks. */
function keyOf(cluster: string, who: string): string {
  return `${cluster}\n${who}`
}
