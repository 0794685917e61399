import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BodyMemory, MAX_RECORDED_BYTES_PER_USER, RecordedBody } from './body-memory.ts'

test('a body is whole up to its limit, and given up beyond it', () => {
  const memory = new BodyMemory()
  const body = new RecordedBody(memory, 'a', 4)
  body.add(Buffer.from('ab'))
  body.add(Buffer.from('cd'))
  assert.equal(memory.bytes, 4)
  assert.equal(body.take().toString(), 'abcd')
  assert.equal(memory.bytes, 0)
  const large = new RecordedBody(memory, 'a', 4)
  large.add(Buffer.from('abc'))
  large.add(Buffer.from('de'))
  assert.match(large.missing, /larger than 4 bytes/)
  assert.equal(memory.bytes, 0)
})

test('who has taken all of his part leaves the rest to others', () => {
  const memory = new BodyMemory()
  assert.equal(memory.take('a', MAX_RECORDED_BYTES_PER_USER), true)
  const refused = new RecordedBody(memory, 'a', 10)
  refused.add(Buffer.from('x'))
  assert.match(refused.missing, /no memory/)
  assert.equal(memory.take('b', 1), true)
  memory.giveBack('a', MAX_RECORDED_BYTES_PER_USER)
  assert.equal(memory.take('a', 1), true)
})
