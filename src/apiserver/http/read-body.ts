// The whole body of a request, and its format.

import type { JsonObject } from '../../kit/api/json/json-object.ts'
import { isRecord } from '../../kit/api/json/object-shape.ts'
import type { Charge } from '../../kit/api/stream.ts'
import { statusError } from '../../kube/api/status.ts'
import { BodyPieces } from '../../kube/core/answers/body-pieces.ts'
import { decodeObject, MAX_SMALL_YAML_LENGTH, YamlTooLong } from '../../kube/core/objects/strict-decode.ts'
import type { PortMemory } from './port-memory.ts'

/** kube-apiserver's limit (apiserver/pkg/server/config.go, MaxRequestBodyBytes). */
export const MAX_BODY_BYTES: number = 3 * 1024 * 1024

/** Limit for self reviews, which every authenticated user may send, and for DeleteOptions: they are a few hundred bytes. */
export const MAX_SMALL_BYTES: number = 16 * 1024

/**
 * Decodes such a body.
 * @throws {StatusError} 400 if it is not an object, 413 for YAML that is not JSON and above MAX_SMALL_YAML_LENGTH
 */
export function decodeSmallBody(text: string, format: 'json' | 'yaml'): JsonObject {
  try {
    const { value } = decodeObject(text, format, MAX_SMALL_YAML_LENGTH)
    if (isRecord(value)) return value
  } catch (error) {
    if (error instanceof YamlTooLong) throw yamlTooLarge(error.limit)
    if (!(error instanceof SyntaxError)) throw error
    throw statusError('BadRequest', `couldn't get version/kind; json parse error: ${error.message}`)
  }
  throw statusError('BadRequest', "couldn't get version/kind; json parse error: the body is not an object")
}

function yamlTooLarge(limit: number): Error {
  const instead = `send JSON, which may have ${MAX_SMALL_BYTES} bytes`
  return statusError(
    'RequestEntityTooLarge',
    `Request entity too large: limit is ${limit} characters for YAML that is not JSON; ${instead}`,
  )
}

/** Collects a body. */
export class BodyReader {
  readonly #limit: number
  readonly #memory: PortMemory
  readonly #charge: Charge
  readonly #pieces: BodyPieces = new BodyPieces()
  #bytes = 0

  /**
   * @param announced Content-Length; 0 = none
   * @param charge charged for what is collected
   * @throws {StatusError} 413, if it is above the limit
   */
  constructor(limit: number, announced: number, memory: PortMemory, charge: Charge) {
    this.#limit = limit
    this.#memory = memory
    this.#charge = charge
    if (announced > limit) throw this.#tooLarge()
  }

  /** @throws {StatusError} 413, 429 */
  add(chunk: Buffer): void {
    if (this.#bytes + chunk.length > this.#limit) {
      this.drop()
      throw this.#tooLarge()
    }
    if (chunk.length === 0) return
    this.#take(chunk.length)
    this.#bytes += chunk.length
    this.#pieces.add(chunk)
  }

  /** The whole body. The reader is empty afterwards. */
  bytes(): Buffer {
    const whole = Buffer.concat(this.#pieces.take())
    this.drop()
    return whole
  }

  #tooLarge(): Error {
    return statusError('RequestEntityTooLarge', `Request entity too large: limit is ${this.#limit}`)
  }

  /** On refusal, releases what was received before. */
  #take(bytes: number): void {
    try {
      this.#memory.receive(this.#charge, bytes)
    } catch (error) {
      this.drop()
      throw error
    }
  }

  drop(): void {
    if (this.#bytes > 0) this.#memory.give(this.#charge, this.#bytes)
    this.#bytes = 0
    this.#pieces.clear()
  }
}

/** The format of a body that holds an object. Without a type it is JSON, as in kube-apiserver. @throws {StatusError} 415 */
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
