import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { DatabaseSync } from 'node:sqlite'
import { after, test } from 'node:test'
import { UserError } from '../../../kit/api/validation/field-errors.ts'
import { StatusError } from '../../../kube/api/status.ts'
import { SCHEME } from '../../../program/api/scheme.ts'
import type { StoreWrite } from '../../api/object-store.ts'
import { backupStore, REVISIONS_SKIPPED } from './backup.ts'
import { KINDS_WITH_INLINE_SECRETS } from './bodies.ts'
import { openSqliteStore, type SqliteStore } from './store.ts'

const dir = mkdtempSync(join(tmpdir(), 'portcullis-store-'))
after(() => rmSync(dir, { recursive: true }))
const KEY = randomBytes(32)
let stores = 0

function newFile(): string {
  stores += 1
  return join(dir, String(stores), 'store.db')
}

function open(file: string, key: Buffer | undefined = KEY): SqliteStore {
  return openSqliteStore({ file, key })
}

function secret(name: string, expected: number, text: string): StoreWrite {
  return {
    resource: 'secrets',
    namespace: 'default',
    name,
    expected,
    object: { metadata: { name }, stringData: { text } },
  }
}

function refusal(pattern: RegExp, file: string): (error: unknown) => boolean {
  return (error) =>
    error instanceof UserError && pattern.test(error.message) && error.message.includes(file) && error.fix !== ''
}

test('every kind of the scheme with keys and tokens inline is sealed', () => {
  const inScheme = SCHEME.filter(({ inlineSecrets }) => inlineSecrets !== undefined)
  assert.deepEqual(KINDS_WITH_INLINE_SECRETS, inScheme)
})

test('writes survive when the store is opened again', () => {
  const file = newFile()
  const first = open(file)
  first.write([secret('a', 0, 'one')])
  first.write([
    secret('a', 2, 'two'),
    { resource: 'leases', namespace: '', name: 'l', expected: 0, object: { spec: 1 } },
  ])
  const before = [...first.list('secrets', { namespace: '' }), ...first.list('leases', { namespace: '' })]
  first.close()
  first.close()
  assert.deepEqual(readdirSync(join(file, '..')).sort(), ['store.db', 'store.db-lock'])
  const second = open(file)
  assert.equal(second.revision, 4)
  assert.deepEqual([...second.list('secrets', { namespace: '' }), ...second.list('leases', { namespace: '' })], before)
  const events: string[] = []
  second.watch('secrets', '', 1, ({ type, object }) => events.push(`${type} ${Object(object['stringData']).text}`))
  assert.deepEqual(events, ['ADDED one', 'MODIFIED two'])
  second.close()
})

test('every file of a store is for its owner only', () => {
  const file = newFile()
  const store = open(file)
  store.write([secret('a', 0, 'x')])
  const made = readdirSync(join(file, '..'))
  assert.deepEqual(made.sort(), ['store.db', 'store.db-lock', 'store.db-shm', 'store.db-wal'])
  for (const name of made) assert.equal(statSync(join(file, '..', name)).mode & 0o777, 0o600, name)
  assert.equal(statSync(join(file, '..')).mode & 0o777, 0o700)
  store.close()
})

test('nothing of a Secret is in any file, neither now nor in history nor in a backup', () => {
  const file = newFile()
  const store = open(file)
  const texts = ['correct horse battery staple', 'second-version-of-the-text', 'dGhlIHRoaXJkIG9uZSBpcyBiYXNlNjQ=']
  const revisions = texts.map((text, i) => store.write([secret('a', i === 0 ? 0 : i + 1, text)])[0]?.revision)
  store.write([{ ...secret('a', revisions.at(-1) ?? 0, ''), object: undefined }])
  store.write([
    { resource: 'events', namespace: '', name: 'plain', expected: 0, object: { note: 'can be read by all' } },
  ])
  store.backup(join(file, '..', 'backup.db'))
  // A closed store is one file, without its log: check both.
  const look = (): string => {
    const names = readdirSync(join(file, '..'))
    // In another process: closing a file that SQLite has open drops its locks.
    const files = names.map((name) => join(file, '..', name))
    return spawnSync('cat', files, { encoding: 'latin1', maxBuffer: 1 << 26 }).stdout
  }
  const open_ = look()
  store.close()
  const closed = look()
  for (const bytes of [open_, closed]) {
    assert.ok(bytes.includes('can be read by all'), 'the search finds what is not encrypted')
    for (const text of texts) {
      for (const form of [
        text,
        Buffer.from(text).toString('base64'),
        Buffer.from(text).toString('hex'),
        'stringData',
      ]) {
        assert.ok(!bytes.includes(form), `${form} is in a file`)
      }
    }
  }
})

