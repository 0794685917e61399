// The query of a deletion, as Go's net/url and kube-apiserver's conversions read it (apimachinery/pkg/runtime/conversion.go).

import { parsableQuery } from '../list-options.ts'
import { decodeQueryPart } from '../request-target.ts'

/** What stands behind the `?` of a request target. */
export function queryOf(target: string): string {
  const at = target.indexOf('?')
  return at < 0 ? '' : target.slice(at + 1)
}

/** All values of `key`, decoded, in their order. Pairs that Go cannot parse are skipped. */
export function queryValues(query: string, key: string): readonly string[] {
  const values: string[] = []
  for (const pair of parsableQuery(query).split('&')) {
    // Go drops a pair with a semicolon rather than guess whether it separates.
    if (pair === '' || pair.includes(';')) continue
    const equals = pair.indexOf('=')
    if (decodeQueryPart(equals < 0 ? pair : pair.slice(0, equals)) !== key) continue
    const value = decodeQueryPart(equals < 0 ? '' : pair.slice(equals + 1))
    if (value !== undefined) values.push(value)
  }
  return values
}

/** Only "0" and any case of "false" are false. */
export function queryFlag(value: string): boolean {
  return value !== '0' && value.toLowerCase() !== 'false'
}
