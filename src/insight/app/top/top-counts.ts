// Top talkers over all threads: counts are collected every ten seconds, and on request.

import { setTimeout as sleep } from 'node:timers/promises'
import { mergedRoute, type Replicas } from '../../../admin/app/replicas/replicas.ts'
import { type AdminRoute, PLAIN_TEXT } from '../../../admin/io/server/route.ts'
import type { CachedResourceInForce } from '../../../gateway/api/upstream-cluster/read-cache/read-cache-in-force.ts'
import type { Exposition } from '../../../gateway/metrics/exposition.ts'
import type { Clock } from '../../../kit/api/ports.ts'
import { type AsksThreads, Question } from '../../../kit/core/topics/questions.ts'
import { DIMENSIONS, type Dimension } from '../../../process/api/dimensions.ts'
import { answeredReads, mostAnswered } from '../../core/top/answered-reads.ts'
import { DEFAULT_QUERY, MAX_LIMIT, readTopQuery, type TopQuery } from '../../core/top/query.ts'
import { sumOfReports, type TopReport, topReport } from '../../core/top/report.ts'
import { isTopAnswer } from '../../core/top/top-lines.ts'
import type { TrafficSketch } from '../../core/top/traffic.ts'
import { TopWindows } from '../../core/top/windows.ts'
import { TOP_BYTES, TOP_REFUSED, TOP_REQUESTS, TOP_UPSTREAM_SECONDS } from '../../metrics/descriptors.ts'
import { type ClustersHere, chosenNames, clusterNames } from '../choice/chosen-names.ts'

/** The thread's counts since it was asked last. */
export const TAKE_COUNTS = new Question<undefined, TrafficSketch>('top')

const EVERY_MS = 10_000
/** Counts handed over by a thread are lost if nothing awaits them. */
const ANSWER_MS = 30_000
/** A request does not wait longer for a busy thread: its counts are part of the next answer. */
const WAIT_MS = 1_000
/** Maximum age of returned numbers: each collection costs the threads a millisecond or two. */
const FRESH_MS = 1_000

interface TopCountsDeps {
  readonly pool: AsksThreads
  readonly clock: Pick<Clock, 'monotonic'>
  /** Dimensions whose top ten become metrics. */
  readonly exposed: readonly Dimension[]
}

export class TopCounts {
  readonly name = 'top'
  readonly #deps: TopCountsDeps
  readonly #windows: TopWindows
  #timer: NodeJS.Timeout | undefined
  #fetching: Promise<void> | undefined
  #fetchedMs: number

  constructor(deps: TopCountsDeps) {
    this.#deps = deps
    this.#fetchedMs = deps.clock.monotonic()
    this.#windows = new TopWindows(this.#fetchedMs)
  }

  start(): void {
    this.#timer = setInterval(() => void this.#fetch(), EVERY_MS).unref()
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  /** At most FRESH_MS old. @param chosen names that the choice of the query stands for; undefined = it has none */
  async report(query: TopQuery, chosen: readonly string[] | undefined): Promise<TopReport> {
    const old = this.#deps.clock.monotonic() - this.#fetchedMs >= FRESH_MS
    if (old || this.#fetching !== undefined)
      await Promise.race([this.#fetch(), sleep(WAIT_MS, undefined, { ref: false })])
    return this.#reportNow(query, chosen)
  }

  /** Top ten of each exposed dimension in the last five minutes, from the last collection. */
  exposeMetrics(into: Exposition): void {
    const firstTen = (by: Dimension): TopReport =>
      this.#reportNow({ ...DEFAULT_QUERY, by, minutes: 5, limit: 10 }, undefined)
    exposeTop(into, this.#deps.exposed.map(firstTen))
  }

  #reportNow(query: TopQuery, chosen: readonly string[] | undefined): TopReport {
    const { by, minutes, cluster } = query
    const only = chosen ?? (cluster === '' ? [] : [cluster])
    return topReport(query, this.#windows.sum(DIMENSIONS.indexOf(by), minutes, only, this.#fetchedMs), chosen)
  }

  #fetch(): Promise<void> {
    this.#fetching ??= this.#fetchOnce().finally(() => {
      this.#fetching = undefined
    })
    return this.#fetching
  }

  async #fetchOnce(): Promise<void> {
    const answers = await this.#deps.pool.ask(TAKE_COUNTS, undefined, { timeoutMs: ANSWER_MS })
    this.#fetchedMs = this.#deps.clock.monotonic()
    this.#windows.add(
      this.#fetchedMs,
      answers.map(({ answer }) => answer),
    )
  }
}

