// Settings of tracing: where spans are sent, and which requests are traced.

import { addProblem, isWrong, namesOf } from './setting-problems.ts'
import { decimal, file, integer, settings, text, toggle, type ValuesOf } from './setting-rows.ts'
import { plainUrl } from './setting-values.ts'
import type { SettingsReader } from './settings-reader.ts'

const MILLION = 1_000_000
const MOST_CALLERS = 10_000

export const TRACING = settings({
  /** Base URL of a collector; '' = no tracing. */
  tracingOtlpEndpoint: text(
    '<url>',
    '',
    'collector that receives spans by OTLP over HTTP, such as http://127.0.0.1:4318; default: nothing is traced',
    // Credentials belong in the file of header fields.
    { parse: plainUrl('http://COLLECTOR:4318') },
  ),
  /** '' = the system's CAs. */
  tracingOtlpCaFile: file('CAs (PEM) that verify the collector; default: those of the system'),
  /** '' = none. */
  tracingOtlpHeadersFile: file('header fields for the collector, such as a token: one per line, NAME: VALUE'),
  tracingSamplingRatePerMillion: integer(
    '0',
    0,
    MILLION,
    'requests per million that are traced; for requests with a traceparent, its sampled flag decides',
  ),
  /** Over all threads. */
  tracingCallersPerSecond: decimal(
    '10',
    0,
    MOST_CALLERS,
    'maximum number of requests a second that are traced because of their traceparent; beyond that, the sampled flag is cleared',
  ),
  tracingUserAttributes: toggle(
    false,
    'whether spans have the user and the address of the client, which are personal data',
  ),
})

type TracingConfig = ValuesOf<typeof TRACING>

/** Errors in combinations of settings. */
export function checkTracing(config: TracingConfig, reader: SettingsReader): void {
  const { tracingOtlpEndpoint: endpoint, ...others } = TRACING
  if (config.tracingOtlpEndpoint !== '') {
    const { tracingOtlpCaFile, tracingOtlpEndpoint: url } = config
    if (tracingOtlpCaFile === '' || url.startsWith('https:')) return
    const fix = 'write https instead of http'
    addProblem(reader, others.tracingOtlpCaFile, `has no meaning, because ${endpoint.flag} is not TLS`, fix)
    return
  }
  if (isWrong(reader, endpoint)) return
  const { tracingOtlpCaFile, tracingOtlpHeadersFile, tracingSamplingRatePerMillion: rate } = config
  const useless = [
    tracingOtlpCaFile === '' ? undefined : others.tracingOtlpCaFile,
    tracingOtlpHeadersFile === '' ? undefined : others.tracingOtlpHeadersFile,
    rate === 0 ? undefined : others.tracingSamplingRatePerMillion,
  ]
  for (const other of useless) {
    if (other === undefined) continue
    addProblem(reader, other, `is given without ${endpoint.flag}`, `give ${namesOf(endpoint)} too, or remove it`)
  }
}
