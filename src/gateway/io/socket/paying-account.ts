// Charges a connection's cost to its address at first, and to its user from authentication on.

import type { Charge } from '../../../kit/api/stream.ts'
import type { Account } from '../../core/thread-time/accounts.ts'
import { threadScheduler } from '../scheduling/thread-scheduler.ts'

/** The source that is charged, as far as known. */
export interface Payer {
  readonly charge: Charge
}

export class PayingAccount {
  readonly #payer: Payer
  /** The account, and the charge it belongs to. */
  #account: Account | undefined
  #charged: Charge | undefined
  /** Cost in milliseconds while the payer was unknown. */
  #unknownMs = 0

  constructor(payer: Payer) {
    this.#payer = payer
  }

  /** The payer has used more than its part of the thread's time. */
  get isOver(): boolean {
    return this.#account?.over === true
  }

  account(nowMs: number): Account {
    const account = this.#account
    const { charge } = this.#payer
    if (account?.open === true && charge === this.#charged) return account
    this.#charged = charge
    const found = threadScheduler.accountOf(charge, nowMs)
    this.#account = found
    if (this.#unknownMs > 0 && found.known) {
      if (account !== undefined) threadScheduler.move(account, found, this.#unknownMs, nowMs)
      this.#unknownMs = 0
    }
    return found
  }

  paysFor(sinceMs: number, nowMs: number): void {
    const account = this.account(nowMs)
    if (!account.known) this.#unknownMs += nowMs - sinceMs
    threadScheduler.charge(account, sinceMs, nowMs)
  }
}