const CLUSTERS = 'upstreamclusters.proxy.kubegateway.io'

function cluster(name: string, spec: object, annotations: object = {}): StoreWrite {
  return { resource: CLUSTERS, namespace: '', name, expected: 0, object: { metadata: { name, annotations }, spec } }
}

/** All bytes beside a store. Read by another process: closing a file that SQLite has open drops its locks. */
function bytesBeside(file: string): string {
  const files = readdirSync(join(file, '..')).map((name) => join(file, '..', name))
  return spawnSync('cat', files, { encoding: 'latin1', maxBuffer: 1 << 26 }).stdout
}

const WORD = 'a-token-in-the-object'
const PEM_WORD = Buffer.from('-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n').toString('base64')
const WITH_SECRETS: readonly StoreWrite[] = [
  cluster('token', { clientConfig: { bearerToken: WORD } }),
  cluster('key', { secureServing: { keyData: WORD } }),
  cluster('pem', { clientConfig: { certData: PEM_WORD } }),
  cluster('copy', {}, { last: JSON.stringify({ spec: { clientConfig: { keyData: WORD } } }) }),
  cluster('yaml', {}, { last: `spec:\n  clientConfig:\n    bearerToken: ${WORD}\n` }),
]
const PLAIN = cluster('plain', { clientConfig: { bearerTokenRef: { name: 'by-reference' } } })

test('objects that hold keys and tokens themselves are encrypted as Secrets are, others can be read', () => {
  const file = newFile()
  const store = open(file)
  store.write([...WITH_SECRETS, PLAIN])
  const before = store.list(CLUSTERS, { namespace: '' })
  for (const word of [WORD, PEM_WORD]) assert.ok(!bytesBeside(file).includes(word))
  assert.ok(bytesBeside(file).includes('by-reference'))
  store.close()
  const again = open(file)
  assert.deepEqual(again.list(CLUSTERS, { namespace: '' }), before)
  again.close()
  const keyless = openSqliteStore({ file: newFile(), key: undefined })
  for (const write of WITH_SECRETS) assert.throws(() => keyless.write([write]), StatusError, write.name)
  keyless.write([PLAIN])
  keyless.close()
})

test('a store of version 1, which kept them in clear, is encrypted when it is opened, and nothing is left in clear', () => {
  const file = newFile()
  const store = open(file)
  const written = store.write([...WITH_SECRETS, PLAIN])
  const [first] = written
  assert.ok(first)
  const gone = store.write([{ ...first, object: undefined, expected: first.revision }])
  assert.equal(gone.length, 1)
  const before = [
    ...store.list(CLUSTERS, { namespace: '' }),
    ...store.list(CLUSTERS, { namespace: '', revision: first.revision }),
  ]
  store.close()
  const db = new DatabaseSync(file)
  const clear = db.prepare('UPDATE bodies SET body = ? WHERE revision = ?')
  for (const { object, revision } of written) clear.run(JSON.stringify(object), revision)
  // Also an object of which only its page still has traces.
  clear.run(JSON.stringify({ ...first.object, filler: 'x'.repeat(50_000), word: `${WORD}-2` }), first.revision)
  clear.run(JSON.stringify(first.object), first.revision)
  db.exec('UPDATE store SET schema = 1; PRAGMA wal_checkpoint(TRUNCATE)')
  db.close()
  assert.ok(bytesBeside(file).includes(WORD) && bytesBeside(file).includes(PEM_WORD))
  const upgraded = open(file)
  assert.deepEqual(
    [
      ...upgraded.list(CLUSTERS, { namespace: '' }),
      ...upgraded.list(CLUSTERS, { namespace: '', revision: first.revision }),
    ],
    before,
  )
  for (const word of [WORD, PEM_WORD]) assert.ok(!bytesBeside(file).includes(word), word)
  upgraded.close()
  for (const word of [WORD, PEM_WORD]) assert.ok(!bytesBeside(file).includes(word), word)
})

