// Clients that ask on many connections and read nothing: the memory of what waits for them is bounded for all of them together, and who
// has little of it is not ended for those who have much.

import assert from 'node:assert/strict'
import { Duplex } from 'node:stream'
import { test } from 'node:test'
import { serveHttp2 } from '../../src/gateway/io/listener/http2-server.ts'
import { MAX_UNREAD_BYTES } from '../../src/gateway/io/socket/unread-output.ts'
import { createHttp2Counters } from '../../src/http2/counters.ts'
import { SERVER_LIMITS } from '../../src/http2/limits.ts'
import type { Peer } from '../../src/kit/api/stream.ts'
import { tickAll } from '../../src/kit/io/world/coarse-ticker.ts'
import * as h2 from '../harness/frames/h2-frames.ts'
import { waitFor } from '../harness/wait.ts'

const HEAD_BYTES = 48 * 1024
/** Together less than the engine lets one connection leave unread. */
const HEADS = 60
const CONNECTIONS = 24
const limits = { maxConcurrentStreams: 250, maxHeaderBytes: 65_536, headerTimeoutMs: 60_000, idleTimeoutMs: 60_000 }

/** A socket whose peer never reads. */
class Unreading extends Duplex {
  override _read(): void {}
  override _write(): void {}
}

function peerOf(source: string): Peer {
  const charge = { source, weight: 1, known: true }
  const address = {
    localAddress: '127.0.0.1',
    localPort: 1,
    remoteAddress: '127.0.0.2',
    remotePort: 2,
    proxyAddress: '',
  }
  const named = { serverName: '', tlsCluster: '', certificate: undefined }
  return {
    id: 1,
    protocol: 'h2',
    ...named,
    ...address,
    addressCharge: charge,
    charge,
    drain: () => false,
    memo: new Map(),
  }
}

/** Asks and is answered so many times. */
function connect(
  source: string,
  heads: number,
): {
  readonly socket: Duplex
  readonly kinds: string[]
  answered(): number
} {
  const socket = new Unreading()
  let answered = 0
  const kinds: string[] = []
  const events = { onHeaders() {}, onBody() {}, onTrailers() {}, onReset() {}, onDrained() {} }
  serveHttp2(
    socket,
    peerOf(source),
    limits,
    createHttp2Counters(),
    (_, stream) => {
      answered++
      stream.headers([':status', '200', 'x-large', 'v'.repeat(HEAD_BYTES)], true)
      return events
    },
    (kind) => kinds.push(kind),
  )
  socket.push(Buffer.concat([Buffer.from(h2.PREFACE), h2.settings()]))
  const block = h2.headerBlock([':method', 'HEAD', ':path', '/', ':scheme', 'https', ':authority', 'a'])
  for (let i = 0; i < heads; i++) socket.push(h2.headersFrames(2 * i + 1, block))
  return { socket, kinds, answered: () => answered }
}

test('unread output stays within the bound of the thread', async () => {
  assert.ok(HEADS * HEAD_BYTES < SERVER_LIMITS.maxBacklogBytes)
  const innocent = connect('user innocent', 8)
  const hostile = Array.from({ length: CONNECTIONS }, () => connect('user attacker', HEADS))
  await waitFor('all to be answered', () => hostile.every(({ answered }) => answered() === HEADS))
  tickAll(performance.now())
  const ended = hostile.filter(({ kinds }) => kinds.includes('slowRead'))
  const left = (CONNECTIONS - ended.length) * HEADS * HEAD_BYTES
  assert.ok(left > 0 && left < MAX_UNREAD_BYTES + CONNECTIONS * 192 * 1024, `${ended.length} were ended`)
  assert.deepEqual(innocent.kinds, [])
  for (const { socket } of [innocent, ...hostile]) socket.destroy()
})
