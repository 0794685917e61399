import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { allocateRoom, DirectoryRoom } from '../core/recording/directory-room.ts'
import { Spool } from './spool.ts'

const dir = mkdtempSync(join(tmpdir(), 'recordings-'))
after(() => rmSync(dir, { recursive: true, force: true }))

test('what is written during a measurement stays counted, and measurements do not pile up', async () => {
  const room = new DirectoryRoom(allocateRoom(), 1_000_000)
  const seen: string[] = []
  const spool = new Spool({
    dir,
    room,
    looking: () => seen.splice(0),
    see: ({ name, bytes }) => seen.push(`${name} ${bytes}`),
  })
  writeFileSync(join(dir, 'one'), 'x'.repeat(100))
  writeFileSync(join(dir, 'two'), 'x'.repeat(50))
  symlinkSync('/etc/passwd', join(dir, 'link'))
  const first = spool.look()
  assert.equal(room.take(7, 1, 7), 'taken')
  assert.equal(spool.look(), first)
  assert.equal(await first, 150)
  assert.equal(room.held, 157)
  assert.deepEqual(new Set(seen), new Set(['one 100', 'two 50']))
  rmSync(join(dir, 'one'))
  assert.equal(await spool.look(), 50)
  assert.equal(room.held, 50)
  rmSync(dir, { recursive: true })
  await assert.rejects(spool.look(), /ENOENT/)
  assert.equal(room.held, 50)
})