test('sealed with another key, or with none: refused before anything is read', () => {
  const file = newFile()
  open(file).close()
  assert.throws(() => open(file, randomBytes(32)), refusal(/key given is not the one/, file))
  assert.throws(() => openSqliteStore({ file, key: undefined }), refusal(/no key was given/, file))
  assert.throws(() => open(file, randomBytes(16)), RangeError)
  open(file).close()
})

test('without a key a store keeps everything but Secrets', () => {
  const file = newFile()
  const store = openSqliteStore({ file, key: undefined })
  store.write([{ resource: 'leases', namespace: '', name: 'a', expected: 0, object: {} }])
  assert.throws(
    () => store.write([secret('a', 0, 'x')]),
    (error) => error instanceof StatusError && /no key/.test(error.message),
  )
  assert.equal(store.revision, 2)
  store.close()
  const sealed = open(file)
  sealed.write([secret('a', 0, 'x')])
  sealed.close()
})

test('a sealed body is good for its own object and revision only', () => {
  const file = newFile()
  const store = open(file)
  store.write([secret('a', 0, 'of a'), secret('b', 0, 'of b')])
  store.write([secret('a', 2, 'newer')])
  store.close()
  const db = new DatabaseSync(file)
  db.exec('UPDATE bodies SET body = (SELECT body FROM bodies WHERE revision = 2) WHERE revision IN (3, 4)')
  db.close()
  const again = open(file)
  for (const name of ['a', 'b']) {
    assert.throws(
      () => again.get({ resource: 'secrets', namespace: 'default', name }),
      /is damaged \(the key does not open a Secret\)/,
    )
  }
  again.close()
})

test('a second process is refused while the first one has the store open, and succeeds after it', () => {
  const file = newFile()
  const store = open(file)
  store.write([secret('a', 0, 'x')])
  assert.throws(() => open(file), refusal(/open in another process/, file))
  const other = spawnSync(process.execPath, ['--input-type=module', '-e', OTHER_PROCESS, file], { encoding: 'utf8' })
  assert.match(other.stdout, /^UserError the store .* is open in another process$/m, other.stderr)
  store.write([secret('b', 0, 'y')])
  store.close()
  const later = spawnSync(process.execPath, ['--input-type=module', '-e', OTHER_PROCESS, file], { encoding: 'utf8' })
  assert.match(later.stdout, /^revision 3$/m, later.stderr)
})

test('files that are not a store are named, and stay as they are', () => {
  const junk = newFile()
  mkdirSync(join(junk, '..'))
  writeFileSync(junk, 'this is a text, and no database at all\n'.repeat(100))
  const bytes = readFileSync(junk)
  assert.throws(() => open(junk), refusal(/not an SQLite database/, junk))
  assert.deepEqual(readFileSync(junk), bytes)

  const other = newFile()
  mkdirSync(join(other, '..'))
  const db = new DatabaseSync(other)
  db.exec('CREATE TABLE theirs (x)')
  db.close()
  assert.throws(() => open(other), refusal(/of another program/, other))

  const inFile = join(junk, 'store.db')
  assert.throws(() => open(inFile), refusal(/cannot create/, junk))
  const directory = newFile()
  mkdirSync(directory, { recursive: true })
  assert.throws(() => open(directory), refusal(/cannot be opened/, directory))
})

