// Reading spec.replicas from a body: a table per format, and bodies crafted to be misread.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { ProtobufWriter } from '../../../kit/core/text/protobuf-writer.ts'
import { MAX_VALUES } from '../../../kube/core/objects/json-text.ts'
import { type ReplicasWritten, readReplicas, type ScaleWrite } from './read-replicas.ts'

const JSON_TYPE = 'application/json'
const YAML = 'application/yaml'
const PROTOBUF = 'application/vnd.kubernetes.protobuf'
const MERGE = 'application/merge-patch+json'
const STRATEGIC = 'application/strategic-merge-patch+json'
const PATCH = 'application/json-patch+json'
const APPLY = 'application/apply-patch+yaml'

const OBJECT = { isScale: false, builtIn: true }
const SCALE = { isScale: true, builtIn: true }
const MACHINES = { isScale: false, builtIn: false }

function read(
  verb: ScaleWrite['verb'],
  contentType: string,
  body: string | Buffer,
  target: ScaleWrite['target'] = OBJECT,
): ReplicasWritten {
  return readReplicas({ verb, contentType, body: Buffer.from(body), target })
}

/** Shorthand of the table: a number, or the kind. */
function short(written: ReplicasWritten): string | number {
  return written.kind === 'replicas' ? written.value : written.kind
}

type Row = readonly [name: string, type: string, body: string, expected: string | number, target?: ScaleWrite['target']]

test("YAML in UTF-16 is upstream's to read, also where its bytes are another text", () => {
  // As UTF-16 a comment, then no replicas; as bytes nine of them, then a comment.
  const bytes = Buffer.concat([
    Buffer.from([0xff, 0xfe, 0x23, 0x00]),
    Buffer.from(': x\nspec:\n  replicas: 9\n#  ( ', 'latin1'),
    Buffer.from('{"spec":{"replicas":0}}', 'utf16le'),
  ])
  const write = { target: OBJECT, body: bytes }
  assert.equal(readReplicas({ ...write, verb: 'update', contentType: YAML }).kind, 'ask-upstream')
  assert.equal(readReplicas({ ...write, verb: 'patch', contentType: APPLY }).kind, 'ask-upstream')
})

describe('PUT', () => {
  const rows: readonly Row[] = [
    ['JSON', JSON_TYPE, '{"spec":{"replicas":3}}', 3],
    ['with parameters, in capitals', 'Application/JSON; charset=utf-8', '{"spec":{"replicas":3}}', 3],
    ['no Content-Type, as HPA', '', '{"kind":"Scale","apiVersion":"autoscaling/v1","spec":{"replicas":3}}', 3, SCALE],
    ['YAML', YAML, 'spec:\n  replicas: 3\n', 3],
    ['YAML that is JSON', YAML, '{"spec":{"replicas":3}}', 3],
    ['an alias in YAML', YAML, 'a: &n 3\nspec:\n  replicas: *n\n', 'ask-upstream'],
    ['a merge in YAML', YAML, 'spec:\n  replicas: 9\n  <<: {replicas: 1}\n', 'ask-upstream'],
    ['a merge in YAML that looks like JSON', YAML, '{spec: {replicas: 9, <<: {replicas: 1}}}', 'ask-upstream'],
    ['JSON with what YAML would take for an alias', YAML, '{"a":"&& *x !y","spec":{"replicas":3}}', 3],
    ['a directive in YAML', YAML, '%YAML 1.1\n---\nspec: {replicas: 3}', 'ask-upstream'],
    ['a percentage in YAML', YAML, 'spec: {replicas: 3, maxSurge: 25%}', 3],
    ['a tag in YAML', YAML, 'spec:\n  replicas: !!float 3\n', 'ask-upstream'],
    ['a comment that ends for Go alone, U+2028', YAML, 'spec:\n  replicas: 9 #\u2028  replicas: 0\n', 'ask-upstream'],
    ['a comment that ends for Go alone, U+2029', YAML, 'spec:\n  replicas: 9 #\u2029  replicas: 0\n', 'ask-upstream'],
    ['a comment that ends for Go alone, U+0085', YAML, 'spec:\n  replicas: 9 #\u0085  replicas: 0\n', 'ask-upstream'],
    ['a comment that ends for Go alone, CR', YAML, 'spec:\n  replicas: 9 #\r  replicas: 0\n', 'ask-upstream'],
    ['a mark that Go skips', YAML, '{spec: {replicas: 9,\n\ufeffreplicas: 0}}', 'ask-upstream'],
    ['CRLF in YAML', YAML, 'spec:\r\n  replicas: 3\r\n', 3],
    ['octal in YAML', YAML, 'spec:\n  replicas: 010\n', 8],
    ['zero', JSON_TYPE, '{"spec":{"replicas":0}}', 0],
    ['a Deployment without replicas has one', JSON_TYPE, '{"spec":{}}', 1],
    ['without a spec as well', JSON_TYPE, '{"metadata":{"name":"web"}}', 1],
    ['null is absent', JSON_TYPE, '{"spec":{"replicas":null}}', 1],
    ['a Scale without replicas has none', JSON_TYPE, '{"spec":{}}', 0, SCALE],
    ['what others make of it is theirs to say', JSON_TYPE, '{"spec":{}}', 'ask-upstream', MACHINES],
    ['other resources, if it is there', JSON_TYPE, '{"spec":{"replicas":3}}', 3, MACHINES],
    ['Replicas is another field', JSON_TYPE, '{"spec":{"Replicas":9}}', 1],
    ['a text', JSON_TYPE, '{"spec":{"replicas":"3"}}', 'unreadable'],
    ['a fraction', JSON_TYPE, '{"spec":{"replicas":1.5}}', 'ask-upstream'],
    ['less than none', JSON_TYPE, '{"spec":{"replicas":-1}}', 'ask-upstream'],
    ['more than int32', JSON_TYPE, '{"spec":{"replicas":4294967297.0}}', 'ask-upstream'],
    ['CBOR', 'application/cbor', '{"spec":{"replicas":3}}', 'ask-upstream'],
    ['the spec is a list', JSON_TYPE, '{"spec":[]}', 'ask-upstream'],
    ['no object', JSON_TYPE, '[]', 'ask-upstream'],
    ['nothing', JSON_TYPE, '', 'ask-upstream'],
  ]
  for (const [name, type, body, expected, target] of rows)
    test(name, () => assert.equal(short(read('update', type, body, target)), expected))
})

