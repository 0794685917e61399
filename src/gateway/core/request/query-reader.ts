// Iterates over the pairs of a query like Go's url.ParseQuery. One pass: linear in the length of the query, whatever it contains.

import { decodeQueryPart } from './request-target.ts'

/**
 * With more than 10,000 parameters, a kube-apiserver built with a newer Go ignores the whole query (net/url, urlmaxqueryparams), an older
 * one does not: the meaning of such a request is ambiguous. One is reserved for the dryRun with which the gateway tries a write: if
 * ignored, the trial would be the write itself.
 */
export const MAX_PARAMETERS = 9_999
const PERCENT = 0x25
const PLUS = 0x2b

export class QueryReader {
  /** Key of the pair that `next` found, decoded. */
  key = ''
  readonly #query: string
  /** Start of the next pair. */
  #at = 0
  /** Next position of each character from #at on, Infinity if there is none; searched again only once passed. */
  #equals = -1
  #semicolon = -1
  /** The raw value of the pair that `next` found is [from, to). */
  #from = 0
  #to = 0

  /** @param query the part after the `?`, as received */
  constructor(query: string) {
    this.#query = query
  }

  /** Whether there is another pair. Pairs whose key can't be decoded are skipped, as in Go. */
  next(): boolean {
    const query = this.#query
    while (this.#at < query.length) {
      const start = this.#at
      const amp = query.indexOf('&', start)
      const end = amp < 0 ? query.length : amp
      this.#at = end + 1
      if (start === end) continue
      if (this.#semicolon < start) this.#semicolon = indexFrom(query, ';', start)
      // Semicolons were once separators; Go drops the pair rather than guess.
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

  /** Value of the pair that `next` found, decoded; undefined if it can't be: Go then drops the pair. */
  value(): string | undefined {
    return decoded(this.#query, this.#from, this.#to)
  }
}

/** Whether the query, which begins at `from`, has more than MAX_PARAMETERS, counted like Go: including empty ones. */
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
