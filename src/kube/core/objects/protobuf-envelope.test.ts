import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MAX_MESSAGE_FIELDS, type ProtobufReader, TooManyFields } from '../../../kit/core/text/protobuf-reader.ts'
import { lengthPrefix, ProtobufWriter } from '../../../kit/core/text/protobuf-writer.ts'
import { ENVELOPE_TAIL, envelopeHead, readEnvelope, UNKNOWN } from './protobuf-envelope.ts'

const TYPE = { apiVersion: 'v1', kind: 'Pod' }

function enveloped(message: Buffer): Buffer {
  return Buffer.concat([envelopeHead(TYPE), lengthPrefix(UNKNOWN.raw, message.length), message, ENVELOPE_TAIL])
}

test('an envelope says what is in it, and where', () => {
  const message = new ProtobufWriter()
  message.string(1, 'a')
  message.number(7, 0)
  const body = enveloped(message.finish())
  const { start, end, message: reader, ...type } = readEnvelope(body)
  assert.deepEqual(type, TYPE)
  assert.deepEqual(body.subarray(start, end), message.finish())
  assert.ok(reader)
  const fields: unknown[] = []
  while (reader.next()) fields.push([reader.number, reader.isNumber, reader.start, reader.contentStart, reader.end])
  assert.deepEqual(fields, [
    [1, false, 0, 2, 3],
    [7, true, 3, 4, 5],
  ])
})

test('an envelope without a message, and what is not one', () => {
  assert.equal(readEnvelope(envelopeHead(TYPE)).message, undefined)
  assert.throws(() => readEnvelope(Buffer.from('{}')), { name: 'SyntaxError' })
  const encoded = Buffer.concat([envelopeHead(TYPE), lengthPrefix(UNKNOWN.contentEncoding, 4), Buffer.from('gzip')])
  assert.throws(() => readEnvelope(encoded), { name: 'SyntaxError', message: /content encodings/ })
})

test('who limits the bytes may read more fields', () => {
  const body = enveloped(Buffer.alloc(2 * (MAX_MESSAGE_FIELDS + 1), Buffer.from([0x12, 0])))
  const count = (reader: ProtobufReader | undefined): number => {
    let fields = 0
    while (reader?.next()) fields++
    return fields
  }
  assert.throws(() => count(readEnvelope(body).message), TooManyFields)
  assert.equal(count(readEnvelope(body, Number.POSITIVE_INFINITY).message), MAX_MESSAGE_FIELDS + 1)
})