describe('PATCH', () => {
  const rows: readonly Row[] = [
    ['merge', MERGE, '{"spec":{"replicas":3}}', 3],
    ['merge of something else', MERGE, '{"metadata":{"labels":{"a":"b"}}}', 'unchanged'],
    ['merge of something else in spec', MERGE, '{"spec":{"paused":true}}', 'unchanged'],
    ['merge that removes it', MERGE, '{"spec":{"replicas":null}}', 1],
    ['merge that removes it from a Scale', MERGE, '{"spec":{"replicas":null}}', 0, SCALE],
    ['merge that removes the spec', MERGE, '{"spec":null}', 'ask-upstream'],
    ['merge that is a list', MERGE, '[1]', 'ask-upstream'],
    ['strategic', STRATEGIC, '{"spec":{"replicas":3}}', 3],
    ['strategic, something else', STRATEGIC, '{"spec":{"template":{"$patch":"replace"}}}', 'unchanged'],
    ['strategic that replaces the spec', STRATEGIC, '{"spec":{"$patch":"replace","paused":true}}', 'ask-upstream'],
    ['strategic that replaces all', STRATEGIC, '{"$patch":"replace","spec":{"replicas":3}}', 'ask-upstream'],
    ['strategic that keeps some', STRATEGIC, '{"spec":{"$retainKeys":["template"]}}', 'ask-upstream'],
    ['strategic with an order', STRATEGIC, '{"spec":{"$setElementOrder/x":[],"replicas":2}}', 2],
    ['JSON patch: replace', PATCH, '[{"op":"replace","path":"/spec/replicas","value":3}]', 3],
    ['JSON patch: add', PATCH, '[{"op":"add","path":"/spec/replicas","value":3}]', 3],
    [
      'JSON patch: the last one holds',
      PATCH,
      '[{"op":"add","path":"/spec/replicas","value":3},{"op":"replace","path":"/spec/replicas","value":2}]',
      2,
    ],
    ['JSON patch: something else', PATCH, '[{"op":"remove","path":"/metadata/labels/a"}]', 'unchanged'],
    ['JSON patch: nothing', PATCH, '[]', 'unchanged'],
    ['JSON patch: remove', PATCH, '[{"op":"remove","path":"/spec/replicas"}]', 'ask-upstream'],
    ['JSON patch: the whole spec', PATCH, '[{"op":"replace","path":"/spec","value":{"replicas":3}}]', 'ask-upstream'],
    ['JSON patch: everything', PATCH, '[{"op":"replace","path":"","value":{}}]', 'ask-upstream'],
    [
      'JSON patch: a test beside it',
      PATCH,
      '[{"op":"test","path":"/spec/replicas","value":5},{"op":"replace","path":"/spec/replicas","value":3}]',
      3,
    ],
    [
      'JSON patch: nothing but tests, whatever they have',
      PATCH,
      '[{"op":"test","path":"/spec/replicas","value":0},{"op":"test","path":""},{"op":"test","path":"/spec"}]',
      'unchanged',
    ],
    [
      'JSON patch: move',
      PATCH,
      '[{"op":"move","from":"/metadata/generation","path":"/spec/replicas"}]',
      'ask-upstream',
    ],
    [
      'JSON patch: copy',
      PATCH,
      '[{"op":"copy","from":"/metadata/generation","path":"/spec/replicas"}]',
      'ask-upstream',
    ],
    [
      'JSON patch: what stands before the slash is dropped',
      PATCH,
      '[{"op":"add","path":"x/spec/replicas","value":1}]',
      'ask-upstream',
    ],
    ['JSON patch: null', PATCH, '[{"op":"add","path":"/spec/replicas","value":null}]', 'ask-upstream'],
    ['JSON patch: a text', PATCH, '[{"op":"add","path":"/spec/replicas","value":"3"}]', 'unreadable'],
    ['JSON patch: no list', PATCH, '{"spec":{"replicas":3}}', 'ask-upstream'],
    ['apply, YAML', APPLY, 'apiVersion: apps/v1\nspec:\n  replicas: 3\n', 3],
    ['apply, JSON', APPLY, '{"spec":{"replicas":3}}', 3],
    ['apply without it: it may have been there before', APPLY, 'spec: {paused: true}', 'ask-upstream'],
    ['apply, CBOR', 'application/apply-patch+cbor', 'x', 'ask-upstream'],
    ['no Content-Type', '', '{"spec":{"replicas":3}}', 'ask-upstream'],
    ['JSON is not a patch', JSON_TYPE, '{"spec":{"replicas":3}}', 'ask-upstream'],
  ]
  for (const [name, type, body, expected, target] of rows)
    test(name, () => assert.equal(short(read('patch', type, body, target)), expected))
})

