// Recordings that wait in a directory for a store, and a store that does what stores should not do.

import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, afterEach, beforeEach, test } from 'node:test'
import { allocateRoom, DirectoryRoom } from '../../src/sessions/core/recording/directory-room.ts'
import { S3Bucket } from '../../src/sessions/io/s3-bucket.ts'
import { Spool } from '../../src/sessions/io/spool.ts'
import { Uploads } from '../../src/sessions/io/uploads.ts'
import { type S3Stub, type StoreAnswer, startS3Stub } from '../harness/servers/s3-stub.ts'
import { waitFor } from '../harness/wait.ts'

const folder = mkdtempSync(join(tmpdir(), 'uploads-'))
after(() => rmSync(folder, { recursive: true }))

let stub: S3Stub
let dir = ''
let bucket: S3Bucket
let nowMs = 0
const counts = { uploaded: 0, failed: 0 }
const logged: { message: string; fields: Readonly<Record<string, unknown>> }[] = []

beforeEach(async () => {
  dir = mkdtempSync(join(folder, 'one-'))
  stub = await startS3Stub()
  bucket = bucketWithin()
  logged.length = 0
  Object.assign(counts, { uploaded: 0, failed: 0 })
  nowMs = 0
})
afterEach(async () => {
  await bucket.stop()
  await stub.stop()
})

function bucketWithin(uploadMs?: number): S3Bucket {
  const credentials = { accessKeyId: 'ID', secretAccessKey: 'SECRET', sessionToken: 'TOKEN' }
  const at = { url: `${stub.url}/audit`, region: 'r', files: { credentials, ca: '' } }
  return new S3Bucket({ ...at, clock: { now: () => Date.now() }, ...(uploadMs !== undefined && { uploadMs }) })
}

interface Waiting {
  readonly uploads: Uploads
  /** Looks through the directory, and waits until what follows is done. */
  look(): Promise<void>
  stop(withinMs: number): Promise<void>
}

function waiting(to = bucket): Waiting {
  const line = (message: string, fields = {}): void => void logged.push({ message, fields })
  const uploads = new Uploads({
    dir,
    prefix: 'prod/',
    bucket: to,
    clock: { now: () => Date.now(), monotonic: () => nowMs },
    log: { debug: line, info: line, warn: line, error: line },
    random: () => 1,
    counted: (result) => void counts[result]++,
  })
  const room = new DirectoryRoom(allocateRoom(), 1_000_000_000)
  const spool = new Spool({ dir, room, looking: () => uploads.looking(), see: (file) => uploads.see(file) })
  return {
    uploads,
    async look() {
      await spool.look()
      uploads.looked()
      await uploads.idle
    },
    stop: (withinMs) => uploads.stop(() => spool.look(), withinMs),
  }
}

function nameOf(second: number): string {
  return `20260102T0304${String(second).padStart(2, '0')}Z_prod_0ff_6d1f0b1c-0000-4000-8000-000000000000.session`
}

function write(second: number, bytes = 100, suffix = ''): string {
  const name = `${nameOf(second)}${suffix}`
  writeFileSync(join(dir, name), Buffer.alloc(bytes, second))
  return name
}

const objectOf = (name: string): string => `/audit/prod/2026/01/02/${name}`

test('what is complete goes to the store, the oldest first, and is removed once it is there', async () => {
  const [second, first] = [write(2, 3_000_000), write(1)]
  write(3, 100, '.part')
  writeFileSync(join(dir, 'other.session'), 'x')
  symlinkSync('/etc/passwd', join(dir, nameOf(4)))
  const { look, uploads } = waiting()
  await look()
  const wanted = [first, second].flatMap((name) => [`PUT ${objectOf(name)}`, `HEAD ${objectOf(name)}`])
  assert.deepEqual(stub.requests, wanted)
  assert.deepEqual(stub.objects.get(objectOf(second))?.body, Buffer.alloc(3_000_000, 2))
  assert.equal(readdirSync(dir).length, 3)
  assert.deepEqual(counts, { uploaded: 2, failed: 0 })
  await look()
  assert.equal(uploads.oldestMs, 0)
  assert.deepEqual(uploads.describe(), { waiting: 0, error: '' })
})

test('what is sent is signed, and names no secret', async () => {
  write(1)
  let fields: IncomingMessage['headers'] = {}
  stub.answer = (request, response, body) => {
    fields = request.headers
    stub.store(request, response, body)
  }
  await waiting().look()
  const signed = 'host;x-amz-content-sha256;x-amz-date;x-amz-security-token'
  assert.match(
    String(fields.authorization),
    new RegExp(
      `^AWS4-HMAC-SHA256 Credential=ID/\\d{8}/r/s3/aws4_request, SignedHeaders=${signed}, Signature=[0-9a-f]{64}$`,
    ),
  )
  assert.equal(fields['x-amz-security-token'], 'TOKEN')
  assert.ok(!JSON.stringify(fields).includes('SECRET'))
})

const stuck: StoreAnswer = () => undefined
const garbage: StoreAnswer = (_, response) => void response.end('<html>welcome</html>')
const forgets: StoreAnswer = (request, response) => {
  response.writeHead(200, request.method === 'HEAD' ? { 'content-length': 100, 'x-amz-meta-sha256': 'of another' } : {})
  response.end()
}
const cuts: StoreAnswer = (request, response, body) => {
  if (request.method === 'PUT') stub.store(request, response, body)
  else
    response.writeHead(200, { 'content-length': 50, 'x-amz-meta-sha256': [...stub.objects.values()][0]?.sha256 }).end()
}
const endless: StoreAnswer = (_, response) => {
  response.writeHead(500)
  const more = (): void => {
    while (!response.destroyed && response.write('x'.repeat(16_384)));
  }
  response.on('drain', more)
  more()
}
const refuses =
  (status: number, code: string, fields: Record<string, string> = {}): StoreAnswer =>
  (_, response) =>
    void response.writeHead(status, fields).end(`<Error><Code>${code}</Code><Message>why</Message></Error>`)

