import assert from 'node:assert/strict'
import { test } from 'node:test'
import { UnreadableBody } from '../../../gateway/core/request/write-envelope.ts'
import { YamlTooLong } from '../../../kube/core/objects/strict-decode.ts'
import { type ChangeField, SHAPES } from './written-fields.ts'
import { writtenYaml } from './written-yaml.ts'

const change: ChangeField = (field, text) => `${field}<${text}`
const written = (text: string, maxLength = 1024): string =>
  writtenYaml(Buffer.from(text), SHAPES.object, change, maxLength).toString()

for (const [what, before, after] of [
  ['JSON, as clients send it', '{"metadata":{"name":"web"}}', '{"metadata":{"name":"name<web"}}'],
  [
    'as people write it',
    '# mine\nkind: Pod\nmetadata:\n  name: web # a name\n  namespace: "a"\n  resourceVersion: \'7\'\nspec: {mode: 0644, on: yes, é: "\\u00e9"}\n',
    '# mine\nkind: Pod\nmetadata:\n  name: "name<web" # a name\n  namespace: "namespace<a"\n  resourceVersion: "resourceVersion<7"\nspec: {mode: 0644, on: yes, é: "\\u00e9"}\n',
  ],
  [
    'in braces',
    '{metadata: {name: web, labels: {}}, spec: {name: x}}',
    '{metadata: {name: "name<web", labels: {}}, spec: {name: x}}',
  ],
  ['with CRLF', 'metadata:\r\n  name: é\r\n', 'metadata:\r\n  name: "name<é"\r\n'],
  ['behind a mark', '---\nmetadata: {name: web}\n', '---\nmetadata: {name: "name<web"}\n'],
  [
    'what is not a text',
    'metadata:\n  name: 7\n  namespace: ~\n  resourceVersion: yes\n',
    'metadata:\n  name: 7\n  namespace: ~\n  resourceVersion: yes\n',
  ],
  [
    'an annotation in its line',
    'metadata:\n  annotations:\n    a: b\n    portcullis.io/cluster: east # x\n    c: d\n',
    'metadata:\n  annotations:\n    a: b\n    c: d\n',
  ],
  [
    'an annotation alone',
    'metadata:\n  annotations:\n    "portcullis.io/cluster": east',
    'metadata:\n  annotations:\n',
  ],
  [
    'an annotation in front',
    'metadata:\n  annotations:\n    portcullis.io/cluster:\n    c: d\n',
    'metadata:\n  annotations:\n    c: d\n',
  ],
] as const) {
  test(what, () => {
    assert.equal(written(before), after)
  })
}

for (const [what, text] of [
  ['an anchor', 'metadata: &m\n  name: web\nother: *m\n'],
  ['a merge', 'metadata:\n  <<: {namespace: b}\n  name: web\n'],
  ['a tag', 'metadata:\n  name: !!str web\n'],
  ['two documents', 'metadata: {name: web}\n---\nmetadata: {name: b}\n'],
  ['two documents, of which the first is JSON', '{"metadata":{"name":"web"}}\n---\n{}\n'],
  ['a directive', '%YAML 1.1\n---\nmetadata: {}\n'],
  ['metadata twice', 'metadata: {name: a}\nmetadata: {name: b}\n'],
  ['metadata twice, one quoted', 'metadata: {name: a}\n"metadata": {name: b}\n'],
  ['metadata twice, as JSON', '{"metadata":{"name":"a"},"metadata":{"name":"b"}}'],
  ['a name twice', 'metadata:\n  name: a\n  name: b\n'],
  ['the annotation twice', 'metadata:\n  annotations:\n    portcullis.io/cluster: a\n    portcullis.io/cluster: b\n'],
  ['the annotation in braces', 'metadata:\n  annotations: {portcullis.io/cluster: a}\n'],
  [
    'the annotation in braces, with another in its line',
    'metadata:\n  annotations: {\n    portcullis.io/cluster: a, b: c\n  }\n',
  ],
  ['the annotation over several lines', 'metadata:\n  annotations:\n    portcullis.io/cluster:\n      a\n'],
  ['the annotation as a complex key', 'metadata:\n  annotations:\n    ? portcullis.io/cluster\n    : a\n'],
  ['a block of text for a name', 'metadata:\n  name: |-\n    web\n'],
  ['a list', '- a\n'],
  ['a text', 'a'],
  ['nothing', ''],
] as const) {
  test(`refused: ${what}`, () => {
    assert.throws(() => written(text), UnreadableBody)
  })
}

test('refused: UTF-16, and the beginning of a character alone', () => {
  for (const bytes of [Buffer.from('metadata: {name: a}\n', 'utf16le'), Buffer.from([0x61, 0x3a, 0xff])])
    assert.throws(() => writtenYaml(bytes, SHAPES.object, change, 1024), UnreadableBody)
})

test('YAML that is not JSON may not be long, and errors of it are told', () => {
  assert.throws(() => written(`metadata: {name: ${'x'.repeat(1024)}}`), YamlTooLong)
  const json = `{"metadata":{"name":"${'x'.repeat(2000)}"}}`
  assert.equal(written(json), json.replace('"x', '"name<x'))
  assert.throws(() => written('metadata: {name: a'), SyntaxError)
})