/** runtime.Unknown around an object whose field 2 is its spec. */
function sealed(...specs: readonly Buffer[]): Buffer {
  const object = new ProtobufWriter()
  object.bytes(1, Buffer.from([0x0a, 0x03, 0x77, 0x65, 0x62]))
  for (const spec of specs) object.bytes(2, spec)
  const unknown = new ProtobufWriter()
  unknown.bytes(2, object.finish())
  return Buffer.concat([Buffer.from('k8s\0'), unknown.finish()])
}

describe('protocol buffers', () => {
  const replicas = (value: number): Buffer => Buffer.from([0x08, value])
  const rows: readonly (readonly [string, Buffer, string | number, ScaleWrite['target']?])[] = [
    ['a Deployment', sealed(replicas(3)), 3],
    ['a Scale', sealed(replicas(3)), 3, SCALE],
    ['absent', sealed(Buffer.alloc(0)), 1],
    ['absent in a Scale', sealed(Buffer.alloc(0)), 0, SCALE],
    ['twice: the last one holds', sealed(Buffer.concat([replicas(9), replicas(2)])), 2],
    ['two specs are merged', sealed(replicas(2), Buffer.alloc(0)), 2],
    // 2^32 + 3: Go keeps the 3.
    ['more than int32', sealed(Buffer.from([0x08, 0x83, 0x80, 0x80, 0x80, 0x10])), 'ask-upstream'],
    ['less than none', sealed(Buffer.from([0x08, ...Array.from({ length: 9 }, () => 0xff), 0x01])), 'ask-upstream'],
    ['a text where the number belongs', sealed(Buffer.from([0x0a, 0x01, 0x33])), 'ask-upstream'],
    ['cut off', sealed(replicas(3)).subarray(0, -1), 'ask-upstream'],
    ['no magic bytes', Buffer.from('{"spec":{"replicas":3}}'), 'ask-upstream'],
    ['a kind that Kubernetes does not have', sealed(replicas(3)), 'ask-upstream', MACHINES],
  ]
  for (const [name, body, expected, target] of rows)
    test(name, () => assert.equal(short(read('update', PROTOBUF, body, target)), expected))
})

