// Parts of OTLP's JSON (opentelemetry-proto, trace/v1), written as text: objects for it cost three times as much to make and to write.

import { quote } from '../../../kit/core/text/json-quote.ts'

/** The end of a value, and the beginning of the next attribute of that name. The value follows: JSON. */
export function nextText(key: string): string {
  return `}},${firstText(key)}`
}

/** As `nextText`, of a number, which follows as text in quotes: int64 in proto3's JSON. */
export function nextInteger(key: string): string {
  return `}},${firstInteger(key)}`
}

export function nextBool(key: string): string {
  return `}},{"key":"${key}","value":{"boolValue":`
}

/** Without the end of what stands before it. */
export function firstText(key: string): string {
  return `{"key":"${key}","value":{"stringValue":`
}

export function firstInteger(key: string): string {
  return `{"key":"${key}","value":{"intValue":`
}

/** A whole number in quotes. */
export function quoteNumber(value: number): string {
  return `"${value}"`
}

/** What stands around the spans of a batch. */
export interface Envelope {
  readonly head: string
  readonly tail: string
}

/** @param resource attributes of the process */
export function envelope(resource: Readonly<Record<string, string>>, version: string): Envelope {
  const attributes = Object.entries(resource).map(([key, value]) => `${firstText(key)}${quote(value)}}}`)
  const scope = `{"name":"portcullis","version":${quote(version)}}`
  const head = `{"resourceSpans":[{"resource":{"attributes":[${attributes.join(',')}]},"scopeSpans":[{"scope":${scope},"spans":[`
  return { head, tail: ']}]}]}' }
}

const MICROS = 1_000_000

/** Unix nanoseconds of microseconds, in quotes: uint64 in proto3's JSON. */
export class UnixNanos {
  #second = -1
  #secondText = ''

  text(micros: number): string {
    const second = Math.floor(micros / MICROS)
    if (second < 1) return `"${micros}000"`
    // In two parts, because large numbers take five times as long; the first is mostly that of the time before.
    if (second !== this.#second) {
      this.#second = second
      this.#secondText = String(second)
    }
    return `"${this.#secondText}${String(micros - second * MICROS + MICROS).slice(1)}000"`
  }
}
