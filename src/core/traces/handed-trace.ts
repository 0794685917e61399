// A traced request on its way from a gateway thread to the main thread, which makes spans of it: a flat array, which costs a third of what an
// object costs to clone. Its layout stands here, once for both sides.

import type { RequestRecord } from '../../api/ports/request-record.ts'
import type { RequestTrace } from '../../api/ports/request-trace.ts'

export type HandedTrace = readonly (string | number)[]

const TEXTS = [
  'auditId',
  'method',
  'target',
  'host',
  'protocol',
  'remoteAddress',
  'userAgent',
  'cluster',
  'verb',
  'apiGroup',
  'resource',
  'subresource',
  'namespace',
  'name',
  'user',
  'impersonator',
  'flowControl',
  'refusal',
  'refusalRule',
  'aborted',
] as const
const NUMBERS = ['startMs', 'startWallMs', 'code', 'requestBytes', 'responseBytes', 'policy', 'rule'] as const
const TRACE_TEXTS = ['traceId', 'spanId', 'parentId', 'traceState'] as const
const ATTEMPT_ITEMS = 8

/** Characters of what a client has chosen. */
const MAX_TEXT = 256

export function handTrace(record: RequestRecord, trace: RequestTrace, endMs: number): HandedTrace {
  const handed: (string | number)[] = []
  for (const name of TEXTS) handed.push(record[name].slice(0, MAX_TEXT))
  for (const name of NUMBERS) handed.push(record[name])
  handed.push(record.isResourceRequest ? 1 : 0, record.longRunning ? 1 : 0, record.shadow.join(' ').slice(0, MAX_TEXT))
  for (const name of TRACE_TEXTS) handed.push(trace[name])
  handed.push(trace.authenticatedMs, trace.identifiedMs, trace.admittedMs, endMs)
  for (const { spanId, endpoint, pickMs, sentMs, headMs, endMs: doneMs, code, error } of trace.attempts) {
    handed.push(spanId, endpoint, pickMs, sentMs, headMs, doneMs, code, error)
  }
  return handed
}

/** Reads what `handTrace` has written, item by item. */
class HandedReader {
  readonly #handed: HandedTrace
  #at = 0

  constructor(handed: HandedTrace) {
    this.#handed = handed
  }

  text(): string {
    return String(this.#handed[this.#at++] ?? '')
  }

  number(): number {
    return Number(this.#handed[this.#at++] ?? -1)
  }

  get left(): boolean {
    return this.#at + ATTEMPT_ITEMS <= this.#handed.length
  }

  texts<const Names extends readonly string[]>(names: Names): Readonly<Record<Names[number], string>> {
    // Object.fromEntries takes three times as long.
    const read: Record<string, string> = {}
    for (const name of names) read[name] = this.text()
    return read as Record<Names[number], string>
  }

  numbers<const Names extends readonly string[]>(names: Names): Readonly<Record<Names[number], number>> {
    const read: Record<string, number> = {}
    for (const name of names) read[name] = this.number()
    return read as Record<Names[number], number>
  }
}

/** The other side of `handTrace`. */
export interface ReadTrace {
  readonly texts: Readonly<Record<(typeof TEXTS)[number], string>>
  readonly numbers: Readonly<Record<(typeof NUMBERS)[number], number>>
  readonly isResourceRequest: boolean
  readonly longRunning: boolean
  readonly shadow: string
  readonly trace: Readonly<Record<(typeof TRACE_TEXTS)[number], string>>
  readonly authenticatedMs: number
  readonly identifiedMs: number
  readonly admittedMs: number
  readonly endMs: number
  readonly attempts: RequestTrace['attempts']
}

export function readTrace(handed: HandedTrace): ReadTrace {
  const reader = new HandedReader(handed)
  const texts = reader.texts(TEXTS)
  const numbers = reader.numbers(NUMBERS)
  const isResourceRequest = reader.number() === 1
  const longRunning = reader.number() === 1
  const shadow = reader.text()
  const trace = reader.texts(TRACE_TEXTS)
  const marks = reader.numbers(['authenticatedMs', 'identifiedMs', 'admittedMs', 'endMs'])
  const attempts: RequestTrace['attempts'] = []
  while (reader.left) {
    const spanId = reader.text()
    const endpoint = reader.text()
    const times = reader.numbers(['pickMs', 'sentMs', 'headMs', 'endMs', 'code'])
    attempts.push({ spanId, endpoint, ...times, error: reader.text() })
  }
  return { texts, numbers, isResourceRequest, longRunning, shadow, trace, ...marks, attempts }
}
