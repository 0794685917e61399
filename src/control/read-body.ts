// The body of a request, whole, and how it is written.

import { statusError } from '../api/status.ts'

/** kube-apiserver's limit (apiserver/pkg/server/config.go, MaxRequestBodyBytes). */
export const MAX_BODY_BYTES: number = 3 * 1024 * 1024

/** Collects chunks; each is copied, because it is only valid during the call. */
export class BodyReader {
  readonly #chunks: Buffer[] = []
  #bytes = 0

  /** @throws {StatusError} 413 */
  add(chunk: Buffer): void {
    this.#bytes += chunk.length
    if (this.#bytes > MAX_BODY_BYTES) {
      this.#chunks.length = 0
      throw statusError('RequestEntityTooLarge', `Request entity too large: limit is ${MAX_BODY_BYTES}`)
    }
    if (chunk.length > 0) this.#chunks.push(Buffer.from(chunk))
  }

  bytes(): Buffer {
    return Buffer.concat(this.#chunks)
  }
}

/** Of a body that holds an object. An absent type is JSON, as in kube-apiserver. @throws {StatusError} 415 */
export function bodyFormat(contentType: string): 'json' | 'yaml' {
  if (contentType === '' || contentType === 'application/json') return 'json'
  if (contentType === 'application/yaml') return 'yaml'
  throw unsupportedMediaType(['application/json', 'application/yaml', 'application/vnd.kubernetes.protobuf'])
}

/** endpoints/handlers/negotiation/errors.go */
export function unsupportedMediaType(accepted: readonly string[]): Error {
  const list = accepted.join(', ')
  return statusError(
    'UnsupportedMediaType',
    `the body of the request was in an unknown format - accepted media types include: ${list}`,
  )
}
