// Parses one line of the access log, as far as a replay needs it. Lines are untrusted: a field of a wrong type makes a line invalid, and
// texts longer than our own log writes are cut where they are only displayed.

import { isRecord } from '../../../kit/api/json/object-shape.ts'
import type { EvaluationInput } from '../explain/evaluate-request.ts'

/** A request of the access log. */
export interface LogEntry {
  /** Milliseconds since the epoch when the request head was complete, with fractions if the log has them. */
  readonly startMs: number
  /** Time to the end of the response, and to its head; -1 = not reached. */
  readonly latencyMs: number
  readonly ttfbMs: number
  readonly auditID: string
  /** The request's cluster; '' = none was found. */
  readonly cluster: string
  readonly user: string
  readonly verb: string
  /** With group and subresource: `deployments.apps/scale`; '' for non-resource requests. */
  readonly resource: string
  readonly code: number
  /** RefusalReason, and the rule; '' = not refused by the gateway. */
  readonly reason: string
  readonly refusedBy: string
  /** `filter/rule` of shadow mode refusals. */
  readonly shadow: readonly string[]
  /** Input for `explain`. */
  readonly input: EvaluationInput
}

/** `{ error }` says what is wrong with the line. */
export function parseLogEntry(line: string): LogEntry | { readonly error: string } {
  let fields: unknown
  try {
    fields = JSON.parse(line)
  } catch {
    return { error: 'not JSON' }
  }
  if (!isRecord(fields)) return { error: 'not a JSON object' }
  const wrong = TEXTS.find((name) => !isAbsent(fields[name]) && typeof fields[name] !== 'string')
  if (wrong !== undefined) return { error: `"${wrong}" must be a string` }
  const text = (name: (typeof TEXTS)[number]): string => String(fields[name] ?? '')
  const startMs = exactTime(text('time'))
  if (Number.isNaN(startMs)) return { error: '"time" must be an RFC 3339 time: is it an access log of the gateway?' }
  if (text('method') === '' || text('target') === '') return { error: '"method" and "target" must not be empty' }
  const { groups = [], shadow = [] } = fields
  if (!isStrings(groups)) return { error: '"groups" must be a list of strings' }
  if (!isStrings(shadow)) return { error: '"shadow" must be a list of strings' }
  return {
    startMs,
    latencyMs: numberOf(fields['latencyMs']),
    ttfbMs: numberOf(fields['ttfbMs']),
    auditID: text('auditID'),
    cluster: text('cluster'),
    user: text('user'),
    verb: text('verb'),
    resource: resourceOf(text('resource'), text('apiGroup'), text('subresource')),
    code: numberOf(fields['code']),
    reason: text('reason'),
    refusedBy: text('refusedBy'),
    shadow,
    input: {
      host: text('host'),
      method: text('method'),
      target: text('target'),
      user: text('user'),
      groups,
      impersonator: text('impersonator'),
      userAgent: text('userAgent'),
      remoteAddress: text('remoteAddress'),
      localAddress: text('localAddress'),
      localPort: Math.max(0, numberOf(fields['localPort'])),
    },
  }
}

const MICROSECONDS = /\.\d{3}(\d{1,3})/

/** Date.parse only reads whole milliseconds. NaN = not a time. */
function exactTime(time: string): number {
  const more = MICROSECONDS.exec(time)?.[1] ?? ''
  return Date.parse(time) + Number(`0.${more}0`)
}

const TEXTS = [
  'time',
  'auditID',
  'cluster',
  'host',
  'method',
  'target',
  'user',
  'impersonator',
  'userAgent',
  'remoteAddress',
  'localAddress',
  'verb',
  'resource',
  'apiGroup',
  'subresource',
  'reason',
  'refusedBy',
] as const

function resourceOf(resource: string, group: string, subresource: string): string {
  if (resource === '') return ''
  return `${resource}${group === '' ? '' : `.${group}`}${subresource === '' ? '' : `/${subresource}`}`
}

function isAbsent(value: unknown): boolean {
  return value === undefined || value === null
}

/** -1 = absent, logged as null. */
function numberOf(value: unknown): number {
  return typeof value === 'number' ? value : -1
}

function isStrings(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((entry) => typeof entry === 'string')
}
