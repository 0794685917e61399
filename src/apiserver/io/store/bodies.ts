// Stored objects: JSON text, sealed with AES-256-GCM (NIST SP 800-38D) if they are Secrets, or contain keys and tokens inline. A sealed body is bound
// to its key and revision: it cannot be replaced by an old one, or another Secret's.

import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import { UPSTREAM_CLUSTERS } from '../../../gateway/api/upstream-cluster-kind.ts'
import type { JsonObject } from '../../../kit/api/json/json-object.ts'
import { mayHoldSecret } from '../../../kube/api/kinds/inline-secrets.ts'
import { type ResourceKind, resourceName } from '../../../kube/api/resource-kind.ts'
import { statusError } from '../../../kube/api/status.ts'
import type { ObjectKey } from '../../api/object-store.ts'
import { StoreDamaged } from './errors.ts'

/** Sealed bodies are bytes: nonce (12), cipher text, tag (16). */
export type Body = string | Uint8Array

const SEALED_RESOURCE = 'secrets'
const CIPHER = 'aes-256-gcm'
const NONCE_BYTES = 12
const TAG_BYTES = 16

/** The authentication tag does not match: another key, or modified bytes. */
export class SealBroken extends StoreDamaged {}

export class ObjectBodies {
  readonly #key: Buffer | undefined

  /** @param key 32 bytes; undefined = Secrets can be neither written nor read */
  constructor(key: Buffer | undefined) {
    if (key !== undefined && key.length !== 32) throw new RangeError(`the key has ${key.length} bytes, not 32`)
    this.#key = key
  }

  /** @throws {StatusError} for a Secret without a key */
  encode(key: ObjectKey, revision: number, json: string): Body {
    return isSecret(key, json) ? this.seal(contextOf(key, revision), json) : json
  }

  /** Re-encrypts a body of another store, or of this one under another key. @param from opens it @throws {SealBroken} */
  reseal(key: ObjectKey, revision: number, body: Uint8Array, from: ObjectBodies): Uint8Array {
    const context = contextOf(key, revision)
    return this.seal(context, from.open(context, body))
  }

  /** Deeply frozen. @throws {SealBroken} */
  decode(key: ObjectKey, revision: number, body: Body): JsonObject {
    if (typeof body !== 'string') return parse(this.open(contextOf(key, revision), body), key)
    if (key.resource === SEALED_RESOURCE) {
      throw new SealBroken(`Secret ${key.namespace}/${key.name} is not encrypted in the store`)
    }
    return parse(body, key)
  }

  /** @param context additional authenticated data; opening needs the same */
  seal(context: string, text: string): Uint8Array {
    const nonce = randomBytes(NONCE_BYTES)
    const cipher = createCipheriv(CIPHER, this.#secretKey(), nonce)
    cipher.setAAD(Buffer.from(context))
    const sealed = [nonce, cipher.update(text, 'utf8'), cipher.final()]
    return Buffer.concat([...sealed, cipher.getAuthTag()])
  }

  /** @throws {SealBroken} */
  open(context: string, sealed: Uint8Array): string {
    const bytes = Buffer.from(sealed.buffer, sealed.byteOffset, sealed.byteLength)
    try {
      const options = { authTagLength: TAG_BYTES }
      const decipher = createDecipheriv(CIPHER, this.#secretKey(), bytes.subarray(0, NONCE_BYTES), options)
      decipher.setAAD(Buffer.from(context))
      decipher.setAuthTag(bytes.subarray(bytes.length - TAG_BYTES))
      const text = decipher.update(bytes.subarray(NONCE_BYTES, bytes.length - TAG_BYTES))
      return Buffer.concat([text, decipher.final()]).toString('utf8')
    } catch {
      throw new SealBroken('the key does not open a Secret')
    }
  }

  #secretKey(): Buffer {
    if (this.#key === undefined) throw statusError('InternalError', 'Secrets cannot be kept: the store has no key file')
    return this.#key
  }
}

/** Kinds that may contain keys and tokens inline: all those of the scheme whose row says so, which a test compares. */
export const KINDS_WITH_INLINE_SECRETS: readonly ResourceKind[] = [UPSTREAM_CLUSTERS]

const WITH_INLINE_SECRETS: ReadonlyMap<string, ResourceKind> = new Map(
  KINDS_WITH_INLINE_SECRETS.map((kind) => [resourceName(kind), kind]),
)

function isSecret({ resource }: ObjectKey, json: string): boolean {
  if (resource === SEALED_RESOURCE) return true
  const kind = WITH_INLINE_SECRETS.get(resource)
  return kind !== undefined && mayHoldSecret(kind, json)
}

function contextOf({ resource, namespace, name }: ObjectKey, revision: number): string {
  return JSON.stringify([resource, namespace, name, revision])
}

function parse(json: string | undefined, key: ObjectKey): JsonObject {
  let value: unknown
  try {
    value = JSON.parse(json ?? '')
  } catch {
    // Falls through: not an object.
  }
  if (!isObject(value)) throw new StoreDamaged(`no object: ${key.resource} ${key.namespace}/${key.name}`)
  freeze(value)
  return value
}

/** One object is shared by all readers: a change would affect all of them. */
function freeze(value: unknown): void {
  if (typeof value !== 'object' || value === null) return
  Object.freeze(value)
  for (const inner of Object.values(value)) freeze(inner)
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
