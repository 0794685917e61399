// What runs the tests, on tests that pass, fail, take long, and die: all are run, and what is said in the end is true.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import process from 'node:process'
import { after, test } from 'node:test'
import { hasLongTests } from '../harness/long-tests.ts'
import type { Failure, FilesResult } from '../harness/suite-files.ts'
import type { NodeSuite } from '../suites.ts'

const ROOT = join(import.meta.dirname, '../..')
const RUN = join(ROOT, 'test/run.ts')
const SUITE_FILES = join(ROOT, 'test/harness/suite-files.ts')
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

test('files with tests that take long are found, whatever quotes the title, and also where another file makes the tests', () => {
  const inTest = (path: string): string => join(import.meta.dirname, '..', path)
  for (const path of ['long/storms.test.ts', 'repository/leave-out.test.ts', 'costs/bodies.test.ts'])
    assert.equal(hasLongTests(inTest(path)), true, path)
  assert.equal(hasLongTests(inTest('repository/names.test.ts')), false)
})

/** Runs files as a suite whose files may run again. @param text of each, which knows whether it runs again */
function runAgain(texts: Readonly<Record<string, string>>, suite: Partial<NodeSuite> = {}): FilesResult {
  const files = Object.entries(texts).map(([name, text]) => {
    const isAgain =
      "let isAgain = false; try { writeFileSync(import.meta.filename + '.ran', '', { flag: 'wx' }) } catch { isAgain = true }"
    return relative(ROOT, file(name, `import { writeFileSync } from 'node:fs'\n${isAgain}\n${text}`))
  })
  const all = { files, concurrency: 2, testMinutes: 1, ...suite }
  const script = `
    import { runSuiteFiles } from ${JSON.stringify(SUITE_FILES)}
    const result = await runSuiteFiles('suite', ${JSON.stringify(all)}, { env: process.env, runsAgain: true })
    process.stdout.write('\\n' + JSON.stringify(result))`
  const env = { ...process.env, NODE_TEST_CONTEXT: undefined }
  const path = join(dir, 'run-again.mjs')
  writeFileSync(path, script)
  const { stdout, stderr } = spawnSync(process.execPath, [path], { encoding: 'utf8', env, cwd: ROOT })
  return JSON.parse(stdout.split('\n').at(-1) || assert.fail(stderr))
}

function titles(failures: readonly Failure[]): string[] {
  return failures.map(({ file, title }) => (title === file ? 'the file' : title)).sort()
}

test('what fails, and passes when its file runs again, has passed; it is still told', () => {
  const { passed, failures, onlyAgain } = runAgain({
    'busy.test.mjs': "test('busy', () => { if (!isAgain) throw new Error('x') })\ntest('other', () => {})",
    'died.test.mjs': "if (!isAgain) process.exit(3)\ntest('lives', () => {})",
    'fine.test.mjs': "test('fine', () => { if (isAgain) throw new Error('x') })",
  })
  assert.deepEqual([failures, titles(onlyAgain)], [[], ['busy', 'the file']])
  assert.match(onlyAgain.map(({ text }) => text).join('\n'), /busy\.test\.mjs:\d+: busy: x/)
  assert.equal(passed, 4)
})

test('what fails again, or has not passed because it is skipped or not there, has failed', () => {
  const { failures, onlyAgain } = runAgain({
    'always.test.mjs': [
      "test('always', () => { throw new Error('x') })",
      "test('once', () => { if (!isAgain) throw new Error('x') })",
      "test('only again', () => { if (isAgain) throw new Error('x') })",
    ].join('\n'),
    'elsewhere.test.mjs': [
      "test('skipped', { skip: isAgain && 'no port' }, () => { throw new Error('x') })",
      "if (!isAgain) test('missing', () => { throw new Error('x') })",
      "test('passes', () => {})",
    ].join('\n'),
    'empty.test.mjs': "if (!isAgain) process.exit(3)\ntest('skipped', { skip: 'no port' }, () => {})",
  })
  assert.deepEqual(titles(failures), ['always', 'missing', 'only again', 'skipped', 'the file'])
  assert.deepEqual(titles(onlyAgain), ['once'])
})

test('a file that does not exit after its tests is killed, and runs again; the suite goes on', {
  skip: process.platform !== 'linux' && "only Linux names a process's children",
}, () => {
  const stays = "test('passes', () => {})\nif (!isAgain) setInterval(() => {}, 1_000)"
  const { failures, onlyAgain } = runAgain({ 'stays.test.mjs': stays }, { fileMinutes: 0.2 })
  assert.deepEqual([failures, titles(onlyAgain)], [[], ['the file']])
})

test('nothing runs again if too many files fail, or if the suite took too long', () => {
  const once = "test('once', () => { if (!isAgain) throw new Error('x') })"
  const allOnce = (names: string): FilesResult =>
    runAgain(Object.fromEntries(Array.from(names, (name) => [`${name}.test.mjs`, once])))
  const nine = allOnce('abcdefghi')
  assert.deepEqual([nine.failures.length, nine.onlyAgain], [9, []])
  const eight = allOnce('jklmnopq')
  assert.deepEqual([eight.failures, eight.onlyAgain.length], [[], 8])
  const hangs = "test('passes', () => {})\nif (!isAgain) setInterval(() => {}, 1_000)"
  const long = runAgain({ 'hangs.test.mjs': hangs }, { fileMinutes: 1, minutes: 0.05 })
  assert.deepEqual([titles(long.failures), long.onlyAgain], [['the file'], []])
})

test('a suite that there is not: nothing is run, and those that there are', () => {
  const { status, stdout } = run('unit', 'units')
  assert.equal(status, 2)
  assert.match(stdout, /^usage: .* unit .* long .*\n$/)
})
