// The pairs of a query, one after the other, as Go's url.ParseQuery sees them. One pass: the cost is linear in the length of the query,
// whatever it contains.

import { decodeQueryPart } from './request-target.ts'

/**
 * With more than 10,000, a kube-apiserver built with a newer Go ignores the whole query (net/url, urlmaxqueryparams), an older one does
 * not: what such a request asks for is ambiguous. One is left for the dryRun with which the gateway tries a write: ignored, the trial
 * would be the write itself.
 */
export const MAX_PARAMETERS = 9_999
const PERCENT = 0x25
const PLUS = 0x2b

export class QueryReader {
  /** Of the pair that `next` found, decoded. */
  key = ''
  readonly #query: string
  /** Where the next pair begins. */
  #at = 0
  /** The next of each from #at on, Infinity when there is none; searched again only after it was passed. */
  #equals = -1
  #semicolon = -1
  /** Of the pair that `next` found: the raw value is [from, to). */
  #from = 0
  #to = 0

  /** @param query the part after the `?`, as received */
  constructor(query: string) {
    this.#query = query
  }

  /** Whether there is another pair. Pairs without a key that can be decoded are skipped, as in Go. */
  next(): boolean {
    const query = this.#query
    while (this.#at < query.length) {
      const start = this.#at
      const amp = query.indexOf('&', start)
      const end = amp < 0 ? query.length : amp
      this.#at = end + 1
      if (start === end) continue
      if (this.#semicolon < start) this.#semicolon = indexFrom(query, ';', start)
      // A semicolon was once a separator; Go drops the pair rather than guess.
      if (this.#semicolon < end) continue
      if (this.#equals < start) this.#equals = indexFrom(query, '=', start)
      const keyEnd = Math.min(this.#equals, end)
      const key = decoded(query, start, keyEnd)
      if (key === undefined) continue
      this.key = key
      this.#from = Math.min(keyEnd + 1, end)
      this.#to = end
      return true
    }
    return false
  }

  /** Of the pair that `next` found, decoded; undefined when it cannot be: Go then drops the pair. */
  value(): string | undefined {
    return decoded(this.#query, this.#from, this.#to)
  }
}

/** Whether the query, which begins at `from`, has more than MAX_PARAMETERS, as Go counts them: also empty ones. */
export function hasTooManyParameters(target: string, from: number): boolean {
  if (target.length - from < MAX_PARAMETERS) return false
  let parameters = 1
  for (let at = target.indexOf('&', from); at >= 0; at = target.indexOf('&', at + 1)) parameters++
  return parameters > MAX_PARAMETERS
}

function indexFrom(query: string, text: string, start: number): number {
  const found = query.indexOf(text, start)
  return found < 0 ? Number.POSITIVE_INFINITY : found
}

function decoded(query: string, from: number, to: number): string | undefined {
  const raw = query.slice(from, to)
  for (let at = 0; at < raw.length; at++) {
    const c = raw.charCodeAt(at)
    if (c === PERCENT || c === PLUS || c >= 0x80) return decodeQueryPart(raw)
  }
  return raw
}
