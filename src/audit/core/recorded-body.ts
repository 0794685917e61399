// Bodies being recorded. Their memory in a thread is divided among users, so that no user can push the bodies of others out of the audit
// log.

import { listOf } from '../../kit/api/json/object-shape.ts'
import { RESERVE_OF, Shares } from '../../kit/core/shares/shares.ts'
import { BodyPieces } from '../../kube/core/answers/body-pieces.ts'

/** Bytes in total. */
export const MAX_RECORDED_BYTES: number = 32 * 1024 * 1024
/** Bytes per user. */
export const MAX_RECORDED_BYTES_PER_USER: number = 8 * 1024 * 1024

/** The memory of recorded bodies. The reserve of `Shares` is included in the total, not on top of it. */
export function recordedMemory(): Shares {
  return new Shares(MAX_RECORDED_BYTES - MAX_RECORDED_BYTES / RESERVE_OF)
}

/** A body recorded up to a limit. */
export class RecordedBody {
  readonly #memory: Shares
  readonly #user: string
  /** Bytes. */
  readonly limit: number
  readonly #pieces: BodyPieces = new BodyPieces()
  #bytes = 0
  /** Why it is incomplete; '' = it is complete. */
  #missing = ''

  constructor(memory: Shares, user: string, limit: number) {
    this.#memory = memory
    this.#user = user
    this.limit = limit
  }

  /** Copies the chunk. */
  add(chunk: Buffer): void {
    if (this.#missing !== '' || chunk.length === 0) return
    if (this.#bytes + chunk.length > this.limit) this.#giveUp(`it is larger than ${this.limit} bytes`)
    else if (!this.#take(chunk.length)) this.#giveUp('there was no memory for it')
    else {
      this.#bytes += chunk.length
      this.#pieces.add(chunk)
    }
  }

  get missing(): string {
    return this.#missing
  }

  /** The whole body; call once. Releases the memory. */
  take(): Buffer {
    const body = Buffer.concat(this.#pieces.take())
    this.discard()
    return body
  }

  discard(): void {
    if (this.#bytes > 0) this.#memory.give(this.#user, this.#bytes)
    this.#bytes = 0
    this.#pieces.clear()
  }

  #take(bytes: number): boolean {
    const own = this.#memory.heldBy(this.#user)
    return own + bytes <= MAX_RECORDED_BYTES_PER_USER && this.#memory.take(this.#user, 1, bytes) === 'taken'
  }

  #giveUp(why: string): void {
    this.#missing = why
    this.discard()
  }
}

// Sanitizes a body for an audit event: JSON without values that must not be logged. kube-apiserver records Secrets and leaves them to the
// policy; here their values never get into an event.

/** The resource of the request, as in RequestInfo. */
interface RecordedResource {
  readonly apiGroup: string
  readonly resource: string
  readonly subresource: string
}

export interface RecordedObject {
  /** JSON on one line; '' = none, for the reason in `why`. */
  readonly json: string
  readonly why: string
  /** The parsed value, before anything was removed. */
  readonly value: unknown
}

const REDACTED = 'REDACTED'
const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration'
const PROTOBUF_MAGIC = 'k8s\0'

/**
 * @param omitManagedFields of objects and of list items; patches are recorded unchanged
 * @param isPatch whether it is the body of a PATCH
 */
export function recordObject(
  body: Buffer,
  about: RecordedResource,
  omitManagedFields: boolean,
  isPatch: boolean,
): RecordedObject {
  if (body.toString('latin1', 0, PROTOBUF_MAGIC.length) === PROTOBUF_MAGIC) return none('its encoding is Protobuf')
  let value: unknown
  try {
    const text = body.toString()
    value = JSON.parse(text)
    const changed = sensitive(about) || (omitManagedFields && !isPatch)
    // Unchanged: numbers keep their digits, keys their order. Line breaks in JSON occur only between tokens.
    const json = changed ? JSON.stringify(cleaned(JSON.parse(text), about, omitManagedFields, isPatch)) : oneLine(text)
    return { json, why: '', value }
  } catch {
    return none('its encoding is not JSON')
  }
}

/** Mutable: it was parsed for this purpose. */
function isMap(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function none(why: string): RecordedObject {
  return { json: '', why, value: undefined }
}

function oneLine(text: string): string {
  return /[\r\n]/.test(text) ? text.replace(/[\r\n]+/g, ' ').trim() : text.trim()
}

function sensitive({ apiGroup, resource, subresource }: RecordedResource): boolean {
  if (apiGroup === 'authentication.k8s.io') return true
  return apiGroup === '' && (resource === 'secrets' || (resource === 'serviceaccounts' && subresource === 'token'))
}

function cleaned(value: unknown, about: RecordedResource, omitManagedFields: boolean, isPatch: boolean): unknown {
  const clean = (object: unknown): void => {
    if (!isMap(object)) return
    if (omitManagedFields && !isPatch && isMap(object['metadata'])) delete object['metadata']['managedFields']
    if (sensitive(about)) redact(object, about)
  }
  if (Array.isArray(value)) {
    // A JSON patch: its paths may address any part of the object.
    for (const operation of value) if (sensitive(about) && isMap(operation)) hide(operation, 'value')
    return value
  }
  clean(value)
  if (!isMap(value)) return sensitive(about) ? REDACTED : value
  for (const item of listOf(value['items'])) clean(item)
  for (const row of listOf(value['rows'])) if (isMap(row)) clean(row['object'])
  return value
}

function redact(object: Record<string, unknown>, { resource }: RecordedResource): void {
  if (resource === 'secrets') {
    hideValues(object, 'data')
    hideValues(object, 'stringData')
    const { metadata } = object
    if (isMap(metadata) && isMap(metadata['annotations'])) hide(metadata['annotations'], LAST_APPLIED)
    return
  }
  // TokenRequest has its token in status, TokenReview in spec.
  for (const part of [object['spec'], object['status']]) if (isMap(part)) hide(part, 'token')
}

function hide(object: Record<string, unknown>, key: string): void {
  if (object[key] !== undefined) object[key] = REDACTED
}

function hideValues(object: Record<string, unknown>, key: string): void {
  const values = object[key]
  if (isMap(values)) for (const name of Object.keys(values)) hide(values, name)
  else hide(object, key)
}
