// Bodies that continue after their response is complete, against frames written by hand.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { END, frameOf, OK, POST, ServerSide, uint32 } from '../../test/harness/frames/http2-sides.ts'
import type { Charge } from '../kit/api/stream.ts'
import { SharedResource } from '../kit/core/shares/shared-resource.ts'
import { CANCELLED_ANSWERS } from './budget.ts'
import * as frame from './frames.ts'
import { SERVER_LIMITS } from './limits.ts'

const PIECE = Buffer.alloc(16_384)
const SIZED = [...POST, 'content-length', '65536']

function answerEarly(side: ServerSide, id: number, head = SIZED): void {
  side.send(side.head(id, head))
  const { stream } = side.request(side.requests.length - 1)
  stream.headers(OK, false)
  stream.body(Buffer.from('refused'), true)
}

function counts({ counters }: ServerSide): number[] {
  return [counters.lateBodiesTaken, counters.lateBodiesLeft, counters.lateBodiesCut]
}

describe('a body that still comes when its answer is complete', () => {
  it('is read to its end, and not reported', () => {
    const side = new ServerSide()
    answerEarly(side, 1)
    for (let i = 0; i < 4; i++) side.send(frameOf(frame.DATA, i === 3 ? END : 0, 1, PIECE))
    assert.deepEqual(side.errors(), [])
    assert.equal(side.request(0).body, '')
    assert.deepEqual([side.connection.openStreams, counts(side)], [0, [1, 0, 0]])
  })

  it('gets window for more than a stream may send at once', () => {
    const side = new ServerSide()
    side.connection.widenWindow()
    answerEarly(side, 1, POST)
    side.take()
    let given = SERVER_LIMITS.streamWindowBytes
    for (let sent = 0; sent < 1024 * 1024; sent += PIECE.length) {
      assert.ok(given >= PIECE.length, `window after ${sent} bytes`)
      side.send(frameOf(frame.DATA, 0, 1, PIECE))
      given -= PIECE.length
      for (const { type, id, payload } of side.take())
        if (type === frame.WINDOW_UPDATE && id === 1) given += payload.readUInt32BE(0)
    }
  })

  it('is cut by RST_STREAM when too much of it comes, padding included, or it takes too long', () => {
    const side = new ServerSide({ lateBodyBytes: 50_000, lateBodyMs: 5000 })
    answerEarly(side, 1)
    for (let i = 0; i < 4; i++) side.send(frameOf(frame.DATA, 0, 1, PIECE))
    assert.deepEqual(side.errors(), ['1 NO_ERROR'])
    answerEarly(side, 3)
    const padded = Buffer.concat([Buffer.from([255, 0]), Buffer.alloc(255)])
    for (let i = 0; i < 200; i++) side.send(frameOf(frame.DATA, frame.FLAG_PADDED, 3, padded))
    assert.deepEqual(side.errors(), ['3 NO_ERROR'])
    answerEarly(side, 5)
    side.connection.tick(4999)
    assert.deepEqual(side.errors(), [])
    side.connection.tick(5000)
    assert.deepEqual(side.errors(), ['5 NO_ERROR'])
    assert.deepEqual([side.connection.openStreams, counts(side), side.closed], [0, [0, 0, 3], undefined])
  })

  it('that the client ends short of its length, or of an unknown one, is reset behind that end, and is not a abuse', () => {
    const side = new ServerSide()
    for (const [id, head] of [
      [1, SIZED],
      [3, POST],
    ] as const) {
      answerEarly(side, id, head)
      side.send(frameOf(frame.DATA, END, id, Buffer.alloc(10)))
      assert.deepEqual(side.errors(), [`${id} NO_ERROR`])
    }
    assert.equal(side.counters.madeYouReset, 0)
  })

  it('may be stopped by the client as often as it likes', () => {
    const side = new ServerSide()
    for (let i = 0; i < 2 * CANCELLED_ANSWERS.burst; i++) {
      answerEarly(side, 2 * i + 1)
      side.send(frameOf(frame.RST_STREAM, 0, 2 * i + 1, uint32(frame.CANCEL)))
    }
    assert.deepEqual([side.closed, side.connection.openStreams], [undefined, 0])
    assert.deepEqual(counts(side), [0, 2 * CANCELLED_ANSWERS.burst, 0])
  })

  it('takes a stream of those that the client may have open', () => {
    const side = new ServerSide({ maxConcurrentStreams: 2 })
    answerEarly(side, 1)
    answerEarly(side, 3)
    side.take()
    side.send(side.head(5, POST))
    assert.deepEqual(side.errors(), ['5 REFUSED_STREAM'])
  })

  it('has no more room than the window of its connection, and of its thread what the share allows; all of it is given back', () => {
    const share = new SharedResource('late-bodies', 8 * SERVER_LIMITS.streamWindowBytes)
    const many = new ServerSide({}, true, undefined, share)
    for (let i = 0; i < 20; i++) answerEarly(many, 2 * i + 1, POST)
    assert.equal(many.connection.openStreams, 8, 'who is alone may use all')
    const other: Charge = { source: 'user:b', weight: 1, known: true }
    assert.equal(share.take(other, SERVER_LIMITS.streamWindowBytes), 'taken', 'another user still gets some')
    share.give(other, SERVER_LIMITS.streamWindowBytes)
    many.send(frameOf(frame.RST_STREAM, 0, 1, uint32(frame.CANCEL)))
    many.connection.onSocketClosed()
    assert.equal(share.known.held, 0)
    assert.equal(many.counters.lateBodiesLeft, 8)
    const alone = new ServerSide()
    for (let i = 0; i < 40; i++) answerEarly(alone, 2 * i + 1, POST)
    assert.equal(alone.connection.openStreams, SERVER_LIMITS.connectionWindowBytes / SERVER_LIMITS.streamWindowBytes)
  })
})
