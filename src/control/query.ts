// The query of a request: parsed as Go's url.ParseQuery does, its values decoded as kube-apiserver does
// (apimachinery/pkg/runtime/conversion.go).

import { statusError } from '../api/status.ts'
import { parsableQuery } from '../core/list-options.ts'
import { decodeQueryPart } from '../core/request-target.ts'

const INTEGER = /^[+-]?[0-9]+$/

export class Query {
  /** What stands behind the `?`. */
  readonly raw: string
  readonly #values = new Map<string, string[]>()

  constructor(raw: string) {
    this.raw = raw
    for (const pair of parsableQuery(raw).split('&')) {
      // Go drops a pair with a semicolon rather than guess whether it separates.
      if (pair === '' || pair.includes(';')) continue
      const equals = pair.indexOf('=')
      const key = decodeQueryPart(equals < 0 ? pair : pair.slice(0, equals))
      const value = decodeQueryPart(equals < 0 ? '' : pair.slice(equals + 1))
      if (key === undefined || value === undefined) continue
      const values = this.#values.get(key)
      if (values === undefined) this.#values.set(key, [value])
      else values.push(value)
    }
  }

  has(key: string): boolean {
    return this.#values.has(key)
  }

  /** The first value; '' when there is none. */
  text(key: string): string {
    return this.#values.get(key)?.[0] ?? ''
  }

  all(key: string): readonly string[] {
    return this.#values.get(key) ?? []
  }

  /** Only "0" and any case of "false" are false; undefined when absent. */
  bool(key: string): boolean | undefined {
    if (!this.has(key)) return undefined
    const value = this.text(key)
    return value !== '0' && value.toLowerCase() !== 'false'
  }

  /** undefined when absent. @throws {StatusError} 400 when it is no integer */
  integer(key: string): number | undefined {
    if (!this.has(key)) return undefined
    const value = this.text(key)
    if (!INTEGER.test(value)) {
      throw statusError('BadRequest', `strconv.ParseInt: parsing ${JSON.stringify(value)}: invalid syntax`)
    }
    return Number(value)
  }
}
