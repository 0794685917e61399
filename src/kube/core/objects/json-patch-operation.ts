// One operation of a JSON patch (RFC 6902), as kube-apiserver applies it (gopkg.in/evanphx/json-patch.v4). What an operation costs
// is in proportion to what it names, or is counted: a patch is as dear as it is long, whatever it does.

import { isRecord } from '../../../kit/api/json/object-shape.ts'
import { statusError } from '../../api/status.ts'

export type Operation =
  | { readonly op: 'add' | 'replace' | 'test'; readonly path: string; readonly value: unknown }
  | { readonly op: 'remove'; readonly path: string }
  | { readonly op: 'copy' | 'move'; readonly path: string; readonly from: string }

/** Characters that all `copy` operations of a patch may add together: a few of them double an object again and again. */
const MAX_COPIED = 3 * 1024 * 1024
/** Items and members that all operations may make way for or compare: each insertion at the head of a list moves all of it. */
const MAX_MOVED = 5_000_000
/** Names that JavaScript gives a meaning of its own; no object of Kubernetes has them. */
const RESERVED: ReadonlySet<string> = new Set(['__proto__', 'constructor', 'prototype'])

/** What a patch has cost so far. */
export class PatchWork {
  #copied = 0
  #moved = 0

  /** A copy of a value of JSON; undefined when the patch copies too much. */
  copy(value: unknown): unknown {
    const text = JSON.stringify(value)
    this.#copied += text.length
    // Several times as fast as structuredClone, and the text is there.
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

export function isPointer(text: string): boolean {
  return text === '' || text.startsWith('/')
}

/**
 * Changes the document. @returns false when the operation cannot be done
 * @throws {StatusError} 413
 */
export function applyOperation(document: { root: unknown }, operation: Operation, work: PatchWork): boolean {
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
  // A place cannot move into itself (RFC 6902 section 4.4).
  if (to.startsWith(`${from}/`)) return false
  const source = placeOf(document, from)
  const value = source === undefined ? undefined : valueAt(source)
  if (source === undefined || value === undefined || !remove(source, work)) return false
  // Looked up now that the value is gone: indexes behind it are others.
  const target = placeOf(document, to)
  return target !== undefined && add(target, value, work)
}

/** The last step of a pointer, and what it is taken in. */
interface Place {
  readonly parent: object
  readonly key: string
}

/** undefined when there is nothing in which the last step could be taken. */
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

/** By own members only; undefined = there is none. */
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

/** RFC 6902 wants a member that is replaced to exist; Kubernetes adds it. */
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

/** What is there is counted: a short value may be compared with a long one again and again. */
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
