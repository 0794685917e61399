// A process killed while it writes or removes a pair: at every step, the next start finds the old pair or the new one.

import assert from 'node:assert/strict'
import fs, { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { mock, type TestContext, test } from 'node:test'
import { UserError } from '../../kit/api/validation/field-errors.ts'
import { createCA, type KeyPair } from './pki.ts'
import {
  existingPairFiles,
  makePrivateDirectory,
  readKeyPair,
  readNamedFile,
  removeKeyPair,
  writeKeyPair,
} from './pki-files.ts'

const OLD = createCA({ commonName: 'old' })
const NEW = createCA({ commonName: 'new' })

function newDir(context: TestContext): string {
  const dir = mkdtempSync(join(tmpdir(), 'portcullis-pki-files-'))
  context.after(() => rmSync(dir, { recursive: true, force: true }))
  return dir
}

/** Calls `action`, and stops writing to disk after this many changes. Returns whether it ran to completion. */
function killedAfter(changes: number, action: () => void): boolean {
  let made = 0
  for (const name of ['renameSync', 'rmSync'] as const) {
    const real: (...args: never[]) => void = fs[name]
    mock.method(fs, name, (...args: never[]) => {
      if (++made > changes) throw new Error('killed')
      real(...args)
    })
  }
  syncBuiltinESMExports()
  try {
    action()
    return true
  } catch (error) {
    assert.match(String(error), /killed/)
    return false
  } finally {
    mock.restoreAll()
    syncBuiltinESMExports()
  }
}

/** What is found after each possible abort of `action`, ending with a complete run. */
function foundAfterEachKill(
  context: TestContext,
  before: KeyPair | undefined,
  action: (dir: string) => void,
): KeyPair[][] {
  const found: KeyPair[][] = []
  for (let changes = 0; ; changes++) {
    const dir = newDir(context)
    if (before !== undefined) writeKeyPair(dir, 'ca', before)
    const ended = killedAfter(changes, () => action(dir))
    const first = readKeyPair(dir, 'ca')
    assert.deepEqual(readKeyPair(dir, 'ca'), first, 'the second look finds what the first has found')
    assert.equal(existingPairFiles(dir, 'ca').length, first === undefined ? 0 : 2)
    found.push(first === undefined ? [] : [first])
    if (ended) {
      assert.deepEqual(readdirSync(dir), first === undefined ? [] : ['ca.crt', 'ca.key'], 'nothing else is left')
      return found
    }
  }
}

for (const [what, before] of [
  ['in the place of another one', OLD],
  ['where there was none', undefined],
] as const) {
  test(`a pair is written ${what}: all of it or nothing`, (context) => {
    const found = foundAfterEachKill(context, before, (dir) => writeKeyPair(dir, 'ca', NEW))
    assert.ok(found.length > 2)
    assert.deepEqual(found.at(-1), [NEW])
    const old = before === undefined ? [] : [before]
    for (const pair of found) assert.ok([old, [NEW]].some((known) => JSON.stringify(known) === JSON.stringify(pair)))
  })
}

test('a pair is removed: all of it or nothing', (context) => {
  const found = foundAfterEachKill(context, OLD, (dir) => removeKeyPair(dir, 'ca'))
  assert.ok(found.length > 2)
  assert.deepEqual(found.at(-1), [])
  for (const pair of found) assert.ok(pair.length === 0 || pair[0]?.certPem === OLD.certPem)
})

test('files put there after an interrupted write stay, and other damage is reported', (context) => {
  const theirs = createCA({ commonName: 'theirs' })
  const dir = newDir(context)
  writeKeyPair(dir, 'ca', OLD)
  // The new key is there, the new certificate is not.
  assert.equal(
    killedAfter(2, () => writeKeyPair(dir, 'ca', NEW)),
    false,
  )
  assert.equal(readFileSync(join(dir, 'ca.key'), 'utf8'), NEW.keyPem)
  assert.equal(readFileSync(join(dir, 'ca.crt'), 'utf8'), OLD.certPem)
  writeFileSync(join(dir, 'ca.key'), theirs.keyPem)
  assert.throws(() => readKeyPair(dir, 'ca'), UserError)
  assert.equal(readFileSync(join(dir, 'ca.key'), 'utf8'), theirs.keyPem)
  writeFileSync(join(dir, 'ca.crt'), theirs.certPem)
  assert.deepEqual(readKeyPair(dir, 'ca'), theirs)
})

test('a directory is made with its parents, for its owner only; what cannot be made is one line', (context) => {
  const dir = newDir(context)
  makePrivateDirectory(join(dir, 'a/b/c'))
  makePrivateDirectory(join(dir, 'a/b/c'))
  for (const made of ['a', 'a/b', 'a/b/c']) assert.equal(statSync(join(dir, made)).mode & 0o777, 0o700)
  writeFileSync(join(dir, 'file'), '')
  for (const [path, why] of [
    [join(dir, 'file'), 'EEXIST'],
    [join(dir, 'file/below'), 'EEXIST'],
    // Node's own recursive mkdir never returns from here.
    ['/proc/portcullis/data', 'ENOENT'],
  ] as const) {
    assert.throws(() => makePrivateDirectory(path), {
      name: 'UserError',
      message: new RegExp(`^cannot create ${path}: ${why}`),
    })
  }
})

test('a file that a setting names, and that is not there, is told by the setting', () => {
  const message = /^cannot read --redis-ca-file \/none\/ca\.crt: ENOENT/
  assert.throws(() => readNamedFile('--redis-ca-file', '/none/ca.crt'), { message, fix: 'name a readable file' })
})

test('a directory without permission: the advice is about permissions, not about removing a file', (context) => {
  const dir = newDir(context)
  chmodSync(dir, 0o500)
  asOtherUser(() =>
    assert.throws(
      () => makePrivateDirectory(join(dir, 'pki')),
      (error) =>
        error instanceof UserError &&
        /EACCES/.test(error.message) &&
        /^fix its permissions or its owner/.test(error.fix),
    ),
  )
})

/** Runs as another user: root ignores permissions. */
function asOtherUser(action: () => void): void {
  if (process.getuid?.() !== 0) {
    action()
    return
  }
  process.seteuid?.(65_534)
  try {
    action()
  } finally {
    process.seteuid?.(0)
  }
}
