// Another key for a store: whatever happens meanwhile, everything is there afterwards, by the key file that it always had.

import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { DatabaseSync } from 'node:sqlite'
import { after, test } from 'node:test'
import type { StoredObject } from '../../src/apiserver/api/object-store.ts'
import { readStoreKey } from '../../src/apiserver/io/store/key.ts'
import { nextKeyFile, openKeyedStore } from '../../src/apiserver/io/store/keyed-store.ts'
import { type RotationStep, rotateStoreKey } from '../../src/apiserver/io/store/rotation.ts'
import type { SqliteStore } from '../../src/apiserver/io/store/store.ts'
import { UserError } from '../../src/kit/api/validation/field-errors.ts'
import type { RotatorOrder } from '../crash/rotator.ts'
import { spin } from '../crash/spin.ts'
import { Random } from '../fuzz/random.ts'
import { endWithThisProcess } from '../harness/process.ts'

const STEPS: readonly RotationStep[] = ['opened', 'key made', 'written', 'committed', 'adopted', 'cleaned']
const CLUSTERS = 'upstreamclusters.proxy.kubegateway.io'
const dir = mkdtempSync(join(tmpdir(), 'portcullis-rotation-'))
after(() => rmSync(dir, { recursive: true }))
let places = 0

interface Place {
  readonly dir: string
  readonly file: string
  readonly keyFile: string
}

interface Content {
  readonly revision: number
  readonly now: readonly StoredObject[]
  /** As of each revision that history still knows. */
  readonly past: readonly (readonly StoredObject[])[]
}

function newPlace(objects = 20): Place {
  const place = join(dir, String(places++))
  const made = { dir: place, file: join(place, 'objects.db'), keyFile: join(place, 'store.key') }
  const store = openKeyedStore(made)
  for (let i = 0; i < objects; i++) {
    const key = { resource: 'secrets', namespace: 'default', name: `s${i}` }
    const [first] = store.write([{ ...key, object: { data: { n: `first ${i}`, fill: 'x'.repeat(500) } }, expected: 0 }])
    const expected = first?.revision ?? 0
    if (i % 3 === 0) store.write([{ ...key, object: undefined, expected }])
    else if (i % 3 === 1) store.write([{ ...key, object: { data: { n: `second ${i}` } }, expected }])
    const spec =
      i % 2 === 0 ? { clientConfig: { bearerToken: `token ${i}` } } : { clientConfig: { bearerTokenRef: {} } }
    store.write([{ resource: CLUSTERS, namespace: '', name: `c${i}`, object: { spec }, expected: 0 }])
  }
  store.close()
  return made
}

function contentOf(store: SqliteStore): Content {
  const all = (revision?: number): StoredObject[] =>
    ['secrets', CLUSTERS].flatMap((resource) => [
      ...store.list(resource, { namespace: '', ...(revision !== undefined && { revision }) }),
    ])
  return {
    revision: store.revision,
    now: all(),
    past: Array.from({ length: store.revision - 1 }, (_, i) => all(i + 1)),
  }
}

/** The objects of a store without history. */
function objectsOf(place: Place): readonly StoredObject[] {
  const store = openKeyedStore({ ...place, existing: true })
  const found = ['secrets', CLUSTERS].flatMap((resource) => [...store.list(resource, { namespace: '' })])
  store.close()
  return found
}

function read(place: Place): Content {
  const store = openKeyedStore({ ...place, existing: true })
  try {
    return contentOf(store)
  } finally {
    store.close()
  }
}

function sealedBodies({ file }: Place): Buffer[] {
  const db = new DatabaseSync(file, { readOnly: true })
  const rows = db.prepare("SELECT body FROM bodies WHERE typeof(body) = 'blob'").all()
  db.close()
  return rows.map(({ body }) => Buffer.from(body as Uint8Array))
}

const keyOf = ({ keyFile }: Place): string => readFileSync(keyFile, 'utf8')
const names = (place: Place): string[] => readdirSync(place.dir).sort()
const isUserError = (pattern: RegExp) => (error: unknown) =>
  error instanceof UserError && pattern.test(error.message) && error.fix !== ''

test('everything is under the new key, history as well, and nothing of the old one is left in the file', () => {
  const place = newPlace()
  const before = read(place)
  const oldKey = keyOf(place)
  const oldBodies = sealedBodies(place)
  assert.ok(oldBodies.length > 30)
  const { bodies, oldKeyFile, leftover } = rotateStoreKey(place)
  assert.deepEqual([bodies, leftover], [oldBodies.length, ''])
  assert.deepEqual(read(place), before)
  assert.notEqual(keyOf(place), oldKey)
  assert.equal(readFileSync(oldKeyFile, 'utf8'), oldKey)
  for (const file of [place.keyFile, oldKeyFile]) assert.equal(statSync(file).mode & 0o777, 0o600)
  assert.deepEqual(names(place).filter((name) => name.includes('key')).length, 2)
  const bytes = readFileSync(place.file)
  for (const body of oldBodies) assert.ok(!bytes.includes(body))
  // Each key opens what it sealed.
  const copy = { ...place, keyFile: oldKeyFile }
  assert.throws(() => read(copy), isUserError(/the key given is not the one/))
  rotateStoreKey(place)
  assert.deepEqual(read(place), before)
})

