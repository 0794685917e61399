// Flow counters of one cluster: one per schema, or one per user of a schema. They outlive changes of the
// object, so that a new certificate or a raised limit refills no bucket, and are shared by threads, so that a limit applies to all.

import type { CompiledSchema } from '../core/cluster/compiled-cluster.ts'
import { resize, tokensLeft, tryAcquire } from '../core/limits/flow-control.ts'
import { createFlowMemory, FlowCounter, type FlowMemory, isOwn, releaseThread } from '../core/limits/flow-counter.ts'
import { createUserMemory, UserCounters } from '../core/limits/flow-users.ts'
import { createGlobalAccount, type GlobalAccount } from '../core/limits/global-account.ts'
import { openWatches, requestsInFlight, tryOpenWatch } from '../core/limits/in-flight.ts'
import { ALONE, type ThreadPlace } from './thread-place.ts'
import { BudgetByUser, HEARTBEATS } from './user-budgets.ts'

/** The current state of one schema. */
interface FlowDescription {
  readonly schema: string
  readonly kind: CompiledSchema['kind']
  /** Requests holding a slot, over all users. */
  readonly inFlight: number
  /** Open watches, over all users. */
  readonly watches: number
  /** Whole tokens left; for a limit per user, those of the user with the fewest. 0 if the schema is not a bucket. */
  readonly tokens: number
  /** Users remembered; 0 if the limit is not per user. */
  readonly users: number
  /** How often a user had to share the overflow flow counter because the table was full. */
  readonly overflows: number
}

/** State of one schema shared between threads. */
export interface FlowHandle {
  readonly schema: string
  readonly kind: CompiledSchema['kind']
  /** Changes when a removed schema is added again, or changes its kind. */
  readonly id: number
  /** For limits that are not per user. */
  readonly memory: FlowMemory
  /** Set once the limit has been per user. */
  readonly users: FlowMemory | undefined
  /** Set once the limit has been shared by replicas. */
  readonly account: GlobalAccount | undefined
}

/** A limit that replicas share, with this replica's counters. */
export interface SharedFlow {
  readonly schema: CompiledSchema
  readonly counter: FlowCounter
  readonly account: GlobalAccount
}

interface FlowEntry {
  schema: CompiledSchema
  handle: FlowHandle
  readonly counter: FlowCounter
  users: UserCounters | undefined
}

export class FlowTable {
  #entries: FlowEntry[] = []
  /** By schema object, so that a request started under an older snapshot still counts in the same flow counter. */
  readonly #bySchema = new WeakMap<CompiledSchema, FlowEntry>()
  readonly #place: ThreadPlace
  #nextId = 0
  readonly #heartbeats = new BudgetByUser(HEARTBEATS)

  constructor(place: ThreadPlace = ALONE) {
    this.#place = place
  }

  /**
   * Takes a token or slot of `schema`, an object of the request's snapshot; undefined = refused. Return what was
   * taken to the returned flow counter.
   * @param seats number to take, limited to the size of the limit
   */
  tryAcquire(schema: CompiledSchema, userName: string, nowMs: number, seats = 1): FlowCounter | undefined {
    for (;;) {
      const counter = this.counterFor(schema, userName, nowMs)
      if (tryAcquire(schema, counter, nowMs, seats)) return counter
      // Reassigned to another user in between: look up again.
      if (isOwn(counter)) return undefined
    }
  }

  /**
   * Counts a new watch in the flow counter that admitted its request; undefined = the cap is reached. Returns another flow
   * counter only if the first held nothing of this request and was reassigned.
   */
  tryOpenWatch(
    schema: CompiledSchema,
    admittedBy: FlowCounter,
    userName: string,
    nowMs: number,
  ): FlowCounter | undefined {
    for (let counter = admittedBy; ; counter = this.counterFor(schema, userName, nowMs)) {
      if (tryOpenWatch(schema, counter)) return counter
      if (isOwn(counter)) return undefined
    }
  }

  /** Per thread, like user budgets. */
  tryHeartbeat(userName: string, nowMs: number): boolean {
    return this.#heartbeats.spend('', userName, nowMs)
  }

