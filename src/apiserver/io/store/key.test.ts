import assert from 'node:assert/strict'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { UserError } from '../../../kit/api/validation/field-errors.ts'
import { readStoreKey } from './key.ts'

const dir = mkdtempSync(join(tmpdir(), 'portcullis-key-'))
after(() => rmSync(dir, { recursive: true }))

test('a key is made once, for its owner only, and read from then on', () => {
  const file = join(dir, 'new', 'store.key')
  const key = readStoreKey(file)
  assert.equal(key.length, 32)
  assert.equal(statSync(file).mode & 0o777, 0o600)
  assert.equal(statSync(join(dir, 'new')).mode & 0o777, 0o700)
  assert.deepEqual(readdirSync(join(dir, 'new')), ['store.key'])
  assert.deepEqual(readStoreKey(file), key)
  assert.notDeepEqual(readStoreKey(join(dir, 'other.key')), key)
  assert.match(readFileSync(file, 'utf8'), /^[A-Za-z0-9+/]{43}=\n$/)
})

test('a file without a key is reported, and stays as it is', () => {
  const file = join(dir, 'wrong.key')
  for (const text of [
    '',
    'hunter2\n',
    `${'A'.repeat(40)}=\n`,
    `${'A'.repeat(43)}=\n${'A'.repeat(43)}=\n`,
    '\0'.repeat(32),
  ]) {
    writeFileSync(file, text)
    assert.throws(
      () => readStoreKey(file),
      (error) => error instanceof UserError && error.message.includes(file) && !error.message.includes('hunter2'),
    )
    assert.equal(readFileSync(file, 'utf8'), text)
  }
})

test('a key that cannot be read or made is a UserError', () => {
  const blocked = join(dir, 'file')
  writeFileSync(blocked, '')
  for (const file of [dir, join(blocked, 'store.key')]) {
    assert.throws(
      () => readStoreKey(file),
      (error) => error instanceof UserError && error.message.includes(dir),
    )
  }
})
