// The body of a request, whole, and how it is written.

import { statusError } from '../../api/kube/status.ts'

/** kube-apiserver's limit (apiserver/pkg/server/config.go, MaxRequestBodyBytes). */
export const MAX_BODY_BYTES: number = 3 * 1024 * 1024

/** What bodies that are still coming may take together, where anybody may send them. */
export class BodyBudget {
  #left: number

  constructor(bytes: number) {
    this.#left = bytes
  }

  /** @throws {StatusError} 429 */
  take(bytes: number): void {
    if (bytes > this.#left) throw statusError('TooManyRequests', 'too many requests are being sent at a time')
    this.#left -= bytes
  }

  give(bytes: number): void {
    this.#left += bytes
  }
}

/** Collects chunks; each is copied, because it is only valid during the call. */
export class BodyReader {
  readonly #limit: number
  readonly #budget: BodyBudget | undefined
  #chunks: Buffer[] = []
  #bytes = 0

  /**
   * @param announced length that the head gives; 0 = none
   * @throws {StatusError} 413, when it is above the limit
   */
  constructor(limit: number, announced: number, budget?: BodyBudget) {
    this.#limit = limit
    this.#budget = budget
    if (announced > limit) throw this.#tooLarge()
  }

  /** @throws {StatusError} 413, 429 */
  add(chunk: Buffer): void {
    if (this.#bytes + chunk.length > this.#limit) {
      this.drop()
      throw this.#tooLarge()
    }
    if (chunk.length === 0) return
    this.#budget?.take(chunk.length)
    this.#bytes += chunk.length
    this.#chunks.push(Buffer.from(chunk))
  }

  /** All of it. The reader is empty afterwards. */
  bytes(): Buffer {
    const whole = Buffer.concat(this.#chunks)
    this.drop()
    return whole
  }

  #tooLarge(): Error {
    return statusError('RequestEntityTooLarge', `Request entity too large: limit is ${this.#limit}`)
  }

  drop(): void {
    this.#budget?.give(this.#bytes)
    this.#bytes = 0
    this.#chunks = []
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
