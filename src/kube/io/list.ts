// Reads a whole collection from an API server, in pages.

import type { JsonObject } from '../../kit/api/json/json-object.ts'
import { isRecord, recordOf, textOf } from '../../kit/api/json/object-shape.ts'
import type { Charge } from '../../kit/api/stream.ts'
import type { ObjectList, RawObjects, RawPage, Transform, WireEncoding } from '../api/object-client.ts'
import { StatusError } from '../api/status.ts'
import type { AnswerLimits } from '../core/answers/answer-limits.ts'
import { endOf, itemsOf, listPages, type ReadPage } from '../core/answers/paged-list.ts'

/** One collection of an API server. All methods reject with a StatusError, or an Error if there is no response. */
export interface ResourcePages {
  /** The source that is charged for the memory of responses. */
  readonly charge: Charge
  page(query: Readonly<Record<string, string>>, limits: AnswerLimits, signal?: AbortSignal): Promise<JsonObject>
  /** The same, unparsed. */
  bytes(
    query: Readonly<Record<string, string>>,
    limits: AnswerLimits,
    encoding: WireEncoding,
    signal?: AbortSignal,
  ): Promise<Buffer>
  /** Resolves with the response's head. The body fails after `silenceMs` of silence. */
  watch(
    query: Readonly<Record<string, string>>,
    silenceMs: number,
    signal: AbortSignal,
    encoding?: WireEncoding,
  ): Promise<AsyncIterable<Buffer>>
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
  let last: RawPage | undefined
  const queryOf = (limit: number, next: string): Record<string, string> => {
    return { limit: String(limit), ...(next !== '' && { continue: next }) }
  }
  const readPage: ReadPage<RawPage> =
    raw === undefined
      ? async (limit, next, limits) => parsedPage(await pages.page(queryOf(limit, next), limits, signal), transform)
      : async (limit, next, limits) => raw.page(await pages.bytes(queryOf(limit, next), limits, raw.encoding, signal))
  const read = listPages(readPage, MAX_OBJECTS, ({ next, objects }) => ({ next, objects: objects.length }))
  for await (const page of read) {
    const { objects } = page
    memory?.list(objects)
    onPage?.(objects, items.length === 0)
    for (const object of objects) items.push(object)
    last = page
  }
  if (last === undefined || last.next !== '')
    throw new Error(`there are more than ${MAX_OBJECTS} objects, which is the limit`)
  return { items, resourceVersion: last.resourceVersion }
}

function parsedPage(page: JsonObject, transform: Transform): RawPage {
  const common = itemHead(page)
  return {
    objects: itemsOf(page).flatMap((item) => (isRecord(item) ? [transform({ ...common, ...item })] : [])),
    resourceVersion: textOf(recordOf(page['metadata'])['resourceVersion']),
    next: endOf(page).next,
  }
}

export function identity(object: JsonObject): JsonObject {
  return object
}

/** List items of built-in kinds have neither kind nor apiVersion. */
function itemHead({ kind, apiVersion }: JsonObject): JsonObject {
  return typeof kind === 'string' ? { apiVersion, kind: kind.replace(/List$/, '') } : {}
}
