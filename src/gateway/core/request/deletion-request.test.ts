// Bodies of deletions and evictions: how they are parsed, and that nothing is lost when they are bound to a pod. How kube-apiserver 1.36
// treats the query, a body beside it and malformed ones was tested with a real one.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { ProtobufReader } from '../../../kit/core/text/protobuf-reader.ts'
import { ProtobufWriter } from '../../../kit/core/text/protobuf-writer.ts'
import { readDeletionRequest, readEvictionRequest } from './deletion-request.ts'
import { fieldsForBody, type ReadBody, UnreadableBody } from './write-envelope.ts'

const NOTHING = Buffer.alloc(0)
const PROTOBUF = 'application/vnd.kubernetes.protobuf'

function bound(read: ReadBody, uid = 'u', version = ''): unknown {
  return JSON.parse(read.bound(uid, version).toString())
}

/** runtime.Unknown with a type, behind the magic bytes. */
function sealed(raw: Buffer): Buffer {
  const type = new ProtobufWriter()
  type.string(1, 'v1')
  type.string(2, 'DeleteOptions')
  const unknown = new ProtobufWriter()
  unknown.bytes(1, type.finish())
  unknown.bytes(2, raw)
  return Buffer.concat([Buffer.from('k8s\0'), unknown.finish()])
}

const sealedHex = (raw: string): Buffer => sealed(Buffer.from(raw, 'hex'))

interface Options {
  readonly gracePeriodSeconds?: number
  readonly uid?: string
  readonly resourceVersion?: string
  readonly propagationPolicy?: string
  readonly dryRun?: readonly string[]
}

function optionsMessage({ gracePeriodSeconds, uid, resourceVersion, propagationPolicy, dryRun }: Options): Buffer {
  const writer = new ProtobufWriter()
  if (gracePeriodSeconds !== undefined) writer.int64(1, gracePeriodSeconds)
  if (uid !== undefined || resourceVersion !== undefined) {
    const preconditions = new ProtobufWriter()
    preconditions.string(1, uid ?? '')
    preconditions.string(2, resourceVersion ?? '')
    writer.bytes(2, preconditions.finish())
  }
  if (propagationPolicy !== undefined) writer.string(4, propagationPolicy)
  for (const value of dryRun ?? []) writer.element(5, value)
  return writer.finish()
}

/** Like Go's generated code: repeated messages are merged, of other fields the last one wins. */
function decoded(message: Buffer): Options {
  const found: Record<string, unknown> = {}
  const dryRun: string[] = []
  const reader = new ProtobufReader(message)
  while (reader.next()) {
    if (reader.number === 1) found['gracePeriodSeconds'] = reader.integer()
    if (reader.number === 4) found['propagationPolicy'] = reader.text()
    if (reader.number === 5) dryRun.push(reader.text())
    if (reader.number !== 2) continue
    const inner = new ProtobufReader(reader.bytes())
    while (inner.next()) found[inner.number === 1 ? 'uid' : 'resourceVersion'] = inner.text()
  }
  return { ...found, dryRun }
}

function rawOf(body: Buffer): Buffer {
  assert.equal(body.toString('latin1', 0, 4), 'k8s\0')
  const reader = new ProtobufReader(body.subarray(4))
  let raw: Buffer = NOTHING
  while (reader.next()) if (reader.number === 2) raw = reader.bytes()
  return raw
}