test('a store of a newer version is not touched', () => {
  const file = newFile()
  open(file).close()
  const db = new DatabaseSync(file)
  db.exec('UPDATE store SET schema = 3')
  db.close()
  const before = readFileSync(file)
  assert.throws(() => open(file), refusal(/newer version of Portcullis \(schema 3, this version knows 2\)/, file))
  assert.ok(before.equals(readFileSync(file)), 'nothing is written')
})

test('a truncated database is refused, or reads fail with a Status', () => {
  const file = newFile()
  const store = open(file)
  for (let i = 0; i < 200; i++) store.write([secret(`s${i}`, 0, 'x'.repeat(1000))])
  store.close()
  writeFileSync(file, readFileSync(file).subarray(0, 40_000))
  assert.throws(
    () => {
      const damaged = open(file)
      try {
        damaged.list('secrets', { namespace: '' })
      } finally {
        damaged.close()
      }
    },
    (error) => (error instanceof UserError || error instanceof StatusError) && /damaged/.test(error.message),
  )
})

test('a directory without permission', { skip: process.platform === 'win32' }, () => {
  const file = newFile()
  mkdirSync(join(file, '..'))
  chmodSync(dir, 0o755)
  chmodSync(join(file, '..'), 0o555)
  withoutPrivileges(() => assert.throws(() => open(file), refusal(/cannot write/, file)))
  chmodSync(join(file, '..'), 0o755)
  open(file).close()
  chmodSync(file, 0o444)
  chmodSync(`${file}-lock`, 0o666)
  withoutPrivileges(() => assert.throws(() => open(file), refusal(/cannot be opened for writing/, file)))
  chmodSync(file, 0o644)
})

test('a concurrent backup is consistent, and has revisions that no client has seen', () => {
  const file = newFile()
  const store = open(file)
  store.write([secret('a', 0, 'one'), secret('b', 0, 'gone')])
  store.write([secret('a', 2, 'two'), { ...secret('b', 3, ''), object: undefined }])
  const copies = [join(dir, 'backup-1.db'), join(dir, 'backup-2.db')]
  store.backup(copies[0] ?? '')
  backupStore(file, copies[1] ?? '')
  store.write([secret('c', 0, 'after')])
  assert.throws(() => store.backup(copies[0] ?? ''), refusal(/exists already/, copies[0] ?? ''))
  store.close()
  copies.push(join(dir, 'backup-3.db'))
  backupStore(file, copies[2] ?? '')
  for (const [index, copy] of copies.entries()) {
    assert.equal(statSync(copy).mode & 0o777, 0o600)
    const restored = open(copy)
    const base = index === 2 ? 6 : 5
    assert.equal(restored.revision, base + REVISIONS_SKIPPED)
    const [first, ...others] = restored.list('secrets', { namespace: '' })
    assert.deepEqual(first?.object['stringData'], { text: 'two' })
    assert.equal(others.length, index === 2 ? 1 : 0)
    assert.throws(() => restored.watch('secrets', '', base, () => {}), /no longer kept/)
    restored.write([secret('a', 4, 'three')])
    assert.equal(restored.revision, base + REVISIONS_SKIPPED + 1)
    restored.close()
  }
  assert.throws(() => backupStore(join(dir, 'none.db'), join(dir, 'x.db')), refusal(/there is no store/, 'none.db'))
  assert.deepEqual(
    readdirSync(dir).filter((name) => name.startsWith('backup') && !name.endsWith('-lock')),
    ['backup-1.db', 'backup-2.db', 'backup-3.db'],
  )
})

const OTHER_PROCESS = `
const { openSqliteStore } = await import(${JSON.stringify(join(import.meta.dirname, 'store.ts'))})
try {
  console.log('revision', openSqliteStore({ file: process.argv[1], key: Buffer.from('${KEY.toString('hex')}', 'hex') }).revision)
} catch (error) {
  console.log(error.name, error.message)
}
`

/** Runs without privileges if the tests run as root, which ignores permissions. */
function withoutPrivileges(action: () => void): void {
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