describe('bodies that are meant to be misread', () => {
  test('a field given twice: Go merges structs, and replaces maps', () => {
    for (const body of [
      '{"spec":{"replicas":1},"spec":{"paused":true}}',
      '{"spec":{"replicas":9,"replicas":1}}',
      '{"spec":{"replicas":9},"a":1,"a":2}',
    ]) {
      assert.equal(short(read('update', JSON_TYPE, body)), 'ask-upstream')
      assert.equal(short(read('patch', MERGE, body)), 'ask-upstream')
    }
    assert.equal(
      short(read('patch', PATCH, '[{"op":"add","path":"/a","path":"/spec/replicas","value":1}]')),
      'ask-upstream',
    )
    assert.equal(short(read('patch', APPLY, 'spec:\n  replicas: 9\n  replicas: 1\n')), 'ask-upstream')
  })

  test('deep, where kube-apiserver would read on', () => {
    const deep = `{"a":${'['.repeat(5000)}${']'.repeat(5000)},"spec":{"replicas":1}}`
    assert.equal(short(read('update', JSON_TYPE, deep)), 'ask-upstream')
    assert.equal(short(read('update', YAML, deep)), 'ask-upstream')
  })

  test('a number that no float holds, in a field that is not read', () => {
    assert.equal(short(read('update', JSON_TYPE, '{"a":1e999,"spec":{"replicas":1}}')), 'ask-upstream')
  })

  test('bytes that are not UTF-8 are replaced, as Go does', () => {
    const body = Buffer.concat([
      Buffer.from('{"a":"'),
      Buffer.from([0xff, 0xc0]),
      Buffer.from('","spec":{"replicas":1}}'),
    ])
    assert.equal(short(read('update', JSON_TYPE, body)), 1)
  })

  test('__proto__ is a field like any other', () => {
    assert.equal(short(read('patch', MERGE, '{"__proto__":{"spec":{"replicas":1}}}')), 'unchanged')
    assert.equal(short(read('patch', MERGE, '{"spec":{"__proto__":{"replicas":1}}}')), 'unchanged')
  })

  test('long YAML, and a bomb of aliases', () => {
    assert.equal(short(read('patch', APPLY, `a: ${'x'.repeat(30_000)}\nspec:\n  replicas: 1\n`)), 1)
    assert.equal(short(read('patch', APPLY, `a: ${'x'.repeat(33_000)}\nspec:\n  replicas: 1\n`)), 'ask-upstream')
    const bomb = `a: &a [1,1,1,1,1,1,1,1,1,1]\n${'bcdefg'
      .split('')
      .map((name, at) => `${name}: &${name} [${Array.from({ length: 10 }, () => `*${'abcdef'[at]}`).join()}]\n`)
      .join('')}spec: {replicas: 1}\n`
    assert.equal(short(read('patch', APPLY, bomb)), 'ask-upstream')
  })

  test('as large as etcd takes, wide and narrow, and larger', () => {
    const wide = (fields: number): string =>
      `{${Array.from({ length: fields }, (_, at) => `"k${at}":0`).join()},"spec":{"replicas":1}}`
    const narrow = (length: number): string => `{"a":"${'x'.repeat(length)}","spec":{"replicas":1}}`
    const operations = (count: number): string =>
      `[${Array.from({ length: count }, () => '{"op":"add","path":"/spec/replicas","value":1}').join()}]`
    for (const body of [wide(MAX_VALUES - 10), narrow(1_500_000)])
      assert.equal(short(read('update', JSON_TYPE, body)), 1)
    for (const body of [wide(MAX_VALUES + 1), narrow(3_000_000)])
      assert.equal(short(read('update', JSON_TYPE, body)), 'ask-upstream')
    // Each is a map of three values.
    const most = Math.floor(MAX_VALUES / 4)
    assert.equal(short(read('patch', PATCH, operations(most - 1))), 1)
    assert.equal(short(read('patch', PATCH, operations(most + 1))), 'ask-upstream')
  })

  test('nothing throws, whatever it is', () => {
    const types = fc.constantFrom('', JSON_TYPE, YAML, PROTOBUF, MERGE, STRATEGIC, PATCH, APPLY, 'text/plain')
    const verbs = fc.constantFrom('update' as const, 'patch' as const)
    const targets = fc.constantFrom(OBJECT, SCALE, MACHINES)
    const bytes = fc.oneof(
      fc.uint8Array({ maxLength: 200 }),
      fc.uint8Array({ maxLength: 60 }).map((rest) => Buffer.concat([Buffer.from('k8s\0'), rest])),
      fc.json().map((text) => Buffer.from(text)),
    )
    const property = fc.property(verbs, types, bytes, targets, (verb, type, body, target) => {
      const written = read(verb, type, Buffer.from(body), target)
      if (written.kind === 'replicas') assert.ok(Number.isInteger(written.value) && written.value >= 0)
    })
    fc.assert(property, { numRuns: 2000 })
  })
})
