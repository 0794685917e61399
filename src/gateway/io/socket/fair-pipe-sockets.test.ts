// The pipe between two sockets of the system, whose reads share one memory.

import assert from 'node:assert/strict'
import { randomBytes, randomInt } from 'node:crypto'
import { once } from 'node:events'
import { after, test } from 'node:test'
import type { TLSSocket } from 'node:tls'
import { TlsPairs } from '../../../../test/harness/tls-pairs.ts'
import { standsStill, waitFor } from '../../../../test/harness/wait.ts'
import type { Charge } from '../../../kit/api/stream.ts'
import { threadScheduler } from '../scheduling/thread-scheduler.ts'
import { FairPipe } from './fair-pipe.ts'

const CHARGE: Charge = { source: 'one', weight: 1, known: true }
const KIB = 1024

const pairs = new TlsPairs()
after(() => pairs.close())

/** client - accepted = piped = upstream - server */
interface Spliced {
  readonly client: TLSSocket
  readonly accepted: TLSSocket
  readonly upstream: TLSSocket
  readonly server: TLSSocket
}

async function splice(): Promise<Spliced> {
  const [{ client, accepted }, { client: upstream, accepted: server }] = [await pairs.open(), await pairs.open()]
  return { client, accepted, upstream, server }
}

/** What a socket receives: so many bytes, or all until its end. */
async function receivedBy(socket: TLSSocket, bytes: number = Number.POSITIVE_INFINITY): Promise<Buffer> {
  const chunks: Buffer[] = []
  let got = 0
  await new Promise<void>((resolve) => {
    socket.on('data', (chunk: Buffer) => {
      chunks.push(chunk)
      got += chunk.length
      if (got >= bytes) resolve()
    })
    socket.once('end', resolve)
  })
  return Buffer.concat(chunks)
}

/** Sends it in pieces of all sizes: alone in a turn and many at once, shorter and longer than a TLS record and than a slab. */
async function sendPieces(socket: TLSSocket, sent: Buffer): Promise<void> {
  for (let at = 0; at < sent.length; ) {
    const size = randomInt(4) === 0 ? randomInt(1, 200 * KIB) : randomInt(1, 3 * KIB)
    if (!socket.write(sent.subarray(at, at + size))) await once(socket, 'drain')
    else if (randomInt(2) === 0) await new Promise((resolve) => setImmediate(resolve))
    at += size
  }
}

test('everything arrives unchanged on several connections at once, in both directions', async () => {
  const splices = [await splice(), await splice(), await splice(), await splice()]
  await Promise.all(
    splices.map(async ({ client, accepted, upstream, server }) => {
      const [up, down] = [randomBytes(3_000_000), randomBytes(3_000_000)]
      const toServer = new FairPipe(accepted, upstream, CHARGE)
      const toClient = new FairPipe(upstream, accepted, CHARGE)
      const [atServer, atClient] = await Promise.all([
        receivedBy(server, up.length),
        receivedBy(client, down.length),
        sendPieces(client, up),
        sendPieces(server, down),
      ])
      assert.ok(atServer.equals(up))
      assert.ok(atClient.equals(down))
      assert.deepEqual([toServer.bytes, toClient.bytes], [up.length, down.length])
    }),
  )
})

test('what came before the pipe is passed on before what came since', async () => {
  const { client, accepted, upstream, server } = await splice()
  client.write('second ')
  await once(accepted, 'readable')
  accepted.removeAllListeners('readable')
  new FairPipe(accepted, upstream, CHARGE).begin(Buffer.from('first '))
  client.end('third')
  assert.equal((await receivedBy(server)).toString(), 'first second third')
})

test('a side that does not read is sent no more after a little', async () => {
  const { client, accepted, upstream, server } = await splice()
  server.pause()
  let told = 0
  const pipe = new FairPipe(accepted, upstream, CHARGE, () => void told++)
  const piece = Buffer.alloc(256 * KIB, 'x')
  const goesOn = (): void => {
    while (client.write(piece));
  }
  client.on('drain', goesOn)
  goesOn()
  await waitFor('the pause', () => accepted.isPaused())
  await standsStill('what passes', () => pipe.bytes)
  assert.equal(accepted.isPaused(), true)
  assert.equal(told % 2, 1, 'its owner was told that it waits')
  assert.ok(upstream.writableLength <= 320 * KIB, `${upstream.writableLength} bytes`)
  for (const socket of [client, accepted, upstream, server]) socket.destroy()
})

test('what was read is passed on when its sender closes, and dropped when the receiver does', async () => {
  for (const closes of ['sender', 'receiver'] as const) {
    const { client, accepted, upstream, server } = await splice()
    const charge = { ...CHARGE, source: `closing ${closes}` }
    // Its slice is over: what it sends waits for another turn.
    const nowMs = performance.now()
    threadScheduler.charge(threadScheduler.accountOf(charge, nowMs), nowMs - 1_000, nowMs)
    const kept = threadScheduler.keptBytes
    const pipe = new FairPipe(accepted, upstream, charge)
    const arrives = receivedBy(server)
    client.write(Buffer.alloc(10 * KIB, 'y'))
    await waitFor('it', () => threadScheduler.keptBytes > kept || pipe.bytes > 0)
    if (closes === 'sender') {
      pipe.flush()
      upstream.end()
      assert.equal((await arrives).length, 10 * KIB)
    } else {
      upstream.destroy()
      pipe.flush()
    }
    await waitFor('nothing to be kept', () => threadScheduler.keptBytes === kept)
  }
})

test('while its tap is full nothing passes, and then everything in order', async () => {
  const { client, accepted, upstream, server } = await splice()
  const sent = randomBytes(1_000_000)
  const seen: Buffer[] = []
  let full = true
  const tap = { see: (chunk: Buffer) => seen.push(Buffer.from(chunk)) > 0, isFull: () => full }
  const pipe = new FairPipe(accepted, upstream, CHARGE, undefined, tap)
  const arrives = receivedBy(server)
  client.end(sent)
  await waitFor('the first', () => pipe.bytes > 0)
  const stood = await standsStill('what passes', () => pipe.bytes)
  assert.ok(stood <= 16 * KIB, `${stood} bytes`)
  full = false
  pipe.goOn()
  assert.ok((await arrives).equals(sent))
  assert.ok(Buffer.concat(seen).equals(sent))
})