// The top ten users, resources and so on as metrics. The only labels taken from requests: each must be enabled by name (--top-metrics), and is
// limited to ten values.

const MAX_NAMES = 10

/** Rates over the period of a report. */
function exposeTop(into: Exposition, reports: readonly TopReport[]): void {
  for (const { by, rows, seconds } of reports) {
    if (seconds === 0) continue
    for (const { name, requests, refused, bytes, upstreamSeconds } of rows.slice(0, MAX_NAMES)) {
      const label = name.toWellFormed()
      into.addMetric(TOP_REQUESTS, requests / seconds, by, label)
      into.addMetric(TOP_REFUSED, refused / seconds, by, label)
      into.addMetric(TOP_BYTES, bytes / seconds, by, label)
      into.addMetric(TOP_UPSTREAM_SECONDS, upstreamSeconds / seconds, by, label)
    }
  }
}

// `/api/v1/top`: top talkers, at this replica or at all.

interface TopDeps {
  readonly clusters: ClustersHere
  readonly replicas: Replicas
  /** undefined = not counted. */
  readonly top: TopCounts | undefined
  /** Resources of a cluster whose reads are answered here. */
  cached(cluster: string): readonly CachedResourceInForce[]
}

const PATH = '/api/v1/top'

export function topRoute({ replicas, top, clusters, cached }: TopDeps): AdminRoute {
  const answeredOf = (names: Iterable<string>): Pick<TopReport, 'answered'> => {
    const all = [...names].flatMap((name) => answeredReads(name, cached(name)) ?? [])
    return all.length === 0 ? {} : { answered: mostAnswered(all) }
  }
  return {
    path: PATH,
    method: 'GET',
    access: 'view',
    replicas: true,
    answer(request, user) {
      if (top === undefined) return { code: 404, contentType: PLAIN_TEXT, body: 'nothing is counted: --top=false\n' }
      const { query } = request
      const asked = readTopQuery(query)
      if ('problem' in asked) return { code: 400, contentType: PLAIN_TEXT, body: `${asked.problem}\n` }
      const chosen = asked.choice && chosenNames(asked.choice, clusters)
      if (typeof chosen === 'string') return { code: 400, contentType: PLAIN_TEXT, body: `${chosen}\n` }
      const { cluster } = asked
      const all = query.get('replicas') === 'all'
      // The top twenty of each replica are not the overall top twenty.
      const whole = new URLSearchParams(query)
      if (all) whole.set('limit', String(MAX_LIMIT))
      const route = mergedRoute<TopReport>(replicas, {
        path: PATH,
        access: 'view',
        answer: async () => ({
          ...(await top.report({ ...asked, limit: all ? MAX_LIMIT : asked.limit }, chosen)),
          ...answeredOf(chosen ?? (cluster === '' ? clusterNames(clusters) : [cluster])),
        }),
        read: (json) => readReport(json, chosen !== undefined),
        merge: (parts) =>
          sumOfReports(
            asked,
            parts.map(({ part }) => part),
          ),
      })
      return route.answer({ ...request, query: whole }, user)
    },
  }
}

/** A replica of an earlier version knows no choice, and would report on all clusters. */
function readReport(json: unknown, isChosen: boolean): TopReport {
  if (isTopAnswer(json) && (json.clusters !== undefined) === isChosen) return json
  throw new Error('the answer is not a report of this version')
}
