// Nothing that others send is taken apart without being measured: every file that does is in the inventory, with its row or a reason.

import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { FILES, ROOMS } from './inventory.ts'
import { PARSERS } from './table.ts'

const TOP = join(import.meta.dirname, '../..')
const TAKES_APART =
  /JSON\.parse\(|parse(?:Yaml|Json|Document|AllDocuments)\(|new (?:ProtobufReader|RegExp|URLSearchParams)\(|\.(?:split|matchAll)\(|decodeURIComponent\(/
const sources = globSync('src/**/*.ts', { cwd: TOP })
  .filter((file) => !file.endsWith('.test.ts'))
  .map((file) => ({ file, text: readFileSync(join(TOP, file), 'utf8') }))

test('every file that takes apart what others send is in the inventory', () => {
  const found = sources.filter(({ file, text }) => {
    return TAKES_APART.test(text) && !Object.keys(ROOMS).some((room) => file.startsWith(room))
  })
  assert.deepEqual(found.map(({ file }) => file).sort(), Object.keys(FILES).sort())
})

test('every row that the inventory names is in the table', () => {
  for (const [file, covered] of Object.entries({ ...FILES, ...ROOMS })) {
    if ('notInput' in covered) assert.notEqual(covered.notInput, '')
    else
      assert.ok(
        PARSERS.some(({ name }) => name.startsWith(covered.row)),
        `${file}: ${covered.row}`,
      )
  }
})
