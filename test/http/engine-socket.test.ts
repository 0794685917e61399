// The engine over a socket: when bytes are written, what waits for what, and how a connection ends.

import assert from 'node:assert/strict'
import { Duplex } from 'node:stream'
import { afterEach, test } from 'node:test'
import { type Http2Session, serveHttp2 } from '../../src/gateway/io/listener/http2-server.ts'
import { SLOW_READ_MS } from '../../src/gateway/io/socket/engine-socket.ts'
import { createHttp2Counters, type Http2Counters } from '../../src/http2/counters.ts'
import type { Peer, ResetReason, Stream, StreamEvents } from '../../src/kit/api/stream.ts'
import { addressCharge } from '../../src/kit/core/shares/charge.ts'
import { tickAll } from '../../src/kit/io/world/coarse-ticker.ts'
import {
  ACK,
  DATA,
  data,
  frame,
  GOAWAY,
  HEADERS,
  headerBlock,
  headersFrames,
  INITIAL_WINDOW_SIZE,
  PING,
  PREFACE,
  ping,
  readFrames,
  SETTINGS,
  settings,
  windowUpdate,
} from '../harness/frames/h2-frames.ts'
import { turns } from '../harness/turns.ts'

const LIMITS = {
  maxConcurrentStreams: 100,
  maxHeaderBytes: 1024 * 1024,
  headerTimeoutMs: 10_000,
  idleTimeoutMs: 120_000,
}
const MiB = 1024 * 1024

/** A socket whose other end is the test: it sees each write, and says when the write is over. */
class Wire extends Duplex {
  readonly writes: Buffer[] = []
  /** Writes are not over until `release`. */
  held = false
  finished = false
  #release: (() => void) | undefined

  override _read(): void {
    // The test pushes.
  }

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.#take(chunk, done)
  }

  override _writev(chunks: { chunk: Buffer }[], done: () => void): void {
    this.#take(Buffer.concat(chunks.map(({ chunk }) => chunk)), done)
  }

  override _final(done: () => void): void {
    this.finished = true
    done()
  }

  #take(chunk: Buffer, done: () => void): void {
    // The engine uses its memory again once the write is over.
    this.writes.push(Buffer.from(chunk))
    if (this.held) this.#release = done
    else done()
  }

  release(): void {
    const done = this.#release
    this.#release = undefined
    done?.()
  }

  get sent(): Buffer {
    return Buffer.concat(this.writes)
  }

  get bodyBytes(): number {
    return readFrames(this.sent)
      .filter(({ type }) => type === DATA)
      .reduce((sum, { payload }) => sum + payload.length, 0)
  }
}

interface Served {
  readonly wire: Wire
  readonly session: Http2Session
  readonly streams: Stream[]
  readonly resets: ResetReason[]
  readonly counters: Http2Counters
  readonly drained: () => number
}

const wires: Wire[] = []
afterEach(() => {
  for (const wire of wires.splice(0)) wire.destroy()
})

/** A connection that has exchanged SETTINGS; the client takes anything. */
async function serve(): Promise<Served> {
  const wire = new Wire()
  const counters = createHttp2Counters()
  wires.push(wire)
  const streams: Stream[] = []
  const resets: ResetReason[] = []
  let drained = 0
  const events: StreamEvents = {
    onHeaders: () => undefined,
    onBody: () => undefined,
    onTrailers: () => undefined,
    onDrained: () => drained++,
    onReset: (reason) => resets.push(reason),
  }
  const peer: Peer = {
    id: 1,
    protocol: 'h2',
    serverName: '',
    tlsCluster: '',
    localAddress: '',
    localPort: 0,
    remoteAddress: '',
    remotePort: 0,
    proxyAddress: '',
    certificate: undefined,
    drain: () => false,
    addressCharge: addressCharge(''),
    charge: addressCharge(''),
    memo: new Map(),
  }
  const session = serveHttp2(wire, peer, LIMITS, counters, (_peer, stream) => {
    streams.push(stream)
    return events
  })
  wire.push(
    Buffer.concat([
      Buffer.from(PREFACE),
      settings([INITIAL_WINDOW_SIZE, 16 * MiB]),
      windowUpdate(0, 16 * MiB),
      frame(SETTINGS, ACK, 0),
    ]),
  )
  await turns()
  wire.writes.length = 0
  return { wire, session, streams, resets, counters, drained: () => drained }
}

function request(stream: number): Buffer {
  const list = [':method', 'GET', ':path', '/', ':scheme', 'https', ':authority', 'a']
  return headersFrames(stream, headerBlock(list))
}

function typesOf(bytes: Buffer): number[] {
  return readFrames(bytes).map(({ type }) => type)
}

