// W3C Trace Context: the fields `traceparent` and `tracestate` (https://www.w3.org/TR/trace-context/).

import type { HeaderList } from '../../../kit/api/stream.ts'

export interface TraceContext {
  readonly traceId: string
  readonly parentId: string
  readonly sampled: boolean
}

const VERSION_00_LENGTH = 55
const NO_TRACE = '0'.repeat(32)
const NO_SPAN = '0'.repeat(16)
const SAMPLED = 1

/** undefined = invalid: treated as absent (section 2.2.4), together with `tracestate`. */
export function parseTraceparent(text: string): TraceContext | undefined {
  if (text.length < VERSION_00_LENGTH || !isHex(text, 0, 2) || !isHex(text, 3, 35) || !isHex(text, 36, 52))
    return undefined
  if (!isHex(text, 53, 55) || text[2] !== '-' || text[35] !== '-' || text[52] !== '-') return undefined
  const version = text.slice(0, 2)
  // Additions of later versions follow another dash (section 3.2.2.5).
  if (version === 'ff' || (text.length > VERSION_00_LENGTH && (version === '00' || text[VERSION_00_LENGTH] !== '-'))) {
    return undefined
  }
  const traceId = text.slice(3, 35)
  const parentId = text.slice(36, 52)
  if (traceId === NO_TRACE || parentId === NO_SPAN) return undefined
  const sampled = (Number.parseInt(text.slice(53, 55), 16) & SAMPLED) !== 0
  return { traceId, parentId, sampled }
}

/** Sets no flag but `sampled`: older OpenTelemetry for Go refuses version 00 with others. */
export function formatTraceparent(traceId: string, spanId: string, sampled: boolean): string {
  return `00-${traceId}-${spanId}-${sampled ? '01' : '00'}`
}

/** Sets the field in place, or adds it. */
export function setTraceparent(fields: HeaderList, value: string): void {
  for (let i = 0; i + 1 < fields.length; i += 2) {
    if (fields[i] !== 'traceparent') continue
    fields[i + 1] = value
    return
  }
  fields.push('traceparent', value)
}

/** Removes both fields in place: an invalid context is not forwarded (section 2.2.4). */
export function removeTraceContext(fields: HeaderList): void {
  let kept = 0
  for (let i = 0; i + 1 < fields.length; i += 2) {
    const name = fields[i] ?? ''
    if (name === 'traceparent' || name === 'tracestate') continue
    fields[kept] = name
    fields[kept + 1] = fields[i + 1] ?? ''
    kept += 2
  }
  fields.length = kept
}

/** Characters of a `tracestate` shown in a span: as many as every vendor must propagate (section 3.3.1.5). */
const MAX_TRACESTATE = 512

/** All lines of the field joined; '' if it is longer than a span shows. */
export function traceStateOf(fields: HeaderList): string {
  let state = ''
  for (let i = 0; i + 1 < fields.length; i += 2) {
    if (fields[i] !== 'tracestate') continue
    state = state === '' ? (fields[i + 1] ?? '') : `${state},${fields[i + 1]}`
    if (state.length > MAX_TRACESTATE) return ''
  }
  return state
}

/** Lower-case only (section 3.2.2). */
function isHex(text: string, from: number, to: number): boolean {
  for (let i = from; i < to; i++) {
    const c = text.charCodeAt(i)
    if (!((c >= 0x30 && c <= 0x39) || (c >= 0x61 && c <= 0x66))) return false
  }
  return true
}
