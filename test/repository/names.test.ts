// One exported name of src/ is one thing: who searches for it finds one definition.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sourceFiles } from '../harness/docs/source-files.ts'

const SCHEMA = 'src/kit/api/json/json-schema.ts'
const SETTING = 'src/process/config/setting-rows.ts'

/** A schema and a table of settings say the type of a value with the same word; no file imports both. */
const DEFINED_TWICE: Readonly<Record<string, readonly string[]>> = {
  duration: [SCHEMA, SETTING],
  integer: [SCHEMA, SETTING],
  list: [SCHEMA, SETTING],
  oneOf: [SCHEMA, 'src/process/config/setting-values.ts'],
  text: [SCHEMA, SETTING],
}

const EXPORT =
  /^export (?:declare )?(?:abstract )?(?:async )?(?:function\*?|class|interface|type|const|let|enum) (\w+)/gm

test('an exported name is defined in one file, or its row says why not', () => {
  const definitions = new Map<string, Set<string>>()
  for (const { path, text } of sourceFiles().values()) {
    for (const [, name = ''] of text.matchAll(EXPORT)) {
      definitions.set(name, (definitions.get(name) ?? new Set()).add(`src/${path}`))
    }
  }
  assert.ok(definitions.size > 2_000, `${definitions.size} names`)
  const several = [...definitions].filter(([, files]) => files.size > 1)
  assert.deepEqual(Object.fromEntries(several.map(([name, files]) => [name, [...files]])), DEFINED_TWICE)
})

test('no file imports both definitions of such a name', () => {
  for (const { path, imports } of sourceFiles().values()) {
    const imported = imports.map((one) => `src/${one.path}`)
    for (const [name, files] of Object.entries(DEFINED_TWICE)) {
      assert.ok(!files.every((file) => imported.includes(file)), `src/${path} imports both files that define ${name}`)
    }
  }
})