describe('DeleteOptions', () => {
  it('without a body come from the query, which the body that is written replaces', () => {
    const query =
      'gracePeriodSeconds=5&dryRun=All&dryRun=%41ll&orphanDependents=False&propagationPolicy=Orphan&uid=x&resourceVersion=7' +
      '&gracePeriodSeconds=6&ignoreStoreReadErrorWithClusterBreakingPotential&labelSelector=a'
    const read = readDeletionRequest('', NOTHING, query)
    assert.deepEqual(
      [read.dryRun, read.uid, read.resourceVersion, read.contentType],
      [true, 'x', '7', 'application/json'],
    )
    assert.deepEqual(bound(read, 'other', '8'), {
      kind: 'DeleteOptions',
      apiVersion: 'v1',
      gracePeriodSeconds: 5,
      orphanDependents: false,
      ignoreStoreReadErrorWithClusterBreakingPotential: true,
      propagationPolicy: 'Orphan',
      dryRun: ['All', 'All'],
      preconditions: { uid: 'x', resourceVersion: '7' },
    })
  })

  it('in a body beside a query: the query does not count', () => {
    const read = readDeletionRequest('application/json', Buffer.from('{}'), 'dryRun=All&uid=x')
    assert.deepEqual([read.dryRun, read.uid], [false, ''])
    assert.deepEqual(bound(read), { preconditions: { uid: 'u' } })
  })

  it('in YAML stay YAML, which JSON is', () => {
    const read = readDeletionRequest(
      'application/yaml; charset=utf-8',
      Buffer.from('dryRun: [All]\ngracePeriodSeconds: 3\n'),
      '',
    )
    assert.deepEqual([read.dryRun, read.contentType], [true, 'application/yaml'])
    assert.deepEqual(bound(read, 'u', '9'), {
      dryRun: ['All'],
      gracePeriodSeconds: 3,
      preconditions: { uid: 'u', resourceVersion: '9' },
    })
  })

  it('in YAML that Go reads in another way are not read: no dry run may be seen that is none', () => {
    const texts = [
      'dryRun: [All] #\u2028dryRun: []',
      'dryRun: [All] #\u2029dryRun: []',
      'dryRun: [All] #\u0085dryRun: []',
      'dryRun: [All] #\rdryRun: []',
      'dryRun: [All]\n<<: {dryRun: []}',
      '{dryRun: [All],\n\ufeffdryRun: []}',
    ].map((text) => Buffer.from(text))
    // As UTF-16 a comment, then no dry run; as bytes a dry run, then a comment.
    const utf16 = Buffer.concat([
      Buffer.from([0xff, 0xfe, 0x23, 0x00]),
      Buffer.from(': x\ndryRun: [All]\n#( ', 'latin1'),
      Buffer.from('{"dryRun":[]}', 'utf16le'),
    ])
    for (const body of [...texts, utf16])
      assert.throws(() => readDeletionRequest('application/yaml', body, ''), UnreadableBody, body.toString('latin1'))
    const json = Buffer.from('{"dryRun":["All"],"preconditions":{"uid":"&*!<<"}}')
    assert.equal(readDeletionRequest('application/yaml', json, '').dryRun, true, 'JSON is read as what it is')
  })

  it('null is as absent, and odd names are only names', () => {
    const text = '{"preconditions":null,"dryRun":null,"__proto__":{"dryRun":["All"]},"constructor":1}'
    const read = readDeletionRequest('', Buffer.from(text), '')
    assert.equal(read.dryRun, false)
    assert.equal(
      read.bound('u', '').toString(),
      '{"preconditions":{"uid":"u"},"dryRun":null,"__proto__":{"dryRun":["All"]},"constructor":1}',
    )
  })

  it('in protocol buffers may have tags and lengths in more bytes than they need, as Go takes them', () => {
    // dryRun = 5, "All"; the tag in seven bytes, its length in six.
    const raw = Buffer.concat([Buffer.from('aa808080808000838080808000', 'hex'), Buffer.from('All')])
    assert.equal(readDeletionRequest(PROTOBUF, sealed(raw), '').dryRun, true)
  })

  it('in protocol buffers keep every field', () => {
    const option = fc.record(
      {
        gracePeriodSeconds: fc.integer({ min: 1, max: 2 ** 40 }),
        uid: fc.string({ minLength: 1 }),
        resourceVersion: fc.string({ minLength: 1 }),
        propagationPolicy: fc.constantFrom('Foreground', 'Orphan'),
        dryRun: fc.array(fc.string({ minLength: 1 })),
      },
      { requiredKeys: [] },
    )
    fc.assert(
      fc.property(option, (given) => {
        const read = readDeletionRequest(PROTOBUF, sealed(optionsMessage(given)), 'dryRun=All')
        assert.deepEqual(
          [read.dryRun, read.uid, read.resourceVersion],
          [(given.dryRun ?? []).length > 0, given.uid ?? '', given.resourceVersion ?? ''],
        )
        const expected = { dryRun: [], ...given, uid: given.uid ?? 'u', resourceVersion: given.resourceVersion ?? '1' }
        assert.deepEqual(decoded(rawOf(read.bound('u', '1'))), expected)
      }),
    )
  })

  it('whatever comes is read or refused', () => {
    const type = fc.constantFrom('', 'application/json', 'application/yaml', PROTOBUF)
    const bytes = fc.uint8Array({ minLength: 1 }).map((array) => Buffer.from(array))
    const message = bytes.map(sealed)
    fc.assert(
      fc.property(type, fc.oneof(bytes, message), fc.boolean(), (contentType, body, eviction) => {
        try {
          const read = (eviction ? readEvictionRequest : readDeletionRequest)(contentType, body, '')
          assert.ok(read.bound('u', '1').length > 0)
        } catch (error) {
          assert.ok(error instanceof UnreadableBody, String(error))
          assert.equal(error.code, 400)
        }
      }),
    )
  })

  for (const [what, type, body, query, code, message] of [
    ['no JSON', '', '{', '', 400, /^couldn't get version\/kind; json parse error: /],
    ['no object', '', '[]', '', 400, /^couldn't get version\/kind; json parse error: /],
    [
      'preconditions',
      '',
      '{"preconditions":"x"}',
      '',
      400,
      /cannot unmarshal string into Go struct field preconditions/,
    ],
    [
      'dryRun',
      '',
      '{"dryRun":"All"}',
      '',
      400,
      /cannot unmarshal string into Go struct field dryRun of type \[\]string/,
    ],
    ['CBOR', 'application/cbor', 'x', '', 415, /accepted media types include: application\/json, application\/yaml/],
    ['no protobuf', PROTOBUF, '{}', '', 400, /expected prefix \[107 56 115 0\]/],
    ['length of more than 32 bits', PROTOBUF, sealedHex('2a858080801068656c6c6f'), '', 400, /goes beyond the end/],
    ['number of eleven bytes', PROTOBUF, sealedHex(`78${'80'.repeat(10)}01`), '', 400, /longer than ten bytes/],
    ['field number of more than 29 bits', PROTOBUF, sealedHex('aa8080801003416c6c'), '', 400, /field number/],
    ['group', PROTOBUF, sealedHex('2b2c'), '', 400, /wire type 3/],
    ['grace', '', '', 'gracePeriodSeconds=x', 400, /^strconv.ParseInt: parsing "x": invalid syntax$/],
  ] as const) {
    it(`malformed, ${what}: ${code}`, () => {
      const read = (): ReadBody => readDeletionRequest(type, Buffer.from(body), query)
      assert.throws(read, (error) => {
        return error instanceof UnreadableBody && error.code === code && message.test(error.message)
      })
    })
  }
})

describe('evictions', () => {
  it('carry options, dry run of either place, and annotations', () => {
    const text =
      '{"apiVersion":"policy/v1beta1","kind":"Eviction","metadata":{"name":"a","annotations":{"podseidon.kubewharf.io/health-criterion":"Running"}},"deleteOptions":{"gracePeriodSeconds":1}}'
    const read = readEvictionRequest('', Buffer.from(text), 'dryRun=All')
    assert.deepEqual([read.dryRun, read.annotations], [true, { 'podseidon.kubewharf.io/health-criterion': 'Running' }])
    const expected = JSON.parse(text) as { deleteOptions: object }
    expected.deleteOptions = { gracePeriodSeconds: 1, preconditions: { uid: 'u' } }
    assert.deepEqual(bound(read), expected)
    const inside = readEvictionRequest('', Buffer.from('{"deleteOptions":{"dryRun":["All"]}}'), '')
    assert.deepEqual([inside.dryRun, inside.annotations], [true, {}])
  })

  it('need a body', () => {
    assert.throws(() => readEvictionRequest('', NOTHING, ''), UnreadableBody)
  })
})

describe('header fields of a body that is rewritten', () => {
  it('say what it is, once', () => {
    const fields = [
      ':path',
      '/',
      'content-type',
      'a',
      'x',
      '1',
      'content-length',
      '3',
      'content-type',
      'b',
      'expect',
      '100-continue',
    ]
    const expected = [':path', '/', 'x', '1', 'content-type', 'application/json', 'content-length', '12']
    assert.deepEqual(fieldsForBody(fields, 'application/json', 12), expected)
  })
})