test('the output of one turn is sent in one write', async () => {
  const { wire, streams } = await serve()
  wire.push(Buffer.concat([request(1), request(3)]))
  wire.push(request(5))
  await turns()
  assert.equal(streams.length, 3)
  for (const stream of streams) {
    stream.headers([':status', '200'], false)
    stream.body(Buffer.alloc(10_000), true)
  }
  assert.equal(wire.writes.length, 0, 'not at once')
  await turns()
  assert.equal(wire.writes.length, 1)
  assert.deepEqual(typesOf(wire.sent), [HEADERS, DATA, HEADERS, DATA, HEADERS, DATA])
})

test('one write at a time: what the peer does not take stays in its stream, and is counted there', async () => {
  const { wire, streams, drained } = await serve()
  wire.held = true
  wire.push(request(1))
  await turns()
  const [stream] = streams
  assert.ok(stream)
  stream.headers([':status', '200'], false)
  const chunk = Buffer.alloc(16_384)
  for (let i = 0; i < 64; i++) stream.body(chunk, i === 63)
  await turns()
  assert.equal(wire.writes.length, 1)
  assert.ok(stream.queued >= MiB - 256 * 1024, `${stream.queued} bytes are queued`)
  assert.equal(drained(), 0)
  const before = stream.queued
  wire.release()
  await turns()
  assert.equal(wire.writes.length, 2)
  assert.ok(stream.queued < before)
  wire.held = false
  wire.release()
  for (let i = 0; i < 20; i++) await turns()
  assert.equal(wire.bodyBytes, MiB)
  assert.ok(drained() >= 1)
  assert.ok(wire.writes.length >= 5, 'no write is larger than a few frames')
})

test('a peer that does not read: the connection ends after a minute without progress', async () => {
  const { wire, streams, resets, counters } = await serve()
  wire.held = true
  wire.push(request(1))
  await turns()
  streams[0]?.headers([':status', '200'], false)
  streams[0]?.body(Buffer.alloc(MiB), false)
  await turns()
  const now = performance.now()
  tickAll(now)
  tickAll(now + 20_000)
  // It does read, slowly.
  wire.release()
  await turns()
  tickAll(now + 40_000)
  tickAll(now + 40_000 + SLOW_READ_MS - 1)
  assert.equal(wire.destroyed, false)
  // The client is asked by PING meanwhile, and lives.
  wire.push(ping(0, ACK))
  tickAll(now + 40_001 + SLOW_READ_MS)
  await turns()
  assert.equal(wire.destroyed, true)
  assert.equal(counters.slowRead, 1)
  assert.deepEqual(resets, ['connection'])
})

test('drain: GOAWAY in two steps, the last answer, then the end; a peer that keeps its half open is disconnected', async () => {
  const { wire, session, streams } = await serve()
  wire.push(request(1))
  await turns()
  session.drain()
  await turns()
  assert.deepEqual(typesOf(wire.sent), [GOAWAY, PING])
  // On its way while the client had not heard of it.
  wire.push(request(3))
  const [, sent] = readFrames(wire.sent)
  wire.push(frame(PING, ACK, 0, sent?.payload))
  await turns()
  assert.equal(streams.length, 2)
  assert.deepEqual(typesOf(wire.sent), [GOAWAY, PING, GOAWAY])
  for (const stream of streams) {
    stream.headers([':status', '200'], false)
    stream.body(Buffer.from('x'), true)
  }
  await turns()
  assert.deepEqual(typesOf(wire.sent).slice(3), [HEADERS, DATA, HEADERS, DATA])
  assert.equal(wire.finished, true)
  assert.equal(wire.destroyed, false, 'the client may still read')
  const now = performance.now()
  tickAll(now)
  assert.equal(wire.destroyed, false)
  tickAll(now + 1_001)
  assert.equal(wire.destroyed, true)
})

test('the last bytes are written before the end, also when the peer is slow', async () => {
  const { wire, session, streams } = await serve()
  wire.push(request(1))
  await turns()
  wire.held = true
  streams[0]?.headers([':status', '200'], false)
  streams[0]?.body(Buffer.alloc(100_000), true)
  await turns()
  session.drain()
  await turns()
  assert.equal(wire.finished, false)
  wire.held = false
  wire.release()
  await turns()
  wire.push(frame(PING, ACK, 0, readFrames(wire.sent).find(({ type }) => type === PING)?.payload))
  await turns()
  assert.equal(wire.bodyBytes, 100_000)
  assert.equal(wire.finished, true)
})

test('the peer ends, or breaks the protocol: its streams are notified, the socket is closed', async () => {
  const ended = await serve()
  ended.wire.push(headersFrames(1, headerBlock([':method', 'POST', ':path', '/', ':scheme', 'https']), 0))
  await turns()
  ended.wire.push(null)
  await turns()
  assert.deepEqual(ended.resets, ['connection'])
  assert.equal(ended.wire.finished, true)

  const broken = await serve()
  broken.wire.push(request(1))
  await turns()
  broken.wire.push(data(0, 'x'))
  await turns()
  assert.deepEqual(broken.resets, ['connection'])
  assert.deepEqual(typesOf(broken.wire.sent), [GOAWAY])
  assert.equal(broken.wire.finished, true)
})
