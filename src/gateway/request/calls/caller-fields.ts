// Header fields of a client's request that are copied to calls made on its behalf.

import type { HeaderList } from '../../../kit/api/stream.ts'
import { type RequestHead, UPSTREAM_PSEUDO } from '../../core/request/request-head.ts'

/** Set by each call itself. */
const OWN_FIELDS: ReadonlySet<string> = new Set([
  'accept',
  'accept-encoding',
  'content-type',
  'content-length',
  'expect',
  'te',
])

export function callerFields({ fields }: RequestHead): HeaderList {
  const list: HeaderList = []
  for (let i = UPSTREAM_PSEUDO; i + 1 < fields.length; i += 2) {
    const name = fields[i] ?? ''
    if (!OWN_FIELDS.has(name)) list.push(name, fields[i + 1] ?? '')
  }
  return list
}
