import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { createWatchFrames, followWatch } from './watch-frames.ts'

function frame(payload: Uint8Array): Buffer {
  const prefix = Buffer.alloc(4)
  prefix.writeUInt32BE(payload.length)
  return Buffer.concat([prefix, payload])
}

describe('where a watch may end', () => {
  test('JSON: behind a newline', () => {
    const frames = createWatchFrames('application/json', '')
    assert.equal(frames.atBoundary, true, 'before the first event')
    assert.equal(followWatch(frames, Buffer.from('{"type":"ADDED"')), false)
    assert.equal(followWatch(frames, Buffer.from('}\n')), true)
  })

  test('protobuf: the same answer however the bytes are split', () => {
    const payloads = fc.array(fc.uint8Array({ maxLength: 300 }), { minLength: 1, maxLength: 5 })
    fc.assert(
      fc.property(payloads, fc.array(fc.nat({ max: 400 })), (events, cuts) => {
        const wire = Buffer.concat(events.map(frame))
        const ends = new Set<number>([0])
        let sum = 0
        for (const event of events) {
          sum += event.length + 4
          ends.add(sum)
        }
        const frames = createWatchFrames('application/vnd.kubernetes.protobuf;stream=watch', '')
        const places = [...cuts, wire.length].filter((cut) => cut <= wire.length).sort((a, b) => a - b)
        let from = 0
        for (const to of places) {
          followWatch(frames, wire.subarray(from, to))
          assert.equal(frames.atBoundary, ends.has(to))
          from = to
        }
      }),
    )
  })

  test('compressed or unknown: never, because nothing is known', () => {
    assert.equal(followWatch(createWatchFrames('application/json', 'gzip'), Buffer.from('x\n')), false)
    assert.equal(followWatch(createWatchFrames('text/plain', ''), Buffer.from('x\n')), false)
  })
})
