// Large and long bodies: nothing is gathered, nothing is held back.

import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import type { ClientHttp2Session, ClientHttp2Stream, ServerHttp2Stream } from 'node:http2'
import { after, before, beforeEach, describe, test } from 'node:test'
import { createCA } from '../../src/pki/io/pki.ts'
import { h2Connect, h2Open } from '../harness/clients/h2-client.ts'
import { type InProcessGateway, startInProcess } from '../harness/gateways/in-process.ts'
import { clientPair, clusterObject } from '../harness/objects/objects.ts'
import { reply, type SeenRequest, type StubUpstream, startStub } from '../harness/upstreams/stub-upstream.ts'
import { waitFor } from '../harness/wait.ts'

const MiB = 1024 * 1024
/** Gateway, upstream and client live in one process here: a bound for all three. */
const MEMORY_BOUND_BYTES = 150 * MiB
const clientCA = createCA({ commonName: 'clients of prod' })

let stub: StubUpstream
let gateway: InProcessGateway
let session: ClientHttp2Session

before(async () => {
  stub = await startStub()
  gateway = await startInProcess([clusterObject([stub], { clientCA })])
  const certificate = clientPair(clientCA, 'alice')
  session = h2Connect({ port: gateway.port, serverName: 'prod.example.com', certificate })
})
after(async () => {
  session.destroy()
  await gateway.stop()
  await stub.stop()
})
beforeEach(() => {
  stub.seen.length = 0
})

