// Request bodies that a filter inspects before forwarding: of a write, and of a removal (a deletion or an eviction).

import { isRefusal, type Refusal, refuse } from '../../../kit/core/refusal/refusal.ts'
import { type EvictionRequest, readDeletionRequest, readEvictionRequest } from '../../core/request/deletion-request.ts'
import { headerValue } from '../../core/request/hop-headers.ts'
import { queryOf } from '../../core/request/write-query.ts'
import type { Exchange } from '../exchange/exchange.ts'
import { readBody } from '../exchange/read-body.ts'

/** kube-apiserver's limit (MaxRequestBodyBytes). */
const MAX_WRITE_BYTES = 3 * 1024 * 1024
/** DeleteOptions and Evictions are some hundred bytes. */
export const MAX_REMOVAL_BYTES: number = 16 * 1024

const NO_ANNOTATIONS: EvictionRequest['annotations'] = {}

export interface WrittenBody {
  readonly contentType: string
  readonly body: Buffer
}

export interface Removal extends EvictionRequest {
  /** Unmodified. */
  readonly bytes: Buffer
}

export function readWrite(exchange: Exchange): Promise<WrittenBody | Refusal> {
  // Same wording as kube-apiserver.
  return readWithin(exchange, MAX_WRITE_BYTES, '')
}

/**
 * @param where such bodies are read, human-readable
 * @throws {UnreadableBody}
 */
export async function readRemoval(exchange: Exchange, isEviction: boolean, where: string): Promise<Removal | Refusal> {
  const only = ` bytes for a deletion or eviction ${where}; send DeleteOptions or an Eviction and nothing else`
  const read = await readWithin(exchange, MAX_REMOVAL_BYTES, only)
  if (isRefusal(read)) return read
  const { contentType, body: bytes } = read
  const query = queryOf(exchange.target)
  if (isEviction) return { ...readEvictionRequest(contentType, bytes, query), bytes }
  return { ...readDeletionRequest(contentType, bytes, query), annotations: NO_ANNOTATIONS, bytes }
}

export function contentTypeOf({ head }: Exchange): string {
  return headerValue(head.fields, 'content-type') ?? ''
}

async function readWithin(exchange: Exchange, maxBytes: number, only: string): Promise<WrittenBody | Refusal> {
  const body = await readBody(exchange, maxBytes, () =>
    refuse('body-too-large', `Request entity too large: limit is ${maxBytes}${only}`),
  )
  return isRefusal(body) ? body : { contentType: contentTypeOf(exchange), body }
}
