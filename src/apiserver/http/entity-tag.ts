// Documents that rarely change: sent with an entity tag, and not again to clients that have them (RFC 9110 sections 8.8.3, 13.1.2).

import { contentHash } from '../../gateway/io/sources/files/content-hash.ts'
import { type HttpAnswer, NOT_CACHED } from './answer.ts'

export interface TaggedDocument {
  readonly body: Buffer
  readonly contentType: string
  /** In quotes. */
  readonly tag: string
}

/** @param tag of the document's source; default: hash of its bytes */
export function tagged(body: Buffer, contentType: string, tag: string = contentHash(body)): TaggedDocument {
  return { body, contentType, tag: `"${tag}"` }
}

/**
 * 200 with the document, or 304 if `ifNoneMatch` has its tag.
 * @param cacheControl default: revalidate every time
 */
export function taggedAnswer(
  document: TaggedDocument,
  ifNoneMatch: string,
  cacheControl: string = NOT_CACHED,
): HttpAnswer {
  const headers = ['etag', document.tag, 'vary', 'Accept', 'cache-control', cacheControl]
  if (matches(ifNoneMatch, document.tag)) return { code: 304, headers, body: Buffer.alloc(0) }
  return { code: 200, headers: ['content-type', document.contentType, ...headers], body: document.body }
}

/** Weak comparison. */
function matches(ifNoneMatch: string, tag: string): boolean {
  return ifNoneMatch.split(',').some((part) => {
    const candidate = part.trim()
    return candidate === '*' || candidate === tag || candidate === `W/${tag}`
  })
}
