// Limits for what HTTP/2 allows in small amounts and is an attack in large ones: a token bucket for each kind.

import { Budget, type BudgetSize } from '../kit/api/limits/budget.ts'

/**
 * Streams that the peer resets before the response (CVE-2023-44487), or makes us reset (CVE-2025-8671): a well-behaved client
 * cancels at most all of its streams at once, and few of them per second.
 */
export const RESETS: BudgetSize = { burst: 500, perSecond: 100 }
/** Streams that the peer resets after the response began: the way watches are cancelled. */
export const CANCELLED_ANSWERS: BudgetSize = { burst: 1000, perSecond: 100 }
/** SETTINGS: each requires an acknowledgement and may change every stream's window (CVE-2019-9515). */
export const SETTINGS_FRAMES: BudgetSize = { burst: 50, perSecond: 5 }
/** PING: each requires an answer (CVE-2019-9512). */
export const PINGS: BudgetSize = { burst: 200, perSecond: 20 }
/** Empty frames: DATA without data and without END_STREAM, CONTINUATION and HEADERS without a block (CVE-2019-9518). */
export const EMPTY_FRAMES: BudgetSize = { burst: 500, perSecond: 50 }
/** WINDOW_UPDATE beyond what our DATA frames justify. */
export const WINDOW_UPDATES: BudgetSize = { burst: 10_000, perSecond: 500 }
/** Window updates that one DATA frame of ours justifies: Go's client returns windows in pieces of 4 KiB, on two levels. */
export const WINDOW_UPDATES_PER_DATA = 16
/** PRIORITY and frames of unknown types: they have no effect, but cost CPU. */
export const IGNORED_FRAMES: BudgetSize = { burst: 1000, perSecond: 100 }

/** The budgets of one peer. */
export class PeerBudgets {
  readonly resets: Budget
  readonly cancelledAnswers: Budget
  readonly settings: Budget
  readonly pings: Budget
  readonly emptyFrames: Budget
  readonly windowUpdates: Budget
  readonly ignored: Budget

  constructor(nowMs: number) {
    this.resets = new Budget(RESETS, nowMs)
    this.cancelledAnswers = new Budget(CANCELLED_ANSWERS, nowMs)
    this.settings = new Budget(SETTINGS_FRAMES, nowMs)
    this.pings = new Budget(PINGS, nowMs)
    this.emptyFrames = new Budget(EMPTY_FRAMES, nowMs)
    this.windowUpdates = new Budget(WINDOW_UPDATES, nowMs)
    this.ignored = new Budget(IGNORED_FRAMES, nowMs)
  }
}
