import assert from 'node:assert/strict'
import { test } from 'node:test'
import { IdentitiesSeen, MAX_IDENTITIES, MAX_SHOWN_NAME, SHOWN_MS } from './identities-seen.ts'

type Credential = Parameters<IdentitiesSeen['see']>[0]

function credential(name: string, by = 'certificate', expiresMs = 0): Credential {
  return { user: { name }, origin: { by, expiresMs }, seen: undefined }
}

test('credentials of one user in one cluster are one entry: first and latest request, and the latest expiry', () => {
  const seen = new IdentitiesSeen()
  const [first, second] = [credential('alice', 'https://login', 5_000), credential('alice', 'https://login', 9_000)]
  seen.see(first, 'prod', 1_000)
  seen.see(second, 'prod', 2_000)
  seen.see(first, 'prod', 3_000)
  seen.see(credential('alice', 'certificate'), 'prod', 3_000)
  seen.see(credential('bob', 'https://login'), 'prod', 3_000)
  seen.see(credential('alice', 'https://login'), 'dev', 3_000)
  assert.equal(seen.size, 4)
  const expected = {
    cluster: 'prod',
    user: 'alice',
    by: 'https://login',
    sinceMs: 1_000,
    lastMs: 3_000,
    expiresMs: 9_000,
  }
  assert.deepEqual(seen.report('alice', 4_000)[0], { ...expected, open: 0 })
  assert.equal(seen.report('alice', 4_000).length, 3)
  assert.equal(seen.report('', 4_000).length, 4)
  assert.deepEqual(seen.report('ali', 4_000), [])
})

test('anonymous requests and names that are too long are not shown', () => {
  const seen = new IdentitiesSeen()
  assert.equal(
    seen.see({ user: { name: 'system:anonymous' }, origin: undefined, seen: undefined }, 'prod', 0),
    undefined,
  )
  assert.equal(seen.see(credential('x'.repeat(MAX_SHOWN_NAME + 1)), 'prod', 0), undefined)
  assert.equal(seen.see(credential('x', 'y'.repeat(MAX_SHOWN_NAME + 1)), 'prod', 0), undefined)
  assert.equal(seen.size, 0)
})

test('an hour after its latest request an identity is gone, unless one is open', () => {
  const seen = new IdentitiesSeen()
  const watcher = seen.see(credential('watcher'), 'prod', 0) ?? assert.fail()
  seen.see(credential('alice'), 'prod', 0)
  watcher.open++
  const names = (nowMs: number): string[] => seen.report('', nowMs).map(({ user }) => user)
  assert.deepEqual(names(SHOWN_MS), ['watcher', 'alice'])
  assert.deepEqual(names(SHOWN_MS + 1), ['watcher'])
  watcher.open--
  assert.deepEqual(names(SHOWN_MS + 1), [])
  assert.equal(seen.size, 0)
})

test('any number of users take bounded memory; those with open requests, and those seen last, stay', () => {
  const seen = new IdentitiesSeen()
  const old = credential('old')
  const watcher = credential('watcher')
  const entry = seen.see(watcher, 'prod', 0) ?? assert.fail()
  entry.open++
  seen.see(old, 'prod', 1)
  for (let n = 0; n < MAX_IDENTITIES * 3; n++) {
    seen.see(credential(`user-${n}`), 'prod', 2 + n)
    assert.ok(seen.size <= MAX_IDENTITIES)
  }
  const nowMs = MAX_IDENTITIES * 3
  const names = new Set(seen.report('', nowMs).map(({ user }) => user))
  assert.ok(names.has('watcher') && names.has(`user-${MAX_IDENTITIES * 3 - 1}`) && !names.has('old'))
  // One that was dropped is shown again at its next request, as it was.
  seen.see(old, 'prod', nowMs)
  assert.equal(seen.report('old', nowMs)[0]?.sinceMs, 1)
})
