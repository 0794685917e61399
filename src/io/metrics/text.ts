// A snapshot as lines of the Prometheus text format.

import {
  formatLabel,
  METRIC_SCOPES,
  METRIC_VERBS,
  VERB_GET,
  VERB_LIST,
  VERB_WATCH,
} from '../../core/cluster/metric-labels.ts'
import type { KnownEndpoints } from './event-metrics.ts'
import type { Exposition, Family } from './exposition.ts'
import * as families from './families.ts'
import { ROW_FIELDS, type StoreSnapshot } from './series.ts'
import * as kinds from './series-kinds.ts'
import { RESOURCE_NAMES } from './series-merge.ts'

/** Rows between two pauses: about a millisecond. */
const ROWS_PER_TURN = 100

/** The lines of one cluster; `pause` lets other work run in between. Endpoints that are not known are left out. */
export async function exposeCluster(
  into: Exposition,
  snapshot: StoreSnapshot,
  known: KnownEndpoints,
  pause: () => Promise<void>,
): Promise<void> {
  const text = new ClusterText(into, snapshot, known.get(snapshot.cluster) ?? new Set())
  for (let row = 0; row < snapshot.rows.length / ROW_FIELDS; row++) {
    if (row % ROWS_PER_TURN === ROWS_PER_TURN - 1) await pause()
    text.row(row)
  }
  text.end()
}

/** Metrics of tables that have one name and one number. */
const TABLES: ReadonlyMap<number, readonly [Family, string]> = new Map([
  [kinds.SHADOW, [families.SHADOW, 'rule']],
  [kinds.ADMITTED, [families.ADMITTED, 'schema']],
  [kinds.REJECTED, [families.REJECTED, 'schema']],
  [kinds.ABORT, [families.ABORTS, 'by']],
])

class ClusterText {
  readonly #into: Exposition
  readonly #snapshot: StoreSnapshot
  readonly #endpoints: ReadonlySet<string>
  readonly #cluster: string
  /** Labels of the rows that others refer to. */
  readonly #labels = new Map<number, string>()
  readonly #watchers = new Map<string, number>()

  constructor(into: Exposition, snapshot: StoreSnapshot, endpoints: ReadonlySet<string>) {
    this.#into = into
    this.#snapshot = snapshot
    this.#endpoints = endpoints
    this.#cluster = formatLabel('cluster', snapshot.cluster)
  }

  row(row: number): void {
    const { rows, values } = this.#snapshot
    const at = row * ROW_FIELDS
    const [kind = 0, first = 0, second = 0, offset = 0] = rows.subarray(at, at + ROW_FIELDS)
    const value = values[offset] ?? 0
    if (kind === kinds.VERB) this.#verb(row, first, second, offset)
    else if (kind === kinds.CODE)
      this.#add(families.REQUESTS, this.#labels.get(first) ?? '', value, 'code', `${second}`)
    else if (kind === kinds.CLUSTER) this.#fixed(offset)
    else if (kind !== kinds.RESOURCE) this.#table(kind, this.#snapshot.names[first] ?? '', second, offset)
  }

  /** What is known when all rows have been seen. */
  end(): void {
    for (const [labels, count] of this.#watchers) this.#into.add(families.WATCHERS, labels, count)
  }

  #verb(row: number, resource: number, index: number, at: number): void {
    const { names, rows, values } = this.#snapshot
    const verb = Math.floor(index / METRIC_SCOPES.length)
    const first = rows[resource * ROW_FIELDS + 1] ?? 0
    const [group = '', version = '', name = '', subresource = ''] = names.slice(first, first + RESOURCE_NAMES)
    const kind = `${formatLabel('group', group)},${formatLabel('version', version)},${formatLabel('resource', name)}`
    const ends = `${formatLabel('subresource', subresource)},${formatLabel('scope', METRIC_SCOPES[index % METRIC_SCOPES.length] ?? '')}`
    const labels = `${this.#cluster},${formatLabel('verb', METRIC_VERBS[verb] ?? 'other')},${kind},${ends}`
    this.#labels.set(row, labels)
    const active = values[at + kinds.ACTIVE] ?? 0
    if ((values[at + kinds.DURATIONS] ?? 0) > 0) {
      this.#into.addHistogram(families.DURATION, labels, values, at + kinds.DURATIONS, kinds.DURATION_BUCKETS)
    }
    if ((verb === VERB_GET || verb === VERB_LIST) && (values[at + kinds.SIZES] ?? 0) > 0) {
      this.#into.addHistogram(families.RESPONSE_SIZES, labels, values, at + kinds.SIZES, kinds.SIZE_BUCKETS)
    }
    if (active > 0 || (values[at + kinds.LONG_RUNNING] ?? 0) > 0) {
      this.#into.add(families.LONG_RUNNING, `{${labels}}`, active)
    }
    if (verb !== VERB_WATCH) return
    const watched = `{${this.#cluster},${kind}}`
    this.#watchers.set(watched, (this.#watchers.get(watched) ?? 0) + active)
  }

