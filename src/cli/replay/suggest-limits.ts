// `portcullis suggest limits`: flow control schemas and dispatch policies from what an access log shows, as YAML in shadow mode.

import { UserError } from '../../api/validation/field-errors.ts'
import { readRequestInfo } from '../../core/admission/steps.ts'
import { isRefusal } from '../../core/refusal/refusal.ts'
import type { LogEntry } from '../../core/replay/log-entry.ts'
import type { RequestInfo } from '../../core/request/request-info.ts'
import { originForm } from '../../core/request/request-target.ts'
import { DemandMeter } from '../../core/suggest/measure.ts'
import { type SuggestOptions, suggestLimits, tooLittle } from '../../core/suggest/suggest-limits.ts'
import { suggestionYaml } from '../../core/suggest/suggestion-yaml.ts'
import { parseDuration } from '../../core/text/duration.ts'
import type { Output } from '../command/output.ts'
import { emptyReading, readLog } from './read-log.ts'

export interface SuggestLimitsOptions extends Output {
  /** Path of the access log; `-` = `input`. */
  readonly log: string
  /** Only this UpstreamCluster. Default: all that the log names. */
  readonly cluster?: string
  /** A number, 1 or more. */
  readonly headroom: string
  readonly minDuration: string
  readonly minRequests: number
  readonly input: AsyncIterable<string>
}

/** @returns the exit code: 1 when there is a cluster of which too little was seen, or none at all */
export async function suggestLimitsCommand(options: SuggestLimitsOptions): Promise<number> {
  const { log, cluster, input, out, err } = options
  const limits = limitsOf(options)
  const meter = new DemandMeter()
  const reading = emptyReading()
  for await (const ordered of readLog(log, input, reading)) {
    const { entry } = ordered
    if (entry.user === '' || entry.cluster === '' || (cluster !== undefined && entry.cluster !== cluster)) continue
    const info = infoOf(entry)
    if (info !== undefined) meter.add(ordered, info)
  }
  if (reading.damaged > 0) err(`warning: ${reading.damaged} damaged lines were left out\n`)
  if (meter.clusters.length === 0) {
    const of = cluster === undefined ? 'an UpstreamCluster' : `UpstreamCluster ${JSON.stringify(cluster)}`
    throw new UserError(`${log} has no request of a known user to ${of}`, 'is it the access log of a gateway?')
  }
  let code = 0
  let written = 0
  for (const demand of meter.clusters) {
    const problem = tooLittle(demand, limits)
    if (problem !== '') {
      err(`error: nothing is suggested for ${JSON.stringify(demand.name)}: ${problem}\n`)
      code = 1
      continue
    }
    if (demand.late > 0)
      err(`warning: ${demand.late} requests were out of order by more than a minute, and are not in the peaks\n`)
    out(`${written++ > 0 ? '---\n' : ''}${suggestionYaml(suggestLimits(demand, limits), demand)}`)
  }
  return code
}

function limitsOf({ headroom, minDuration, minRequests }: SuggestLimitsOptions): SuggestOptions {
  const factor = Number(headroom)
  if (!(factor >= 1 && factor <= 100))
    throw new UserError(`--headroom ${headroom} is not a number from 1 to 100`, 'write 1.5')
  const minDurationMs = parseDuration(minDuration)
  if (minDurationMs === undefined || minDurationMs < 0) {
    throw new UserError(`--min-duration ${minDuration} is not a duration`, 'write 24h')
  }
  return { headroom: factor, minDurationMs, minRequests }
}

const PREFIX = /^\/clusters\/[^/?]+/

/** Of the target as upstream gets it: without the prefix that names a cluster. */
function infoOf({ input: { method, target } }: LogEntry): RequestInfo | undefined {
  const plain = originForm(target).replace(PREFIX, '')
  const info = readRequestInfo(method, plain.startsWith('/') ? plain : `/${plain}`)
  return isRefusal(info) ? undefined : info
}
