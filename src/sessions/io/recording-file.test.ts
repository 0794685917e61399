import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, rmSync, statSync, utimesSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { setImmediate as yieldToEventLoop } from 'node:timers/promises'
import { RecordingFile } from './recording-file.ts'

test('a file in which nothing happens is touched once in sixty flushes', async (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'recordings-'))
  t.after(() => rmSync(dir, { recursive: true }))
  const path = join(dir, 'one.session')
  const part = `${path}.part`
  const closed = Promise.withResolvers<void>()
  const onFailed = (why: string): void => closed.reject(new Error(why))
  const file = new RecordingFile({
    ...{ path, key: Buffer.alloc(32), onFailed },
    onDrained: () => undefined,
    onClosed: closed.resolve,
  })
  // Its head does not count as waiting.
  while (!existsSync(part) || statSync(part).size === 0) await yieldToEventLoop()
  utimesSync(part, 1000, 1000)
  for (let flushes = 0; flushes < 59; flushes++) file.flush()
  await yieldToEventLoop()
  assert.equal(statSync(part).mtimeMs, 1_000_000)
  file.flush()
  while (statSync(part).mtimeMs === 1_000_000) await yieldToEventLoop()
  file.end(false)
  await closed.promise
  assert.ok(existsSync(path))
})
