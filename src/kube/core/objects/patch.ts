// The two patches that custom resources accept besides apply: merge patch (RFC 7396) and JSON patch (RFC 6902), with kube-apiserver's
// refusals (k8s.io/apiserver/pkg/endpoints/handlers/patch.go).

import type { JsonObject } from '../../../kit/api/json/json-object.ts'
import { isRecord } from '../../../kit/api/json/object-shape.ts'
import { type StatusError, statusError } from '../../api/status.ts'
import { applyOperation, isPointer, type Operation, PatchWork } from './json-patch-operation.ts'

const MAX_OPERATIONS = 10_000

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
  if (operations.length > MAX_OPERATIONS) {
    const limit = `The allowed maximum operations in a JSON patch is ${MAX_OPERATIONS}, got ${operations.length}`
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
