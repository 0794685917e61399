// Reads a whole collection from an API server, in pages.

import type { JsonObject } from '../../kit/api/json/json-object.ts'
import { isRecord, recordOf, textOf } from '../../kit/api/json/object-shape.ts'
import type { Charge } from '../../kit/api/stream.ts'
import type { ObjectList, RawObjects, Transform } from '../api/object-client.ts'
import { StatusError } from '../api/status.ts'
import type { AnswerLimits } from '../core/answers/answer-limits.ts'
import { itemsOf, listPages } from '../core/answers/paged-list.ts'

/** One collection of an API server. Both methods reject with a StatusError, or an Error if there is no response. */
export interface ResourcePages {
  /** The source that is charged for the memory of responses. */
  readonly charge: Charge
  /** @param onBytes receives the body of the page that is returned */
  page(
    query: Readonly<Record<string, string>>,
    limits: AnswerLimits,
    signal?: AbortSignal,
    onBytes?: (bytes: Buffer) => void,
  ): Promise<JsonObject>
  /** Resolves with the response's head. The body fails after `silenceMs` of silence. */
  watch(query: Readonly<Record<string, string>>, silenceMs: number, signal: AbortSignal): Promise<AsyncIterable<Buffer>>
}

/** Limit per collection: a cluster has at most 150,000 pods (kubernetes.io/docs/setup/best-practices/cluster-large). */
const MAX_OBJECTS = 500_000

interface ListCallOptions {
  readonly signal?: AbortSignal
  readonly transform?: Transform
  /** Like FollowChoice. */
  readonly raw?: RawObjects | undefined
  /** Accounts for each page as it is kept. @throws to end the list */
  readonly memory?: { begin(): void; list(objects: readonly JsonObject[]): void }
  /** Like FollowEvents. */
  readonly onPage?: (objects: readonly JsonObject[], first: boolean) => void
}

/** The whole collection, in pages; a list that expires between two pages is restarted, once. */
export async function listAll(pages: ResourcePages, options: ListCallOptions = {}): Promise<ObjectList> {
  try {
    return await listOnce(pages, options)
  } catch (error) {
    if (!(error instanceof StatusError) || error.code !== 410) throw error
    return await listOnce(pages, options)
  }
}

async function listOnce(
  pages: ResourcePages,
  { signal, transform = identity, raw, memory, onPage }: ListCallOptions,
): Promise<ObjectList> {
  const items: JsonObject[] = []
  memory?.begin()
  let resourceVersion: unknown
  let isLast = false
  let bytes: Buffer | undefined
  const onBytes = (body: Buffer): void => {
    bytes = body
  }
  const read = listPages((limit, next, limits) => {
    const query = { limit: String(limit), ...(next !== '' && { continue: next }) }
    return pages.page(query, limits, signal, raw === undefined ? undefined : onBytes)
  }, MAX_OBJECTS)
  for await (const page of read) {
    const metadata = recordOf(page['metadata'])
    const common = itemHead(page)
    const found = itemsOf(page)
    const parts = raw === undefined || bytes === undefined ? undefined : raw.itemsOf(bytes)
    if (parts !== undefined && parts.length !== found.length) throw new Error('the bytes of a list are not its objects')
    const objects = found.flatMap((item, at) =>
      isRecord(item) ? [transform({ ...common, ...item }, parts?.[at])] : [],
    )
    memory?.list(objects)
    onPage?.(objects, items.length === 0)
    for (const object of objects) items.push(object)
    resourceVersion = metadata['resourceVersion']
    isLast = textOf(metadata['continue']) === ''
  }
  if (!isLast) throw new Error(`there are more than ${MAX_OBJECTS} objects, which is the limit`)
  return { items, resourceVersion: textOf(resourceVersion) }
}

export function identity(object: JsonObject): JsonObject {
  return object
}

/** List items of built-in kinds have neither kind nor apiVersion. */
function itemHead({ kind, apiVersion }: JsonObject): JsonObject {
  return typeof kind === 'string' ? { apiVersion, kind: kind.replace(/List$/, '') } : {}
}
