import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MAX_RECORDED_BYTES, MAX_RECORDED_BYTES_PER_USER, RecordedBody, recordedMemory } from './recorded-body.ts'

test('a body is whole up to its limit, and given up beyond it', () => {
  const memory = recordedMemory()
  const body = new RecordedBody(memory, 'a', 4)
  body.add(Buffer.from('ab'))
  body.add(Buffer.from('cd'))
  assert.equal(memory.held, 4)
  assert.equal(body.take().toString(), 'abcd')
  assert.equal(memory.held, 0)
  const large = new RecordedBody(memory, 'a', 4)
  large.add(Buffer.from('abc'))
  large.add(Buffer.from('de'))
  assert.match(large.missing, /larger than 4 bytes/)
  assert.equal(memory.held, 0)
})

function recorded(memory: ReturnType<typeof recordedMemory>, user: string, bytes: number): RecordedBody {
  const body = new RecordedBody(memory, user, MAX_RECORDED_BYTES)
  body.add(Buffer.alloc(bytes))
  return body
}

test('a user that has taken all of its part leaves the rest to others', () => {
  const memory = recordedMemory()
  const most = recorded(memory, 'a', MAX_RECORDED_BYTES_PER_USER)
  assert.equal(most.missing, '')
  assert.match(recorded(memory, 'a', 1).missing, /no memory/)
  assert.equal(recorded(memory, 'b', 1).missing, '')
  most.discard()
  assert.equal(recorded(memory, 'a', 1).missing, '')
})

test('however many users have their part, all together stay below the limit, and one more still gets something', () => {
  const memory = recordedMemory()
  const bodies = Array.from({ length: 100 }, (_, i) => recorded(memory, `${i % 10}`, MAX_RECORDED_BYTES_PER_USER / 8))
  assert.ok(
    memory.held > (MAX_RECORDED_BYTES * 7) / 8 - MAX_RECORDED_BYTES_PER_USER && memory.held <= MAX_RECORDED_BYTES,
  )
  assert.equal(recorded(memory, 'one more', 1000).missing, '')
  for (const body of bodies) body.discard()
  assert.equal(memory.held, 1000)
})
