// What is on disk at each moment: a complete state, or the previous one; and when it is written.

import assert from 'node:assert/strict'
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { waitFor } from '../../../../test/harness/wait.ts'
import type { Logger } from '../../../kit/api/ports.ts'
import { systemClock } from '../../../kit/io/world/clock.ts'
import { LastGoodFile } from './file.ts'
import { lastGoodKey } from './format.ts'
import { LastGoodKeeper } from './keeper.ts'

const KEY = lastGoodKey(Buffer.alloc(32, 1))

interface Kept {
  readonly dir: string
  readonly lines: string[]
  keeper(everyMs?: number, refreshMs?: number): LastGoodKeeper
  restored(): unknown
}

function kept(t: TestContext, source = 'https://k/'): Kept {
  const dir = join(mkdtempSync(join(tmpdir(), 'last-good-')), 'last-good')
  t.after(() => rmSync(join(dir, '..'), { recursive: true }))
  const lines: string[] = []
  const write = (message: string, fields?: Record<string, unknown>): void => {
    lines.push(`${message} ${JSON.stringify(fields)}`)
  }
  const log: Logger = { debug: () => undefined, info: write, warn: write, error: write }
  const file = new LastGoodFile({ dir, name: 'objects', key: KEY, source, log })
  return {
    dir,
    lines,
    keeper: (everyMs = 1, refreshMs = 60_000) => {
      const keeper = new LastGoodKeeper({ file, name: 'objects', clock: systemClock, log, everyMs, refreshMs })
      t.after(() => keeper.stop())
      return keeper
    },
    restored: () => file.read()?.records,
  }
}

test('what was put is restored, in two generations; nothing before it is known to be current', async (t) => {
  const { dir, keeper: start, restored } = kept(t)
  const keeper = start()
  keeper.put('a', { name: 'a', n: 1 })
  keeper.put('b', { name: 'b' })
  assert.deepEqual(keeper.names(), new Set(['a', 'b']))
  assert.equal(restored(), undefined)
  keeper.current(true)
  await waitFor('the first write', () => keeper.status.bytes > 0)
  assert.deepEqual(restored(), [{ name: 'a', n: 1 }, { name: 'b' }])
  assert.equal(keeper.status.bytes, statSync(join(dir, 'objects')).size)
  keeper.delete('b')
  keeper.put('a', { name: 'a', n: 2 })
  await waitFor('the second write', () => JSON.stringify(restored()) === '[{"name":"a","n":2}]')
  assert.deepEqual(readdirSync(dir).sort(), ['objects', 'objects.previous'])
  for (const name of readdirSync(dir)) assert.equal(statSync(join(dir, name)).mode & 0o777, 0o600)
  assert.equal(statSync(dir).mode & 0o777, 0o700)
})

test('what came just before the source went away is written, too; what was restored is not written again', async (t) => {
  const { dir, keeper: start, restored } = kept(t)
  const keeper = start(200)
  keeper.current(true)
  await waitFor('the first write', () => restored() !== undefined)
  keeper.put('a', 'last words')
  keeper.current(false)
  await waitFor('the second write', () => JSON.stringify(restored()) === '["last words"]')
  await keeper.stop()
  const before = readFileSync(join(dir, 'objects'))
  const next = start()
  const state = next.restore()
  assert.deepEqual(state?.records, ['last words'])
  next.serves(state.timeMs)
  next.put('a', 'not from the source')
  next.current(false)
  await next.stop()
  assert.deepEqual(readFileSync(join(dir, 'objects')), before)
})

test('many changes are few writes; a state that stays current gets a newer time', async (t) => {
  const { keeper: start, restored } = kept(t)
  const keeper = start(300)
  keeper.current(true)
  await waitFor('the first write', () => restored() !== undefined)
  const written = new Set<number>([keeper.status.writtenMs])
  for (let n = 0; n < 100; n++) {
    keeper.put('a', n)
    await new Promise((resolve) => setImmediate(resolve))
    written.add(keeper.status.writtenMs)
  }
  await waitFor('the last value', () => JSON.stringify(restored()) === '[99]')
  assert.ok(written.size < 20, String(written.size))
  const refreshing = kept(t)
  const other = refreshing.keeper(1, 20)
  other.put('a', 1)
  other.current(true)
  await waitFor('a write', () => other.status.writtenMs > 0)
  const first = other.status.writtenMs
  await waitFor('a newer time', () => other.status.writtenMs > first)
})

