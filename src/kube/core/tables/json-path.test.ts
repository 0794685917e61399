import assert from 'node:assert/strict'
import { test } from 'node:test'
import { findJsonPath, parseJsonPath } from './json-path.ts'

const object = {
  metadata: { name: 'x', annotations: { 'a.b/c': 'dotted', "it's": 'quoted' } },
  status: {
    conditions: [
      { type: 'Old', status: 'False' },
      { type: 'Ready', status: 'True', observed: 3 },
    ],
    ports: [80, 443],
  },
}

const cases: readonly [path: string, found: readonly unknown[]][] = [
  ['.metadata.name', ['x']],
  ['metadata.name', ['x']],
  ['$.metadata.name', ['x']],
  ["['metadata']['name']", ['x']],
  ['.metadata["name"]', ['x']],
  ['.metadata.annotations.a\\.b/c', ['dotted']],
  ["['metadata'].annotations['a.b/c']", ['dotted']],
  [".metadata.annotations['a\\.b/c']", ['dotted']],
  ['.status.conditions[?(@.type=="Ready")].status', ['True']],
  [".status.conditions[?(@.type=='Ready')].status", ['True']],
  ['.status.conditions[?( @.type != "Ready" )].status', ['False']],
  ['.status.conditions[?(@.observed==3)].type', ['Ready']],
  ["status.conditions[?(@['type']=='Ready')].observed", [3]],
  ['.status.conditions[?(@.type=="None")].status', []],
  ['.status.ports[0]', [80]],
  ['.status.ports[-1]', [443]],
  ['.status.ports[7]', []],
  ['.status.ports[*]', [80, 443]],
  ['.status.conditions[*].type', ['Old', 'Ready']],
  ['.status.conditions.*.type', ['Old', 'Ready']],
  ['.spec.nothing.here', []],
  ['.metadata.name.length', []],
  ['.__proto__', []],
  ['.constructor.name', []],
]

for (const [path, found] of cases) {
  test(`${path} finds ${JSON.stringify(found)}`, () => {
    assert.deepEqual(findJsonPath(object, parseJsonPath(path)), found)
  })
}

for (const path of ['.a[', '.a[?(@.b)]', '.a[x]', '..name', '.a[0', ".a['b]", '.a[?(@.b==c)]', '.a[0]b']) {
  test(`${path} is refused`, () => assert.throws(() => parseJsonPath(path), SyntaxError))
}
