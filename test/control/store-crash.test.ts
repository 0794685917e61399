// A short run of `node test/crash/run.ts`; kills come at random moments, so a red run names its seed but may need several to be red again.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { test } from 'node:test'
import { crashCampaign } from '../crash/campaign.ts'
import type { WriterOrder } from '../crash/journal.ts'

const strace = { skip: spawnSync('strace', ['-V']).status === 0 ? false : 'needs strace' }

test('25 times killed in the middle of writes: nothing acknowledged is lost, nothing half-written is seen', async () => {
  const { revisions, torn } = await crashCampaign({ rounds: 25, seed: 20_261_121 })
  assert.ok(revisions > 100, `only ${revisions} revisions were written`)
  assert.ok(torn > 5, `the log was torn only ${torn} times`)
})

test('a disk that loses what was acknowledged is noticed', async () => {
  await assert.rejects(crashCampaign({ rounds: 25, seed: 1, tearAcknowledged: true }), (error) => {
    assert.ok(error instanceof Error && error.cause instanceof Error)
    assert.match(error.cause.message, /^LOST/)
    return true
  })
})

test('a write is on disk before it is acknowledged', strace, () => {
  // Kills do not show it: what a process has written outlives it without any fsync.
  const dir = mkdtempSync(join(tmpdir(), 'portcullis-fsync-'))
  try {
    const trace = join(dir, 'trace')
    const file = join(dir, 'store.db')
    const order: WriterOrder = {
      file,
      key: '00'.repeat(32),
      seed: 1,
      round: 0,
      historyRevisions: 10,
      watch: {},
      writes: 50,
    }
    const calls = ['-f', '-o', trace, '-e', 'trace=write,fsync,fdatasync', process.execPath]
    const writer = join(import.meta.dirname, '../crash/writer.ts')
    const { status } = spawnSync('strace', [...calls, writer, JSON.stringify(order)], { maxBuffer: 1 << 28 })
    assert.equal(status, 0)
    const said = readFileSync(trace, 'utf8').matchAll(/write\(1, "\{\\"kind\\":\\"(try|done)|f(?:data)?sync\(/g)
    const sequence = [...said].map((match) => match[1] ?? 'sync').join(' ')
    assert.match(sequence, /try sync (sync )*done/)
    assert.doesNotMatch(sequence, /try done/)
  } finally {
    rmSync(dir, { recursive: true })
  }
})
