import assert from 'node:assert/strict'
import { test } from 'node:test'
import { lengthPrefix, ProtobufWriter } from '../../../kit/core/text/protobuf-writer.ts'
import { ENVELOPE_TAIL, envelopeHead, UNKNOWN } from './protobuf-envelope.ts'
import { readProtobufStatus } from './protobuf-status.ts'

function body(kind: string, message: Buffer): Buffer {
  return Buffer.concat([
    envelopeHead({ apiVersion: 'v1', kind }),
    lengthPrefix(UNKNOWN.raw, message.length),
    message,
    ENVELOPE_TAIL,
  ])
}

function status(): Buffer {
  const details = new ProtobufWriter()
  details.string(1, 'pods')
  details.number(5, 7)
  const message = new ProtobufWriter()
  message.bytes(1, Buffer.of())
  message.string(2, 'Failure')
  message.string(3, 'too old resource version: 1 (5)')
  message.string(4, 'Expired')
  message.bytes(5, details.finish())
  message.number(6, 410)
  return message.finish()
}

test('a Status has its code, its reason, its message, and when to come back', () => {
  assert.deepEqual(readProtobufStatus(body('Status', status())), {
    kind: 'Status',
    apiVersion: 'v1',
    status: 'Failure',
    message: 'too old resource version: 1 (5)',
    reason: 'Expired',
    details: { retryAfterSeconds: 7 },
    code: 410,
  })
})

test('anything else is none', () => {
  const whole = body('Status', status())
  for (const other of [body('Pod', status()), Buffer.from('{"kind":"Status"}'), Buffer.of(), whole.subarray(0, 30)]) {
    assert.equal(readProtobufStatus(other), undefined)
  }
})
