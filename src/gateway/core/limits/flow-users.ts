// Counters of a per-user limit, in shared memory: a hash table of fixed size, keyed by user name. A user's counter lies within a window of
// slots after its hash. Slots are claimed under the lock of the whole table and never emptied, only reassigned when idle; so a lookup needs
// no lock and stops at the first empty slot.

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

/** User slots per limit. */
const USERS = 65_536
/** Slots that may hold one user. Below half full, hardly any user is more than 30 slots from its hash. */
const WINDOW = 64
/** Shared by all users that found no slot. */
const OVERFLOW = USERS
/** Stands for the whole table: its lock, number of slots taken, number of overflows. */
const TABLE = USERS + 1
const TAKEN = 1
const OVERFLOWS = 2

/** Totals over all users of a limit. */
interface UserTotals {
  inFlight: number
  watches: number
  /** Tokens of the user with the fewest. */
  tokens: number
  users: number
}

/** @param columns number of threads that count in it */
export function createUserMemory(columns: number): FlowMemory {
  return createFlowMemory(USERS + 2, columns)
}

export class UserCounters {
  readonly #memory: FlowMemory
  readonly #thread: number
  readonly #hash: NameHash
  /** By slot; created on first use and shared by every later owner of the slot. */
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
   * The user's counter, created if needed. An idle counter, which behaves like a new one, may be reassigned to another user at any moment:
   * tokens and slots are taken only while it belongs to this user (`isOwn`).
   */
  counterOf(name: string, schema: CompiledSchema, nowMs: number): FlowCounter {
    this.#hash.hash(name)
    return this.#find() ?? this.#claim(schema, nowMs)
  }

  /** How often a user found no slot and had to use the shared overflow counter. */
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

  /** Applies a changed limit to every user. */
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
    // Another thread may have been first.
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
