// Everything in a collection of an API server, read in pages.

import type { JsonObject } from '../../api/kube/json-object.ts'
import { isRecord, recordOf, textOf } from '../../api/kube/object-shape.ts'
import { StatusError } from '../../api/kube/status.ts'
import type { ObjectList } from '../../api/ports/object-client.ts'

/** One collection of an API server. Both reject with a StatusError, or an Error when no answer came. */
export interface ResourcePages {
  page(query: Readonly<Record<string, string>>, signal?: AbortSignal): Promise<JsonObject>
  /** Resolves with the response's head. The body fails when it is silent for `silenceMs`. */
  watch(query: Readonly<Record<string, string>>, silenceMs: number, signal: AbortSignal): Promise<AsyncIterable<Buffer>>
}

const PAGE_SIZE = '500'

export interface ListOptions {
  readonly signal?: AbortSignal
  readonly transform?: (object: JsonObject) => JsonObject
  /** As FollowEvents. */
  readonly onPage?: (objects: readonly JsonObject[], first: boolean) => void
}

/** Everything in the collection, in pages; a list that expires between two pages is requested again in one. */
export async function listAll(pages: ResourcePages, options: ListOptions = {}): Promise<ObjectList> {
  try {
    return await listPaged(pages, PAGE_SIZE, options)
  } catch (error) {
    if (!(error instanceof StatusError) || error.code !== 410) throw error
    return await listPaged(pages, '0', options)
  }
}

async function listPaged(
  pages: ResourcePages,
  limit: string,
  { signal, transform = identity, onPage }: ListOptions,
): Promise<ObjectList> {
  const items: JsonObject[] = []
  let query: Record<string, string> = { limit }
  for (;;) {
    const page = await pages.page(query, signal)
    const metadata = recordOf(page['metadata'])
    const { resourceVersion, continue: next } = metadata
    const list: readonly unknown[] = Array.isArray(page['items']) ? page['items'] : []
    const common = itemHead(page)
    const read = list.filter(isRecord).map((item) => transform({ ...common, ...item }))
    onPage?.(read, items.length === 0)
    for (const item of read) items.push(item)
    if (typeof next !== 'string' || next === '') {
      return { items, resourceVersion: textOf(resourceVersion) }
    }
    query = { limit, continue: next }
  }
}

export function identity(object: JsonObject): JsonObject {
  return object
}

/** Items in a list of a built-in kind have neither kind nor apiVersion. */
function itemHead({ kind, apiVersion }: JsonObject): JsonObject {
  return typeof kind === 'string' ? { apiVersion, kind: kind.replace(/List$/, '') } : {}
}
