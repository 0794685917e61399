// The two patches that custom resources accept besides apply: merge patch (RFC 7396) and JSON patch (RFC 6902), with kube-apiserver's
// refusals (k8s.io/apiserver/pkg/endpoints/handlers/patch.go). An operation of a JSON patch is applied as gopkg.in/evanphx/json-patch.v4 does. Its
// cost is proportional to its own size, or is counted: a patch costs as much as it is long, whatever it does.

import type { JsonObject } from '../../../kit/api/json/json-object.ts'
import { isRecord } from '../../../kit/api/json/object-shape.ts'
import { type StatusError, statusError } from '../../api/status.ts'

/** Characters that all `copy` operations of a patch may add together: a few of them could double an object again and again. */
const MAX_COPIED = 3 * 1024 * 1024
/** Items and members that all operations may shift or compare: each insertion at the head of a list moves all of it. */
const MAX_MOVED = 5_000_000
/** Names with a special meaning in JavaScript; no Kubernetes object has them. */
const RESERVED: ReadonlySet<string> = new Set(['__proto__', 'constructor', 'prototype'])
export const MAX_PATCH_OPERATIONS = 10_000

/**
 * Merges the patch into the target; neither is modified. Null removes a member, lists are replaced as a whole.
 * @throws {StatusError} 400 if the patch is not an object
 */
export function mergePatch(target: JsonObject, patch: unknown): unknown {
  if (patch === null) throw statusError('BadRequest', 'Invalid JSON Patch')
  if (!isRecord(patch)) throw undecodable(patch, 'value of type map[string]interface {}')
  return merged(target, patch)
}

function merged(target: unknown, patch: unknown): unknown {
  if (!isRecord(patch)) return patch
  const members = new Map(isRecord(target) ? Object.entries(target) : [])
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) members.delete(key)
    else members.set(key, merged(members.get(key), value))
  }
  return Object.fromEntries(members)
}

/**
 * The target after all operations; the target itself is not modified.
 * @throws {StatusError} 400 if the operations are malformed, 413 if there are more than 10,000 or they cost too much, 422 if one of them
 * does not apply: then nothing has happened
 */
export function jsonPatch(target: JsonObject, operations: unknown): unknown {
  const list = operationsOf(operations)
  const work = new PatchWork()
  // Wrapped in a member, so that an operation may replace the whole object.
  const document: { root: unknown } = { root: structuredClone(target) }
  for (const operation of list) if (!applyOperation(document, operation, work)) throw doesNotApply()
  if (!isRecord(document.root)) throw doesNotApply()
  return document.root
}

/** kube-apiserver's answer to any operation that can't be applied, including a failed test; it gives no reason. */
function doesNotApply(): StatusError {
  return statusError('Invalid', 'the server rejected our request due to an error in our request', {})
}

function undecodable(value: unknown, target: string): StatusError {
  const type = Array.isArray(value)
    ? 'array'
    : value === null
      ? 'null'
      : typeof value === 'boolean'
        ? 'bool'
        : typeof value
  return statusError('BadRequest', `error decoding patch: json: cannot unmarshal ${type} into Go ${target}`)
}

function operationsOf(operations: unknown): readonly Operation[] {
  if (operations === null) return []
  if (!Array.isArray(operations)) throw undecodable(operations, 'value of type []handlers.jsonPatchOp')
  if (operations.length > MAX_PATCH_OPERATIONS) {
    const limit = `The allowed maximum operations in a JSON patch is ${MAX_PATCH_OPERATIONS}, got ${operations.length}`
    throw statusError('RequestEntityTooLarge', `Request entity too large: ${limit}`)
  }
  return operations.map((operation: unknown) => {
    if (!isRecord(operation)) throw undecodable(operation, 'value of type handlers.jsonPatchOp')
    for (const key of ['op', 'path', 'from']) {
      const value = operation[key]
      if (value !== undefined && value !== null && typeof value !== 'string') {
        throw undecodable(value, `struct field jsonPatchOp.${key} of type string`)
      }
    }
    return operationOf(operation)
  })
}

function operationOf({ op, path, from, value = null }: JsonObject): Operation {
  if (typeof path !== 'string' || !isPointer(path)) throw doesNotApply()
  switch (op) {
    case 'add':
    case 'replace':
    case 'test':
      return { op, path, value }
    case 'remove':
      return { op, path }
    case 'copy':
    case 'move':
      if (typeof from !== 'string' || !isPointer(from)) throw doesNotApply()
      return { op, path, from }
    default:
      throw doesNotApply()
  }
}

type Operation =
  | { readonly op: 'add' | 'replace' | 'test'; readonly path: string; readonly value: unknown }
  | { readonly op: 'remove'; readonly path: string }
  | { readonly op: 'copy' | 'move'; readonly path: string; readonly from: string }

/** The cost of a patch so far. */
class PatchWork {
  #copied = 0
  #moved = 0

  /** A deep copy of a JSON value; undefined if the patch copies too much. */
  copy(value: unknown): unknown {
    const text = JSON.stringify(value)
    this.#copied += text.length
    // Several times faster than structuredClone, and the text already exists.
    return this.#copied <= MAX_COPIED ? JSON.parse(text) : undefined
  }

