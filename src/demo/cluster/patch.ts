// DEMO ONLY. The patch types: RFC 7386 merge patch, RFC 6902 JSON patch, and as much of the strategic merge patch as
// kubectl apply, edit, set and label send for the demo's kinds.

import { sameJson } from '../../core/text/same-json.ts'
import { badRequest } from './api-error.ts'
import { isJson, type Json } from './json.ts'

/** RFC 7386. */
export function mergePatch(target: unknown, patch: unknown): unknown {
  if (!isJson(patch)) return patch
  const merged: Record<string, unknown> = isJson(target) ? { ...target } : {}
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete merged[key]
    else merged[key] = mergePatch(merged[key], value)
  }
  return merged
}

/**
 * Lists of these fields are merged by a key (`patchMergeKey` in kubernetes/api types.go); every other list is replaced.
 * The first key counts that all new elements have: a container's ports go by containerPort, a service's by port.
 */
const MERGE_KEYS: Readonly<Record<string, readonly string[]>> = {
  addresses: ['type'],
  conditions: ['type'],
  containers: ['name'],
  env: ['name'],
  ephemeralContainers: ['name'],
  hostAliases: ['ip'],
  imagePullSecrets: ['name'],
  initContainers: ['name'],
  ownerReferences: ['uid'],
  ports: ['containerPort', 'port'],
  secrets: ['name'],
  volumeMounts: ['mountPath'],
  volumes: ['name'],
}

/** apimachinery/pkg/util/strategicpatch: `$patch`, `$deleteFromPrimitiveList/x`; orders and `$retainKeys` are ignored. */
export function strategicPatch(target: unknown, patch: unknown): unknown {
  if (!isJson(patch)) return patch
  if (patch['$patch'] === 'delete') return undefined
  const merged: Record<string, unknown> = isJson(target) && patch['$patch'] !== 'replace' ? { ...target } : {}
  for (const [key, value] of Object.entries(patch)) {
    if (key.startsWith('$deleteFromPrimitiveList/')) removeFrom(merged, key.slice(key.indexOf('/') + 1), value)
    else if (key.startsWith('$')) continue
    else if (value === null) delete merged[key]
    else if (Array.isArray(value)) merged[key] = patchList(key, merged[key], value)
    else merged[key] = strategicPatch(merged[key], value)
  }
  return merged
}

function patchList(field: string, target: unknown, patch: readonly unknown[]): unknown[] {
  const key = MERGE_KEYS[field]?.find((one) => patch.every((element) => isJson(element) && one in element))
  if (key === undefined || !Array.isArray(target)) return patch.filter((one) => !isDirective(one))
  let merged: unknown[] = [...target]
  for (const element of patch) {
    if (!isJson(element)) continue
    const at = merged.findIndex((one) => isJson(one) && one[key] === element[key])
    if (element['$patch'] === 'delete') merged = merged.filter((_, i) => i !== at)
    else if (at < 0) merged.push(strategicPatch({}, element))
    else merged[at] = strategicPatch(merged[at], element)
  }
  return merged
}

function isDirective(element: unknown): boolean {
  return isJson(element) && '$patch' in element
}

function removeFrom(merged: Record<string, unknown>, field: string, values: unknown): void {
  const list = merged[field]
  if (Array.isArray(list) && Array.isArray(values)) merged[field] = list.filter((one) => !values.includes(one))
}

/** RFC 6902. Throws a 400 for an operation that cannot be done, as kube-apiserver's 422 is of no use in a demo. */
export function jsonPatch(target: unknown, operations: unknown): unknown {
  if (!Array.isArray(operations)) throw badRequest('a JSON patch is a list of operations')
  let document: unknown = structuredClone(target)
  for (const operation of operations) {
    if (!isJson(operation)) throw badRequest('a JSON patch operation is an object')
    document = applyOperation(document, operation)
  }
  return document
}

function applyOperation(document: unknown, operation: Json): unknown {
  const path = pointer(operation['path'])
  switch (operation['op']) {
    case 'add':
      return set(document, path, operation['value'], true)
    case 'replace':
      read(document, path)
      return set(document, path, operation['value'], false)
    case 'remove':
      return remove(document, path)
    case 'test':
      if (!sameJson(read(document, path), operation['value'])) throw badRequest(`test failed: ${path.join('/')}`)
      return document
    case 'copy':
      return set(document, path, structuredClone(read(document, pointer(operation['from']))), true)
    case 'move': {
      const from = pointer(operation['from'])
      return set(remove(document, from), path, read(document, from), true)
    }
    default:
      throw badRequest(`unknown JSON patch operation: ${String(operation['op'])}`)
  }
}

function pointer(value: unknown): string[] {
  if (typeof value !== 'string' || (value !== '' && !value.startsWith('/'))) throw badRequest('not a JSON pointer')
  return value === ''
    ? []
    : value
        .slice(1)
        .split('/')
        .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
}

function read(document: unknown, path: readonly string[]): unknown {
  let at: unknown = document
  for (const key of path) {
    at = Array.isArray(at) ? at[Number(key)] : isJson(at) ? at[key] : undefined
    if (at === undefined) throw badRequest(`no such field: /${path.join('/')}`)
  }
  return at
}

function set(document: unknown, path: readonly string[], value: unknown, insert: boolean): unknown {
  const [key, ...rest] = path
  if (key === undefined) return value
  if (Array.isArray(document)) {
    const list: unknown[] = [...document]
    const at = key === '-' ? list.length : Number(key)
    if (rest.length === 0) list.splice(at, insert ? 0 : 1, value)
    else list[at] = set(list[at], rest, value, insert)
    return list
  }
  if (!isJson(document)) throw badRequest(`no such field: ${key}`)
  return { ...document, [key]: set(document[key], rest, value, insert) }
}

function remove(document: unknown, path: readonly string[]): unknown {
  read(document, path)
  const [key = '', ...rest] = path
  if (Array.isArray(document)) {
    const list: unknown[] = [...document]
    if (rest.length === 0) list.splice(Number(key), 1)
    else list[Number(key)] = remove(list[Number(key)], rest)
    return list
  }
  if (!isJson(document)) return document
  const { [key]: value, ...others } = document
  return rest.length === 0 ? others : { ...document, [key]: remove(value, rest) }
}
