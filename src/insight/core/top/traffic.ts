// Counts one thread's requests to find the top talkers: by each dimension, in each cluster. Forgotten entries, and the rest when the counts
// are taken, are added up over all clusters.

import type { RequestRecord } from '../../../gateway/api/request-record.ts'
import { ipText, parseIp } from '../../../kit/api/validation/ip-address.ts'
import { DIMENSIONS, type Dimension } from '../../../process/api/dimensions.ts'
import { BYTES, LATENCY_MS, LISTED_BYTES, REFUSED, REQUESTS, TALLY_LENGTH, UNTIMED, UPSTREAM_MS } from './measures.ts'
import { saltOf } from './names.ts'
import { RequestRows } from './request-rows.ts'
import { addTo, type DimensionSketch, largest, type Sketch } from './sketch.ts'
import { SpaceSaving } from './space-saving.ts'

/** A thread's counts: by dimension, in the order of DIMENSIONS. */
export interface TrafficSketch {
  readonly total: Float64Array
  readonly dimensions: readonly DimensionSketch[]
}

/** Names per thread and dimension: in clusters, and over all of them. Half of them are dropped when there are more. */
export const CAPACITY = 8192
/** Rows of an answer, by each measure: over all clusters ... */
const ROWS = 128
/** ... and of all clusters together, but at least MIN_ROWS of each. */
const CLUSTER_ROWS = 512
const MIN_ROWS = 4
const MAX_CLUSTER_ROWS = 64
/** Number of steps in which the rows are flushed. */
const PARTS = 16

/** Initial and minimum units of weight 1: a request, a sixteenth of a refused one, 4 KiB, 10 ms. */
const LEAST_UNITS: readonly number[] = [1, 1 / 16, 4096, 4096, 10, 10]

interface Tables {
  readonly inCluster: SpaceSaving
  readonly all: SpaceSaving
}

export class Traffic {
  #total = new Float64Array(TALLY_LENGTH)
  readonly #tables: Readonly<Record<Dimension, Tables>>
  readonly #namespaces: SpaceSaving
  readonly #rows: RequestRows
  /** Offset of the client's tally for the request being counted. */
  #clientAt = 0
  #operationAt = 0
  #namespaceAt = 0
  #cluster = ''
  #salt = 0

  constructor() {
    const tables = (): Tables => tablesOf(Float64Array.from(LEAST_UNITS))
    const all = {
      user: tables(),
      userAgent: tables(),
      resource: tables(),
      verb: tables(),
      namespace: tables(),
      address: tables(),
      cluster: tables(),
    }
    this.#tables = all
    this.#namespaces = all.namespace.inCluster
    const { user, userAgent, address, resource, verb } = all
    this.#rows = new RequestRows(
      (client, tallies, at) => {
        const { cluster } = client
        user.inCluster.add(cluster, client.user, tallies, at)
        userAgent.inCluster.add(cluster, client.userAgent, tallies, at)
        address.inCluster.add(cluster, addressKey(client.address), tallies, at)
      },
      (operation, tallies, at) => {
        const { cluster, apiGroup, subresource } = operation
        const name = `${operation.resource}${apiGroup && `.${apiGroup}`}${subresource && `/${subresource}`}`
        resource.inCluster.add(cluster, name, tallies, at)
        verb.inCluster.add(cluster, operation.verb, tallies, at)
        all.cluster.all.add('', cluster, tallies, at)
        addTo(this.#total, tallies.subarray(at, at + TALLY_LENGTH))
      },
    )
  }

  /** Counts a long-running request (watch, exec) when upstream starts to answer; its bytes count when it ends. */
  started(record: RequestRecord): void {
    if (!runsForLong(record)) return
    this.#at(record)
    this.#add(1, 0, 0, 0)
    this.#addRare(0, 0, 1)
  }

  /** At the end of a request. */
  count(record: RequestRecord): void {
    const { longRunning, durationMs, upstreamMs, refusal } = record
    const bytes = record.requestBytes + record.responseBytes
    this.#at(record)
    if (longRunning) {
      // Their duration does not count: they wait on purpose.
      const requests = runsForLong(record) ? 0 : 1
      this.#add(requests, bytes, 0, 0)
      this.#addRare(0, refusal === '' ? 0 : 1, requests)
      return
    }
    this.#add(1, bytes, durationMs > 0 ? durationMs : 0, upstreamMs > 0 ? upstreamMs : 0)
    const listed = record.verb === 'list' ? record.responseBytes : 0
    if (listed > 0 || refusal !== '') this.#addRare(listed, refusal === '' ? 0 : 1, 0)
  }

  /** Everything counted since the last call. */
  take(): TrafficSketch {
    const steps = this.takeInSteps()
    for (;;) {
      const step = steps.next()
      if (step.done) return step.value
    }
  }

  /** As `take`, in steps of at most about a millisecond, between which requests may be counted. */
  *takeInSteps(): Generator<undefined, TrafficSketch, void> {
    for (let part = 0; this.#rows.empty(part, PARTS); part++) yield
    const total = this.#total
    this.#total = new Float64Array(TALLY_LENGTH)
    const units = unitsOf(total)
    const dimensions: DimensionSketch[] = []
    for (const dimension of DIMENSIONS) {
      yield
      const { inCluster, all } = this.#tables[dimension]
      const { clusters, unseen } = takeClusters(inCluster, all)
      inCluster.clear(units)
      yield
      dimensions.push({ all: largest(sketchOf(all), ROWS), clusters, unseen })
      all.clear(units)
    }
    return { total, dimensions }
  }

  #at(record: RequestRecord): void {
    const { cluster } = record
    if (cluster !== this.#cluster) {
      this.#cluster = cluster
      this.#salt = saltOf(cluster)
    }
    this.#clientAt = this.#rows.clientAt(record)
    this.#operationAt = this.#rows.operationAt(record, this.#salt)
    this.#namespaceAt = this.#namespaces.at(cluster, this.#salt, record.namespace)
  }

