import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { MalformedError } from '../../../cache/core/bytes/malformed.ts'
import { UnreadableBody } from '../../../gateway/core/request/write-envelope.ts'
import { CLUSTER_ANNOTATION } from '../objects.ts'
import { type BodyShape, type ChangeField, SHAPES } from './written-fields.ts'
import { writtenJson, writtenJsonPatch } from './written-json.ts'

const change: ChangeField = (field, text) => `${field}<${text}`
const written = (text: string, shape: BodyShape = 'object'): string =>
  writtenJson(Buffer.from(text), SHAPES[shape], change).toString()
const patched = (text: string): string => writtenJsonPatch(Buffer.from(text), change).toString()

for (const [what, before, after] of [
  [
    'names and versions of metadata, and nothing else',
    '{"kind":"Pod","metadata":{"name":"web","generateName":"w-","namespace":"a","uid":"u","resourceVersion":"7"},"spec":{"namespace":"a","x":1.0,"n":18446744073709551616,"name":"web"}}',
    '{"kind":"Pod","metadata":{"name":"name<web","generateName":"generateName<w-","namespace":"namespace<a","uid":"u","resourceVersion":"resourceVersion<7"},"spec":{"namespace":"a","x":1.0,"n":18446744073709551616,"name":"web"}}',
  ],
  ['white space stays', '\n {\t"metadata" : { "name" : "web" } }\n', '\n {\t"metadata" : { "name" : "name<web" } }\n'],
  ['escapes are read', '{"meta\\u0064ata":{"n\\u0061me":"w\\u0065b"}}', '{"meta\\u0064ata":{"n\\u0061me":"name<web"}}'],
  ['metadata of templates stays', '{"spec":{"metadata":{"name":"x"}}}', '{"spec":{"metadata":{"name":"x"}}}'],
  [
    'other cases are other fields',
    '{"Metadata":{"name":"x"},"metadata":{"Name":"x"}}',
    '{"Metadata":{"name":"x"},"metadata":{"Name":"x"}}',
  ],
  ['null stays', '{"metadata":{"name":null,"annotations":null}}', '{"metadata":{"name":null,"annotations":null}}'],
  ['metadata that is none stays', '{"metadata":null}', '{"metadata":null}'],
  ['another type stays', '{"metadata":{"name":7,"annotations":[]}}', '{"metadata":{"name":7,"annotations":[]}}'],
  [
    'directives of a strategic patch stay',
    '{"metadata":{"$patch":"replace","$retainKeys":["name"],"name":"web"}}',
    '{"metadata":{"$patch":"replace","$retainKeys":["name"],"name":"name<web"}}',
  ],
  [
    '__proto__ is a key',
    '{"__proto__":{"metadata":{"name":"x"}},"metadata":{"__proto__":{},"name":"x"}}',
    '{"__proto__":{"metadata":{"name":"x"}},"metadata":{"__proto__":{},"name":"name<x"}}',
  ],
  ['an empty object', '{}', '{}'],
] as const) {
  test(`an object: ${what}`, () => {
    assert.equal(written(before), after)
  })
}

test('the annotation that is only shown does not go to the member', () => {
  const own = `"${CLUSTER_ANNOTATION}":"east"`
  for (const [before, after] of [
    [own, ''],
    [` ${own} `, '  '],
    [`${own},"a":"1"`, '"a":"1"'],
    [`"a":"1",${own}`, '"a":"1"'],
    [`"a":"1" , ${own} ,\n"b":"2"`, '"a":"1" ,\n"b":"2"'],
    [`${own} ,"b":"2","c":"3"`, '"b":"2","c":"3"'],
    [`"portcullis.io\\/cluster":null`, ''],
    [`"${CLUSTER_ANNOTATION}":{"x":[1]},"b":"2"`, '"b":"2"'],
    ['"portcullis.io/Cluster":"x"', '"portcullis.io/Cluster":"x"'],
  ] as const)
    assert.equal(
      written(`{"metadata":{"annotations":{${before}},"labels":{${own}}}}`),
      `{"metadata":{"annotations":{${after}},"labels":{${own}}}}`,
    )
})

test('options of a deletion, and of an eviction', () => {
  const options = '"preconditions":{"uid":"u","resourceVersion":"7"},"gracePeriodSeconds":0'
  const inMember = options.replace('7', 'resourceVersion<7')
  assert.equal(written(`{"kind":"DeleteOptions",${options}}`, 'options'), `{"kind":"DeleteOptions",${inMember}}`)
  const eviction = `{"metadata":{"name":"web","namespace":"a"},"deleteOptions":{${options}}}`
  assert.equal(
    written(eviction, 'eviction'),
    `{"metadata":{"name":"name<web","namespace":"namespace<a"},"deleteOptions":{${inMember}}}`,
  )
  // Neither has the fields of the other.
  const object = '{"metadata":{"name":"x"},"preconditions":{"resourceVersion":"7"}}'
  assert.equal(written(object, 'options'), object.replace('7', 'resourceVersion<7'))
  assert.equal(written(object), object.replace('"x"', '"name<x"'))
})

