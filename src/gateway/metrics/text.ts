// Renders a snapshot in the Prometheus text format, without gauges that were not set again, and endpoints that are gone.

import { formatLabel, METRIC_SCOPES, METRIC_VERBS, VERB_WATCH } from '../core/cluster/metric-labels.ts'
import { LONG_RUNNING, METRICS, VERB, WATCHERS } from './descriptors.ts'
import type { KnownEndpoints } from './event-metrics.ts'
import type { Exposition } from './exposition.ts'
import { IS_SET, type Metric, VALUE } from './metric.ts'
import { ROW_FIELDS, type StoreSnapshot } from './series.ts'
import { RESOURCE_NAMES } from './series-limits.ts'

/** Rows between two pauses: about a millisecond. */
const ROWS_PER_TURN = 200
const METRIC_OF: ReadonlyMap<number, Metric> = new Map(METRICS.map((metric) => [metric.id, metric]))

/** The lines of one cluster; `pause` lets other work run in between. Unknown endpoints are omitted. */
export async function exposeCluster(
  into: Exposition,
  snapshot: StoreSnapshot,
  known: KnownEndpoints,
  pause: () => Promise<void>,
): Promise<void> {
  const text = new StoreText(into, snapshot, known.get(snapshot.cluster) ?? new Set())
  for (let row = 0; row < snapshot.rows.length / ROW_FIELDS; row++) {
    if (row % ROWS_PER_TURN === ROWS_PER_TURN - 1) await pause()
    text.row(row)
  }
  text.end()
}

/** The lines that belong to no cluster. */
export function exposeProcess(into: Exposition, snapshot: StoreSnapshot): void {
  const text = new StoreText(into, snapshot, new Set())
  for (let row = 0; row < snapshot.rows.length / ROW_FIELDS; row++) text.row(row)
}

class StoreText {
  readonly #into: Exposition
  readonly #snapshot: StoreSnapshot
  readonly #endpoints: ReadonlySet<string>
  readonly #cluster: string
  /** Labels of verb rows, to which other rows belong. */
  readonly #labels = new Map<number, string>()
  /** Labels of WATCHERS, for the rows of the verb watch. */
  readonly #watched = new Map<number, string>()
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
    const [id = 0, first = 0, second = 0, offset = 0] = rows.subarray(at, at + ROW_FIELDS)
    const metric = METRIC_OF.get(id)
    if (metric !== undefined) this.#metric(metric, first, second, offset)
    else if (id === VERB.id) this.#verb(row, first, second)
    const watched = metric === LONG_RUNNING ? this.#watched.get(first) : undefined
    if (watched !== undefined) {
      this.#watchers.set(watched, (this.#watchers.get(watched) ?? 0) + (values[offset] ?? 0))
    }
  }

  /** Adds the series that depend on all rows. */
  end(): void {
    for (const [labels, count] of this.#watchers) this.#into.add(WATCHERS, labels, count)
  }

  #metric(metric: Metric, first: number, second: number, at: number): void {
    const { names, values } = this.#snapshot
    if (metric.merge === 'perSnapshot' && (values[at + IS_SET] ?? 0) === 0) return
    if (metric.knownEndpoints && !this.#endpoints.has(names[first] ?? '')) return
    const labels = this.#labelsOf(metric, first, second)
    if (metric.type === 'histogram') this.#into.addHistogram(metric, labels, values, at)
    else this.#into.add(metric, labels === '' ? '' : `{${labels}}`, values[at + VALUE] ?? 0)
  }

  #labelsOf({ perCluster, first, second, ownLabels }: Metric, a: number, b: number): string {
    const { names } = this.#snapshot
    const number = b < 0 ? 'other' : String(b)
    if (first === 'row') {
      const [label] = ownLabels
      const shared = this.#labels.get(a) ?? ''
      return label === undefined ? shared : `${shared},${formatLabel(label, number)}`
    }
    const [one, two] = ownLabels
    let labels = perCluster ? this.#cluster : ''
    if (one !== undefined) labels += `${labels === '' ? '' : ','}${formatLabel(one, names[a] ?? '')}`
    if (two !== undefined) labels += `,${formatLabel(two, second === 'name' ? (names[b] ?? '') : number)}`
    return labels
  }

  /** Labels for the rows that belong to this one. */
  #verb(row: number, resource: number, index: number): void {
    const { names, rows } = this.#snapshot
    const verb = Math.floor(index / METRIC_SCOPES.length)
    const first = rows[resource * ROW_FIELDS + 1] ?? 0
    const [group = '', version = '', name = '', subresource = ''] = names.slice(first, first + RESOURCE_NAMES)
    const kind = `${formatLabel('group', group)},${formatLabel('version', version)},${formatLabel('resource', name)}`
    const ends = `${formatLabel('subresource', subresource)},${formatLabel('scope', METRIC_SCOPES[index % METRIC_SCOPES.length] ?? '')}`
    this.#labels.set(row, `${this.#cluster},${formatLabel('verb', METRIC_VERBS[verb] ?? 'other')},${kind},${ends}`)
    if (verb !== VERB_WATCH) return
    const watched = `{${this.#cluster},${kind}}`
    this.#watched.set(row, watched)
    if (!this.#watchers.has(watched)) this.#watchers.set(watched, 0)
  }
}