for (const [what, does, error, fix] of [
  ['answers 200 to everything', garbage, /it was sent, but the store has a different object/, undefined],
  ['has something else', forgets, /it was sent, but the store has a different object/, undefined],
  ['has only a part of it', cuts, /it was sent, but the store has a different object/, undefined],
  ['answers without end', endless, /the store answers 500$/, undefined],
  ['refuses the key', refuses(403, 'SignatureDoesNotMatch'), /403, SignatureDoesNotMatch: why/, /credentials-file/],
  ['has another time', refuses(403, 'RequestTimeTooSkewed'), /403, RequestTimeTooSkewed/, /clock/],
  ['has no such bucket', refuses(404, 'NoSuchBucket'), /404, NoSuchBucket/, /s3-bucket/],
  ['is somewhere else', refuses(307, 'x', { location: '/other' }), /307/, /redirects/],
  ['breaks off', (request) => void request.socket.destroy(), /the connection was closed|ECONNRESET/, undefined],
] as const satisfies readonly (readonly [string, StoreAnswer, RegExp, RegExp | undefined])[]) {
  test(`a store that ${what}: the recording stays, and is tried again later, less and less often`, async () => {
    const name = write(1)
    stub.answer = does
    const { look, uploads } = waiting()
    await look()
    assert.ok(existsSync(join(dir, name)))
    assert.deepEqual(counts, { uploaded: 0, failed: 1 })
    const [{ message, fields } = { message: '', fields: {} }] = logged
    assert.match(message, /could not be uploaded, and stays/)
    assert.match(String(fields['error']), error)
    assert.match(String(fields['fix'] ?? ''), fix ?? /^$/)
    assert.equal(stub.requests.filter((one) => !one.includes('/audit/prod/')).length, 0, 'no redirect was followed')
    const tried = stub.requests.length
    nowMs = 9_999
    await look()
    assert.equal(stub.requests.length, tried)
    nowMs = 10_000
    await look()
    assert.equal(counts.failed, 2)
    nowMs = 29_999
    await look()
    assert.equal(counts.failed, 2)
    stub.answer = stub.store
    nowMs = 30_000
    await look()
    assert.deepEqual(counts, { uploaded: 1, failed: 2 })
    assert.equal(uploads.oldestMs > 0, true, 'as of the last look')
    await look()
    assert.deepEqual(uploads.describe(), { waiting: 0, error: '' })
    assert.match(logged.at(-1)?.message ?? '', /uploaded again/)
  })
}

test('one that the store does not take keeps no other from being uploaded', async () => {
  const poison = write(1)
  const others = [write(2), write(3)]
  stub.answer = (request, response, body) => {
    if (request.url?.endsWith(poison) === true) refuses(400, 'EntityTooLarge')(request, response, body)
    else stub.store(request, response, body)
  }
  const { look } = waiting()
  await look()
  assert.deepEqual(counts, { uploaded: 0, failed: 1 })
  nowMs = 10_000
  await look()
  assert.deepEqual(counts, { uploaded: 2, failed: 2 })
  assert.deepEqual(readdirSync(dir), [poison])
  assert.deepEqual([...stub.objects.keys()], others.map(objectOf))
})

test('a store that does not answer in time has not answered', async () => {
  const name = write(1)
  stub.answer = stuck
  const hasty = bucketWithin(20)
  await waiting(hasty).look()
  await hasty.stop()
  assert.equal(logged[0]?.fields['error'], 'it takes too long')
  assert.deepEqual(readdirSync(dir), [name])
})

test('one at a time, whatever comes while the store is slow; at the end it is given up, and stays', async () => {
  for (let second = 1; second < 10; second++) write(second, 1_000_000)
  stub.answer = stuck
  const { look, stop } = waiting()
  void look()
  await waitFor('the first request', () => stub.requests.length === 1)
  void look()
  void look()
  await stop(5)
  assert.equal(stub.requests.length, 1)
  assert.equal(readdirSync(dir).length, 9)
  assert.deepEqual(counts, { uploaded: 0, failed: 0 })
  // The next gateway goes on with what is there.
  stub.answer = stub.store
  stub.cut()
  await waiting().look()
  assert.deepEqual(readdirSync(dir), [])
  assert.equal(counts.uploaded, 9)
})

test('what became complete as the last is uploaded before the gateway ends', async () => {
  const { look, stop } = waiting()
  await look()
  const name = write(1)
  await stop(10_000)
  assert.ok(stub.objects.has(objectOf(name)))
  assert.deepEqual(readdirSync(dir), [])
})

test('two gateways with one directory do not disturb each other', async () => {
  for (let second = 1; second < 30; second++) write(second)
  await Promise.all([waiting().look(), waiting().look()])
  assert.deepEqual(readdirSync(dir), [])
  assert.equal(stub.objects.size, 29)
  assert.equal(counts.failed, 0)
})

test('what a gateway that was killed has left is uploaded, too, after an hour of looks', async () => {
  const name = write(1, 100, '.part')
  const { look } = waiting()
  for (let looks = 0; looks < 360; looks++) await look()
  assert.deepEqual(readdirSync(dir), [name])
  await look()
  assert.deepEqual([...stub.objects.keys()], [objectOf(name)])
  assert.deepEqual(readdirSync(dir), [])
})
