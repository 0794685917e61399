// What is kept of a resource in the form that a caller asks for.

import type { CompiledCachedResource } from '../../gateway/core/cluster/compiled-cluster.ts'
import { headerValue } from '../../gateway/core/request/hop-headers.ts'
import type { Decision } from '../../gateway/request/exchange/decision.ts'
import type { WireEncoding } from '../../kube/api/object-client.ts'
import { type AnswerForm, answerForm } from '../core/bytes/answer-form.ts'
import type { CollectionId } from '../core/changes/collection.ts'
import { negotiateRead } from '../core/requests/accept.ts'
import type { PassReason, ReadRequest } from '../core/requests/read-request.ts'
import type { CachedCollection } from '../state/cached-collection.ts'
import type { CachedCollections } from '../state/cached-collections.ts'

export interface KeptForm {
  readonly collection: CachedCollection
  readonly form: AnswerForm
}

/** It is kept only as long as it is wanted, and not yet. */
export interface MissingForm {
  readonly missing: CollectionId
}

/** @returns or why the read is forwarded */
export function keptForm(
  { exchange, userAgent }: Decision,
  kind: ReadRequest['kind'],
  collections: CachedCollections,
  { encodings }: CompiledCachedResource,
  resource: Omit<CollectionId, 'encoding'>,
): KeptForm | MissingForm | PassReason {
  const keeps = (encoding: WireEncoding): boolean => encodings.includes(encoding)
  const json = keeps('json') ? collections.get({ ...resource, encoding: 'json' }) : undefined
  if (json === undefined && keeps('json')) return 'unavailable'
  const isCustom = json?.form === 'sorted'
  const head = { accept: headerValue(exchange.list, 'accept') ?? '', userAgent }
  const wanted = negotiateRead(kind, head, !isCustom)
  if (wanted === undefined || !keeps(wanted.encoding)) return 'encoding'
  // The metadata of custom resources is written in Protobuf from their JSON.
  const isJson = wanted.encoding === 'json' || isCustom
  const id = { ...resource, encoding: 'protobuf' } as const
  const collection = isJson ? json : collections.get(id)
  if (collection === undefined) return isJson ? 'unavailable' : { missing: id }
  const form = answerForm(collection.form, wanted)
  return form === undefined ? 'unavailable' : { collection, form }
}
