// The body of a request: what is kept, what it is charged, and when the client's window is given back.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { HIGH_WATER_BYTES, type Stream } from '../../../kit/api/stream.ts'
import { addressCharge } from '../../../kit/core/shares/charge.ts'
import { createRecord, type RequestRecord } from '../../api/request-record.ts'
import { ThreadShares } from '../../state/thread-shares.ts'
import { BufferedBytes } from './buffered-bytes.ts'
import type { Gateway } from './gateway.ts'
import { RequestBody, WholeBody } from './request-body.ts'

/** The limit of what is kept for a retry. */
const LIMIT = 256 * 1024
const CHUNK = Buffer.alloc(1000, 1)

const shares = new ThreadShares({
  maxRequestsInflight: 0,
  maxWatches: 0,
  maxBufferedBytes: 4 * 1024 * 1024,
  threads: 1,
})
const GW = { shares, events: { limited: () => undefined }, random: () => 0 } as unknown as Gateway

class Side implements Stream {
  queued = 0
  credited = 0
  readonly bodies: Buffer[] = []
  ended = false

  headers(): void {}

  body(chunk: Buffer, end: boolean): void {
    if (chunk.length > 0) this.bodies.push(Buffer.from(chunk))
    this.ended = end
  }

  trailers(): void {}

  credit(bytes: number): void {
    this.credited += bytes
  }

  reset(): void {}
}

function start(): { client: Side; upstream: Side; record: RequestRecord; body: RequestBody } {
  assert.equal(shares.buffered.unknown.held, 0, 'what was held before is given back')
  const client = new Side()
  const record = createRecord()
  return {
    client,
    upstream: new Side(),
    record,
    body: new RequestBody(client, record, new BufferedBytes(GW, addressCharge('10.0.0.1'))),
  }
}

describe('a body that is passed on', () => {
  it('is held until there is an endpoint, and counts when it was sent', () => {
    const { client, upstream, record, body } = start()
    body.keep(CHUNK)
    assert.deepEqual([client.credited, record.requestBytes, body.keptBytes], [0, 0, 1000])
    body.sendKept(upstream)
    body.keptSent(upstream)
    body.passOn(CHUNK, true, upstream, false)
    assert.deepEqual([client.credited, record.requestBytes, body.keptBytes], [2000, 2000, 2000])
    assert.deepEqual([Buffer.concat(upstream.bodies).length, upstream.ended], [2000, true])
    const again = new Side()
    body.sendKept(again)
    assert.equal(Buffer.concat(again.bodies).length, 2000)
    body.end()
    assert.equal(client.credited, 2000)
  })

  it('is kept up to the limit, and not at all behind the answer', () => {
    const long = start()
    long.body.passOn(Buffer.alloc(LIMIT), false, long.upstream, false)
    assert.ok(long.body.replayable)
    long.body.passOn(Buffer.alloc(1), false, long.upstream, false)
    assert.ok(!long.body.replayable)
    const answered = start()
    answered.body.passOn(CHUNK, false, answered.upstream, true)
    assert.equal(answered.body.keptBytes, 0)
  })

  it('is owed while upstream has not taken it, and given back once', () => {
    const { client, upstream, body } = start()
    upstream.queued = HIGH_WATER_BYTES
    body.passOn(CHUNK, false, upstream, false)
    body.passOn(CHUNK, false, upstream, false)
    body.upstreamDrained(HIGH_WATER_BYTES)
    assert.equal(client.credited, 0)
    body.upstreamDrained(HIGH_WATER_BYTES - 500)
    assert.equal(client.credited, 500)
    body.end()
    assert.equal(client.credited, 2000)
  })

  it('gives back once what was sent, or read and then replaced, though nothing more comes', () => {
    const sent = start()
    sent.body.keep(CHUNK)
    sent.body.sendKept(sent.upstream)
    sent.body.keptSent(sent.upstream)
    sent.body.end()
    assert.equal(sent.client.credited, 1000)
    const read = start()
    read.body.keep(CHUNK)
    read.body.readInto(new WholeBody(LIMIT, 60_000))
    read.body.replace(Buffer.from('other'))
    read.body.end()
    assert.equal(read.client.credited, 1000)
  })

  it('gives back what was not sent, as when there is no endpoint for it', () => {
    const { client, record, body } = start()
    body.keep(CHUNK)
    body.end()
    assert.deepEqual([client.credited, record.requestBytes], [1000, 0])
  })
})

it('a body that is read whole counts as it comes, and not again when another one is sent in its place', async () => {
  const { client, upstream, record, body } = start()
  const whole = new WholeBody(LIMIT, 60_000)
  body.keep(CHUNK)
  body.readInto(whole)
  body.read(CHUNK)
  body.finish('complete')
  assert.equal(await whole.ended, 'complete')
  assert.equal(whole.take().length, 2000)
  body.replace(Buffer.from('other'))
  body.sendKept(upstream)
  body.keptSent(upstream)
  body.end()
  assert.equal(Buffer.concat(upstream.bodies).toString(), 'other')
  assert.deepEqual([client.credited, record.requestBytes], [2000, 2000])
})
