// What runs the tests, on tests that pass, fail, take long, and die: all are run, and what is said in the end is true.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { after, test } from 'node:test'

const RUN = join(import.meta.dirname, '../run.ts')
const dir = mkdtempSync(join(tmpdir(), 'portcullis-run-'))
after(() => rmSync(dir, { recursive: true, force: true }))

function file(name: string, text: string): string {
  const path = join(dir, name)
  writeFileSync(path, `import { before, describe, test } from 'node:test'\n${text}`)
  return path
}

function run(...names: string[]): { status: number | null; stdout: string } {
  const env = { ...process.env, NODE_TEST_CONTEXT: undefined }
  return spawnSync(process.execPath, [RUN, ...names], { encoding: 'utf8', env })
}

test('every suite is run to its end; what has failed is named once more, with its reason, and summed up in the last line', () => {
  const fails = file('fails.test.mjs', "describe('a group', () => { test('fails', () => { throw new Error('x') }) })")
  const hook = file('hook.test.mjs', "describe('prepared', () => { before(() => { throw new Error('x') }) })")
  const dies = file('dies.test.mjs', 'process.exit(3)')
  const passes = file('passes.test.mjs', "test('passes', () => {})")
  const { status, stdout } = run(fails, hook, dies, passes)
  assert.equal(status, 1)
  const [, failed = ''] = stdout.split('\nfailed:\n')
  assert.match(
    failed,
    /^ {2}\S+fails\.test\.mjs:2: fails: x\n {2}\S+hook\.test\.mjs:2: prepared: x\n {2}\S+dies\.test\.mjs/,
  )
  assert.match(failed, /\n1 passed, 3 failed\n$/)
})

test('what takes long is left to test:long; where all pass, nothing is named', () => {
  const slow = file('slow.test.mjs', "test('at once', () => {})\ntest('waits (long)', () => { throw new Error('x') })")
  const { status, stdout } = run(slow)
  assert.equal(status, 0, stdout)
  assert.doesNotMatch(stdout, /\nfailed:/)
  assert.match(stdout, /\n1 passed, 0 failed\n$/)
})

test('a suite that there is not: nothing is run, and those that there are', () => {
  const { status, stdout } = run('unit', 'units')
  assert.equal(status, 2)
  assert.match(stdout, /^usage: .* unit .* long .*\n$/)
})
