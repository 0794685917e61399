// Cache of tallies for requests that agree in several names. Most requests hit a row, which costs a comparison and a few additions; a row
// is flushed name by name when another takes its slot, or when all are flushed.

import type { RequestRecord } from '../../../gateway/api/request-record.ts'
import { REQUESTS, TALLY_LENGTH, TALLY_WIDTH } from './measures.ts'
import { flatCopy, lastLetter, lastLetters, MAX_NAME_LENGTH } from './names.ts'

/** The client side of a row. */
interface Client {
  readonly connection: number
  readonly cluster: string
  readonly user: string
  readonly userAgent: string
  readonly address: string
}

/** The operation side of a row. */
interface RowOperation {
  readonly cluster: string
  readonly verb: string
  /** The resource, or that of a non-resource path. */
  readonly resource: string
  readonly apiGroup: string
  readonly subresource: string
}

const CLIENT_BITS = 14
const CLIENTS: number = 1 << CLIENT_BITS
const CLIENT_SHIFT: number = 32 - CLIENT_BITS
const OPERATION_BITS = 12
const OPERATIONS: number = 1 << OPERATION_BITS
const OPERATION_SHIFT: number = 32 - OPERATION_BITS
/** Knuth's multiplier: the upper bits of the product depend on all bits of the number. */
const MIX = 0x9e3779b1

type OnRow<T> = (key: T, tallies: Float64Array, at: number) => void

export class RequestRows {
  readonly #clients = new Array<Client | undefined>(CLIENTS).fill(undefined)
  readonly #clientTallies = new Float64Array(CLIENTS * TALLY_WIDTH)
  readonly #operations = new Array<RowOperation | undefined>(OPERATIONS).fill(undefined)
  readonly #operationTallies = new Float64Array(OPERATIONS * TALLY_WIDTH)
  readonly #onClient: OnRow<Client>
  readonly #onOperation: OnRow<RowOperation>

  constructor(onClient: OnRow<Client>, onOperation: OnRow<RowOperation>) {
    this.#onClient = onClient
    this.#onOperation = onOperation
  }

  /** Tallies of all clients, indexed by `clientAt`. */
  get clientTallies(): Float64Array {
    return this.#clientTallies
  }

  get operationTallies(): Float64Array {
    return this.#operationTallies
  }

  /** Flushes a part of the rows. @returns whether there are more */
  empty(part: number, parts: number): boolean {
    const from = Math.floor((CLIENTS / parts) * part)
    const to = Math.floor((CLIENTS / parts) * (part + 1))
    for (let slot = from; slot < to; slot++) {
      const client = this.#clients[slot]
      if (client === undefined) continue
      this.#settleClient(slot, client)
      this.#clients[slot] = undefined
    }
    if (part + 1 < parts) return true
    for (let slot = 0; slot < OPERATIONS; slot++) {
      const operation = this.#operations[slot]
      if (operation === undefined) continue
      this.#settleOperation(slot, operation)
      this.#operations[slot] = undefined
    }
    return false
  }

  /** Offset of the client's tally. Keyed by connection, since most carry one user's requests. */
  clientAt(record: RequestRecord): number {
    const { connection, user, userAgent } = record
    const letters = connection ^ (user.length << 8) ^ (lastLetter(user) << 16) ^ (userAgent.length << 24)
    const slot = Math.imul(letters, MIX) >>> CLIENT_SHIFT
    if (isClient(this.#clients[slot], record)) return slot * TALLY_WIDTH
    // Two-way associative: two clients with the same slot would otherwise evict each other, flushed name by name each time.
    const other = slot ^ 1
    if (isClient(this.#clients[other], record)) return other * TALLY_WIDTH
    return this.#newClient(this.#lighter(this.#clientTallies, slot, other), record)
  }

  /** Offset of the operation's tally. @param salt of the cluster */
  operationAt(record: RequestRecord, salt: number): number {
    const { verb, subresource } = record
    const resource = resourceOf(record)
    const letters =
      (lastLetters(resource) << 5) ^ (verb.length << 20) ^ (lastLetter(verb) << 24) ^ salt ^ subresource.length
    const slot = Math.imul(letters, MIX) >>> OPERATION_SHIFT
    if (isOperation(this.#operations[slot], record, resource)) return slot * TALLY_WIDTH
    const other = slot ^ 1
    if (isOperation(this.#operations[other], record, resource)) return other * TALLY_WIDTH
    return this.#newOperation(this.#lighter(this.#operationTallies, slot, other), record, resource)
  }

  /** The row to evict: busy ones stay. */
  #lighter(tallies: Float64Array, a: number, b: number): number {
    return (tallies[b * TALLY_WIDTH + REQUESTS] ?? 0) < (tallies[a * TALLY_WIDTH + REQUESTS] ?? 0) ? b : a
  }

  #newClient(slot: number, { connection, cluster, user, userAgent, remoteAddress: address }: RequestRecord): number {
    const before = this.#clients[slot]
    if (before !== undefined) this.#settleClient(slot, before)
    this.#clients[slot] = { connection, cluster, user: kept(user), userAgent: kept(userAgent), address }
    return slot * TALLY_WIDTH
  }

  #newOperation(slot: number, record: RequestRecord, resource: string): number {
    const before = this.#operations[slot]
    if (before !== undefined) this.#settleOperation(slot, before)
    this.#operations[slot] = {
      cluster: record.cluster,
      verb: flatCopy(record.verb),
      resource: flatCopy(resource),
      apiGroup: flatCopy(record.apiGroup),
      subresource: flatCopy(record.subresource),
    }
    return slot * TALLY_WIDTH
  }

  #settleClient(slot: number, client: Client): void {
    this.#onClient(client, this.#clientTallies, slot * TALLY_WIDTH)
    this.#clientTallies.fill(0, slot * TALLY_WIDTH, slot * TALLY_WIDTH + TALLY_LENGTH)
  }

  #settleOperation(slot: number, operation: RowOperation): void {
    this.#onOperation(operation, this.#operationTallies, slot * TALLY_WIDTH)
    this.#operationTallies.fill(0, slot * TALLY_WIDTH, slot * TALLY_WIDTH + TALLY_LENGTH)
  }
}

function resourceOf({ isResourceRequest, resource, path }: RequestRecord): string {
  return isResourceRequest ? resource : path
}

/** Strings of a connection and of an identity are shared, so most of this compares pointers. */
function isClient(client: Client | undefined, { connection, user, userAgent, cluster }: RequestRecord): boolean {
  return (
    client !== undefined &&
    client.connection === connection &&
    client.user === user &&
    client.userAgent === userAgent &&
    client.cluster === cluster
  )
}

function isOperation(operation: RowOperation | undefined, record: RequestRecord, resource: string): boolean {
  return (
    operation !== undefined &&
    operation.verb === record.verb &&
    operation.resource === resource &&
    operation.cluster === record.cluster &&
    operation.apiGroup === record.apiGroup &&
    operation.subresource === record.subresource
  )
}

/** Header values and user names already own their memory: only the length must be limited. */
function kept(name: string): string {
  return name.length > MAX_NAME_LENGTH ? flatCopy(name) : name
}