  /** Adds the measures that nearly all requests have. */
  #add(requests: number, bytes: number, latencyMs: number, upstreamMs: number): void {
    add(this.#rows.clientTallies, this.#clientAt, requests, bytes, latencyMs, upstreamMs)
    add(this.#rows.operationTallies, this.#operationAt, requests, bytes, latencyMs, upstreamMs)
    add(this.#namespaces.sums, this.#namespaceAt, requests, bytes, latencyMs, upstreamMs)
  }

  /** Adds the measures that few requests have. */
  #addRare(listedBytes: number, refused: number, untimed: number): void {
    addRare(this.#rows.clientTallies, this.#clientAt, listedBytes, refused, untimed)
    addRare(this.#rows.operationTallies, this.#operationAt, listedBytes, refused, untimed)
    addRare(this.#namespaces.sums, this.#namespaceAt, listedBytes, refused, untimed)
  }
}

function add(
  sums: Float64Array,
  at: number,
  requests: number,
  bytes: number,
  latencyMs: number,
  upstreamMs: number,
): void {
  sums[at + REQUESTS] = (sums[at + REQUESTS] ?? 0) + requests
  sums[at + BYTES] = (sums[at + BYTES] ?? 0) + bytes
  sums[at + LATENCY_MS] = (sums[at + LATENCY_MS] ?? 0) + latencyMs
  sums[at + UPSTREAM_MS] = (sums[at + UPSTREAM_MS] ?? 0) + upstreamMs
}

function addRare(sums: Float64Array, at: number, listedBytes: number, refused: number, untimed: number): void {
  sums[at + LISTED_BYTES] = (sums[at + LISTED_BYTES] ?? 0) + listedBytes
  sums[at + REFUSED] = (sums[at + REFUSED] ?? 0) + refused
  sums[at + UNTIMED] = (sums[at + UNTIMED] ?? 0) + untimed
}

function tablesOf(units: Float64Array): Tables {
  const all = new SpaceSaving(CAPACITY, units)
  return { all, inCluster: new SpaceSaving(CAPACITY, units, (_, name, sums, at) => all.add('', name, sums, at)) }
}

/** The unit of a measure is its mean per request, so that all measures weigh the same. */
function unitsOf(total: Float64Array): Float64Array {
  const requests = Math.max(1, total[REQUESTS] ?? 0)
  return Float64Array.from(LEAST_UNITS, (least, i) => Math.max(least, (total[i] ?? 0) / requests))
}

/** Adds a table to the one over all clusters. */
function takeClusters(table: SpaceSaving, all: SpaceSaving): Pick<DimensionSketch, 'clusters' | 'unseen'> {
  const byCluster = new Map<string, { names: string[]; rows: number[] }>()
  table.forEach((cluster, name, sums, at, error) => {
    all.add('', name, sums, at)
    let list = byCluster.get(cluster)
    if (list === undefined) {
      list = { names: [], rows: [] }
      byCluster.set(cluster, list)
    }
    list.names.push(name)
    pushRow(list.rows, sums, at, error)
  })
  const missing = table.missing()
  const fair = Math.floor(CLUSTER_ROWS / Math.max(1, byCluster.size))
  const count = Math.min(MAX_CLUSTER_ROWS, Math.max(MIN_ROWS, fair))
  const clusters = new Map<string, Sketch>()
  for (const [cluster, { names, rows }] of byCluster) {
    clusters.set(cluster, largest({ names, rows: Float64Array.from(rows), missing }, count))
  }
  return { clusters, unseen: missing }
}

function sketchOf(table: SpaceSaving): Sketch {
  const names: string[] = []
  const rows: number[] = []
  table.forEach((_, name, sums, at, error) => {
    names.push(name)
    pushRow(rows, sums, at, error)
  })
  return { names, rows: Float64Array.from(rows), missing: table.missing() }
}

function pushRow(rows: number[], sums: Float64Array, at: number, error: (measure: number) => number): void {
  for (let i = 0; i < TALLY_LENGTH; i++) rows.push(sums[at + i] ?? 0)
  for (let i = 0; i < TALLY_LENGTH; i++) rows.push(error(i))
}

/** Whether upstream has begun to answer: it counts from then on. */
function runsForLong({ longRunning, refusal, code }: RequestRecord): boolean {
  return longRunning && refusal === '' && (code === 200 || code === 101)
}

// How client addresses are grouped: an IPv4 address, or the /64 of an IPv6 address, since one machine has as many of those as it likes.
const IPV6_BYTES = 16
const PREFIX_BYTES = 8

/** Anything else is returned unchanged. */
function addressKey(address: string): string {
  if (!address.includes(':')) return address
  const bytes = parseIp(address)
  if (bytes === undefined) return address
  return bytes.length < IPV6_BYTES ? ipText(bytes) : `${ipText(bytes.slice().fill(0, PREFIX_BYTES))}/64`
}
