// Accounts of a thread's CPU time: recent use per source, and which sources are above their part. Keeps an entry for each source that used
// any in the last second or two.

import type { Charge } from '../../../kit/api/stream.ts'
import type { ShareHolder } from '../../../kit/core/shares/shares.ts'
import { MOST_OF_A_THREAD, type ShareReport } from '../../../kit/core/shares/shares-report.ts'
import { Fifo } from './fifo.ts'

/** Queued work of one connection. */
export interface Waiter {
  /** Works until `untilMs` or until nothing is left. @returns whether work is left */
  work(untilMs: number): boolean
}

/** Decay time of use: all of it is forgotten if no more is used, about two thirds while use goes on. */
const MEMORY_MS = 1_000
/** A source using less (about one request every few seconds) does not count among those that share the thread, and its account is closed. */
const LEAST_MS = 0.05
/** While less than this part of the thread is in use, no source is over its part. */
const BUSY = 0.5

/** The time used by one source, and its queued work. */
export class Account {
  readonly source: string
  readonly weight: number
  readonly known: boolean
  /** Thread time used in the last second or so, as of `atMs`. */
  usedMs = 0
  atMs: number
  /** The iteration of the event loop in which `iterationMs` was used. */
  iteration = -1
  iterationMs = 0
  /** Whether its weight is in the sum over the sources that share the thread. */
  counted = false
  /** False once closed: its holder must ask for a new one. */
  open = true
  /** Whether it was above its part when last charged. */
  over = false
  /** Whether it is in a queue. */
  waits = false
  /** Connections with queued work. */
  readonly line: Fifo<Waiter> = new Fifo()
  /** Time left in this round, and since when. */
  creditMs = 0
  creditAtMs = 0

  constructor({ source, weight, known }: Charge, nowMs: number) {
    this.source = source
    this.weight = weight
    this.known = known
    this.atMs = nowMs
  }

  add(ms: number, nowMs: number): void {
    this.usedMs = this.used(nowMs) + ms
    this.atMs = nowMs
  }

  used(nowMs: number): number {
    const age = nowMs - this.atMs
    return age <= 0 ? this.usedMs : age >= MEMORY_MS ? 0 : this.usedMs * (1 - age / MEMORY_MS)
  }
}

const ALL_SOURCES: Charge = { source: '', weight: 1, known: true }
/** All unauthenticated clients together count as one user, however many addresses they have. */
const UNKNOWN: Charge = { source: '', weight: 1, known: false }

export class Accounts {
  readonly #open = new Map<string, Account>()
  readonly #all: Account
  readonly #unknown: Account
  /** Sum over the sources that share the thread. */
  #weight = 0
  #last: Account | undefined
  #lastCharge: Charge | undefined

  constructor(nowMs: number) {
    this.#all = new Account(ALL_SOURCES, nowMs)
    this.#unknown = new Account(UNKNOWN, nowMs)
  }

  /** Number of sources that share the thread. */
  get size(): number {
    return this.#open.size
  }

  of(charge: Charge, nowMs: number): Account {
    if (charge === this.#lastCharge && this.#last?.open === true) return this.#last
    let account = this.#open.get(charge.source)
    if (account === undefined) {
      account = new Account(charge, nowMs)
      this.#open.set(charge.source, account)
    }
    this.#last = account
    this.#lastCharge = charge
    return account
  }

  /** Charges the source for this much time. */
  charge(account: Account, ms: number, nowMs: number): void {
    account.add(ms, nowMs)
    this.#all.add(ms, nowMs)
    if (!account.known) this.#unknown.add(ms, nowMs)
    if (!account.counted && account.usedMs >= LEAST_MS) {
      account.counted = true
      this.#weight += account.weight
    }
    account.over = this.isOver(account, nowMs)
  }

  /** Moves up to `ms` of recent use from `from` to `to`, whose identity was not known yet. */
  move(from: Account, to: Account, ms: number, nowMs: number): void {
    const moved = Math.min(ms, from.used(nowMs))
    from.add(-moved, nowMs)
    if (!from.known) this.#unknown.add(-moved, nowMs)
    this.#all.add(-moved, nowMs)
    this.charge(to, moved, nowMs)
    this.#closeUnused(from, nowMs)
  }

  /** Whether it used more than its part of the last second while others were active. */
  isOver(account: Account, nowMs: number): boolean {
    if (this.#open.size < 2 || this.#all.used(nowMs) < BUSY * MEMORY_MS) return false
    const part = MEMORY_MS / Math.max(this.#weight, account.weight)
    return (
      account.used(nowMs) > part * account.weight ||
      (!account.known && this.#weight > account.weight && this.#unknown.used(nowMs) > part)
    )
  }

  /** The largest users of the last second. */
  report(nowMs: number): ShareReport[] {
    return [true, false].map((known) => {
      const all: ShareHolder[] = []
      let held = 0
      for (const account of this.#open.values()) {
        if (account.known !== known) continue
        const used = Math.round(account.used(nowMs))
        held += used
        all.push({ source: account.source, weight: account.weight, held: used })
      }
      const largest = all.sort((one, other) => other.held - one.held).slice(0, MOST_OF_A_THREAD)
      return { limit: 'thread-time', known, capacity: MEMORY_MS, held, sources: all.length, largest }
    })
  }

  /** Closes the accounts of idle sources. Call about every second. */
  sweep(nowMs: number): void {
    for (const account of this.#open.values()) this.#closeUnused(account, nowMs)
    if (this.#open.size === 0) this.#weight = 0
  }

  /** Forgets all use. Not while work is queued. */
  clear(nowMs: number): void {
    for (const account of this.#open.values()) account.open = false
    this.#open.clear()
    this.#weight = 0
    for (const sum of [this.#all, this.#unknown]) sum.add(-sum.used(nowMs), nowMs)
  }

  #closeUnused(account: Account, nowMs: number): void {
    if (!account.open || account.line.length > 0 || account.used(nowMs) >= LEAST_MS) return
    if (account.counted) this.#weight -= account.weight
    account.counted = false
    account.open = false
    this.#open.delete(account.source)
  }
}
