import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseRequestInfo } from '../request/request-info.ts'
import { type EndingWrite, endingWriteOf } from './ending-writes.ts'
import { dependsOnMoment, mayChange } from './write-body.ts'

const MERGE = 'application/merge-patch+json'
const PATCH = 'application/json-patch+json'
const STRATEGIC = 'application/strategic-merge-patch+json'
const APPLY = 'application/apply-patch+yaml'
const PROTOBUF = 'application/vnd.kubernetes.protobuf'

function writeOf(path: string): EndingWrite {
  const info = parseRequestInfo('PATCH', path)
  assert.ok(!('failure' in info))
  const write = endingWriteOf(info)
  assert.ok(write !== undefined, path)
  return write
}

const NODE = writeOf('/api/v1/nodes/n')
const POD = writeOf('/api/v1/namespaces/shop/pods/p')
const JOB = writeOf('/apis/batch/v1/namespaces/shop/jobs/j')

const MAY: readonly [string, string, boolean][] = [
  [MERGE, '{"spec":{"taints":[{"key":"a","effect":"NoExecute"}]}}', true],
  [MERGE, '{"spec":{"taints":[{"key":"a","effect":"NoSchedule"}]}}', false],
  [MERGE, '{"spec":{"unschedulable":true}}', false],
  // The same word to every JSON parser.
  [MERGE, '{"spec":{"taints":[{"key":"a","effect":"\\u004eoExecute"}]}}', true],
  ['application/json; charset=utf-8', '{"metadata":{"annotations":{"a":"\\"quoted\\""}}}', true],
  ['', '{"spec":{}}', false],
  [PATCH, '[{"op":"add","path":"/metadata/labels/a","value":"b"}]', false],
  [PATCH, '[{"op":"copy","from":"/metadata/annotations/a","path":"/spec/taints/0/effect"}]', true],
  [PATCH, '[{"op":"move","from":"/metadata/annotations/a","path":"/spec/taints/0/effect"}]', true],
  [APPLY, 'spec:\n  taints: [{key: a, effect: NoExecute}]\n', true],
  [APPLY, 'spec:\n  taints: [{key: a, effect: !!binary Tm9FeGVjdXRl}]\n', true],
  [APPLY, 'spec:\n  taints: [{key: a, effect: "No\\\nExecute"}]\n', true],
  [APPLY, 'metadata: {labels: {a: b}}\n', false],
  [PROTOBUF, 'k8s\0\x01NoExecute', true],
  [PROTOBUF, 'k8s\0\x01NoSchedule\\', false],
  ['application/cbor', 'anything', true],
  ['application/apply-patch+cbor', 'anything', true],
]

test('which bodies may add a NoExecute taint', () => {
  for (const [type, body, expected] of MAY)
    assert.equal(mayChange(NODE, type, Buffer.from(body)), expected, `${type} ${body}`)
})

test('YAML in UTF-16, which Go reads, may add one', () => {
  const text = 'spec: {taints: [{key: a, effect: NoExecute}]}'
  const body = Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from(text, 'utf16le')])
  for (const type of [APPLY, 'application/yaml']) assert.equal(mayChange(NODE, type, body), true, type)
})

function field(number: number, content: Buffer | string): Buffer {
  const bytes = Buffer.from(content)
  return Buffer.concat([Buffer.from([number * 8 + 2, bytes.length]), bytes])
}

/** k8s.io/api/core/v1, a Pod with this PodSpec. */
function protobufPod(spec: Buffer): Buffer {
  const raw = Buffer.concat([field(1, field(1, 'p')), field(2, spec)])
  return Buffer.concat([
    Buffer.from('k8s\0'),
    field(1, Buffer.concat([field(1, 'v1'), field(2, 'Pod')])),
    field(2, raw),
  ])
}

