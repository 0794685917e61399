// The metrics of the process, as the main thread exposes them: the counts of all threads (recorder.ts), what only the main thread knows
// (main-thread-series.ts), and the process itself (node-metrics.ts).

import { inStep } from '../../kit/io/stalls/steps.ts'
import type { RequestRecord } from '../api/request-record.ts'
import { formatLabel, METRIC_SCOPES, METRIC_VERBS, VERB_WATCH } from '../core/cluster/metric-labels.ts'
import { LONG_RUNNING, table, VERB, WATCHERS } from './descriptors.ts'
import { CONTENT_TYPE, type Exposition, expositionText, sharedText } from './exposition.ts'
import { MainFamilies } from './main-families.ts'
import { createMainEvents, type KnownEndpoints, type MainEvents } from './main-thread-series.ts'
import { IS_SET, type Metric, VALUE } from './metric.ts'
import { nodeMetrics } from './node-metrics.ts'
import { type ClusterLabels, type MetricsChanges, MetricsRecorder } from './recorder.ts'
import { ROW_FIELDS, type StoreSnapshot } from './series.ts'
import { RESOURCE_NAMES } from './series-limits.ts'
import { MergedStore } from './series-merge.ts'

/** Rows between two pauses: about a millisecond. */
const ROWS_PER_SLICE = 200

/** Everything that is counted. Events on the main thread are counted by `recorder` or reported here. */
export interface GatewayMetrics extends MainEvents {
  /** Call it whenever clusters are added, changed or removed; unknown clusters are counted as ''. */
  clustersChanged(changed: readonly ClusterLabels[], removed?: readonly string[]): void
  /** Counts the request as in flight (or long-running) until `observe`; cluster and request info are known. */
  requestStarted(record: RequestRecord): void
  /** Once per request, at its end; also for requests that `requestStarted` was not called for. */
  observe(record: RequestRecord): void
  /** Called before every scrape, to set gauges whose state lives elsewhere, or to collect the threads' counts. */
  beforeScrape(update: () => void | Promise<void>): void
  /** Counts events on the main thread. */
  readonly recorder: MetricsRecorder
  /** Metrics of the scale-up guards. */
  readonly families: MainFamilies
  /** Counts of the other threads. */
  readonly threads: ThreadMetrics
  /** The clusters whose sums over all threads have changed since the last call. */
  changes(): Promise<ClusterChanges>
  expose(into: Exposition): Promise<void>
  /** Everything in the Prometheus text format. Concurrent calls share one rendering. */
  text(): Promise<string>
  readonly contentType: string
}

/** Sums over all threads. */
export interface MetricsSums {
  readonly process: StoreSnapshot
  readonly clusters: readonly StoreSnapshot[]
}

export interface ClusterChanges {
  /** The new sums. */
  readonly changed: readonly StoreSnapshot[]
  /** False if the cluster has been removed. */
  has(cluster: string): boolean
}

/** Clusters summed up per turn of the event loop: about a millisecond. */
const CLUSTERS_AT_ONCE = 50
/** The main thread's number. */
const MAIN_THREAD = 0

/** All counters at zero; instances share nothing but the process they measure. */
export function createMetrics(): GatewayMetrics {
  const families = new MainFamilies()
  const exposeNode = nodeMetrics()
  const { events, forget, forgetCluster } = createMainEvents(families)
  const recorder = new MetricsRecorder()
  const threads = new ThreadMetrics()
  const updates: (() => void | Promise<void>)[] = []
  const known = new Map<string, ReadonlySet<string>>()
  const expose = async (into: Exposition): Promise<void> => {
    for (const update of updates) await update()
    threads.latest(MAIN_THREAD, recorder.changes())
    const { process: own, clusters } = await threads.mergedWithPauses()
    for (const cluster of clusters) await exposeCluster(into, cluster, known, yieldToEventLoop)
    exposeProcess(into, own)
    families.expose(into)
    await exposeNode(into)
  }
  return {
    ...events,
    // A probe may finish after its endpoint was removed.
    endpointHealth: (cluster, endpoint, healthy) => {
      if (known.get(cluster)?.has(endpoint) === true) events.endpointHealth(cluster, endpoint, healthy)
    },
    clustersChanged: (changed, removed = []) => {
      for (const name of removed) {
        forget(name, known.get(name) ?? new Set())
        known.delete(name)
        forgetCluster(name)
      }
      for (const { name, endpoints } of changed) {
        const next = new Set(endpoints)
        forget(
          name,
          [...(known.get(name) ?? [])].filter((endpoint) => !next.has(endpoint)),
        )
        known.set(name, next)
      }
      recorder.clustersChanged(changed, removed)
      threads.retain(known, removed)
    },
    requestStarted: (record) => recorder.requestStarted(record),
    observe: (record) => recorder.observe(record),
    beforeScrape: (update) => {
      updates.push(update)
    },
    recorder,
    families,
    threads,
    changes: () => threads.changes(),
    expose,
    text: sharedText(() => expositionText(expose)),
    contentType: CONTENT_TYPE,
  }
}

