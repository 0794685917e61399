import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { waitFor } from '../../../test/harness/wait.ts'
import { type Logger, SILENT } from '../../kit/api/ports.ts'
import { UserError } from '../../kit/api/validation/field-errors.ts'
import { ReloadedFiles } from './reloaded-files.ts'

const dir = mkdtempSync(join(tmpdir(), 'portcullis-reloaded-'))
after(() => rmSync(dir, { recursive: true }))

test('a file that cannot be used is refused with one line; the content before stays in force until another can be used', async () => {
  const file = join(dir, 'token')
  writeFileSync(file, 'one')
  const lines: string[] = []
  const log: Logger = {
    ...SILENT,
    error: (message, fields) => void lines.push(`error: ${message}: ${String(fields?.['error'])}`),
    info: (message) => void lines.push(message),
  }
  let [inForce, reads] = ['one', 0]
  const read = (): void => {
    reads++
    const text = readFileSync(file, 'utf8')
    if (text.startsWith('bad')) throw new UserError('it is bad', 'write another')
    inForce = text
  }
  const files = new ReloadedFiles({ label: 'token-file', what: 'the token', files: [file], read, log, lookMs: 1 })
  try {
    await waitFor('the first look', () => reads === 1)
    assert.deepEqual(lines, [], 'nothing has changed')
    writeFileSync(file, 'bad')
    await waitFor('the file to be refused', () => !files.inForce)
    const seen = reads
    writeFileSync(file, 'bad, too')
    await waitFor('the next file to be read', () => reads > seen)
    assert.equal(inForce, 'one')
    writeFileSync(file, 'two')
    await waitFor('the good one', () => files.inForce)
    assert.equal(inForce, 'two')
    assert.deepEqual(lines, [
      'error: the token cannot be used; the previous contents stay in force: it is bad; write another',
      'the token is in force again',
    ])
  } finally {
    files.stop()
  }
})
