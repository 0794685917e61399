// `portcullis replay`: what another configuration would have done with the requests of an access log.

import { compare, isEvaluable, outcomeOfLog, outcomeText } from '../../core/replay/outcome.ts'
import type { Simulation } from '../../core/replay/simulation.ts'
import type { Ordered } from '../../core/replay/start-order.ts'
import { ReplaySummarizer } from '../../core/replay/summary.ts'
import { safeJson } from '../../core/text/printable.ts'
import type { ServedClustersOptions } from '../client/served-clusters.ts'
import { simulationOfFiles, simulationOfServer } from './config.ts'
import { emptyReading, readLog } from './read-log.ts'
import { replayReport } from './report.ts'

export interface ReplayOptions extends Omit<ServedClustersOptions, 'configDir'> {
  /** Path of the access log; `-` = `input`. */
  readonly log: string
  /** Directory or file of UpstreamClusters. Default: the API server that kubeconfig and context name. */
  readonly config?: string
  /** Directory or file with which it is compared. Default: what the log says was done. */
  readonly compare?: string
  readonly output: 'text' | 'json'
  readonly failOnChange: boolean
  readonly input: AsyncIterable<string>
}

/** @returns the exit code: with failOnChange 2 when a request would get another answer; 1 when nothing could be read */
export async function replay(options: ReplayOptions): Promise<number> {
  const { log, config, output, failOnChange, out } = options
  const simulation = config === undefined ? await simulationOfServer(options) : await simulationOfFiles(config)
  if (simulation === undefined) return 1
  const baseline = options.compare === undefined ? undefined : await simulationOfFiles(options.compare)
  const reading = emptyReading()
  const summarizer = new ReplaySummarizer(baseline === undefined)
  for await (const ordered of readLog(log, options.input, reading)) addTo(summarizer, ordered, simulation, baseline)
  const summary = summarizer.summary()
  out(output === 'json' ? `${safeJson({ log, ...reading, ...summary })}\n` : replayReport(log, reading, summary))
  if (summary.requests === 0) return 1
  return failOnChange && summary.changed > 0 ? 2 : 0
}

function addTo(
  summarizer: ReplaySummarizer,
  ordered: Ordered,
  simulation: Simulation,
  baseline: Simulation | undefined,
): void {
  const { entry, late } = ordered
  if (!isEvaluable(entry)) {
    summarizer.add(entry, late, undefined, '')
    return
  }
  const logged = outcomeOfLog(entry)
  const was = baseline === undefined ? logged : compare(logged, baseline.evaluate(ordered)).wouldBe
  const found = simulation.evaluate(ordered)
  const comparison = compare(was, found)
  const refusedBy = found.refusal?.message ?? found.warnings.join('; ')
  const message = refusedBy === '' ? outcomeText(comparison.wouldBe) : refusedBy
  summarizer.add(entry, late, comparison, message)
}
