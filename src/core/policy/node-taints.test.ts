import assert from 'node:assert/strict'
import { test } from 'node:test'
import { addedNoExecute, mayAddNoExecute } from './node-taints.ts'

const MERGE = 'application/merge-patch+json'
const PATCH = 'application/json-patch+json'
const APPLY = 'application/apply-patch+yaml'
const PROTOBUF = 'application/vnd.kubernetes.protobuf'

const MAY: readonly [string, string, boolean][] = [
  [MERGE, '{"spec":{"taints":[{"key":"a","effect":"NoExecute"}]}}', true],
  [MERGE, '{"spec":{"taints":[{"key":"a","effect":"NoSchedule"}]}}', false],
  [MERGE, '{"spec":{"unschedulable":true}}', false],
  // The same word, for every reader of JSON.
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
    assert.equal(mayAddNoExecute(type, Buffer.from(body)), expected, `${type} ${body}`)
})

test('YAML in UTF-16, which Go reads, may add one', () => {
  const text = 'spec: {taints: [{key: a, effect: NoExecute}]}'
  const body = Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from(text, 'utf16le')])
  for (const type of [APPLY, 'application/yaml']) assert.equal(mayAddNoExecute(type, body), true, type)
})

const node = (...taints: unknown[]): object => ({ spec: { taints } })
const A = { key: 'a', effect: 'NoExecute', timeAdded: '2030-01-01T00:00:00Z' }
const B = { key: 'b', value: 'x', effect: 'NoExecute' }

test('what a write adds', () => {
  const rows: readonly [object, object, string | undefined][] = [
    [{}, node(A), 'a'],
    [node(), node(B), 'b=x'],
    [node(A), node({ ...A, timeAdded: undefined }), undefined],
    [node(A), node({ ...A, effect: 'NoSchedule' }), undefined],
    [node({ ...A, effect: 'NoSchedule' }), node(A), 'a'],
    [node(A, B), node(A), undefined],
    [node(A, B), {}, undefined],
    [node(A), node(A, { key: 'c', effect: 'NoSchedule' }), undefined],
    // A toleration may be for one value.
    [node(B), node({ ...B, value: 'y' }), 'b=y'],
    [{ spec: 7 }, { spec: { taints: [7, null, A] } }, 'a'],
  ]
  for (const [before, after, expected] of rows)
    assert.equal(addedNoExecute({ ...before }, { ...after }), expected, JSON.stringify([before, after]))
})
