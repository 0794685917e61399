// Building blocks of OTLP's JSON (opentelemetry-proto, trace/v1), written as text: building and serialising objects costs three times as
// much.

import { quote } from '../../kit/core/text/json-quote.ts'

/** Closes a value and opens the next attribute. The value, as JSON, must follow. */
export function nextText(key: string): string {
  return `}},${firstText(key)}`
}

/** As `nextText`, for an integer, which follows as quoted text: int64 in proto3's JSON. */
export function nextInteger(key: string): string {
  return `}},${firstInteger(key)}`
}

export function nextBool(key: string): string {
  return `}},{"key":"${key}","value":{"boolValue":`
}

/** Without closing a preceding value. */
export function firstText(key: string): string {
  return `{"key":"${key}","value":{"stringValue":`
}

export function firstInteger(key: string): string {
  return `{"key":"${key}","value":{"intValue":`
}

/** An integer in quotes. */
export function quoteNumber(value: number): string {
  return `"${value}"`
}

/** The text around the spans of a batch. */
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

/** Microseconds as Unix nanoseconds, in quotes: uint64 in proto3's JSON. */
export class UnixNanos {
  #second = -1
  #secondText = ''

  text(micros: number): string {
    const second = Math.floor(micros / MICROS)
    if (second < 1) return `"${micros}000"`
    // In two parts, because large numbers take five times as long; the first part is usually the same as last time.
    if (second !== this.#second) {
      this.#second = second
      this.#secondText = String(second)
    }
    return `"${this.#secondText}${String(micros - second * MICROS + MICROS).slice(1)}000"`
  }
}