for (const text of [
  '{"metadata":{},"metadata":{"namespace":"b"}}',
  '{"metadata":{},"meta\\u0064ata":{"namespace":"b"}}',
  '{"metadata":{"namespace":"a","namespace":"b"}}',
  '{"metadata":{"name":"a","n\\u0061me":"b"}}',
  '{"metadata":{"name":null,"name":"b"}}',
  '{"metadata":{"annotations":{},"annotations":{"portcullis.io/cluster":"x"}}}',
  '{"metadata":{"annotations":{"portcullis.io/cluster":"x","portcullis.io\\/cluster":"x"}}}',
]) {
  test(`refused: ${text}`, () => {
    assert.throws(() => written(text), UnreadableBody)
  })
}

for (const text of [
  '',
  ' ',
  'null',
  '[]',
  '"x"',
  '7',
  '{}{}',
  '{} x',
  '{"a":1',
  '{"a":"\\ud8"}',
  '\ufeff{}',
  '{"a":"\u0001"}',
  "{'a':1}",
  '{"a":1,}',
  '// c\n{}',
  '{"metadata":{"name":"x"}}\u0000',
]) {
  test(`malformed: ${JSON.stringify(text)}`, () => {
    assert.throws(() => written(text), MalformedError)
  })
}

test('nothing but three fields changes, however the JSON is written', () => {
  const key = fc.oneof(
    fc.constantFrom('name', 'namespace', 'resourceVersion', 'annotations', 'labels', 'x'),
    fc.string(),
  )
  const metadata = fc.record(
    { name: fc.string(), namespace: fc.string(), resourceVersion: fc.string() },
    { requiredKeys: [] },
  )
  const more = fc.dictionary(key, fc.jsonValue())
  fc.assert(
    fc.property(metadata, more, more, fc.constantFrom(undefined, 1, '\t'), (known, others, rest, space) => {
      const { annotations, name, namespace, resourceVersion, generateName, ...inMetadata } = others
      const { metadata: _, ...root } = rest
      const object = {
        ...root,
        metadata: { ...inMetadata, ...known, annotations: { a: '1', [CLUSTER_ANNOTATION]: 'x' } },
      }
      const after = JSON.parse(written(JSON.stringify(object, undefined, space)))
      const changed = Object.fromEntries(
        Object.entries(known).map(([field, text]) => [field, change(field as 'name', text as string)]),
      )
      assert.deepEqual(
        after,
        JSON.parse(
          JSON.stringify({ ...object, metadata: { ...object.metadata, ...changed, annotations: { a: '1' } } }),
        ),
      )
    }),
  )
})

for (const [what, before, after] of [
  ['no operation', '[]', '[]'],
  [
    'other fields',
    '[{"op":"replace","path":"/spec/x","value":{"namespace":"a"}}]',
    '[{"op":"replace","path":"/spec/x","value":{"namespace":"a"}}]',
  ],
  [
    'a version',
    '[ {"value":"7","path":"/metadata/resourceVersion","op":"test"} ]',
    '[ {"value":"resourceVersion<7","path":"/metadata/resourceVersion","op":"test"} ]',
  ],
  [
    'a path with escapes',
    '[{"op":"test","path":"/met\\u0061data/namespace","value":"a"}]',
    '[{"op":"test","path":"/met\\u0061data/namespace","value":"namespace<a"}]',
  ],
  [
    'whole metadata',
    '[{"op":"add","path":"/metadata","value":{"name":"x","annotations":{"portcullis.io/cluster":"east"}}}]',
    '[{"op":"add","path":"/metadata","value":{"name":"name<x","annotations":{}}}]',
  ],
  [
    'annotations',
    '[{"op":"add","path":"/metadata/annotations","value":{"a":"1","portcullis.io/cluster":"east"}}]',
    '[{"op":"add","path":"/metadata/annotations","value":{"a":"1"}}]',
  ],
  [
    'a label of that name',
    '[{"op":"add","path":"/metadata/labels/portcullis.io~1cluster","value":"x"}]',
    '[{"op":"add","path":"/metadata/labels/portcullis.io~1cluster","value":"x"}]',
  ],
  [
    'what is only shown, alone',
    '[{"op":"add","path":"/metadata/annotations/portcullis.io~1cluster","value":"x"}]',
    '[]',
  ],
  [
    'what is only shown, first',
    '[{"op":"remove","path":"/metadata/annotations/portcullis.io~1cluster"}, {"op":"remove","path":"/spec/x"}]',
    '[{"op":"remove","path":"/spec/x"}]',
  ],
  [
    'what is only shown, twice at the end',
    '[{"op":"remove","path":"/spec/x"},{"op":"remove","path":"/metadata/annotations/portcullis.io~1cluster"} , {"op":"replace","value":"x","path":"/metadata/annotations/portcullis.io~1cluster"}]',
    '[{"op":"remove","path":"/spec/x"}]',
  ],
  [
    'copies of other fields',
    '[{"op":"copy","from":"/metadata/labels/a","path":"/metadata/annotations/b"},{"op":"move","from":"/spec/a","path":"/spec/b"}]',
    '[{"op":"copy","from":"/metadata/labels/a","path":"/metadata/annotations/b"},{"op":"move","from":"/spec/a","path":"/spec/b"}]',
  ],
  [
    'an operation that the member refuses',
    '[{"op":"x","path":"/spec"},{"path":"/spec"}]',
    '[{"op":"x","path":"/spec"},{"path":"/spec"}]',
  ],
] as const) {
  test(`a JSON patch: ${what}`, () => {
    assert.equal(patched(before), after)
  })
}

