// The settings of traces: where spans go, and of which requests.

import { addProblem, isWrong, namesOf } from './setting-problems.ts'
import { integerBetween, numberBetween, parseSwitch, parseText, type ValueParser } from './setting-values.ts'
import { type Setting, type SettingsReader, setting } from './settings-reader.ts'

export interface TracingConfig {
  /** Base URL of a collector; '' = nothing is traced. */
  readonly tracingOtlpEndpoint: string
  /** '' = the CAs of the system. */
  readonly tracingOtlpCaFile: string
  /** '' = none. */
  readonly tracingOtlpHeadersFile: string
  readonly tracingSamplingRatePerMillion: number
  /** Of all threads together. */
  readonly tracingCallersPerSecond: number
  readonly tracingUserAttributes: boolean
}

const MILLION = 1_000_000
const MOST_CALLERS = 10_000

const parseCollector: ValueParser<string> = (raw) => {
  const parsed = parseText(raw)
  if (!('value' in parsed) || parsed.value === '') return parsed
  // Credentials belong into the file of header fields: a URL is shown.
  if (/^https?:\/\/[^/?#@\s]+(\/[^?#\s]*)?$/.test(parsed.value) && URL.canParse(parsed.value)) return parsed
  return {
    message: 'is not an HTTP URL without credentials and query',
    fix: 'write http://COLLECTOR:4318',
    hidden: true,
  }
}

/** Rows of the table of settings, in the order of help. */
export const TRACING_TABLE: { readonly [Name in keyof TracingConfig]: Setting<TracingConfig[Name]> } = {
  tracingOtlpEndpoint: setting(
    'tracingOtlpEndpoint',
    '<url>',
    '',
    parseCollector,
    'collector that takes spans by OTLP over HTTP, such as http://127.0.0.1:4318; default: nothing is traced',
  ),
  tracingOtlpCaFile: setting(
    'tracingOtlpCaFile',
    '<file>',
    '',
    parseText,
    'CAs (PEM) that verify the collector; default: those of the system',
  ),
  tracingOtlpHeadersFile: setting(
    'tracingOtlpHeadersFile',
    '<file>',
    '',
    parseText,
    'header fields for the collector, such as a token: one a line, NAME: VALUE',
  ),
  tracingSamplingRatePerMillion: setting(
    'tracingSamplingRatePerMillion',
    '<n>',
    '0',
    integerBetween(0, MILLION),
    'requests of a million that are traced; those with a traceparent as that says',
  ),
  tracingCallersPerSecond: setting(
    'tracingCallersPerSecond',
    '<n>',
    '10',
    numberBetween(0, MOST_CALLERS),
    'requests a second that are traced because their traceparent asks for it; others then lose that flag',
  ),
  tracingUserAttributes: setting(
    'tracingUserAttributes',
    '[bool]',
    'false',
    parseSwitch,
    'whether spans have the user and the address of the client, which are personal data',
  ),
}

export function readTracing(reader: SettingsReader): TracingConfig {
  const table = TRACING_TABLE
  return {
    tracingOtlpEndpoint: reader.take(table.tracingOtlpEndpoint, ''),
    tracingOtlpCaFile: reader.take(table.tracingOtlpCaFile, ''),
    tracingOtlpHeadersFile: reader.take(table.tracingOtlpHeadersFile, ''),
    tracingSamplingRatePerMillion: reader.take(table.tracingSamplingRatePerMillion, 0),
    tracingCallersPerSecond: reader.take(table.tracingCallersPerSecond, 0),
    tracingUserAttributes: reader.take(table.tracingUserAttributes, false),
  }
}

/** Errors in combinations of settings. */
export function checkTracing(config: TracingConfig, reader: SettingsReader): void {
  const { tracingOtlpEndpoint: endpoint, ...others } = TRACING_TABLE
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
