// Files of tokens: what a command that was killed has left of one is never read, and goes with the next that is written, or with the logout.

import assert from 'node:assert/strict'
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { afterEach, beforeEach, test } from 'node:test'
import { removeUnfinished, tokenFile, tokenFiles, writeTokens } from './token-files.ts'

let dir: string
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'portcullis-tokens-'))
})
afterEach(() => rmSync(dir, { recursive: true }))

const TOKENS = {
  ...{ issuer: 'https://login.example.com', clientId: 'c', idToken: 'a.b.c', refreshToken: 'r' },
  ...{ subject: '42', name: 'alice', issuedAtMs: 1, expiresAtMs: 2 },
}

test('what was not finished goes with the next write, and only that of the same login', () => {
  const [file, other] = [tokenFile(dir, 'one'), tokenFile(dir, 'other')]
  for (const one of [file, other]) writeFileSync(`${one}.0123456789abcdef`, 'a refresh token')
  writeFileSync(`${file}.lock`, '')
  writeTokens(file, TOKENS)
  assert.deepEqual(
    readdirSync(dir).sort(),
    [basename(file), `${basename(file)}.lock`, `${basename(other)}.0123456789abcdef`].sort(),
  )
})

test('a login of which nothing else is left is found, too', () => {
  const file = tokenFile(dir, 'one')
  writeFileSync(`${file}.0123456789abcdef`, 'a refresh token')
  writeFileSync(`${tokenFile(dir, 'other')}.lock`, '')
  assert.deepEqual(tokenFiles(dir), [file])
  removeUnfinished(file)
  assert.deepEqual(tokenFiles(dir), [])
})
