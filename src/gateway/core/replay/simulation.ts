// Runs the requests of an access log through a configuration, in order of arrival. Time is the log's: tokens are refilled as it passes, and
// a slot is held for as long as the request ran. Clients behave as logged, whatever the outcome: a refused request is not retried.

import { TimeQueue } from '../../../kit/core/queues/time-queue.ts'
import { giveBack, type Held, nothingSent, watchStarted } from '../admission/held.ts'
import type { ClusterIndex } from '../cluster/cluster-index.ts'
import type { CompiledCluster } from '../cluster/compiled-cluster.ts'
import { type Evaluation, type EvaluationInput, evaluateRequest } from '../explain/evaluate-request.ts'
import { freshLimits, type Limits } from '../limits/limits.ts'
import { isWatch } from '../request/long-running.ts'
import type { LogEntry } from './log-entry.ts'
import type { Ordered } from './start-order.ts'

/** Overlaps shorter than the log's resolution do not count: threads agree on the time to a fraction of a millisecond. */
const RESOLUTION_MS = 0.1

interface Running {
  readonly held: Held
  /** When everything is released; a watch releases its slot earlier. */
  readonly endMs: number
  readonly watchStarts: boolean
}

export class Simulation {
  readonly #index: ClusterIndex
  readonly #limits: (cluster: CompiledCluster) => Limits
  readonly #running = new TimeQueue<Running>()
  /** Start of the first request: the origin of the limits' clock. */
  #originMs: number | undefined
  #nowMs = Number.NEGATIVE_INFINITY

  /** @param limits of a cluster; must be the same for all of its requests */
  constructor(index: ClusterIndex, limits: (cluster: CompiledCluster) => Limits) {
    this.#index = index
    this.#limits = limits
  }

  evaluate({ entry, late }: Ordered): Evaluation {
    this.#originMs ??= entry.startMs
    const index = this.#index
    const input = inputOf(entry, index)
    const moment = { nowMs: entry.startMs, monotonicMs: entry.startMs - this.#originMs }
    // For a late request only the rules count: its token or slot would be taken at the wrong time.
    if (late) return evaluateRequest(input, { index, limits: freshLimits, moment })
    this.#nowMs = Math.max(this.#nowMs, entry.startMs)
    this.#giveBackUntil(this.#nowMs + RESOLUTION_MS)
    const found = evaluateRequest(input, { index, limits: this.#limits, moment })
    if (found.held !== undefined) this.#hold(found, found.held, entry)
    return found
  }

  #hold({ refusal, info }: Evaluation, held: Held, entry: LogEntry): void {
    if (refusal?.refused === 'no-endpoint') nothingSent({ held })
    const runs = refusal === undefined
    const endMs = runs ? entry.startMs + Math.max(0, entry.latencyMs) : entry.startMs
    const watch = info !== undefined && isWatch(info)
    const headMs = watch && entry.ttfbMs >= 0 ? Math.min(endMs, entry.startMs + entry.ttfbMs) : endMs
    this.#running.add(headMs, { held, endMs, watchStarts: headMs < endMs })
  }

  #giveBackUntil(ms: number): void {
    while (this.#running.firstMs < ms) {
      const running = this.#running.takeFirst()
      if (running === undefined) return
      if (running.watchStarts) {
        watchStarted(running)
        this.#running.add(running.endMs, { ...running, watchStarts: false })
      } else giveBack(running)
    }
  }
}

/** For logs written before localAddress existed: uses the logged cluster, if it still exists. */
function inputOf({ input, cluster }: LogEntry, index: ClusterIndex): EvaluationInput {
  if (input.localAddress !== '' || cluster === '' || input.target.startsWith('/clusters/')) return input
  return index.byName.has(cluster) ? { ...input, host: cluster } : input
}