/** Heap and buffers of this process. */
function memoryBytes(): number {
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

interface Tally {
  bytes: number
  readonly hash: ReturnType<typeof createHash>
  peakBytes: number
}

function createTally(): Tally {
  return { bytes: 0, hash: createHash('sha1'), peakBytes: 0 }
}

/** Reads with a pause after every 8 MiB, so that the sender is always the faster one. */
async function readSlowly(stream: ClientHttp2Stream | ServerHttp2Stream, tally: Tally): Promise<void> {
  let pauseAt = 8 * MiB
  stream.on('data', (chunk: Buffer) => {
    tally.bytes += chunk.length
    tally.hash.update(chunk)
    if (tally.bytes < pauseAt) return
    pauseAt += 8 * MiB
    tally.peakBytes = Math.max(tally.peakBytes, memoryBytes())
    stream.pause()
    setTimeout(() => stream.resume(), 5)
  })
  await once(stream, 'end')
}

/** Writes as much as is taken, each piece with a number of its own. */
function pump(stream: ClientHttp2Stream | ServerHttp2Stream, totalBytes: number, sent: Tally): void {
  let piece = 0
  // An unread stream of a server is closed by node:http2 when it has "finished", which may be before its last bytes
  // are out: RST_STREAM instead of END_STREAM.
  stream.resume()
  const go = (): void => {
    for (;;) {
      const chunk = Buffer.alloc(256 * 1024, 'x')
      chunk.writeUInt32BE(piece++)
      sent.bytes += chunk.length
      sent.hash.update(chunk)
      if (sent.bytes >= totalBytes) {
        stream.end(chunk)
        return
      }
      if (stream.write(chunk)) continue
      stream.once('drain', go)
      return
    }
  }
  go()
}

describe('flat memory', () => {
  test('a list of 500 MiB, to a client slower than upstream', async () => {
    const total = 500 * MiB
    const sent = createTally()
    stub.answer = ({ stream }) => {
      stream.respond([':status', '200', 'content-type', 'application/json'])
      pump(stream, total, sent)
    }
    const beforeBytes = memoryBytes()
    const received = createTally()
    const stream = h2Open(session, [])
    await readSlowly(stream, received)
    assert.equal(received.bytes, total)
    assert.equal(received.hash.digest('hex'), sent.hash.digest('hex'))
    assert.equal(stream.rstCode, 0)
    const grown = received.peakBytes - beforeBytes
    assert.ok(grown < MEMORY_BOUND_BYTES, `${Math.round(grown / MiB)} MiB more than before`)
  })

  test('an upload of 100 MiB, to an upstream slower than the client', async () => {
    const total = 100 * MiB
    const received = createTally()
    stub.answer = (request) => {
      void readSlowly(request.stream, received).then(() => reply(request, 201, '{}'))
    }
    const beforeBytes = memoryBytes()
    const sent = createTally()
    const stream = h2Open(session, [':method', 'POST'], { endStream: false })
    pump(stream, total, sent)
    stream.resume()
    const [headers] = (await once(stream, 'response')) as [{ ':status': number }]
    assert.equal(headers[':status'], 201)
    assert.equal(received.bytes, total)
    assert.equal(received.hash.digest('hex'), sent.hash.digest('hex'))
    const grown = received.peakBytes - beforeBytes
    assert.ok(grown < MEMORY_BOUND_BYTES, `${Math.round(grown / MiB)} MiB more than before`)
  })
})

describe('watch frames are delivered as they come', () => {
  async function startWatch(
    contentType: string,
  ): Promise<{ upstream: ServerHttp2Stream; received: () => Buffer; stream: ClientHttp2Stream }> {
    let seen: SeenRequest | undefined
    stub.answer = (request) => {
      seen = request
      request.stream.respond([':status', '200', 'content-type', contentType])
    }
    const stream = h2Open(session, [':path', '/api/v1/pods?watch=1'])
    const chunks: Buffer[] = []
    stream.on('data', (chunk: Buffer) => chunks.push(chunk))
    // The head arrives before there is any event.
    await once(stream, 'response')
    assert.ok(seen)
    return { upstream: seen.stream, received: () => Buffer.concat(chunks), stream }
  }

  function protobufFrame(length: number, fill: number): Buffer {
    const frame = Buffer.alloc(4 + length, fill)
    frame.writeUInt32BE(length)
    return frame
  }

  const EVENTS: [string, string, (i: number) => Buffer][] = [
    ['JSON', 'application/json', (i) => Buffer.from(`{"type":"ADDED","object":{"n":${i}}}\n`)],
    ['protobuf', 'application/vnd.kubernetes.protobuf;stream=watch', (i) => protobufFrame(20 + (i % 100), i % 256)],
    ['gzip, which the gateway does not decode', 'application/octet-stream', (i) => Buffer.from([0x1f, 0x8b, i % 256])],
  ]
  for (const [what, contentType, event] of EVENTS) {
    test(`${what}: each event is with the client before the next is sent`, async () => {
      const { upstream, received, stream } = await startWatch(contentType)
      let expected = Buffer.alloc(0)
      for (let i = 0; i < 200; i++) {
        const frame = event(i)
        expected = Buffer.concat([expected, frame])
        upstream.write(frame)
        await waitFor(`event ${i}`, () => received().length >= expected.length, { intervalMs: 1 })
      }
      assert.ok(received().equals(expected))
      stream.close(8)
      await waitFor('the watch to end upstream', () => upstream.destroyed)
    })
  }

  test('half an event is passed on, too: the gateway waits for nothing', async () => {
    const { upstream, received, stream } = await startWatch('application/json')
    for (const part of ['{"type":', '"ADD', 'ED"}', '\n', '{']) {
      const before = received().length
      upstream.write(part)
      await waitFor(`"${part}"`, () => received().length === before + part.length, { intervalMs: 1 })
    }
    stream.close(8)
  })

  test('an event of 3 MiB, and the small one behind it', async () => {
    const { upstream, received, stream } = await startWatch('application/json')
    const big = `{"type":"ADDED","object":{"data":"${'x'.repeat(3 * MiB)}"}}\n`
    upstream.write(big)
    await waitFor('the big one', () => received().length === big.length)
    upstream.write('{}\n')
    await waitFor('the small one', () => received().toString('latin1').endsWith('\n{}\n'))
    stream.close(8)
  })
})
