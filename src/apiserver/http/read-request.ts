// The request, parsed once from its head.

import { parseRequestInfo, type RequestInfo, type RequestInfoFailure } from '../../gateway/core/request/request-info.ts'
import type { HeaderList } from '../../kit/api/stream.ts'
import { Query } from './query.ts'

export interface ControlRequest {
  readonly method: string
  readonly head: HeaderList
  readonly info: RequestInfo
  readonly query: Query
  readonly accept: string
  /** Media type in lower case, without parameters; '' = none. */
  readonly contentType: string
  readonly userAgent: string
  readonly ifNoneMatch: string
}

/** The request, or the reason why it is invalid. */
export function readRequest(head: HeaderList): ControlRequest | RequestInfoFailure {
  const fields = new Map<string, string>()
  for (let i = 0; i + 1 < head.length; i += 2) {
    const name = head[i] ?? ''
    const value = head[i + 1] ?? ''
    const before = fields.get(name)
    // RFC 9110 section 5.3: lines with the same name form one list.
    fields.set(name, before === undefined ? value : `${before}, ${value}`)
  }
  const target = fields.get(':path') ?? '/'
  const method = fields.get(':method') ?? 'GET'
  const info = parseRequestInfo(method, target)
  if ('failure' in info) return info
  const queryAt = target.indexOf('?')
  const contentType = fields.get('content-type') ?? ''
  return {
    method,
    head,
    info,
    query: new Query(queryAt < 0 ? '' : target.slice(queryAt + 1)),
    accept: fields.get('accept') ?? '',
    contentType: (contentType.split(';', 1)[0] ?? '').trim().toLowerCase(),
    userAgent: fields.get('user-agent') ?? '',
    ifNoneMatch: fields.get('if-none-match') ?? '',
  }
}