for (const dieAt of STEPS) {
  test(`killed after "${dieAt}": the store opens, nothing is lost, and the key can be changed again`, () => {
    const place = newPlace()
    const before = read(place)
    const oldKey = keyOf(place)
    const order: RotatorOrder = { ...place, dieAt }
    const child = spawnSync(process.execPath, [join(import.meta.dirname, '../crash/rotator.ts'), JSON.stringify(order)])
    assert.equal(child.signal, 'SIGKILL', child.stderr.toString())
    const committed = STEPS.indexOf(dieAt) >= STEPS.indexOf('committed')
    assert.deepEqual(read(place), before)
    assert.equal(keyOf(place) !== oldKey, committed)
    assert.ok(!existsSync(nextKeyFile(place.keyFile)))
    assert.equal(
      names(place).some((name) => name.startsWith('store.key.old-')),
      committed,
    )
    rotateStoreKey(place)
    assert.deepEqual(read(place), before)
  })
}

test('killed at any moment, 15 times: the store opens each time with all that was in it', async () => {
  const random = new Random(20_261_122, 0)
  const place = newPlace(150)
  const before = read(place)
  for (let round = 0; round < 15; round++) {
    const child = spawn(process.execPath, [join(import.meta.dirname, '../crash/rotator.ts'), JSON.stringify(place)])
    endWithThisProcess(child)
    const at = random.below(STEPS.length - 1)
    let said = ''
    child.stdout.on('data', (chunk: Buffer) => {
      said += chunk.toString()
      if (said.split('\n').length - 1 <= at || child.killed) return
      spin(random.below(3000))
      child.kill('SIGKILL')
    })
    await once(child, 'close')
    assert.deepEqual(read(place), before, `round ${round}, killed after step ${at}`)
  }
})

test('a gateway that runs: refused, and nothing is touched', () => {
  const place = newPlace(3)
  const store = openKeyedStore(place)
  const content = contentOf(store)
  const key = keyOf(place)
  const there = names(place)
  assert.throws(() => rotateStoreKey(place), isUserError(/cannot be changed while the gateway runs/))
  assert.deepEqual(names(place), there)
  store.write([{ resource: 'secrets', namespace: 'default', name: 'later', object: { data: {} }, expected: 0 }])
  store.close()
  assert.equal(keyOf(place), key)
  assert.equal(read(place).revision, content.revision + 1)
})

test('an object that cannot be opened stops it before anything is written', () => {
  const place = newPlace(5)
  const db = new DatabaseSync(place.file)
  db.exec(
    "UPDATE bodies SET body = zeroblob(100) WHERE revision = (SELECT max(revision) FROM objects WHERE resource = 'secrets')",
  )
  db.close()
  const bodies = sealedBodies(place)
  const key = keyOf(place)
  assert.throws(() => rotateStoreKey(place), isUserError(/damaged/))
  assert.deepEqual(sealedBodies(place), bodies)
  assert.equal(keyOf(place), key)
})

test('an encrypted object that belongs to nothing is not left behind under the old key', () => {
  const place = newPlace(5)
  const db = new DatabaseSync(place.file)
  db.exec('INSERT INTO bodies VALUES (99999, zeroblob(100))')
  db.close()
  assert.throws(() => rotateStoreKey(place), isUserError(/1 encrypted objects belong to nothing/))
  assert.equal(read(place).now.length > 0, true)
})

test('a backup of before opens with the key of its time, also in the place of the store', () => {
  const place = newPlace(5)
  const store = openKeyedStore(place)
  const { now } = contentOf(store)
  const backup = join(place.dir, 'backup.db')
  store.backup(backup)
  store.close()
  const { oldKeyFile } = rotateStoreKey(place)
  for (const name of ['objects.db', 'objects.db-wal', 'objects.db-shm']) rmSync(join(place.dir, name), { force: true })
  cpSync(backup, place.file)
  assert.throws(() => objectsOf(place), isUserError(/the key given is not the one/))
  cpSync(oldKeyFile, place.keyFile)
  assert.deepEqual(objectsOf(place), now)
  rotateStoreKey(place)
  assert.deepEqual(objectsOf(place), now)
})

test('into a key file of its own: the old one stays, and says nothing any more', () => {
  const place = newPlace(5)
  const before = read(place)
  const newKeyFile = join(place.dir, 'new.key')
  const key = readStoreKey(newKeyFile)
  const old = keyOf(place)
  const { oldKeyFile } = rotateStoreKey({ ...place, newKeyFile })
  assert.equal(oldKeyFile, place.keyFile)
  assert.equal(keyOf(place), old)
  assert.deepEqual(readStoreKey(newKeyFile), key)
  assert.throws(() => read(place), isUserError(/the key given is not the one/))
  assert.deepEqual(read({ ...place, keyFile: newKeyFile }), before)
  const same = { ...place, keyFile: newKeyFile, newKeyFile }
  assert.throws(() => rotateStoreKey(same), isUserError(/the new key is the current one/))
  assert.deepEqual(read({ ...place, keyFile: newKeyFile }), before)
})

test('a store whose key file is gone, or named wrongly, opens with none, and no other key takes its place', () => {
  const place = newPlace(5)
  const before = read(place)
  const wrong = { ...place, keyFile: join(place.dir, 'stroe.key') }
  assert.throws(() => openKeyedStore(wrong), isUserError(/there is no key of the store at .*stroe\.key/))
  assert.equal(existsSync(wrong.keyFile), false)
  assert.deepEqual(read(place), before)
})

test('the key file is gone, or the store is: said, and nothing is made', () => {
  const place = newPlace(1)
  renameSync(place.keyFile, join(place.dir, 'away'))
  assert.throws(() => rotateStoreKey(place), isUserError(/there is no key of the store/))
  assert.ok(!existsSync(place.keyFile))
  // What is about to become the key is good enough, if it is the right one.
  writeFileSync(nextKeyFile(place.keyFile), readFileSync(join(place.dir, 'away')), { mode: 0o600 })
  assert.equal(read(place).now.length > 0, true)
  assert.ok(existsSync(place.keyFile))
})
