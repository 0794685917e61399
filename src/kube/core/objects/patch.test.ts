// Merge patch compared with RFC 7396's own algorithm, JSON patch with a real kube-apiserver (test/data/object-json-patch.json).

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import fc from 'fast-check'
import type { JsonObject } from '../../../kit/api/json/json-object.ts'
import { isRecord } from '../../../kit/api/json/object-shape.ts'
import { StatusError } from '../../api/status.ts'
import { jsonPatch, mergePatch } from './patch.ts'

interface Row {
  readonly text: string
  readonly code: number
  readonly message?: string
  readonly spec?: JsonObject
}

const DATA: { readonly patches: readonly Row[] } = JSON.parse(
  readFileSync(join(import.meta.dirname, '../../../../test/data/object-json-patch.json'), 'utf8'),
)
const OBJECT: JsonObject = {
  kind: 'Widget',
  metadata: { name: 'p' },
  spec: { text: 'aa', atomicList: ['x', 'y'], map: { k: 'v' }, mode: 'A' },
}

/**
 * Deliberate differences: RFC 6901 has no negative indexes or pointers without a slash. Operations of wrong types are always malformed
 * here; there only where fields are validated.
 */
const DIFFERENT: ReadonlySet<string> = new Set([
  '[{"op":"add","path":"/spec/atomicList/-1","value":"q"}]',
  '[{"op":"add","path":"spec/x","value":1}]',
  '[{"op":1}]',
])

for (const { text, code, message, spec } of DATA.patches) {
  // Text that is not JSON never gets here, and the patched object is validated later.
  if (DIFFERENT.has(text) || text === '{' || message === 'patched object is invalid' || message?.includes('"Kind"'))
    continue
  test(`as kube-apiserver: ${text}`, () => {
    let patched: unknown
    try {
      patched = jsonPatch(OBJECT, JSON.parse(text))
    } catch (error) {
      assert.ok(error instanceof StatusError)
      assert.equal(error.code, code, error.message)
      if (code === 422) assert.equal(error.message, message)
      return
    }
    if (code === 422) return assert.match(message ?? '', /is missing in/)
    assert.equal(code, 200)
    assert.ok(isRecord(patched) && isRecord(patched['spec']))
    // The server dropped null and unknown fields.
    const { zz: _, count: _count, ...known } = patched['spec']
    assert.deepEqual(known, spec)
  })
}

test('operations see what those before them did, and a failure leaves nothing behind', () => {
  const target = { a: 1, list: [1, 2] }
  const patched = jsonPatch(target, [
    { op: 'add', path: '/list/-', value: 3 },
    { op: 'add', path: '/list/0', value: 0 },
    { op: 'replace', path: '/a', value: { x: 1 } },
    { op: 'copy', from: '/a', path: '/b' },
    { op: 'add', path: '/b/x', value: 2 },
    { op: 'move', from: '/a', path: '/c~1d' },
    { op: 'test', path: '/c~1d/x', value: 1 },
    { op: 'remove', path: '/list/1' },
  ])
  assert.deepEqual(patched, { list: [0, 2, 3], b: { x: 2 }, 'c/d': { x: 1 } })
  assert.throws(
    () =>
      jsonPatch(target, [
        { op: 'remove', path: '/a' },
        { op: 'test', path: '/list', value: [] },
      ]),
    { code: 422 },
  )
  assert.deepEqual(target, { a: 1, list: [1, 2] })
})

test('operations of wrong types are malformed', () => {
  const message =
    'error decoding patch: json: cannot unmarshal number into Go struct field jsonPatchOp.op of type string'
  assert.throws(() => jsonPatch(OBJECT, [{ op: 1 }]), { code: 400, message })
})

test('prototypes are out of reach', () => {
  for (const path of [
    '/__proto__/x',
    '/constructor/prototype/x',
    '/spec/__proto__',
    '/spec/constructor',
    '/toString/x',
  ]) {
    assert.throws(() => jsonPatch(OBJECT, [{ op: 'add', path, value: 1 }]), { code: 422 }, path)
  }
  assert.throws(() => jsonPatch(OBJECT, [{ op: 'copy', from: '/toString', path: '/spec/x' }]), { code: 422 })
  assert.throws(() => jsonPatch(OBJECT, [{ op: 'remove', path: '/spec/hasOwnProperty' }]), { code: 422 })
  assert.equal(({} as JsonObject)['x'], undefined)
})

test('a patch that doubles the object again and again is refused', () => {
  const operations = Array.from({ length: 40 }, (_, at) => ({ op: 'copy', from: '/spec', path: `/spec/c${at}` }))
  assert.throws(() => jsonPatch(OBJECT, operations), { code: 422 })
  assert.throws(() => jsonPatch(OBJECT, Array(10_001).fill({ op: 'remove', path: '/a' })), { code: 413 })
})

/** RFC 7396 section 2, word for word. */
function rfc7396(target: unknown, patch: unknown): unknown {
  if (!isRecord(patch)) return patch
  const result: Record<string, unknown> = isRecord(target) ? { ...target } : {}
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) delete result[name]
    else result[name] = rfc7396(result[name], value)
  }
  return result
}

const members = fc.constantFrom('a', 'b', 'c')
const { tree } = fc.letrec((tie) => ({
  tree: fc.oneof(
    { maxDepth: 4 },
    fc.constantFrom<unknown[]>(null, 0, 1, 'x', true),
    fc.array(tie('tree'), { maxLength: 3 }),
    fc.dictionary(members, tie('tree'), { maxKeys: 3 }),
  ),
}))
const object = fc.dictionary(members, tree, { maxKeys: 3 })

test('merge patch is what RFC 7396 says', () => {
  fc.assert(
    fc.property(object, object, (target, patch) => {
      const text = JSON.stringify(target)
      assert.deepEqual({ ...(mergePatch(target, patch) as JsonObject) }, { ...(rfc7396(target, patch) as JsonObject) })
      assert.equal(JSON.stringify(target), text)
    }),
    { numRuns: 1000 },
  )
})

test('a merge patch that is not an object is refused', () => {
  for (const patch of [null, 5, 'x', [], true]) assert.throws(() => mergePatch(OBJECT, patch), { code: 400 })
})
