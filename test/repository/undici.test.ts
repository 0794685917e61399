// What starts often does not load Node's own undici, 30 ms in each process and thread: an `import` of node:http would.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { dirname, join } from 'node:path'
import process from 'node:process'
import { test } from 'node:test'
import { bundledMain } from '../harness/bundled-program.ts'

const ROOT = join(import.meta.dirname, '../..')
const UNDICI = 'NativeModule internal/deps/undici/undici'

/** Modules of Node's own that are there after these have been imported. */
function loaded(flags: readonly string[], ...modules: readonly string[]): string {
  const imports = modules.map((module) => `await import(${JSON.stringify(module)})`)
  const script = [...imports, "console.log(process.moduleLoadList.join('\\n'))"].join('\n')
  const args = [...flags, '--input-type=module', '-e', script]
  return execFileSync(process.execPath, args, { cwd: ROOT, encoding: 'utf8' })
}

test('a test process', () => {
  assert.ok(loaded([], 'node:http').includes(UNDICI), 'without what tests load first')
  assert.ok(!loaded(['--import', './test/harness/program.ts'], 'node:http').includes(UNDICI))
})

test('the program, bundled', async () => {
  assert.ok(!loaded([], join(dirname(await bundledMain()), 'client-node.mjs')).includes(UNDICI))
})
