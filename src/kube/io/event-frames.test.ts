import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EventFrames } from './event-frames.ts'

function frame(text: string): Buffer {
  const length = Buffer.alloc(4)
  length.writeUInt32BE(text.length)
  return Buffer.concat([length, Buffer.from(text)])
}

function memory(most = Number.POSITIVE_INFINITY) {
  let held = 0
  return {
    get held() {
      return held
    },
    take: (bytes: number) => {
      if (held + bytes > most) return false
      held += bytes
      return true
    },
    give: (bytes: number) => {
      held -= bytes
    },
  }
}

test('events, however they are chunked', () => {
  const whole = Buffer.concat([frame('one'), frame('x'.repeat(300)), frame('three')])
  for (let cut = 0; cut <= whole.length; cut++) {
    const counted = memory()
    const frames = new EventFrames(counted)
    const events = [...frames.push(whole.subarray(0, cut)), ...frames.push(whole.subarray(cut))]
    assert.deepEqual(events.map(String), ['one', 'x'.repeat(300), 'three'])
    assert.equal(counted.held, 0)
  }
  const frames = new EventFrames(memory())
  assert.deepEqual([...whole.keys()].flatMap((at) => frames.push(whole.subarray(at, at + 1))).map(String)[2], 'three')
})

test('what is too large, has no room, or is not an event, ends the watch; what was held is given back', () => {
  const large = Buffer.alloc(4)
  large.writeUInt32BE(20 * 1024 * 1024)
  assert.throws(() => new EventFrames(memory()).push(large), /more than 10485760 bytes/)
  assert.throws(() => new EventFrames(memory()).push(Buffer.alloc(4)), /not an event/)
  const little = memory(100)
  const frames = new EventFrames(little)
  frames.push(frame('x'.repeat(200)).subarray(0, 50))
  assert.equal(little.held, 46)
  assert.throws(() => frames.push(Buffer.alloc(100)), /no room/)
  frames.drop()
  assert.equal(little.held, 0)
})