  /** @throws {StatusError} 413 */
  move(items: number): void {
    this.#moved += items
    if (this.#moved <= MAX_MOVED) return
    const limit = `the operations of the patch move or compare more than ${MAX_MOVED} items and members, the limit of this server`
    throw statusError('RequestEntityTooLarge', `Request entity too large: ${limit}: replace the list or map as a whole`)
  }
}

function isPointer(text: string): boolean {
  return text === '' || text.startsWith('/')
}

/**
 * Modifies the document. @returns false if the operation can't be applied
 * @throws {StatusError} 413
 */
function applyOperation(document: { root: unknown }, operation: Operation, work: PatchWork): boolean {
  const path = placeOf(document, operation.path)
  switch (operation.op) {
    case 'test': {
      const held = path === undefined ? undefined : valueAt(path)
      return held !== undefined && equals(held, operation.value, work)
    }
    case 'add':
      return path !== undefined && add(path, structuredClone(operation.value), work)
    case 'replace':
      return path !== undefined && replace(path, structuredClone(operation.value), work)
    case 'remove':
      return path !== undefined && remove(path, work)
    case 'copy': {
      const from = placeOf(document, operation.from)
      const value = from === undefined ? undefined : valueAt(from)
      const copy = value === undefined || path === undefined ? undefined : work.copy(value)
      return path !== undefined && copy !== undefined && add(path, copy, work)
    }
    case 'move':
      return move(document, operation.from, operation.path, work)
  }
}

function move(document: { root: unknown }, from: string, to: string, work: PatchWork): boolean {
  // A value can't be moved into itself (RFC 6902 section 4.4).
  if (to.startsWith(`${from}/`)) return false
  const source = placeOf(document, from)
  const value = source === undefined ? undefined : valueAt(source)
  if (source === undefined || value === undefined || !remove(source, work)) return false
  // Resolved only after the removal: indexes behind the value have changed.
  const target = placeOf(document, to)
  return target !== undefined && add(target, value, work)
}

/** The last step of a pointer, and its container. */
interface Place {
  readonly parent: object
  readonly key: string
}

/** undefined if there is no container for the last step. */
function placeOf(document: { root: unknown }, pointer: string): Place | undefined {
  if (pointer === '') return { parent: document, key: 'root' }
  const tokens = pointer.slice(1).split('/').map(unescaped)
  const key = tokens.pop() ?? ''
  let parent: unknown = document.root
  for (const token of tokens) {
    if (typeof parent !== 'object' || parent === null) return undefined
    parent = valueAt({ parent, key: token })
  }
  return typeof parent === 'object' && parent !== null ? { parent, key } : undefined
}

/** RFC 6901 section 4. */
function unescaped(token: string): string {
  return token.includes('~') ? token.replaceAll('~1', '/').replaceAll('~0', '~') : token
}

/** Own members only; undefined = absent. */
function valueAt({ parent, key }: Place): unknown {
  if (RESERVED.has(key) || (Array.isArray(parent) && indexOf(key) === undefined)) return undefined
  return Object.hasOwn(parent, key) ? (parent as Readonly<Record<string, unknown>>)[key] : undefined
}

function indexOf(key: string): number | undefined {
  return /^(0|[1-9][0-9]{0,8})$/.test(key) ? Number(key) : undefined
}

function add({ parent, key }: Place, value: unknown, work: PatchWork): boolean {
  if (RESERVED.has(key)) return false
  if (!Array.isArray(parent)) {
    Object.assign(parent, { [key]: value })
    return true
  }
  const index = key === '-' ? parent.length : indexOf(key)
  if (index === undefined || index > parent.length) return false
  work.move(parent.length - index)
  parent.splice(index, 0, value)
  return true
}

/** RFC 6902 requires a replaced member to exist; Kubernetes adds it. */
function replace(place: Place, value: unknown, work: PatchWork): boolean {
  const { parent, key } = place
  if (valueAt(place) === undefined) return !Array.isArray(parent) && add(place, value, work)
  Object.assign(parent, { [key]: value })
  return true
}

function remove(place: Place, work: PatchWork): boolean {
  const { parent, key } = place
  if (valueAt(place) === undefined) return false
  if (Array.isArray(parent)) {
    const index = indexOf(key) ?? 0
    work.move(parent.length - index)
    parent.splice(index, 1)
  } else Reflect.deleteProperty(parent, key)
  return true
}

/** Counts the existing value: a short one may be compared with a long one again and again. */
function equals(held: unknown, value: unknown, work: PatchWork): boolean {
  if (held === value) return true
  if (Array.isArray(held)) {
    if (!Array.isArray(value) || value.length !== held.length) return false
    work.move(held.length)
    return held.every((item, at) => equals(item, value[at], work))
  }
  if (!isRecord(held) || !isRecord(value)) return false
  const keys = Object.keys(held)
  work.move(keys.length)
  if (Object.keys(value).length !== keys.length) return false
  return keys.every((key) => Object.hasOwn(value, key) && equals(held[key], value[key], work))
}
