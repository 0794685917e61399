// The metadata of custom resources as kube-apiserver writes it on its own: with the keys in the order of Go's ObjectMeta
// (apimachinery/pkg/apis/meta/v1/types.go), while the object has them sorted.

import { METADATA_FIELDS } from '../../../kit/api/validation/object-head-checks.ts'
import { elementsOf, membersOf } from './json-members.ts'
import type { ByteRange } from './object-facts.ts'

const OWNER_KEYS: readonly string[] = ['apiVersion', 'kind', 'name', 'uid', 'controller', 'blockOwnerDeletion']
const ENTRY_KEYS: readonly string[] = [
  'manager',
  'operation',
  'apiVersion',
  'time',
  'fieldsType',
  'fieldsV1',
  'subresource',
]
/** Lists of maps, and the keys of those. */
const INSIDE: ReadonlyMap<string, readonly string[]> = new Map([
  ['ownerReferences', OWNER_KEYS],
  ['managedFields', ENTRY_KEYS],
])
/** Go leaves out what is empty. */
const EMPTY: ReadonlySet<string> = new Set(['{}', '[]', '""', 'null'])
const LONGEST_EMPTY = 4

/**
 * What Go's ObjectMeta does not have is left out.
 * @param range of the metadata in the object
 * @throws {MalformedError}
 */
export function declaredMetadata(json: Buffer, range: ByteRange): Buffer {
  const pieces: Buffer[] = []
  writeMap(json, range, METADATA_FIELDS, pieces)
  return Buffer.concat(pieces)
}

function writeMap(json: Buffer, range: ByteRange, keys: readonly string[], pieces: Buffer[]): void {
  const members = membersOf(json, range.start)
  let before = '{'
  for (const key of keys) {
    const value = members.get(key)
    if (value === undefined || isEmpty(json, value)) continue
    pieces.push(Buffer.from(`${before}"${key}":`))
    before = ','
    const inside = INSIDE.get(key)
    if (inside === undefined) pieces.push(json.subarray(value.start, value.end))
    else writeList(json, value, inside, pieces)
  }
  pieces.push(Buffer.from(before === '{' ? '{}' : '}'))
}

function writeList(json: Buffer, range: ByteRange, keys: readonly string[], pieces: Buffer[]): void {
  let before = '['
  for (const item of elementsOf(json, range.start)) {
    pieces.push(Buffer.from(before))
    writeMap(json, item, keys, pieces)
    before = ','
  }
  pieces.push(Buffer.from(before === '[' ? '[]' : ']'))
}

function isEmpty(json: Buffer, { start, end }: ByteRange): boolean {
  return end - start <= LONGEST_EMPTY && EMPTY.has(json.toString('latin1', start, end))
}
