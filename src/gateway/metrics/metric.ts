// Metric descriptors, and how rows of numbers derive from them.

/**
 * How threads' numbers are merged: `kept` is summed and survives the thread; `live` is summed and disappears with the thread; `perSnapshot` is
 * `live`, but shown only if it was set again since the last snapshot.
 */
type Merge = 'kept' | 'live' | 'perSnapshot'

/** Naming and merging of rows of one kind: each metric is a kind. */
export interface RowKind {
  /** Index into the table's kinds. */
  readonly id: number
  /** Numbers per row. */
  readonly width: number
  readonly merge: Merge
  /** Meaning of a row's `first`: an index into the names, the row it belongs to, or nothing. */
  readonly first: 'name' | 'row' | 'none'
  /** Meaning of a row's `second`: an index into the names, or a number that is the same in every thread. */
  readonly second: 'name' | 'number'
  /** Maximum rows of this kind per store; the rest is counted together as `other`. */
  readonly limit: number
  /** All label names, in order. */
  readonly labels: readonly string[]
}

/** Name, type and help of one metric. */
interface Family {
  readonly name: string
  readonly type: 'counter' | 'gauge' | 'histogram'
  readonly help: string
}

/** One metric. `Values`: types of its label values, in the order of `labels`. */
export interface Metric<Values extends readonly string[] = readonly string[]> extends Family, RowKind {
  /** The first label is the cluster: it is counted in each cluster's store, else in that of the process. */
  readonly perCluster: boolean
  /** Labels of the row itself: not the cluster, nor those of the row it belongs to. */
  readonly ownLabels: readonly string[]
  /** Upper bounds of the buckets; empty unless it is a histogram. */
  readonly bounds: Float64Array
  /** Rows of endpoints that are not in the configuration are hidden. */
  readonly knownEndpoints: boolean
  /** Type-only, never set: carries the types of the label values. */
  readonly values?: Values
}

interface MetricOptions {
  /** Default: `live` for gauges, `kept` for others. */
  readonly merge?: Merge
  /** Default: MAX_TABLE_ROWS. */
  readonly limit?: number
  /** Default: false. */
  readonly knownEndpoints?: boolean
  /** Its rows belong to rows of this kind, whose labels come first. Default: independent rows. */
  readonly of?: RowKind
}

type LabelNames<Values extends readonly string[]> = NoInfer<{ readonly [K in keyof Values]: string }>

const PREFIX = 'portcullis_'
/** Maximum rows per metric and store, for names from the configuration (rules, schemas, endpoints). */
export const MAX_TABLE_ROWS = 1000
const NO_BOUNDS: Float64Array = new Float64Array(0)
/** A histogram consists of its count, its sum, and one number per bucket. */
const HISTOGRAM_HEAD = 2

// Offsets in a row of a `perSnapshot` metric.
export const VALUE = 0
export const IS_SET = 1

/** The id of a metric that is not in the table yet. */
const UNPLACED = -1

/** Defines metrics. */
abstract class MetricDefinitions {
  readonly metrics: Metric[] = []

  counter<Values extends readonly string[]>(
    name: string,
    labels: LabelNames<Values>,
    help: string,
    options: MetricOptions = {},
  ): Metric<Values> {
    return this.#define({ name: PREFIX + name, type: 'counter', help }, labels, 1, options)
  }

  gauge<Values extends readonly string[]>(
    name: string,
    labels: LabelNames<Values>,
    help: string,
    options: MetricOptions = {},
  ): Metric<Values> {
    const { merge = 'live' } = options
    const width = merge === 'perSnapshot' ? IS_SET + 1 : 1
    return this.#define({ name: PREFIX + name, type: 'gauge', help }, labels, width, { ...options, merge })
  }

  histogram<Values extends readonly string[]>(
    name: string,
    labels: LabelNames<Values>,
    help: string,
    bounds: Float64Array,
    options: MetricOptions = {},
  ): Metric<Values> {
    const family: Family = { name: PREFIX + name, type: 'histogram', help }
    return this.#define(family, labels, HISTOGRAM_HEAD + bounds.length, options, bounds)
  }

  #define<Values extends readonly string[]>(
    family: Family,
    labels: readonly string[],
    width: number,
    options: MetricOptions,
    bounds = NO_BOUNDS,
  ): Metric<Values> {
    const { of, merge = 'kept', limit = MAX_TABLE_ROWS, knownEndpoints = false } = options
    const perCluster = labels[0] === 'cluster'
    const ownLabels = labels.slice(of?.labels.length ?? (perCluster ? 1 : 0))
    const metric: Metric<Values> = {
      ...family,
      id: this.nextId(),
      width,
      merge,
      first: of !== undefined ? 'row' : ownLabels.length > 0 ? 'name' : 'none',
      // Codes are numbers; a row that belongs to another has no further names.
      second: of !== undefined || ownLabels[1] === undefined || ownLabels[1] === 'code' ? 'number' : 'name',
      limit: of === undefined ? limit : Number.POSITIVE_INFINITY,
      labels,
      perCluster,
      ownLabels,
      bounds,
      knownEndpoints,
    }
    this.place(metric)
    return metric
  }

  protected abstract nextId(): number
  protected abstract place(metric: Metric): void
}

/**
 * Metrics of a subject that can be left out. They get their ids from the list of subjects, which adds them to the table (`append`): ids must be the same in
 * all threads, and in which order a bundle evaluates modules differs between its entry points.
 */
export class SubjectMetrics extends MetricDefinitions {
  protected nextId(): number {
    return UNPLACED
  }

  protected place(metric: Metric): void {
    this.metrics.push(metric)
  }
}

/** All metrics that threads count, in the order of their definition. */
export class MetricTable extends MetricDefinitions {
  readonly kinds: RowKind[] = []
  readonly #byId = new Map<number, Metric>()

  /** undefined = the rows have no numbers. @param id of a kind of rows */
  metricOf(id: number): Metric | undefined {
    return this.#byId.get(id)
  }

  /** Rows without numbers, whose labels apply to the rows that belong to them. */
  labelRows(labels: readonly string[], first: RowKind['first']): RowKind {
    const limit = Number.POSITIVE_INFINITY
    const kind: RowKind = { id: this.kinds.length, width: 0, merge: 'kept', first, second: 'number', limit, labels }
    this.kinds.push(kind)
    return kind
  }

  /** Adds the metrics of a subject; only the list of subjects does. @throws if they are there already */
  append({ metrics }: SubjectMetrics): void {
    for (const metric of metrics) {
      if (metric.id !== UNPLACED) throw new Error(`${metric.name} is in the table already`)
      Object.assign(metric, { id: this.nextId() })
      this.place(metric)
    }
  }

  protected nextId(): number {
    return this.kinds.length
  }

  protected place(metric: Metric): void {
    this.kinds.push(metric)
    this.#byId.set(metric.id, metric)
    this.metrics.push(metric)
  }
}