test('the generation before is used, and one line says why the newest is not', async (t) => {
  const damages: [string, (file: string) => void, RegExp][] = [
    ['half written', (file) => truncateSync(file, Math.floor(statSync(file).size / 2)), /half there/],
    ['empty', (file) => truncateSync(file, 0), /only its beginning/],
    ['damaged', (file) => flip(file, -40), /damaged/],
    ['something else', (file) => writeFileSync(file, 'kind: List\n'), /not such a file/],
    ['gone', (file) => rmSync(file), /^$/],
  ]
  for (const [what, damage, why] of damages) {
    const { dir, lines, keeper: start, restored } = kept(t)
    const keeper = start()
    keeper.put('a', 'old')
    keeper.current(true)
    await waitFor('the first write', () => restored() !== undefined)
    keeper.put('a', 'new')
    await waitFor('the second write', () => JSON.stringify(restored()) === '["new"]')
    await keeper.stop()
    damage(join(dir, 'objects'))
    lines.length = 0
    assert.deepEqual(restored(), ['old'], what)
    assert.equal(lines.length, why.source === '^$' ? 0 : 1, `${what}: ${lines.join('; ')}`)
    assert.match(lines[0] ?? '', why)
    damage(join(dir, 'objects.previous'))
    assert.equal(restored(), undefined, what)
    // And the next process starts over.
    const next = start()
    next.put('a', 'again')
    next.current(true)
    await waitFor('a write', () => JSON.stringify(restored()) === '["again"]')
  }
})

test('the newest is the one that was written last, also after a clock that was fast', async (t) => {
  const { dir, restored } = kept(t)
  const log: Logger = { debug() {}, info() {}, warn() {}, error() {} }
  const file = new LastGoodFile({ dir, name: 'objects', key: KEY, source: 'https://k/', log })
  const nowMs = Date.now()
  await file.write([file.seal('with a credential that is revoked later')], nowMs + 24 * 60 * 60_000)
  await file.write([file.seal('revoked')], nowMs)
  assert.deepEqual(restored(), ['revoked'])
})

test('a write that fails leaves nothing that fills the disk', async (t) => {
  const { dir, keeper: start } = kept(t)
  mkdirSync(join(dir, 'objects', 'in the way'), { recursive: true })
  mkdirSync(join(dir, 'objects.previous', 'in the way'), { recursive: true })
  const keeper = start(60_000)
  keeper.put('a', 1)
  keeper.current(true)
  await waitFor('a failure', () => keeper.status.failures > 0)
  assert.deepEqual(readdirSync(dir).sort(), ['objects', 'objects.previous'])
})

test('a file that a killed process has left half written does no harm', async (t) => {
  const { dir, keeper: start, restored } = kept(t)
  const keeper = start()
  keeper.current(true)
  await waitFor('the first write', () => restored() !== undefined)
  writeFileSync(join(dir, 'objects.new'), 'half', { mode: 0o644 })
  keeper.put('a', 1)
  await waitFor('the second write', () => JSON.stringify(restored()) === '[1]')
  assert.deepEqual(readdirSync(dir).sort(), ['objects', 'objects.previous'])
})

test('a disk that cannot be written is said once, and what waits is written when it can', async (t) => {
  const { dir, lines, keeper: start, restored } = kept(t)
  const keeper = start()
  keeper.current(true)
  // Not before it has ended: it would interfere with the following.
  await waitFor('the first write', () => keeper.status.bytes > 0)
  rmSync(dir, { recursive: true })
  writeFileSync(dir, 'in the way')
  keeper.put('a', 1)
  await waitFor('several failures', () => keeper.status.failures > 2)
  assert.equal(lines.filter((line) => line.startsWith('the last good state cannot be written')).length, 1)
  rmSync(dir)
  await waitFor('the write', () => JSON.stringify(restored()) === '[1]')
  await waitFor('the line', () => lines.join('\n').includes('is kept on disk again'))
})

function flip(file: string, at: number): void {
  const bytes = readFileSync(file)
  const index = bytes.length + at
  bytes[index] = (bytes[index] ?? 0) ^ 1
  writeFileSync(file, bytes)
}
