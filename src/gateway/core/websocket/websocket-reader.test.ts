import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { clientFrame, serverFrames } from '../../../../test/harness/clients/websocket-client.ts'
import { closeFrame, pongFrame, textHead } from './frames.ts'
import { WebSocketReader, type WebSocketSink } from './websocket-reader.ts'

class Malformed extends Error {}

interface Read {
  readonly messages: string[]
  readonly controls: string[]
  problem: string
  isBetweenFrames: boolean
}

function read(bytes: Buffer, pieces: number, isMasked: boolean, mostBytes?: number): Read {
  const seen: Read = { messages: [], controls: [], problem: '', isBetweenFrames: true }
  let message = ''
  const sink: WebSocketSink = {
    wants: true,
    begin: () => {
      message = ''
    },
    add: (part) => {
      message += Buffer.from(part).toString('latin1')
    },
    end: () => void seen.messages.push(message),
    control: (opcode, payload) => void seen.controls.push(`${opcode} ${Buffer.from(payload).toString('latin1')}`),
    malformed: (what) => new Malformed(what),
  }
  const reader = new WebSocketReader(
    { isMasked, inOneFrame: false, ...(mostBytes !== undefined && { mostBytes }) },
    sink,
  )
  try {
    for (let at = 0; at < bytes.length; at += pieces) reader.read(bytes.subarray(at, at + pieces))
  } catch (error) {
    if (!(error instanceof Malformed)) throw error
    seen.problem = error.message
  }
  seen.isBetweenFrames = reader.isBetweenFrames
  return seen
}

test('messages and control frames are read, however they are cut, also where they are mixed', () => {
  const sent = Buffer.concat([
    clientFrame(1, 'a'.repeat(300), { isFinal: false }),
    clientFrame(9, 'ping'),
    clientFrame(0, 'b'),
    clientFrame(2),
    clientFrame(8, Buffer.from([3, 0xe8])),
  ])
  for (const pieces of [1, 3, 1000]) {
    const { messages, controls, isBetweenFrames } = read(sent, pieces, true)
    assert.deepEqual(messages, [`${'a'.repeat(300)}b`, ''])
    assert.deepEqual(controls, ['9 ping', '8 \x03\xe8'])
    assert.ok(isBetweenFrames)
  }
  assert.equal(read(sent.subarray(0, -1), 1000, true).isBetweenFrames, false)
  assert.deepEqual(read(Buffer.concat([sent, clientFrame(1, 'behind')]), 1000, true), read(sent, 1000, true))
})

test('a frame may be as long as is allowed, and no longer', () => {
  assert.equal(read(clientFrame(2, 'x'.repeat(70_000)), 1000, true, 70_000).problem, '')
  assert.equal(read(clientFrame(2, 'x'.repeat(70_001)), 1000, true, 70_000).problem, 'a frame that is too long')
})

test('what a server writes is read by its clients', () => {
  const text = fc.nat(70_000).map((length) => 'x'.repeat(length))
  fc.assert(
    fc.property(fc.array(text, { maxLength: 4 }), fc.uint8Array({ maxLength: 125 }), (messages, ping) => {
      const frames = messages.map((message) => Buffer.concat([textHead(message.length), Buffer.from(message)]))
      const sent = Buffer.concat([...frames, pongFrame(ping), closeFrame(1002)])
      const seen = read(sent, 1000, false)
      assert.deepEqual(seen.messages, messages)
      assert.equal(seen.controls.length, 2)
      assert.ok(seen.isBetweenFrames)
      const parsed = serverFrames(sent)
      assert.deepEqual(
        parsed.map(({ isFinal, opcode }) => [isFinal, opcode]),
        [...messages.map(() => [true, 1]), [true, 10], [true, 8]],
      )
      assert.ok(parsed.at(-2)?.payload.equals(ping))
      assert.equal(parsed.at(-1)?.payload.readUInt16BE(0), 1002)
    }),
  )
})
