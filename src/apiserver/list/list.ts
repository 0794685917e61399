// Lists: consistent pages, selected by labels and fields
// (apiserver/pkg/storage/etcd3/store.go GetList, apiserver/pkg/storage/continue.go).

import type { JsonObject } from '../../kit/api/json/json-object.ts'
import { isRecord } from '../../kit/api/json/object-shape.ts'
import { apiVersionOf, type ResourceKind, resourceName } from '../../kube/api/resource-kind.ts'
import { failure, StatusError, statusError } from '../../kube/api/status.ts'
import { type ObjectStore, StoreCompacted, type StoredObject } from '../api/object-store.ts'
import { isSelected, type ListOptions, revisionOf } from './options.ts'

export interface ListResult {
  readonly items: readonly JsonObject[]
  /** metav1.ListMeta. */
  readonly metadata: JsonObject
}

interface Place {
  readonly namespace: string
  readonly name: string
}

/** Position where a list continues: `rv` of its first page, or -1 for the current state. */
interface ContinueToken {
  readonly revision: number
  readonly after: Place
}

const TOKEN_VERSION = 'meta.k8s.io/v1'
const INCONSISTENT = -1
const CHUNK = 500

/**
 * @param namespace '' = all
 * @throws {StatusError} 410 if the requested state is no longer available, 504 if it doesn't exist yet
 */
export function listObjects(
  store: ObjectStore,
  kind: ResourceKind,
  namespace: string,
  options: ListOptions,
): ListResult {
  const resource = resourceName(kind)
  const token = options.continueToken === '' ? undefined : readToken(options)
  const revision = token === undefined ? wantedRevision(store, options) : token.revision
  const pinned = revision >= 0 && revision < store.revision ? { revision } : {}
  const shown = revision >= 0 ? revision : store.revision
  try {
    const page = readPage(store, resource, namespace, { ...options, after: token?.after, ...pinned })
    const metadata: Record<string, unknown> = { resourceVersion: String(shown) }
    if (page.more && page.last !== undefined) {
      metadata['continue'] = writeToken({ revision: shown, after: page.last })
      // The number of objects that match a selector is unknown.
      if (options.labels.length === 0 && options.fields.length === 0) {
        metadata['remainingItemCount'] = store.count(resource, { namespace, after: page.last, ...pinned })
      }
    }
    return { items: page.items, metadata }
  } catch (error) {
    if (error instanceof StoreCompacted) throw expired(token)
    throw error
  }
}

/** The response, with its keys in the order in which a kube-apiserver sends lists of custom resources; objects are as there, too. */
export function listDocument(kind: ResourceKind, { items, metadata }: ListResult): JsonObject {
  return { apiVersion: apiVersionOf(kind), items, kind: kind.listKind, metadata }
}

/** 504, as kube-apiserver answers for a revision that it has not reached; client-go then lists without one. */
export function tooLargeRevision(wanted: number, current: number): StatusError {
  return statusError('Timeout', `Timeout: Too large resource version: ${wanted}, current: ${current}`, {
    causes: [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }],
    retryAfterSeconds: 1,
  })
}

interface Page {
  readonly items: readonly JsonObject[]
  readonly last: Place | undefined
  readonly more: boolean
}

function readPage(
  store: ObjectStore,
  resource: string,
  namespace: string,
  options: ListOptions & { readonly after: Place | undefined; readonly revision?: number },
): Page {
  const items: JsonObject[] = []
  const { limit } = options
  const pinned = options.revision === undefined ? {} : { revision: options.revision }
  let after = options.after
  let last: Place | undefined
  for (;;) {
    const place = after === undefined ? {} : { after }
    // One more than requested, to detect whether there are more; without a limit all at once.
    const asked = limit === 0 ? 0 : Math.max(limit + 1, CHUNK)
    const chunk: readonly StoredObject[] = store.list(resource, {
      namespace,
      ...place,
      ...pinned,
      ...(asked > 0 && { limit: asked }),
    })
    for (const stored of chunk) {
      after = { namespace: stored.namespace, name: stored.name }
      if (!isSelected(options, stored.object)) continue
      if (limit > 0 && items.length === limit) return { items, last, more: true }
      items.push(stored.object)
      last = after
    }
    if (asked === 0 || chunk.length < asked) return { items, last, more: false }
  }
}

/** The newest state satisfies everything except Exact: this is the only server. */
function wantedRevision(store: ObjectStore, options: ListOptions): number {
  if (options.resourceVersion === '' || options.resourceVersion === '0') return store.revision
  const wanted = revisionOf(options.resourceVersion)
  if (wanted > store.revision) throw tooLargeRevision(wanted, store.revision)
  // With a limit, a revision without a match means exactly that revision (api-concepts, "Semantics for get and list").
  const exact = options.resourceVersionMatch === 'Exact' || (options.resourceVersionMatch === '' && options.limit > 0)
  return exact ? wanted : store.revision
}

function writeToken({ revision, after }: ContinueToken): string {
  const start = `${after.namespace}/${after.name}\0`
  return Buffer.from(JSON.stringify({ v: TOKEN_VERSION, rv: revision, start })).toString('base64url')
}

function readToken(options: ListOptions): ContinueToken {
  if (options.resourceVersion !== '' && options.resourceVersion !== '0') {
    throw statusError('BadRequest', 'specifying resource version is not allowed when using continue')
  }
  const token = decodeToken(options.continueToken)
  if (token === undefined) {
    throw statusError('BadRequest', 'invalid continue token: continue key is not valid: it is not from this server')
  }
  return token
}

/** undefined = not issued by this server. */
export function decodeToken(text: string): ContinueToken | undefined {
  let token: unknown
  try {
    token = JSON.parse(Buffer.from(text, 'base64url').toString())
  } catch {
    return undefined
  }
  if (!isRecord(token) || token['v'] !== TOKEN_VERSION) return undefined
  const { rv, start } = token as { rv?: unknown; start?: unknown }
  if (typeof rv !== 'number' || !Number.isSafeInteger(rv) || rv < INCONSISTENT || rv === 0) return undefined
  if (typeof start !== 'string' || !start.endsWith('\0')) return undefined
  const slash = start.indexOf('/')
  if (slash < 0) return undefined
  return { revision: rv, after: { namespace: start.slice(0, slash), name: start.slice(slash + 1, -1) } }
}

/** 410; for a continued list, with a token that continues at the current state. */
function expired(token: ContinueToken | undefined): StatusError {
  if (token === undefined) {
    return statusError('Expired', 'The resourceVersion for the provided list is too old.')
  }
  const message =
    'The provided continue parameter is too old to display a consistent list result. You can start a new list without ' +
    'the continue parameter, or use the continue token in this response to retrieve the remainder of the results. ' +
    'Continuing with the provided token results in an inconsistent list - objects that were created, modified, or ' +
    'deleted between the time the first chunk was returned and now may show up in the list.'
  const rest = writeToken({ revision: INCONSISTENT, after: token.after })
  return new StatusError({ ...failure('Expired', message), metadata: { continue: rest } })
}
