import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MalformedError } from '../../../cache/core/bytes/malformed.ts'
import { type AnswerStamp, MAX_ANSWER_FIELDS, shownAnswer } from './shown-answer.ts'

const STAMP: AnswerStamp = {
  member: 'east',
  mode: 'prefixed',
  areNamespaces: false,
  isNamespaced: true,
  isList: false,
  version: (own) => `10001${own}`,
}
const LIST = { isList: true }
const shown = (text: string, stamp: Partial<AnswerStamp> = {}): string =>
  shownAnswer(Buffer.from(text), { ...STAMP, ...stamp }).toString()

test('an object has the names, the annotation and the version that reads have', () => {
  assert.equal(
    shown(
      '{"kind":"Pod","metadata":{"name":"web","namespace":"default","resourceVersion":"7"},"spec":{"nodeName":"n1"}}\n',
    ),
    '{"kind":"Pod","metadata":{"name":"web","namespace":"east--default","resourceVersion":"100017","annotations":{"portcullis.io/cluster":"east"}},"spec":{"nodeName":"n1"}}\n',
  )
  // As for curl; and what was only tried has no version.
  const indented = shown('{\n  "metadata": {\n    "namespace": "default",\n    "name": "web"\n  }\n}')
  assert.deepEqual(JSON.parse(indented).metadata, {
    namespace: 'east--default',
    name: 'web',
    annotations: { 'portcullis.io/cluster': 'east' },
  })
})

test('what is in no namespace has another name', () => {
  const node = '{"metadata":{"name":"n1","annotations":null}}'
  const annotations = '"annotations":{"portcullis.io/cluster":"east"}'
  assert.equal(shown(node, { isNamespaced: false }), `{"metadata":{"name":"east--n1",${annotations}}}`)
  const long = 'n'.repeat(60)
  const name = JSON.parse(shown(`{"metadata":{"name":"${long}"}}`, { isNamespaced: false, areNamespaces: true }))
    .metadata.name
  assert.equal(name.length, 63)
})

test('a list of what was deleted', () => {
  const item = (name: string, namespace: string, version: string): string =>
    `{"metadata":{"name":"${name}","namespace":"${namespace}","resourceVersion":"${version}"}}`
  const list = JSON.parse(
    shown(
      `{"kind":"PodList","metadata":{"resourceVersion":"9"},"items":[${item('a', 'x', '1')},${item('b', 'x', '2')}]}`,
      LIST,
    ),
  )
  assert.equal(list.metadata.resourceVersion, '100019')
  assert.deepEqual(
    list.items.map(({ metadata }: { metadata: object }) => ({ ...metadata, annotations: undefined })),
    [
      { name: 'a', namespace: 'east--x', resourceVersion: '100011', annotations: undefined },
      { name: 'b', namespace: 'east--x', resourceVersion: '100012', annotations: undefined },
    ],
  )
  for (const none of ['[]', 'null'])
    assert.equal(shown(`{"metadata":{},"items":${none}}`, LIST), `{"metadata":{},"items":${none}}`)
})

test('an object that has items, or is of another kind with the name Status, is an object', () => {
  for (const rest of ['"items":[]', '"items":["a"]', '"kind":"Status","apiVersion":"example.io/v1"'])
    assert.equal(
      shown(`{"metadata":{"namespace":"default"},${rest}}`),
      `{"metadata":{"namespace":"east--default","annotations":{"portcullis.io/cluster":"east"}},${rest}}`,
    )
})

test('an answer of a member has not too many fields', () => {
  const fields = (count: number): string => Array.from({ length: count }, (_, at) => `"k${at}":1`).join(',')
  const metadata = '"metadata":{"namespace":"x"}'
  // Two are the metadata and its namespace.
  const most = MAX_ANSWER_FIELDS - 2
  assert.doesNotThrow(() => shown(`{${metadata},${fields(most)}}`))
  for (const text of [
    `{${metadata},${fields(most + 1)}}`,
    `{"metadata":{"namespace":"x",${fields(most + 1)}}}`,
    `{"metadata":{"namespace":"x","annotations":{${fields(most)}}}}`,
  ])
    assert.throws(() => shown(text), /more than 100000 fields/)
  const items = `{${metadata}},`.repeat(MAX_ANSWER_FIELDS / 2)
  assert.throws(() => shown(`{"metadata":{},"items":[${items}{${metadata}}]}`, LIST), /more than 100000 fields/)
})

test('a Status keeps the words of the member; the name of what is in no namespace is the one that is shown', () => {
  const status = (details: string): string =>
    `{"kind":"Status","metadata":{},"message":"pods \\"x\\" in default","details":{${details}}}`
  const pod = status('"name":"web","kind":"pods","uid":"u","causes":[{"field":"metadata.name"}]')
  assert.equal(shown(pod), pod)
  for (const kind of ['namespaces', 'Namespace'])
    assert.equal(shown(status(`"name":"absent","kind":"${kind}"`)), status(`"name":"east--absent","kind":"${kind}"`))
  assert.equal(
    shown(status('"name":"x","group":"g","kind":"namespaces"')),
    status('"name":"x","group":"g","kind":"namespaces"'),
  )
  const node = { isNamespaced: false }
  assert.equal(shown(status('"name":"n1","kind":"nodes"'), node), status('"name":"east--n1","kind":"nodes"'))
  for (const none of [
    '{"kind":"Status"}',
    '{"kind":"Status","details":null}',
    status('"kind":"pods"'),
    status('"name":""'),
  ])
    assert.equal(shown(none, node), none)
})

for (const [what, text] of [
  ['nothing', ''],
  ['a text', 'ok'],
  ['a list', '[]'],
  ['no metadata', '{"kind":"Pod"}'],
  ['metadata that is none', '{"kind":"Pod","metadata":null}'],
  ['no namespace', '{"metadata":{"name":"web"}}'],
  ['a version that is not a number', '{"metadata":{"name":"web","namespace":"a","resourceVersion":"x"}}'],
  ['more behind it', '{"kind":"Status"}{}'],
] as const)
  test(`malformed: ${what}`, () => {
    assert.throws(() => shown(text), MalformedError)
  })

test('malformed: items that are none', () => {
  for (const items of ['{}', '[7]', '[{}]', '[{"metadata":{"name":"web"}}]'])
    assert.throws(() => shown(`{"metadata":{},"items":${items}}`, LIST), MalformedError)
})

test('malformed: a namespace of what has none', () => {
  assert.throws(() => shown('{"metadata":{"name":"n1","namespace":"a"}}', { isNamespaced: false }), MalformedError)
})
