// Request bodies that a filter inspects before forwarding: of a write, and of a removal (a deletion or an eviction). Only small bodies, and
// with the same timeout as the gateway's own calls.

import { isRefusal, type Refusal, refuse } from '../../../kit/core/refusal/refusal.ts'
import { type EvictionRequest, readDeletionRequest, readEvictionRequest } from '../../core/request/deletion-request.ts'
import { headerValue } from '../../core/request/hop-headers.ts'
import { queryOf } from '../../core/request/write-query.ts'
import type { Exchange } from '../exchange/exchange.ts'
import { WholeBody } from '../exchange/request-body.ts'

/** kube-apiserver's limit (MaxRequestBodyBytes). */
const MAX_WRITE_BYTES = 3 * 1024 * 1024
/** DeleteOptions and Evictions are some hundred bytes. */
export const MAX_REMOVAL_BYTES: number = 16 * 1024

/** Time limit for the client to send it. */
const BODY_TIMEOUT_MS = 30_000

const EMPTY = Buffer.alloc(0)
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

/**
 * Reads it to the end and leaves it to go upstream unmodified. A later reader gets the same bytes at once, or the same
 * refusal: what was read of a body before it became too large or too late is gone, and shadow mode does not lift that.
 * @param tooLarge the refusal of a body of more than `maxBytes`
 * @returns whatever was read, if the client is gone (`exchange.gone`)
 */
export async function readBody(
  exchange: Exchange,
  maxBytes: number,
  tooLarge: () => Refusal,
): Promise<Buffer | Refusal> {
  const known = exchange.body?.original
  if (known !== undefined) return known.length > maxBytes ? tooLarge() : known
  const { list, client, body } = exchange
  if (body?.unread !== undefined) return body.unread
  if (exchange.gone) return EMPTY
  if (Number(headerValue(list, 'content-length') ?? '0') > maxBytes) return tooLarge()
  const whole = new WholeBody(maxBytes, BODY_TIMEOUT_MS)
  exchange.readInto(whole)
  // We have to send the 100 ourselves: upstream has not seen the request yet.
  if (headerValue(list, 'expect')?.toLowerCase() === '100-continue' && !exchange.requestEnded)
    client.headers([':status', '100'], false)
  switch (await whole.ended) {
    case 'too-large':
      return exchange.refuseBody(tooLarge())
    case 'too-late':
      return exchange.refuseBody(refuse('body-timeout', `the body did not arrive within ${BODY_TIMEOUT_MS / 1000} s`))
    case 'complete':
      return exchange.setRead(whole.take())
    case 'overfull':
    case 'gone':
      return exchange.body?.unread ?? whole.take()
  }
}
