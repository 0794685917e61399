// Objects as shown to role view: without their keys and tokens, and without copies of these in annotations
// (kubectl apply keeps the whole object in one). Every response and watch event passes through here, in whatever form.

import type { JsonObject } from '../../kit/api/json/json-object.ts'
import { isRecord } from '../../kit/api/json/object-shape.ts'
import { REDACTED_BASE64 } from '../../kit/api/validation/redacted.ts'
import { holdsPrivateKey, mentionsInlineSecret } from '../../kube/api/kinds/inline-secrets.ts'
import type { ResourceKind } from '../../kube/api/resource-kind.ts'
import type { UserInfo } from '../../kube/api/user.ts'
import { type RoleBindings, roleOf } from './authorize.ts'

/** The object as the caller may see it. Never mutates the object. */
export type Shown = (kind: ResourceKind, object: JsonObject) => JsonObject

/** Only role admin, which may write them, sees keys and tokens. */
export function shownTo(bindings: RoleBindings, user: UserInfo | 'anonymous'): Shown {
  return user !== 'anonymous' && roleOf(bindings, user) === 'admin' ? (_kind, object) => object : redacted
}

/** Objects of the store are shared and never change: one copy serves all lists and watches. */
const remembered = new WeakMap<JsonObject, JsonObject>()

/** The object itself if there is nothing to hide. */
function redacted(kind: ResourceKind, object: JsonObject): JsonObject {
  if (kind.inlineSecrets === undefined && kind.certificateFields === undefined) return object
  const known = remembered.get(object)
  if (known !== undefined) return known
  const copy = withoutCopies(kind, hidden(kind, object), secretsOf(kind, object))
  remembered.set(object, copy)
  return copy
}

function hidden(kind: ResourceKind, object: JsonObject): JsonObject {
  let copy = object
  for (const path of kind.inlineSecrets ?? []) copy = replaced(copy, path, () => true)
  for (const path of kind.certificateFields ?? []) copy = replaced(copy, path, holdsPrivateKey)
  return copy
}

/** A copy with the value at `path` redacted, if there is one. */
function replaced(object: JsonObject, path: readonly string[], hides: (value: string) => boolean): JsonObject {
  const [field = '', ...rest] = path
  const value = Object.hasOwn(object, field) ? object[field] : undefined
  if (rest.length > 0) {
    if (!isRecord(value)) return object
    const inner = replaced(value, rest, hides)
    return inner === value ? object : { ...object, [field]: inner }
  }
  // An empty value means that none is set: show it.
  if (value === undefined || value === null || value === '') return object
  return typeof value === 'string' && !hides(value) ? object : { ...object, [field]: REDACTED_BASE64 }
}

/** Shorter strings could match by chance. */
const SHORTEST_TOKEN = 8

function secretsOf(kind: ResourceKind, object: JsonObject): readonly string[] {
  const found: string[] = []
  for (const path of kind.inlineSecrets ?? []) {
    let value: unknown = object
    for (const field of path) value = isRecord(value) && Object.hasOwn(value, field) ? value[field] : undefined
    if (typeof value !== 'string' || value === '') continue
    found.push(value)
    const plain = Buffer.from(value, 'base64').toString('utf8').trim()
    if (plain.length >= SHORTEST_TOKEN) found.push(plain)
  }
  return found
}

/** Drops annotations that contain a secret, or possibly an earlier one: a redacted copy would be useless. */
function withoutCopies(kind: ResourceKind, object: JsonObject, secrets: readonly string[]): JsonObject {
  const { metadata } = object
  const annotations = isRecord(metadata) ? metadata['annotations'] : undefined
  if (!isRecord(metadata) || !isRecord(annotations)) return object
  const all = Object.entries(annotations)
  const kept = all.filter(([, value]) => typeof value === 'string' && !holdsCopy(kind, value, secrets))
  if (kept.length === all.length) return object
  const rest: JsonObject = Object.fromEntries(Object.entries(metadata).filter(([field]) => field !== 'annotations'))
  const shown = kept.length === 0 ? rest : { ...rest, annotations: Object.fromEntries(kept) }
  return { ...object, metadata: shown }
}

function holdsCopy(kind: ResourceKind, text: string, secrets: readonly string[]): boolean {
  return (
    mentionsInlineSecret(kind, text) || text.includes('PRIVATE KEY') || secrets.some((secret) => text.includes(secret))
  )
}
