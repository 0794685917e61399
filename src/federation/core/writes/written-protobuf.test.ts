import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { UnreadableBody } from '../../../gateway/core/request/write-envelope.ts'
import { MAX_MESSAGE_FIELDS, TooManyFields } from '../../../kit/core/text/protobuf-reader.ts'
import { ProtobufWriter } from '../../../kit/core/text/protobuf-writer.ts'
import { ENVELOPE_TAIL, envelopeHead, PROTOBUF_MAGIC, UNKNOWN } from '../../../kube/core/objects/protobuf-envelope.ts'
import { CLUSTER_ANNOTATION } from '../objects.ts'
import { type BodyShape, type ChangeField, SHAPES } from './written-fields.ts'
import { writtenProtobuf } from './written-protobuf.ts'

const change: ChangeField = (field, text) => (text === '' ? '' : `${field}<${text}`)

/** Fields by number: a text, bytes, a number, or a message. */
type Fields = readonly (readonly [number, string | Buffer | number | Fields])[]

function message(fields: Fields): Buffer {
  const writer = new ProtobufWriter()
  for (const [number, value] of fields) {
    if (typeof value === 'string') writer.element(number, value)
    else if (typeof value === 'number') writer.number(number, value)
    else writer.bytes(number, Buffer.isBuffer(value) ? value : message(value))
  }
  return writer.finish()
}

function body(fields: Fields): Buffer {
  const unknown = new ProtobufWriter()
  unknown.bytes(UNKNOWN.raw, message(fields))
  return Buffer.concat([envelopeHead({ kind: 'Pod', apiVersion: 'v1' }), unknown.finish(), ENVELOPE_TAIL])
}

function written(bytes: Buffer, shape: BodyShape = 'object'): Buffer {
  return writtenProtobuf(bytes, SHAPES[shape], change)
}

const annotation = (key: string, value: string): Fields => [
  [1, key],
  [2, value],
]

test('names and versions of metadata change, everything else keeps its bytes and its place', () => {
  const metadata = (...names: readonly [string, string, string]): Fields => [
    [1, names[0]],
    [2, ''],
    [3, names[1]],
    [5, 'uid'],
    [6, names[2]],
    [7, 3],
    [99, 'of a newer version'],
  ]
  const around = (inside: Fields): Fields => [
    [4, 'in front'],
    [1, inside],
    [2, [[3, 'a']]],
    [1000, 9],
  ]
  assert.deepEqual(
    written(body(around(metadata('web', 'a', '7')))),
    body(around(metadata('name<web', 'namespace<a', 'resourceVersion<7'))),
  )
})

test('the annotation that is only shown does not go to the member', () => {
  const before = [annotation('a', '1'), annotation(CLUSTER_ANNOTATION, 'east'), annotation('b', '')]
  const after = [annotation('a', '1'), annotation('b', '')]
  const of = (entries: readonly Fields[]): Buffer => body([[1, entries.map((entry) => [12, entry] as const)]])
  assert.deepEqual(written(of(before)), of(after))
  // Go takes the last key of an entry.
  const twice: Fields = [
    [1, 'x'],
    [2, 'v'],
    [1, CLUSTER_ANNOTATION],
  ]
  assert.deepEqual(written(of([twice])), of([]))
  // Labels are others.
  const label = body([[1, [[11, annotation(CLUSTER_ANNOTATION, 'x')]]]])
  assert.deepEqual(written(label), label)
})

test('options of a deletion, and of an eviction', () => {
  const options = (version: string): Fields => [
    [1, 0],
    [
      2,
      [
        [1, 'uid'],
        [2, version],
      ],
    ],
  ]
  assert.deepEqual(written(body(options('7')), 'options'), body(options('resourceVersion<7')))
  const eviction = (name: string, version: string): Fields => [
    [1, [[1, name]]],
    [2, options(version)],
  ]
  assert.deepEqual(written(body(eviction('web', '7')), 'eviction'), body(eviction('name<web', 'resourceVersion<7')))
})

for (const [what, bytes] of [
  [
    'two metadata, which Go merges',
    body([
      [1, [[3, 'a']]],
      [1, [[3, 'b']]],
    ]),
  ],
  [
    'two namespaces',
    body([
      [
        1,
        [
          [3, 'a'],
          [3, 'b'],
        ],
      ],
    ]),
  ],
  [
    'two of the shown annotation',
    body([
      [
        1,
        [
          [12, annotation(CLUSTER_ANNOTATION, 'a')],
          [12, annotation(CLUSTER_ANNOTATION, 'b')],
        ],
      ],
    ]),
  ],
  ['two objects', Buffer.concat([body([[1, [[3, 'a']]]]), message([[UNKNOWN.raw, [[1, [[3, 'b']]]]]])])],
] as const) {
  test(`refused: ${what}`, () => {
    assert.throws(() => written(bytes), UnreadableBody)
  })
}

for (const [what, bytes] of [
  ['nothing', Buffer.alloc(0)],
  ['JSON', Buffer.from('{}')],
  ['an envelope that is cut', body([[1, [[3, 'a']]]]).subarray(0, -8)],
  ['a number for metadata', body([[1, 7]])],
  ['a number for a name', body([[1, [[1, 7]]]])],
  ['a name that is not UTF-8', body([[1, [[1, Buffer.from([0xff])]]]])],
  ['metadata that is cut', body([[1, Buffer.from([0x0a, 9])]])],
  ['a group', body([[1, Buffer.from([0x0b])]])],
  [
    'an encoding',
    Buffer.concat([
      PROTOBUF_MAGIC,
      message([
        [UNKNOWN.raw, ''],
        [UNKNOWN.contentEncoding, 'gzip'],
      ]),
    ]),
  ],
] as const) {
  test(`malformed: ${what}`, () => {
    assert.throws(() => written(bytes), SyntaxError)
  })
}

test('whatever else is in an object stays byte for byte', () => {
  const other = fc.tuple(
    fc.integer({ min: 13, max: 2 ** 20 }),
    fc.oneof(fc.string(), fc.nat(), fc.uint8Array().map(Buffer.from)),
  )
  fc.assert(
    fc.property(fc.array(other), fc.array(other), fc.string({ minLength: 1 }), (inObject, inMetadata, name) => {
      const of = (text: string): Buffer =>
        body([...inObject, [1, [...inMetadata, [1, text], ...inMetadata]], ...inObject])
      assert.deepEqual(written(of(name)), of(`name<${name}`))
    }),
  )
})

test('fields of the object and of its metadata are counted together', () => {
  const half: Fields = Array.from({ length: MAX_MESSAGE_FIELDS / 2 }, () => [99, 1])
  assert.doesNotThrow(() => written(body(half)))
  assert.throws(() => written(body([[1, half], ...half])), TooManyFields)
})
