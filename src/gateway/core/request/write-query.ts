// Parses the query of a write like Go's net/url and kube-apiserver's conversions (apimachinery/pkg/runtime/conversion.go).

import { QueryReader } from './query-reader.ts'

/** All values by key, in order. */
type QueryValues = ReadonlyMap<string, readonly string[]>

/** The part of a request target after the `?`. */
export function queryOf(target: string): string {
  const at = target.indexOf('?')
  return at < 0 ? '' : target.slice(at + 1)
}

/** All values of the wanted keys, in one pass. Pairs that Go can't parse are skipped. */
export function queryValues(query: string, wanted: ReadonlySet<string>): QueryValues {
  const found = new Map<string, string[]>()
  const reader = new QueryReader(query)
  while (reader.next()) {
    const value = wanted.has(reader.key) ? reader.value() : undefined
    if (value === undefined) continue
    const values = found.get(reader.key)
    if (values === undefined) found.set(reader.key, [value])
    else values.push(value)
  }
  return found
}

/** Only "0" and any case of "false" are false. */
export function queryFlag(value: string): boolean {
  return value !== '0' && value.toLowerCase() !== 'false'
}
