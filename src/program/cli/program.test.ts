import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ALL_SETTINGS } from '../../process/config/config.ts'
import { runProgram } from './program.ts'

async function run(...argv: string[]): Promise<{ readonly code: number; readonly out: string; readonly err: string }> {
  let out = ''
  let err = ''
  const code = await runProgram(argv, {
    version: '1.2.3',
    settings: async () => ALL_SETTINGS,
    out: (text) => {
      out += text
    },
    err: (text) => {
      err += text
    },
    input: (async function* () {})(),
    now: () => 0,
    serve: () => assert.fail('it is asked for help only'),
    demo: () => assert.fail('it is asked for help only'),
  })
  return { code, out, err }
}

const flagsIn = (text: string): Set<string> =>
  new Set([...text.matchAll(/^ {2}(--[a-z0-9-]+)/gm)].map(([, flag = '']) => flag))

test('help of serve has every setting under its heading', async () => {
  const { code, out } = await run('serve', '--help')
  assert.equal(code, 0)
  assert.deepEqual(flagsIn(out), new Set(['--config', ...ALL_SETTINGS.map(({ flag }) => flag)]))
  for (const { group, heading } of ALL_SETTINGS) assert.ok(out.includes(`\n${heading} (${group}):\n`), heading)
})

test('help of serve for one group has those settings only', async () => {
  const ofGroup = ALL_SETTINGS.filter(({ group }) => group === 'tracing').map(({ flag }) => flag)
  assert.ok(ofGroup.length > 3)
  for (const argv of [
    ['serve', '--help', 'tracing'],
    ['serve', '-h', 'tracing'],
    ['help', 'serve', 'tracing'],
  ]) {
    const { code, out } = await run(...argv)
    assert.equal(code, 0)
    assert.deepEqual(flagsIn(out), new Set(['--config', ...ofGroup]), argv.join(' '))
  }
})

test('a group that does not exist is refused with the names of all', async () => {
  const { code, out, err } = await run('serve', '--help', 'traces')
  assert.equal(code, 1)
  assert.equal(out, '')
  const groups = [...new Set(ALL_SETTINGS.map(({ group }) => group))]
  assert.equal(err, `error: unknown group 'traces'\n(it is one of ${groups.join(', ')})\n`)
})

test('a flag behind --help is not taken for a group', async () => {
  const { code, out } = await run('serve', '--help', '--listen', '127.0.0.1:0')
  assert.equal(code, 0)
  assert.ok(flagsIn(out).has('--listen'))
})
