// The flow cells of one cluster: one for each schema, or one for each user of a schema. They outlive changes of the
// object, so that a new certificate or a raised limit refills no bucket.

import type { CompiledSchema } from '../core/compiled-cluster.ts'
import {
  createFlowCell,
  createFlowMemory,
  type FlowCell,
  type FlowMemory,
  isIdle,
  openWatches,
  requestsInFlight,
  resize,
  tokensLeft,
} from '../core/flow-control.ts'

/** One schema as it stands. */
export interface FlowDescription {
  readonly schema: string
  readonly kind: CompiledSchema['kind']
  /** Requests that hold a slot; of all users together. */
  readonly inFlight: number
  /** Open watches; of all users together. */
  readonly watches: number
  /** Whole tokens left; of the user who has fewest, where the limit is per user. 0 when the schema is no bucket. */
  readonly tokens: number
  /** Users remembered; 0 when the limit is not per user. */
  readonly users: number
}

/**
 * Users remembered before idle ones are forgotten. Only idle cells go, those that equal a new one, so nobody gains a
 * fresh limit by it. More stay only while they hold a request or owe a token, which is bounded by the traffic itself.
 */
const USERS_KEPT = 10_000
/** Cells looked at for each new user beyond that: more than come in, so that the table shrinks again. */
const SWEEP = 8
const CELLS_PER_CHUNK = 64

interface Entry {
  schema: CompiledSchema
  /** Of limits that are not per user. */
  readonly cell: FlowCell
  readonly users: Map<string, FlowCell>
  /** Where the sweep goes on; starts over at the end. */
  sweep: IterableIterator<[string, FlowCell]>
}

export class FlowTable {
  #entries: Entry[] = []
  /** By schema object, so that a request that began under an older snapshot still counts in the same cell. */
  readonly #bySchema = new WeakMap<CompiledSchema, Entry>()
  #chunk: FlowMemory = createFlowMemory(CELLS_PER_CHUNK)
  #used = 0

  /** The cell that counts requests of `userName` against `schema`, an object of the snapshot that the request has. */
  cellFor(schema: CompiledSchema, userName: string, nowMs: number): FlowCell {
    const entry = this.#bySchema.get(schema) ?? this.#adopt(schema)
    if (!schema.perUser) return entry.cell
    const known = entry.users.get(userName)
    if (known !== undefined) return known
    if (entry.users.size >= USERS_KEPT) forgetIdle(entry, nowMs)
    const cell = this.#createCell()
    entry.users.set(userName, cell)
    return cell
  }

  /** Puts the schemas of a new snapshot in force. One of the same name and kind keeps fill level and counts. */
  update(next: readonly CompiledSchema[], nowMs: number): void {
    const before = new Map(this.#entries.map((entry) => [entry.schema.name, entry]))
    this.#entries = next.map((schema) => {
      const entry = before.get(schema.name)
      if (entry === undefined || entry.schema.kind !== schema.kind) return this.#adopt(schema)
      changeLimit(entry, schema, nowMs)
      this.#bySchema.set(schema, entry)
      return entry
    })
  }

  describe(nowMs: number): readonly FlowDescription[] {
    return this.#entries.map((entry) => describeEntry(entry, nowMs))
  }

  #adopt(schema: CompiledSchema): Entry {
    const users = new Map<string, FlowCell>()
    const entry: Entry = { schema, cell: this.#createCell(), users, sweep: users.entries() }
    this.#bySchema.set(schema, entry)
    return entry
  }

  /** A place is never used twice: a request may still hold the cell of a forgotten user. Memory goes by the chunk. */
  #createCell(): FlowCell {
    if (this.#used === CELLS_PER_CHUNK) {
      this.#chunk = createFlowMemory(CELLS_PER_CHUNK)
      this.#used = 0
    }
    return createFlowCell(this.#chunk, this.#used++)
  }
}

function changeLimit(entry: Entry, next: CompiledSchema, nowMs: number): void {
  const previous = entry.schema
  entry.schema = next
  if (previous.qps === next.qps && previous.burst === next.burst) return
  resize(previous, next, entry.cell, nowMs)
  for (const cell of entry.users.values()) resize(previous, next, cell, nowMs)
}

function forgetIdle(entry: Entry, nowMs: number): void {
  for (let i = 0; i < SWEEP; i++) {
    const { value, done } = entry.sweep.next()
    if (done === true) {
      entry.sweep = entry.users.entries()
      continue
    }
    if (isIdle(entry.schema, value[1], nowMs)) entry.users.delete(value[0])
  }
}

function describeEntry({ schema, cell, users }: Entry, nowMs: number): FlowDescription {
  let inFlight = requestsInFlight(cell)
  let watches = openWatches(cell)
  let tokens = tokensLeft(schema, cell, nowMs)
  for (const each of users.values()) {
    inFlight += requestsInFlight(each)
    watches += openWatches(each)
    tokens = Math.min(tokens, tokensLeft(schema, each, nowMs))
  }
  return { schema: schema.name, kind: schema.kind, inFlight, watches, tokens, users: users.size }
}