  /** The flow counter for requests of `userName` against `schema`. */
  counterFor(schema: CompiledSchema, userName: string, nowMs: number): FlowCounter {
    const entry = this.#bySchema.get(schema) ?? this.#adopt(schema, undefined)
    if (!schema.perUser) return entry.counter
    return (entry.users ?? this.#addUsers(entry, undefined)).counterOf(userName, schema, nowMs)
  }

  /**
   * Applies the schemas of a new snapshot. One with the same name and kind keeps its fill level and counts.
   * @param handles created and resized by another thread; otherwise this table does both
   */
  update(next: readonly CompiledSchema[], nowMs: number, handles?: readonly FlowHandle[]): void {
    const before = new Map(this.#entries.map((entry) => [entry.schema.name, entry]))
    this.#entries = next.map((schema) => {
      const handle = handles?.find((one) => one.schema === schema.name)
      const entry = before.get(schema.name)
      if (
        entry === undefined ||
        entry.schema.kind !== schema.kind ||
        (handle !== undefined && handle.id !== entry.handle.id)
      )
        return this.#adopt(schema, handle)
      if (handle === undefined) changeLimit(entry, schema, nowMs)
      entry.schema = schema
      if (schema.perUser && entry.users === undefined) this.#addUsers(entry, handle?.users)
      if (schema.shared !== undefined) this.#addAccount(entry, handle?.account)
      this.#bySchema.set(schema, entry)
      return entry
    })
  }

  /** For threads that share these flow counters. */
  handles(): readonly FlowHandle[] {
    return this.#entries.map(({ handle }) => handle)
  }

  /** A thread has died: releases what it held. */
  releaseThread(thread: number): void {
    for (const { handle } of this.#entries) {
      releaseThread(handle.memory, thread)
      if (handle.users !== undefined) releaseThread(handle.users, thread)
    }
  }

  /** Limits in force that replicas share. */
  shared(): readonly SharedFlow[] {
    return this.#entries.flatMap(({ schema, counter }) => {
      return schema.shared === undefined || counter.account === undefined
        ? []
        : [{ schema, counter, account: counter.account }]
    })
  }

  describe(nowMs: number): readonly FlowDescription[] {
    return this.#entries.map((entry) => describeFlow(entry, nowMs))
  }

  #adopt(schema: CompiledSchema, given: FlowHandle | undefined): FlowEntry {
    const { thread, threads } = this.#place
    const handle = given ?? {
      schema: schema.name,
      kind: schema.kind,
      id: this.#nextId++,
      memory: createFlowMemory(1, threads),
      users: undefined,
      account: undefined,
    }
    const entry: FlowEntry = { schema, handle, counter: new FlowCounter(handle.memory, 0, thread), users: undefined }
    if (schema.perUser) this.#addUsers(entry, handle.users)
    if (schema.shared !== undefined) this.#addAccount(entry, handle.account)
    this.#bySchema.set(schema, entry)
    return entry
  }

  #addAccount(entry: FlowEntry, given: GlobalAccount | undefined): void {
    if (entry.counter.account !== undefined) return
    const account = given ?? createGlobalAccount()
    entry.handle = { ...entry.handle, account }
    entry.counter.account = account
  }

  #addUsers(entry: FlowEntry, given: FlowMemory | undefined): UserCounters {
    const memory = given ?? entry.handle.users ?? createUserMemory(this.#place.threads)
    entry.handle = { ...entry.handle, users: memory }
    entry.users = new UserCounters(memory, this.#place.thread, this.#place.seed)
    return entry.users
  }
}

function changeLimit({ schema: previous, counter, users }: FlowEntry, next: CompiledSchema, nowMs: number): void {
  if (previous.qps === next.qps && previous.burst === next.burst) return
  resize(previous, next, counter, nowMs)
  users?.resize(previous, next, nowMs)
}

function describeFlow({ schema, counter, users }: FlowEntry, nowMs: number): FlowDescription {
  const all = users?.totals(schema, nowMs)
  const tokens = tokensLeft(schema, counter, nowMs)
  return {
    schema: schema.name,
    kind: schema.kind,
    inFlight: requestsInFlight(counter) + (all?.inFlight ?? 0),
    watches: openWatches(counter) + (all?.watches ?? 0),
    tokens: Math.min(tokens, all?.tokens ?? tokens),
    users: all?.users ?? 0,
    overflows: users?.overflows() ?? 0,
  }
}
