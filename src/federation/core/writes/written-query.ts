// The query of a write as the member gets it: everything as it came but versions and the names in a selector.

import { QueryReader } from '../../../gateway/core/request/query-reader.ts'
import { UnreadableBody } from '../../../gateway/core/request/write-envelope.ts'
import { SeenFields } from './written-fields.ts'

export interface QueryChanges {
  /** Options of a DELETE, or of a read. */
  readonly resourceVersion: (shown: string) => string
  readonly fieldSelector: (shown: string) => string
}

/** A list of what is deleted comes whole: where it goes on, the member would say with versions of its own. */
const NOT_WITH_COLLECTIONS: ReadonlySet<string> = new Set(['continue', 'limit', 'resourceVersionMatch'])

/** @throws {UnreadableBody} also if one of them is there twice */
export function writtenQuery(query: string, isCollection: boolean, changes: QueryChanges): string {
  const seen = new SeenFields()
  return query
    .split('&')
    .map((pair) => {
      const reader = new QueryReader(pair)
      // Go skips what cannot be decoded.
      const value = reader.next() ? reader.value() : undefined
      const { key } = reader
      if (value === undefined) return pair
      if (isCollection && NOT_WITH_COLLECTIONS.has(key) && value !== '')
        throw new UnreadableBody(400, `${key} is not served here for a deletion of several objects`)
      if (key !== 'resourceVersion' && key !== 'fieldSelector') return pair
      seen.see(key)
      return `${key}=${encodeURIComponent(changes[key](value))}`
    })
    .join('&')
}
