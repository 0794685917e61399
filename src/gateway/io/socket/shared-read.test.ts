import assert from 'node:assert/strict'
import { once } from 'node:events'
import { Socket } from 'node:net'
import { PassThrough } from 'node:stream'
import { after, test } from 'node:test'
import { TlsPairs } from '../../../../test/harness/tls-pairs.ts'
import { standsStill, waitFor } from '../../../../test/harness/wait.ts'
import { endSharedRead, listenSharedRead } from './shared-read.ts'
import { closeAfter, LINGER_BYTES } from './socket-close.ts'

const pairs = new TlsPairs()
after(() => pairs.close())

/** Several TLS records, of which no two are the same. */
const SENT = Buffer.from(Array.from({ length: 30_000 }, (_, i) => `${i},`).join(''))

test('all sockets that a server has accepted read into one memory', async () => {
  const memories = new Set<ArrayBufferLike>()
  const got: Buffer[] = []
  for (let i = 0; i < 3; i++) {
    const { client, accepted } = await pairs.open()
    const listens = listenSharedRead(accepted, (chunk) => {
      memories.add(chunk.buffer)
      got.push(Buffer.from(chunk))
    })
    assert.ok(listens, 'this version of Node keeps the option `onread` in another place: see shared-read.ts')
    got.length = 0
    client.end(SENT)
    await once(accepted, 'end')
    assert.ok(Buffer.concat(got).equals(SENT))
  }
  assert.equal(memories.size, 1)
})

test('what a socket has read before comes first', async () => {
  const { client, accepted } = await pairs.open()
  client.write('before ')
  await once(accepted, 'readable')
  accepted.removeAllListeners('readable')
  const got: string[] = []
  assert.ok(listenSharedRead(accepted, (chunk) => void got.push(chunk.toString())))
  client.end('after')
  await once(accepted, 'end')
  assert.equal(got.join(''), 'before after')
})

test('a paused socket reads no further, and then goes on', async () => {
  const { client, accepted } = await pairs.open()
  const got: Buffer[] = []
  let bytes = 0
  assert.ok(
    listenSharedRead(accepted, (chunk) => {
      got.push(Buffer.from(chunk))
      bytes += chunk.length
      if (got.length === 1) accepted.pause()
    }),
  )
  const much = Buffer.concat(Array.from({ length: 100 }, () => SENT))
  client.end(much)
  await waitFor('the pause', () => got.length > 0)
  const stood = await standsStill('what is read', () => bytes)
  assert.ok(stood <= 128 * 1024, `${stood} bytes`)
  accepted.resume()
  await once(accepted, 'end')
  assert.ok(Buffer.concat(got).equals(much))
})

test('who listens later takes the place of who did before', async () => {
  const { client, accepted } = await pairs.open()
  const got: string[] = []
  for (const name of ['one', 'other']) {
    assert.ok(listenSharedRead(accepted, (chunk) => void got.push(`${name} ${chunk}`)))
    client.write('bytes')
    await waitFor('them', () => got.length > 0)
    assert.deepEqual(got.splice(0), [`${name} bytes`])
  }
})

test('a socket without an owner keeps what it reads, in memory of its own, for the next one', async () => {
  const { client, accepted } = await pairs.open()
  const first: string[] = []
  const listener = (chunk: Buffer): void => void first.push(chunk.toString())
  assert.ok(listenSharedRead(accepted, listener))
  client.write('first ')
  await waitFor('the first', () => first.length > 0)
  accepted.off('data', listener)
  endSharedRead(accepted)
  Object.assign(accepted, { readableFlowing: null })
  client.write('between ')
  await waitFor('what is kept', () => accepted.readableLength > 0)
  const other = await pairs.open()
  assert.ok(listenSharedRead(other.accepted, () => undefined))
  other.client.end(SENT)
  await once(other.accepted, 'end')
  const next: string[] = []
  assert.ok(listenSharedRead(accepted, (chunk) => void next.push(chunk.toString())))
  client.end('last')
  await once(accepted, 'end')
  assert.deepEqual([first.join(''), next.join('')], ['first ', 'between last'])
})

test('without an owner that shares the memory it is an ordinary stream', async () => {
  const { client, accepted } = await pairs.open()
  assert.ok(listenSharedRead(accepted, () => assert.fail('read by the former owner')))
  accepted.removeAllListeners('data')
  endSharedRead(accepted)
  client.end(SENT)
  const got: Buffer[] = []
  accepted.on('data', (chunk: Buffer) => void got.push(chunk))
  await once(accepted, 'end')
  assert.ok(Buffer.concat(got).equals(SENT))
})

test('of a socket that is closed only a little is still read, whoever has read it before', async () => {
  const { client, accepted } = await pairs.open()
  let passed = 0
  listenSharedRead(accepted, (chunk) => {
    passed += chunk.length
  })
  const goesOn = (): void => {
    while (client.write(SENT));
  }
  client.on('drain', goesOn)
  goesOn()
  await waitFor('something', () => passed > 0)
  const before = accepted.bytesRead
  closeAfter(accepted, 'the end')
  const passedBefore = passed
  await once(accepted, 'close')
  assert.equal(passed, passedBefore)
  assert.ok(accepted.bytesRead - before <= LINGER_BYTES + 2 * 64 * 1024, `${accepted.bytesRead - before} bytes`)
})

test('any other stream is listened to as ever', async () => {
  assert.equal(
    listenSharedRead(new Socket(), () => undefined),
    false,
  )
  const pipe = new PassThrough()
  const got: string[] = []
  assert.equal(
    listenSharedRead(pipe, (chunk) => void got.push(chunk.toString())),
    false,
  )
  pipe.end('some')
  await once(pipe, 'end')
  assert.deepEqual(got, ['some'])
})
