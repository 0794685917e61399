// A page of a member's own list: how it is asked for, and what is read of it. Nothing of it is shown. That what is kept has the same objects in the same
// versions proves that what is kept is the state of the page: no write leaves an object its resourceVersion.

import { isKeepableVersion } from '../../cache/core/bytes/object-facts.ts'
import { type ListedObject, listedObject } from '../../cache/core/changes/listed-object.ts'
import { isNamespaces } from '../../cache/core/requests/read-request.ts'
import type { RequestInfo } from '../../gateway/core/request/request-info.ts'
import { recordOf, textOf } from '../../kit/api/json/object-shape.ts'
import { isDnsLabel } from '../../kit/api/validation/name-syntax.ts'
import { itemsOf } from '../../kube/core/answers/paged-list.ts'
import { objectPath } from './handed-over.ts'
import type { AskedScope } from './member-scope.ts'

export interface ListedPage {
  /** That of the list. */
  readonly version: string
  /** In the order of the member. */
  readonly objects: readonly ListedObject[]
  /** The member's own token; '' = this is all. */
  readonly next: string
}

/** Where in the member's list a page begins. */
export interface PageQuestion {
  /** The version that the list has to be of; '' = as new as the question. */
  readonly version: string
  /** The member's own token; '' = from the beginning. */
  readonly next: string
  readonly limit: number
}

/** Objects without what is not compared: all servers that keep custom resources can leave it out (Kubernetes 1.15). */
export const METADATA_ONLY = 'application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io'

/** Those of kube-apiserver have some hundred characters. A longer one would not fit into ours. */
export const MAX_MEMBER_TOKEN = 2048

/** @param scope as the member has it @returns undefined = no namespace can have this name */
export function listTarget(
  { apiGroup, apiVersion, resource }: RequestInfo,
  { namespace, fieldSelector }: AskedScope,
  labelSelector: string,
  { version, next, limit }: PageQuestion,
): string | undefined {
  if (namespace !== '' && (isNamespaces(apiGroup, resource) || !isDnsLabel(namespace))) return undefined
  const path = objectPath({ apiGroup, apiVersion, namespace, resource, name: '', subresource: '' })
  const query = new URLSearchParams({ limit: String(limit) })
  if (next !== '') query.set('continue', next)
  else if (version !== '') {
    query.set('resourceVersion', version)
    query.set('resourceVersionMatch', 'Exact')
  }
  if (labelSelector !== '') query.set('labelSelector', labelSelector)
  if (fieldSelector !== '') query.set('fieldSelector', fieldSelector)
  return `${path}?${query}`
}

/**
 * @param text within the limits of a page
 * @returns undefined: it proves nothing
 */
export function readListedPage(text: string, { version, limit }: Omit<PageQuestion, 'next'>): ListedPage | undefined {
  const list = recordOf(parsed(text))
  const metadata = recordOf(list['metadata'])
  const next = textOf(metadata['continue'])
  const resourceVersion = textOf(metadata['resourceVersion'])
  if (!isKeepableVersion(resourceVersion) || !isKeepableToken(next)) return undefined
  if (version !== '' && resourceVersion !== version) return undefined
  const items = itemsOf(list)
  // Some servers know of no pages. And no client would come to the end of pages without objects.
  if (items.length > limit || (items.length === 0 && next !== '')) return undefined
  return { version: resourceVersion, objects: items.map(listedObject), next }
}

/** As it is written in a token of ours. */
function isKeepableToken(token: string): boolean {
  return token.length <= MAX_MEMBER_TOKEN && Buffer.byteLength(JSON.stringify(token)) <= MAX_MEMBER_TOKEN
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
