// Bodies of clients that are not authenticated yet: over HTTP/2 each connection may have 64 KiB with the gateway, over all of its streams;
// a user's may have more, from the first request that was authenticated on.

import assert from 'node:assert/strict'
import { afterEach, test } from 'node:test'
import { SERVER_LIMITS } from '../../src/http2/limits.ts'
import { createCA } from '../../src/pki/io/pki.ts'
import { connectFrames, type FrameConnection } from '../harness/frames/frame-connection.ts'
import * as h2 from '../harness/frames/h2-frames.ts'
import { type InProcessGateway, startInProcess } from '../harness/gateways/in-process.ts'
import { clientPair, clusterObject } from '../harness/objects/objects.ts'
import {
  reply,
  replyReview,
  type SeenReview,
  type StubUpstream,
  startStub,
} from '../harness/upstreams/stub-upstream.ts'
import { waitFor } from '../harness/wait.ts'

const HOST = 'prod.example.com'
const FIRST_BYTES = SERVER_LIMITS.initialConnectionWindowBytes
const FRAME_BYTES = 4096
const clientCA = createCA({ commonName: 'clients' })

const cleanups: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

interface World {
  readonly gateway: InProcessGateway
  readonly stub: StubUpstream
  /** Bytes of bodies that upstream has received. */
  received(): number
}

async function start(): Promise<World> {
  const stub = await startStub()
  cleanups.push(() => stub.stop())
  let received = 0
  stub.answer = (request) => {
    request.stream.on('data', (chunk: Buffer) => {
      received += chunk.length
    })
    request.stream.on('end', () => reply(request, 200, '{}'))
  }
  const gateway = await startInProcess([clusterObject([stub], { clientCA })])
  cleanups.push(() => gateway.stop())
  return { gateway, stub, received: () => received }
}

/** A client that sends bodies as far as its windows go. */
class Uploader {
  readonly #connection: FrameConnection
  readonly #left = new Map<number, number>()
  readonly #windows = new Map<number, number>()
  #window = 65_535
  /** Most that it might have had with the gateway at a time. */
  most = 0

  constructor(connection: FrameConnection) {
    this.#connection = connection
    this.most = this.#window
    connection.onFrame = ({ type, stream, payload }) => {
      if (type !== h2.WINDOW_UPDATE) return
      const bytes = payload.readUInt32BE()
      if (stream === 0) this.#window += bytes
      else this.#windows.set(stream, (this.#windows.get(stream) ?? 0) + bytes)
      this.most = Math.max(this.most, this.#window)
      this.#send()
    }
    cleanups.push(() => connection.destroy())
  }

  /** How much of its whole body it may send. */
  get window(): number {
    return this.#window
  }

  get connection(): FrameConnection {
    return this.#connection
  }

  upload(stream: number, bytes: number, fields: readonly string[]): void {
    const path = '/api/v1/namespaces/default/configmaps'
    const head = [':method', 'POST', ':path', path, ':scheme', 'https', ':authority', HOST, ...fields]
    this.#connection.send(h2.headersFrames(stream, h2.headerBlock(head), 0))
    this.#left.set(stream, bytes)
    this.#windows.set(stream, SERVER_LIMITS.streamWindowBytes)
    this.#send()
  }

  /** Resolves when the gateway has read all that was sent. */
  async settled(opaque: number): Promise<void> {
    this.#connection.send(h2.ping(opaque))
    await this.#connection.frame('an answered PING', (frame) => isAnswer(frame, opaque))
  }

  #send(): void {
    for (const [stream, left] of this.#left) {
      let rest = left
      let streamWindow = this.#windows.get(stream) ?? 0
      while (rest > 0) {
        const size = Math.min(rest, FRAME_BYTES, this.#window, streamWindow)
        if (size === 0) break
        rest -= size
        streamWindow -= size
        this.#window -= size
        this.#connection.send(h2.data(stream, Buffer.alloc(size), rest === 0 ? h2.END_STREAM : 0))
      }
      this.#windows.set(stream, streamWindow)
      this.#left.set(stream, rest)
      if (rest === 0) this.#left.delete(stream)
    }
  }
}

function isAnswer({ type, flags, payload }: h2.Frame, opaque: number): boolean {
  return type === h2.PING && (flags & h2.ACK) !== 0 && payload.equals(h2.ping(opaque).subarray(-8))
}

function token(name: string): readonly string[] {
  return ['authorization', `Bearer ${name}`]
}

async function connect({ gateway }: World, name = ''): Promise<Uploader> {
  const cert = name === '' ? {} : { cert: clientPair(clientCA, name) }
  return new Uploader(
    await connectFrames({ port: gateway.port, serverName: HOST, settings: [[h2.HEADER_TABLE_SIZE, 0]], ...cert }),
  )
}

test('clients whose tokens are still reviewed: 64 KiB for each connection, over any number of streams; users get the rest', async () => {
  const world = await start()
  const reviews: SeenReview[] = []
  world.stub.answerToken = (seen) => reviews.push(seen)
  const uploaders = await Promise.all(Array.from({ length: 8 }, () => connect(world)))
  const [streams, bytes] = [20, 40_000]
  for (const [i, uploader] of uploaders.entries()) {
    for (let n = 0; n < streams; n++) uploader.upload(1 + 2 * n, bytes, token(`token-${i}`))
    await uploader.settled(1)
  }
  assert.deepEqual(new Set(uploaders.map(({ window }) => window)), new Set([0]))
  assert.deepEqual(new Set(uploaders.map(({ most }) => most)), new Set([FIRST_BYTES]))
  await waitFor('the reviews', () => reviews.length === uploaders.length)
  for (const review of reviews) {
    replyReview(review, { authenticated: true, user: { username: String(review.spec['token']) } })
  }
  for (const { connection } of uploaders) {
    for (let n = 0; n < streams; n++) assert.equal(await connection.status(1 + 2 * n), 200)
  }
  assert.equal(world.received(), uploaders.length * streams * bytes)
  for (const { most } of uploaders) assert.ok(most > SERVER_LIMITS.connectionWindowBytes / 2, `${most}`)
})

test('tokens that are rejected leave the window as it was', async () => {
  const world = await start()
  const uploader = await connect(world)
  for (let n = 0; n < 20; n++) {
    uploader.upload(1 + 2 * n, 40_000, token('wrong'))
    assert.equal(await uploader.connection.status(1 + 2 * n), 401)
  }
  assert.equal(uploader.most, FIRST_BYTES)
  assert.equal(world.received(), 0)
})

test('an anonymous client stays at 64 KiB, and its body goes through as it is taken', async () => {
  const world = await start()
  const uploader = await connect(world)
  uploader.upload(1, 2_000_000, [])
  assert.equal(await uploader.connection.status(1), 200)
  assert.equal(world.received(), 2_000_000)
  assert.equal(uploader.most, FIRST_BYTES)
})

test("one object larger than the first window, in a user's first request, by token and by certificate", async () => {
  const world = await start()
  world.stub.tokens.set('good', { username: 'bob' })
  const [bob, alice] = [await connect(world), await connect(world, 'alice')]
  bob.upload(1, 1_000_000, token('good'))
  alice.upload(1, 1_000_000, [])
  assert.equal(await bob.connection.status(1), 200)
  assert.equal(await alice.connection.status(1), 200)
  assert.equal(world.received(), 2_000_000)
})
