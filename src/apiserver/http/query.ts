// The query of a request: parsed like Go's url.ParseQuery, its values decoded like kube-apiserver's
// (apimachinery/pkg/runtime/conversion.go).

import { QueryReader } from '../../gateway/core/request/query-reader.ts'
import { int64Problem, isInt64 } from '../../kit/core/text/int64.ts'
import { statusError } from '../../kube/api/status.ts'

export class Query {
  /** The part after `?`. */
  readonly raw: string
  readonly #values = new Map<string, string[]>()

  constructor(raw: string) {
    this.raw = raw
    const reader = new QueryReader(raw)
    while (reader.next()) {
      const value = reader.value()
      if (value === undefined) continue
      const values = this.#values.get(reader.key)
      if (values === undefined) this.#values.set(reader.key, [value])
      else values.push(value)
    }
  }

  has(key: string): boolean {
    return this.#values.has(key)
  }

  /** The first value; '' if absent. */
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

  /** undefined when absent. @throws {StatusError} 400 if it is not an integer */
  integer(key: string): number | undefined {
    if (!this.has(key)) return undefined
    const value = this.text(key)
    if (!isInt64(value)) throw statusError('BadRequest', int64Problem(value))
    return Number(value)
  }
}
