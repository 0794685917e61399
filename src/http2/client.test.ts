// The client's side against frames written by hand.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { ClientSide, END, frameOf, GET, Heard, OK, POST, uint32 } from '../../test/harness/http2-sides.ts'
import * as frame from './frames.ts'

describe('client', () => {
  it('opens a stream and hears the answer', () => {
    const side = new ClientSide()
    const heard = side.open([...GET, 'accept', 'x'])
    const [request] = side.take()
    assert.deepEqual([request?.type, request?.flags], [frame.HEADERS, END | frame.FLAG_END_HEADERS])
    assert.deepEqual(side.fields(request?.payload ?? Buffer.alloc(0)), [...GET, 'accept', 'x'])
    side.send(side.head(1, [':status', '100']), side.head(1, OK), frameOf(frame.DATA, 0, 1, Buffer.from('ab')))
    side.send(side.head(1, ['x-sum', '1'], END))
    assert.deepEqual(heard.heads, [[':status', '100'], OK])
    assert.deepEqual([heard.body, heard.trailers, side.connection.openStreams], ['ab', ['x-sum', '1'], 0])
    assert.deepEqual(side.told, ['ready', 'slot'])
  })

  it('encodes shared fields once, behind the others', () => {
    const side = new ClientSide()
    const shared = { list: ['impersonate-user', 'ann'], encoded: undefined }
    side.connection.open(GET, shared, true, new Heard())
    const bytes = shared.encoded
    side.connection.open(GET, shared, true, new Heard())
    assert.equal(shared.encoded, bytes)
    for (const { payload } of side.take()) assert.deepEqual(side.fields(payload), [...GET, ...shared.list])
  })

  it('splits a head that is larger than a frame', () => {
    const side = new ClientSide()
    const head = [...GET, 'x-large', 'y'.repeat(40_000)]
    side.open(head)
    const frames = side.take()
    assert.deepEqual(
      frames.map(({ type, flags }) => [type, flags]),
      [
        [frame.HEADERS, END],
        [frame.CONTINUATION, 0],
        [frame.CONTINUATION, frame.FLAG_END_HEADERS],
      ],
    )
    assert.deepEqual(side.fields(Buffer.concat(frames.map(({ payload }) => payload))), head)
  })

  it('an answer to HEAD has a length and no body', () => {
    const side = new ClientSide()
    const heard = side.open([':method', 'HEAD', ...GET.slice(2)])
    side.send(side.head(1, [...OK, 'content-length', '5'], END))
    assert.deepEqual([heard.end, heard.reset, heard.heads.length], [true, undefined, 1])
  })

  for (const [what, head] of Object.entries({
    'no status': ['a', 'b'],
    'status 101': [':status', '101'],
    'a status of two digits': [':status', '20'],
    'a request field': [...OK, ':path', '/'],
  })) {
    it(`an answer with ${what} is malformed`, () => {
      const side = new ClientSide()
      const heard = side.open()
      side.take()
      side.send(side.head(1, head))
      assert.deepEqual([heard.reset, side.errors()], ['protocol', ['1 PROTOCOL_ERROR']])
    })
  }

  it('says what was not processed: REFUSED_STREAM and above GOAWAY', () => {
    const side = new ClientSide()
    const heard = [side.open(), side.open(), side.open()]
    side.send(frameOf(frame.RST_STREAM, 0, 1, uint32(frame.REFUSED_STREAM)))
    side.send(frameOf(frame.GOAWAY, 0, 0, uint32(frame.LARGEST_STREAM_ID, 0)))
    assert.equal(side.connection.usable, false)
    side.send(frameOf(frame.GOAWAY, 0, 0, uint32(3, 0)))
    assert.deepEqual(
      heard.map(({ reset }) => reset),
      ['refused', undefined, 'refused'],
    )
    side.send(side.head(3, OK, END))
    assert.equal(heard[1]?.end, true)
    assert.equal(side.closed?.code, frame.NO_ERROR)
  })

  it('resets a request that was answered before its end', () => {
    const side = new ClientSide()
    const heard = side.open(POST, false)
    side.take()
    side.send(side.head(1, OK, END))
    assert.deepEqual([heard.end, side.errors()], [true, ['1 CANCEL']])
  })

  it('bears an upstream that refuses very many streams', () => {
    const side = new ClientSide()
    for (let i = 0; i < 3000; i++) {
      const heard = side.open()
      side.send(frameOf(frame.RST_STREAM, 0, 2 * i + 1, uint32(frame.REFUSED_STREAM)))
      assert.equal(heard.reset, 'refused')
    }
    assert.equal(side.connection.usable, true)
  })

  it('ends the connection over a pushed stream', () => {
    const side = new ClientSide()
    side.open()
    side.send(frameOf(frame.PUSH_PROMISE, 4, 1, Buffer.alloc(8)))
    assert.deepEqual(side.errors(), ['0 PROTOCOL_ERROR'])
  })

  it('drains by ending its streams', () => {
    const side = new ClientSide()
    side.open()
    side.connection.drain(0)
    assert.equal(side.connection.usable, false)
    side.send(side.head(1, OK, END))
    assert.equal(side.closed?.code, frame.NO_ERROR)
  })

  it('one stream that nobody reads does not stop the others', () => {
    const side = new ClientSide({ connectionWindowBytes: 131_072, streamWindowBytes: 131_072 })
    side.open()
    side.open()
    side.send(side.head(1, OK))
    for (let i = 0; i < 8; i++) side.send(frameOf(frame.DATA, 0, 1, Buffer.alloc(16_000)))
    const updates = side.take().filter(({ type }) => type === frame.WINDOW_UPDATE)
    assert.deepEqual([...new Set(updates.map(({ id }) => id))], [0])
  })
})
