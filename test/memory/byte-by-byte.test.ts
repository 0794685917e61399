// Bodies that come byte by byte take about the memory that their senders are charged for, wherever they are collected.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { bodyMemory } from '../../src/apiserver/http/port-memory.ts'
import { BodyReader } from '../../src/apiserver/http/read-body.ts'
import { RecordedBody, recordedMemory } from '../../src/audit/core/recorded-body.ts'
import { type Carrier, WaitingStream } from '../../src/gateway/io/upstream/waiting.ts'
import { WholeBody } from '../../src/gateway/request/exchange/request-body.ts'
import { NO_LISTENER } from '../../src/http2/stream.ts'
import type { Stream } from '../../src/kit/api/stream.ts'
import { addressCharge } from '../../src/kit/core/shares/charge.ts'

const BYTES = 200_000
const charge = addressCharge('10.0.0.1')
const room = { onAbandoned: () => undefined, onGrown: () => undefined }
setFlagsFromString('--expose-gc')
const collect: unknown = runInNewContext('gc')

interface Collector {
  add(chunk: Buffer): void
  /** How many bytes it has. */
  take(): number
}

const collectors: Readonly<Record<string, () => Collector>> = {
  'a request that waits for a connection': () => {
    const stream = new WaitingStream([], undefined, false, NO_LISTENER, charge, room, 0)
    return { add: (chunk) => stream.body(chunk, false), take: () => sentBy(stream) }
  },
  'a body that a filter reads': () => {
    const body = new WholeBody(BYTES, 600_000)
    return {
      add: (chunk) => body.add(chunk),
      take: () => {
        body.finish('complete')
        return body.take().length
      },
    }
  },
  'a body for the embedded API server': () => {
    const body = new BodyReader(BYTES, 0, bodyMemory('tests', 4 * BYTES), charge)
    return { add: (chunk) => body.add(chunk), take: () => body.bytes().length }
  },
  'a body for the audit log': () => {
    const body = new RecordedBody(recordedMemory(), 'alice', BYTES)
    return { add: (chunk) => body.add(chunk), take: () => body.take().length }
  },
}

for (const [name, create] of Object.entries(collectors)) {
  test(name, () => {
    const collector = create()
    const before = usedBytes()
    for (let i = 0; i < BYTES; i++) collector.add(Buffer.of(i % 256))
    const used = usedBytes() - before
    assert.equal(collector.take(), BYTES)
    assert.ok(used < 8 * BYTES, `${used} bytes for ${BYTES}`)
  })
}

/** How much of its body a stream sends when it is its turn. */
function sentBy(stream: WaitingStream): number {
  let bytes = 0
  const sent: Stream = {
    queued: 0,
    headers: () => undefined,
    body: (chunk) => {
      bytes += chunk.length
    },
    trailers: () => undefined,
    credit: () => undefined,
    reset: () => undefined,
  }
  const carrier: Carrier = { open: () => sent }
  stream.send(carrier)
  return bytes
}

function usedBytes(): number {
  if (typeof collect === 'function') collect()
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}
