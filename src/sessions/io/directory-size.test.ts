import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { DirectorySize } from './directory-size.ts'

const dir = mkdtempSync(join(tmpdir(), 'recordings-'))
after(() => rmSync(dir, { recursive: true, force: true }))

test('what is written during a measurement stays counted, and measurements do not pile up', async () => {
  const used = new BigInt64Array(new SharedArrayBuffer(BigInt64Array.BYTES_PER_ELEMENT))
  const size = new DirectorySize(dir, used)
  writeFileSync(join(dir, 'one'), 'x'.repeat(100))
  writeFileSync(join(dir, 'two'), 'x'.repeat(50))
  const first = size.measure()
  Atomics.add(used, 0, 7n)
  assert.equal(size.measure(), first)
  assert.equal(await first, 150)
  assert.equal(Atomics.load(used, 0), 157n)
  rmSync(join(dir, 'one'))
  assert.equal(await size.measure(), 50)
  assert.equal(Atomics.load(used, 0), 50n)
  rmSync(dir, { recursive: true })
  await assert.rejects(size.measure(), /ENOENT/)
  assert.equal(Atomics.load(used, 0), 50n)
})