test("which bodies may set a pod's deadline", () => {
  const rows: readonly [string, string | Buffer, boolean][] = [
    [MERGE, '{"spec":{"activeDeadlineSeconds":1}}', true],
    [MERGE, '{"spec":{"active\\u0044eadlineSeconds":1}}', true],
    [MERGE, '{"metadata":{"finalizers":null}}', false],
    [STRATEGIC, '{"metadata":{"$deleteFromPrimitiveList/finalizers":["a"]}}', false],
    ['', '{"metadata":{"name":"p"},"spec":{"containers":[]}}', false],
    [PATCH, '[{"op":"add","path":"/metadata/labels/a","value":"b"}]', false],
    [PATCH, '[{"op":"copy","from":"/spec/a","path":"/spec"}]', true],
    [APPLY, 'metadata: {labels: {a: b}}\n', false],
    [APPLY, 'spec: {!!binary YWN0aXZl: 1}\n', true],
    // terminationGracePeriodSeconds, then activeDeadlineSeconds.
    [PROTOBUF, protobufPod(Buffer.from([4 * 8, 30])), false],
    [PROTOBUF, protobufPod(Buffer.from([4 * 8, 30, 5 * 8, 1])), true],
    // If an object occurs several times Go takes the last one, and of a field number the lower 32 bits.
    [PROTOBUF, Buffer.concat([protobufPod(Buffer.from([])), field(2, field(2, Buffer.from([5 * 8, 1])))]), true],
    [PROTOBUF, protobufPod(Buffer.from([0xa8, 0x80, 0x80, 0x80, 0x80, 0x01, 1])), true],
    [PROTOBUF, 'no message', true],
    ['application/cbor', 'anything', true],
  ]
  for (const [type, body, expected] of rows)
    assert.equal(mayChange(POD, type, Buffer.from(body)), expected, `${type} ${body.toString('latin1')}`)
})

test('where what is left out gets a default, only merge patches say for certain that they leave it alone', () => {
  const rows: readonly [string, string, boolean][] = [
    [MERGE, '{"metadata":{"labels":{"a":"b"}}}', false],
    [MERGE, '{"spec":{"parallelism":null}}', true],
    [STRATEGIC, '{"metadata":{"labels":{"a":"b"}}}', false],
    [STRATEGIC, '{"spec":{"$patch":"replace","template":{}}}', true],
    [PATCH, '[{"op":"replace","path":"/spec","value":{}}]', true],
    ['', '{"spec":{}}', true],
    [APPLY, '{"metadata":{"name":"j"}}', true],
    [PROTOBUF, 'k8s', true],
  ]
  for (const [type, body, expected] of rows)
    assert.equal(mayChange(JOB, type, Buffer.from(body)), expected, `${type} ${body}`)
})

test('which JSON patches copy or move what decides', () => {
  const copy = (from: string, path: string): string => JSON.stringify([{ op: 'copy', from, path }])
  const move = (from: string, path: string): string => JSON.stringify([{ op: 'move', from, path }])
  const rows: readonly [string, boolean][] = [
    [copy('/metadata/generation', '/spec/activeDeadlineSeconds'), true],
    [copy('/metadata/annotations', '/spec'), true],
    [copy('/metadata/annotations', ''), true],
    [copy('/metadata/annotations', 'x/spec/activeDeadlineSeconds/'), true],
    [copy('/spec/activeDeadlineSeconds', '/metadata/annotations/a'), false],
    [move('/spec/activeDeadlineSeconds', '/metadata/annotations/a'), true],
    [copy('/metadata/labels/a', '/metadata/labels/b'), false],
    [copy('/metadata/labels/a', '/spec/activeDeadlineSecondsX'), false],
    ['[{"op":"add","path":"/spec/activeDeadlineSeconds","value":1},{"op":"test","path":"/copy"}]', false],
    ['[{"op":"c\\u006fpy","from":"/a","path":"/spec/active\\u0044eadlineSeconds"}]', true],
    // Bodies that Go may read differently.
    ['[{"op":"copy","from":"/a","path":"/b","path":"/spec"}]', true],
    ['{"op":"copy"}', true],
    ['[{"op":"copy"', true],
    [`[{"op":"copy","from":"/a","path":"/b","x":"${'x'.repeat(300_000)}"}]`, true],
  ]
  for (const [body, expected] of rows)
    assert.equal(dependsOnMoment(POD.places, PATCH, Buffer.from(body)), expected, body.slice(0, 200))
  assert.equal(dependsOnMoment(POD.places, MERGE, Buffer.from(copy('/a', '/spec'))), false)
})
