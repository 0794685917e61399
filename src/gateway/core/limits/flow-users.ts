// The counters of a per-user limit, in shared memory: a table of fixed size, found by a hash of the
// user's name. A user's counter is in a window of places behind its hash. Places are taken under the lock of the whole table
// and never emptied, only reassigned when idle. So a look-up needs no lock and stops at the first empty place.

import { type HashSeed, NameHash } from '../../../kit/core/text/name-hash.ts'
import type { CompiledSchema } from '../cluster/compiled-cluster.ts'
import { resize, tokensLeft, tryReassign } from './flow-control.ts'
import {
  assignCounter,
  createFlowMemory,
  FlowCounter,
  type FlowMemory,
  hasKey,
  lockCounter,
  unlockCounter,
} from './flow-counter.ts'
import { openWatches, requestsInFlight } from './in-flight.ts'

/** Places for users of one limit. */
const USERS = 65_536
/** Places that may hold one user. Below half full, hardly any user is further than 30 from where its hash says. */
const WINDOW = 64
/** Shared by all users who find no place. */
const OVERFLOW = USERS
/** Stands for the whole table: its lock, how many places are taken, how often one was missing. */
const TABLE = USERS + 1
const TAKEN = 1
const OVERFLOWS = 2

/** What all users of a limit have together. */
export interface UserTotals {
  inFlight: number
  watches: number
  /** Of the user who has fewest. */
  tokens: number
  users: number
}

/** @param columns how many threads count in it */
export function createUserMemory(columns: number): FlowMemory {
  return createFlowMemory(USERS + 2, columns)
}

export class UserCounters {
  readonly #memory: FlowMemory
  readonly #thread: number
  readonly #hash: NameHash
  /** By place; made when first used, and used by whoever has the place. */
  readonly #counters = new Map<number, FlowCounter>()
  readonly #table: FlowCounter
  readonly #overflow: FlowCounter

  constructor(memory: FlowMemory, thread: number, seed: HashSeed) {
    this.#memory = memory
    this.#thread = thread
    this.#hash = new NameHash(seed)
    this.#table = new FlowCounter(memory, TABLE, thread)
    this.#overflow = new FlowCounter(memory, OVERFLOW, thread)
  }

  /**
   * The counter of a user, made if there is none. An idle counter, which admits the same as a new one, may be reassigned to
   * another user at any moment: something is taken from it only while it belongs to this user (`isOwn`).
   */
  counterOf(name: string, schema: CompiledSchema, nowMs: number): FlowCounter {
    this.#hash.hash(name)
    return this.#find() ?? this.#claim(schema, nowMs)
  }

  /** How often a user found no place and had to use the shared overflow counter. */
  overflows(): number {
    return Atomics.load(this.#memory.words, this.#table.at + OVERFLOWS)
  }

  totals(schema: CompiledSchema, nowMs: number): UserTotals {
    const { words } = this.#memory
    const totals = { inFlight: 0, watches: 0, tokens: schema.kind === 'tokenBucket' ? schema.burst : 0, users: 0 }
    this.#each((counter) => {
      totals.inFlight += requestsInFlight(counter)
      totals.watches += openWatches(counter)
      totals.tokens = Math.min(totals.tokens, tokensLeft(schema, counter, nowMs))
    })
    totals.users = Atomics.load(words, this.#table.at + TAKEN)
    return totals
  }

  /** Puts a changed limit in force for every user. */
  resize(previous: CompiledSchema, next: CompiledSchema, nowMs: number): void {
    this.#each((counter) => resize(previous, next, counter, nowMs))
  }

  #each(visit: (counter: FlowCounter) => void): void {
    visit(this.#overflow)
    if (Atomics.load(this.#memory.words, this.#table.at + TAKEN) === 0) return
    for (let place = 0; place < USERS; place++) {
      const counter = new FlowCounter(this.#memory, place, this.#thread)
      if (!hasKey(counter, 0, 0)) visit(counter)
    }
  }

  #find(): FlowCounter | undefined {
    const { low, high } = this.#hash
    for (let i = 0; i < WINDOW; i++) {
      const counter = this.#counter(low + i)
      if (hasKey(counter, low, high)) {
        counter.keyLow = low
        counter.keyHigh = high
        return counter
      }
      if (hasKey(counter, 0, 0)) return undefined
    }
    return undefined
  }

  #claim(schema: CompiledSchema, nowMs: number): FlowCounter {
    lockCounter(this.#table)
    // Another thread may have been faster.
    const counter = this.#find() ?? this.#takePlace(schema, nowMs)
    unlockCounter(this.#table)
    return counter
  }

  #takePlace(schema: CompiledSchema, nowMs: number): FlowCounter {
    const { low, high } = this.#hash
    const { words } = this.#memory
    for (let i = 0; i < WINDOW; i++) {
      const counter = this.#counter(low + i)
      if (hasKey(counter, 0, 0)) {
        assignCounter(counter, low, high)
        Atomics.add(words, this.#table.at + TAKEN, 1)
      } else if (!tryReassign(schema, counter, low, high, nowMs)) {
        continue
      }
      counter.keyLow = low
      counter.keyHigh = high
      return counter
    }
    Atomics.add(words, this.#table.at + OVERFLOWS, 1)
    return this.#overflow
  }

  #counter(place: number): FlowCounter {
    const index = (place >>> 0) % USERS
    let counter = this.#counters.get(index)
    if (counter === undefined) {
      counter = new FlowCounter(this.#memory, index, this.#thread)
      this.#counters.set(index, counter)
    }
    return counter
  }
}