function yieldToEventLoop(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

/** What a thread has told so far. */
interface ThreadStores {
  process: StoreSnapshot
  /** By name. */
  readonly clusters: Map<string, StoreSnapshot>
}

/** Sums over all threads. Counters of a dead thread stay in the sum, its gauges do not. */
export class ThreadMetrics {
  readonly #process = new MergedStore('')
  #clusters = new Map<string, MergedStore>()
  readonly #latest = new Map<number, ThreadStores>()
  readonly #dead = new Set<number>()
  /** Clusters whose sums have changed since the last `changes`. */
  #changed = new Set<string>()
  #known: { has(cluster: string): boolean } | undefined

  /** From now on accepts only these clusters (and ''), and drops `removed`. Until it is called, all are accepted. */
  retain(known: { has(cluster: string): boolean }, removed: Iterable<string>): void {
    this.#known = known
    for (const name of removed) {
      this.#clusters.delete(name)
      this.#changed.delete(name)
    }
  }

  /** `thread`: a number that is never reused, such as worker.threadId. Calls after `died` are ignored. */
  latest(thread: number, { process, clusters, removed }: MetricsChanges): void {
    if (this.#dead.has(thread)) return
    const stores = this.#latest.get(thread) ?? { process, clusters: new Map<string, StoreSnapshot>() }
    this.#latest.set(thread, stores)
    stores.process = process
    for (const name of removed) stores.clusters.delete(name)
    for (const each of clusters) stores.clusters.set(each.cluster, each)
    for (const name of removed) this.#change(name)
    for (const { cluster } of clusters) this.#change(cluster)
  }

  /** The thread has ended: the counts of its last snapshot are kept. */
  died(thread: number): void {
    this.#dead.add(thread)
    const last = this.#latest.get(thread)
    this.#latest.delete(thread)
    if (last === undefined) return
    this.#process.keep(thread, last.process)
    for (const [name, snapshot] of last.clusters) {
      if (this.#takes(name)) this.#store(name).keep(thread, snapshot)
      this.#change(name)
    }
  }

  merged(): MetricsSums {
    const process = this.#ownSum()
    const steps = this.#sums(this.#names())
    for (;;) {
      const step = steps.next()
      if (step.done) return { process, clusters: step.value }
    }
  }

  /** The same, a few clusters per turn of the event loop: thousands of them take tens of milliseconds. */
  async mergedWithPauses(): Promise<MetricsSums> {
    const process = this.#ownSum()
    return { process, clusters: await this.#sumsWithPauses(this.#names()) }
  }

  /** For one caller: a second one would miss what the first has taken. */
  async changes(): Promise<ClusterChanges> {
    const names = this.#changed
    this.#changed = new Set()
    return { changed: await this.#sumsWithPauses(names), has: (cluster) => this.#takes(cluster) }
  }

  async #sumsWithPauses(names: ReadonlySet<string>): Promise<readonly StoreSnapshot[]> {
    const steps = this.#sums(names)
    for (;;) {
      const step = inStep('report', () => steps.next())
      if (step.done) return step.value
      await yieldToEventLoop()
    }
  }

  #ownSum(): StoreSnapshot {
    return this.#process.sum(new Map([...this.#latest].map(([thread, { process }]) => [thread, process])))
  }

  /** All clusters that any thread has counted. */
  #names(): ReadonlySet<string> {
    const names = new Set(this.#clusters.keys())
    for (const { clusters } of this.#latest.values()) for (const name of clusters.keys()) names.add(name)
    return names
  }

  /** Yields between clusters. */
  *#sums(names: ReadonlySet<string>): Generator<undefined, readonly StoreSnapshot[]> {
    const sums: StoreSnapshot[] = []
    for (const name of names) {
      // Removed in the meantime.
      if (!this.#takes(name)) continue
      const threads = new Map<number, StoreSnapshot>()
      for (const [thread, { clusters }] of this.#latest) {
        const snapshot = clusters.get(name)
        if (snapshot !== undefined) threads.set(thread, snapshot)
      }
      sums.push(this.#store(name).sum(threads))
      if (sums.length % CLUSTERS_AT_ONCE === 0) yield
    }
    return sums
  }

  /** Removed ones are left out: a build without the dashboard never takes the changes. */
  #change(cluster: string): void {
    if (this.#takes(cluster)) this.#changed.add(cluster)
  }

  #takes(cluster: string): boolean {
    return cluster === '' || this.#known === undefined || this.#known.has(cluster)
  }

  #store(cluster: string): MergedStore {
    let store = this.#clusters.get(cluster)
    if (store === undefined) {
      store = new MergedStore(cluster)
      this.#clusters.set(cluster, store)
    }
    return store
  }
}

/**
 * The lines of one cluster in the Prometheus text format, without gauges that were not set again, and endpoints that are gone; `pause` lets other
 * work run in between. Unknown endpoints are omitted.
 */
export async function exposeCluster(
  into: Exposition,
  snapshot: StoreSnapshot,
  known: KnownEndpoints,
  pause: () => Promise<void>,
): Promise<void> {
  const text = new StoreText(into, snapshot, known.get(snapshot.cluster) ?? new Set())
  for (let row = 0; row < snapshot.rows.length / ROW_FIELDS; row++) {
    if (row % ROWS_PER_SLICE === ROWS_PER_SLICE - 1) await pause()
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
    const metric = table.metricOf(id)
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