  #fixed(at: number): void {
    const { values } = this.#snapshot
    const cluster = this.#cluster
    this.#into.add(families.INFLIGHT, `{${cluster},request_kind="readOnly"}`, values[at + kinds.READ_ONLY] ?? 0)
    this.#into.add(families.INFLIGHT, `{${cluster},request_kind="mutating"}`, values[at + kinds.MUTATING] ?? 0)
    this.#into.addHistogram(families.ADDED, cluster, values, at + kinds.ADDED, kinds.ADDED_BUCKETS)
    this.#closedSet(families.RETRIES, at + kinds.RETRIES, 'cause', kinds.RETRY_CAUSES)
    this.#closedSet(families.TOKEN_REVIEWS, at + kinds.TOKEN_REVIEWS, 'result', kinds.REVIEW_RESULTS)
    this.#closedSet(families.TOKEN_CACHE, at + kinds.TOKEN_CACHE, 'result', kinds.CACHE_RESULTS)
    this.#closedSet(families.ACCESS_REVIEWS, at + kinds.ACCESS_REVIEWS, 'result', kinds.REVIEW_RESULTS)
  }

  /** Counters of a closed set of names, those that have counted. */
  #closedSet(family: Family, at: number, label: string, names: readonly string[]): void {
    for (const [index, name] of names.entries()) {
      const value = this.#snapshot.values[at + index] ?? 0
      if (value > 0) this.#add(family, this.#cluster, value, label, name)
    }
  }

  #table(kind: number, name: string, second: number, at: number): void {
    const { names, values } = this.#snapshot
    const value = values[at] ?? 0
    const table = TABLES.get(kind)
    if (table !== undefined) {
      this.#add(table[0], this.#cluster, value, table[1], name)
    } else if (kind === kinds.REFUSAL) {
      const labels = `${this.#cluster},${formatLabel('reason', name)}`
      this.#add(families.REFUSALS, labels, value, 'rule', names[second] ?? '')
    } else if (kind === kinds.UPSTREAM) {
      const labels = `${this.#cluster},${formatLabel('endpoint', name)}`
      this.#add(families.UPSTREAM, labels, value, 'code', second < 0 ? 'other' : `${second}`)
    } else if (kind === kinds.FLOW) {
      if ((values[at + kinds.IS_SET] ?? 0) > 0) this.#add(families.FLOW_INFLIGHT, this.#cluster, value, 'schema', name)
    } else if (this.#endpoints.has(name)) {
      this.#endpoint(kind, `${this.#cluster},${formatLabel('endpoint', name)}`, second, at)
    }
  }

  #endpoint(kind: number, labels: string, second: number, at: number): void {
    const { names, values } = this.#snapshot
    const value = values[at] ?? 0
    if (kind === kinds.EJECTION) this.#into.add(families.EJECTIONS, `{${labels}}`, value)
    if (kind === kinds.CONNECTIONS && (values[at + kinds.IS_SET] ?? 0) > 0) {
      this.#add(families.UPSTREAM_CONNECTIONS, labels, value, 'class', names[second] ?? '')
    }
    if (kind !== kinds.POOL) return
    for (const [index, field] of kinds.POOL_FIELDS.entries()) {
      const count = values[at + index] ?? 0
      if (field === 'opened') this.#into.add(families.UPSTREAM_OPENED, `{${labels}}`, count)
      else if (field === 'connectFailed') this.#into.add(families.UPSTREAM_FAILED, `{${labels}}`, count)
      else this.#add(families.UPSTREAM_CLOSED, labels, count, 'cause', kebabCase(field.replace(/^closedBy/, '')))
    }
  }

  #add(family: Family, labels: string, value: number, name: string, text: string): void {
    this.#into.add(family, `{${labels},${formatLabel(name, text)}}`, value)
  }
}

/** The lines of what belongs to no cluster. */
export function exposeProcess(into: Exposition, { names, rows, values }: StoreSnapshot): void {
  for (let row = 0; row < rows.length / ROW_FIELDS; row++) {
    const [kind = 0, first = 0, , at = 0] = rows.subarray(row * ROW_FIELDS, (row + 1) * ROW_FIELDS)
    const name = names[first] ?? ''
    const value = values[at] ?? 0
    if (kind === kinds.CLIENTS) into.add(families.CLIENT_CONNECTIONS, `{${formatLabel('protocol', name)}}`, value)
    else if (kind === kinds.HANDSHAKES) into.add(families.HANDSHAKE_ERRORS, '', value)
    else if (kind === kinds.REFUSED_CLIENTS) into.add(families.CLIENTS_REFUSED, '', value)
    else if (kind === kinds.LOG) into.add(families.LOG_LINES_DROPPED, `{${formatLabel('log', name)}}`, value)
    else if (kind === kinds.HTTP2) exposeHttp2(into, formatLabel('side', name), values, at)
  }
}

function exposeHttp2(into: Exposition, side: string, values: Float64Array, at: number): void {
  for (const [index, field] of kinds.HTTP2_FIELDS.entries()) {
    const value = values[at + index] ?? 0
    const other = OTHER_HTTP2.get(field)
    if (other === undefined) into.add(families.HTTP2_ABUSE, `{${side},${formatLabel('kind', kebabCase(field))}}`, value)
    else into.add(other[0], `{${side}${other[1]}}`, value)
  }
}

/** Counters of HTTP/2 that are no abuse, with their own label. */
const OTHER_HTTP2: ReadonlyMap<string, readonly [Family, string]> = new Map([
  ['connectionsOpened', [families.HTTP2_OPENED, '']],
  ['connectionsClosed', [families.HTTP2_CLOSED, '']],
  ['goawayReceived', [families.HTTP2_GOAWAY, ',direction="received"']],
  ['goawaySent', [families.HTTP2_GOAWAY, ',direction="sent"']],
  ['streamsRefused', [families.HTTP2_REFUSED, '']],
  ['headsNotSent', [families.HTTP2_HEADS_NOT_SENT, '']],
  ['pingTimeouts', [families.HTTP2_TIMEOUTS, ',frame="ping"']],
  ['idleTimeouts', [families.HTTP2_TIMEOUTS, ',frame="headers"']],
  ['settingsTimeouts', [families.HTTP2_TIMEOUTS, ',frame="settings"']],
])

/** `rapidReset` -> `rapid-reset`. */
function kebabCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter, at: number) => `${at === 0 ? '' : '-'}${letter.toLowerCase()}`)
}