for (const text of [
  '[{"op":"copy","from":"/metadata/namespace","path":"/spec/x"}]',
  '[{"op":"copy","from":"/spec/x","path":"/metadata/namespace"}]',
  '[{"op":"move","from":"/metadata","path":"/spec/x"}]',
  '[{"op":"copy","from":"/spec/x","path":"/metadata"}]',
  '[{"op":"copy","from":"/spec/x","path":"/metadata/annotations"}]',
  '[{"op":"move","from":"/metadata/resourceVersion","path":"/spec/x"}]',
  '[{"op":"copy","from":"/spec/x","path":"/metadata/annotations/portcullis.io~1cluster"}]',
  '[{"op":"copy","from":"/metadata/annotations/portcullis.io~1cluster","path":"/metadata/labels/x"}]',
  '[{"op":"test","path":"/metadata/annotations/portcullis.io~1cluster","value":"east"}]',
  // The library of kube-apiserver skips what is in front of the first slash.
  '[{"op":"add","path":"x/metadata/namespace","value":"b"}]',
  '[{"op":"add","path":"metadata","value":{}}]',
  '[{"op":"add","path":"","value":{}}]',
  '[{"op":"add","path":"/","value":{}}]',
  '[{"op":"add","path":"//metadata/namespace","value":"b"}]',
  '[{"op":"add","path":"/metadata/namespace/","value":"b"}]',
  '[{"op":"add","value":{}}]',
  '[{"op":"add","path":"/spec","path":"/metadata/namespace","value":"b"}]',
  '[{"op":"test","op":"add","path":"/metadata/namespace","value":"b"}]',
  '[{"op":"add","path":"/metadata/namespace","value":"a","v\\u0061lue":"b"}]',
  '[{"op":"add","path":"/metadata","value":{"name":"x","name":"y"}}]',
  '[{"op":"add","path":7,"value":{}}]',
  '[[]]',
]) {
  test(`a JSON patch that is refused: ${text}`, () => {
    assert.throws(() => patched(text), UnreadableBody)
  })
}

for (const text of ['', '{}', 'null', '[', '[]]', '[{}', '[]x'])
  test(`a JSON patch that is malformed: ${text}`, () => {
    assert.throws(
      () => patched(text),
      (error) => error instanceof MalformedError || error instanceof UnreadableBody,
    )
  })

test('as many operations as kube-apiserver takes', () => {
  const many = (count: number): string => `[${Array(count).fill('{"path":"/a"}').join(',')}]`
  assert.equal(patched(many(10_000)), many(10_000))
  assert.throws(
    () => patched(many(10_001)),
    (error) => error instanceof UnreadableBody && error.code === 413,
  )
})

test('what is inside of a changed field is not one', () => {
  const text = '[{"op":"add","path":"/metadata/namespace/x","value":"elsewhere"}]'
  assert.equal(patched(text), text)
})

test('a long path of a JSON patch is not repeated in the refusal', () => {
  const path = `/metadata/namespace${'/a'.repeat(100_000)}`
  assert.throws(
    () => patched(`[{"op":"copy","from":"/a","path":"${path}"}]`),
    (error) => error instanceof UnreadableBody && error.message.length < 500,
  )
  assert.throws(() => patched(`[{"op":"add","path":"${path}/"}]`), UnreadableBody)
})
