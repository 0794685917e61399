// Top talkers over all threads: counts are collected every ten seconds, and on request.

import { setTimeout as sleep } from 'node:timers/promises'
import type { Exposition } from '../../../gateway/metrics/exposition.ts'
import type { Clock } from '../../../kit/api/ports.ts'
import { type AsksThreads, Question } from '../../../kit/core/topics/questions.ts'
import { DIMENSIONS, type Dimension } from '../../../process/api/dimensions.ts'
import { DEFAULT_QUERY, type TopQuery } from '../../core/top/query.ts'
import { type TopReport, topReport } from '../../core/top/report.ts'
import type { TrafficSketch } from '../../core/top/traffic.ts'
import { TopWindows } from '../../core/top/windows.ts'
import { exposeTop } from '../../metrics/top-series.ts'

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
