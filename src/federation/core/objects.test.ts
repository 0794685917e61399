import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { bodyOf, readAnswers } from '../../../test/cache/read-answers.ts'
import { isJson, isPartial } from '../../../test/cache/recorded-objects.ts'
import { answerForm } from '../../cache/core/bytes/answer-form.ts'
import { MalformedError } from '../../cache/core/bytes/malformed.ts'
import { FactsReader } from '../../cache/core/bytes/object-facts.ts'
import type { JsonForm } from '../../cache/core/bytes/object-form.ts'
import { ListSplitter } from '../../cache/core/bytes/split-list.ts'
import { CLUSTER_ANNOTATION, type Stamp, stampObject } from './objects.ts'

const reader = new FactsReader([])
const STAMP: Stamp = { member: 'east', mode: 'prefixed', areNamespaces: false, version: (own) => `1000199${own}` }

function stamped(text: string, form: JsonForm = 'declared', stamp: Partial<Stamp> = {}): string {
  const json = Buffer.from(text)
  const after = stampObject({ json, facts: reader.read(json) }, form, { ...STAMP, ...stamp })
  // What is known of it was not read again.
  assert.deepEqual(after.facts, reader.read(after.json))
  return after.json.toString()
}

const head = '{"kind":"Pod","apiVersion":"v1","metadata":'

test('namespace, version and annotation are those among all members; everything else stays', () => {
  assert.equal(
    stamped(
      `${head}{"name":"web","namespace":"default","uid":"u","resourceVersion":"734","labels":{"a":"b"},"ownerReferences":[{"name":"x"}]},"spec":{"nodeName":"n1"}}`,
    ),
    `${head}{"name":"web","namespace":"east--default","uid":"u","resourceVersion":"1000199734","labels":{"a":"b"},"annotations":{"portcullis.io/cluster":"east"},"ownerReferences":[{"name":"x"}]},"spec":{"nodeName":"n1"}}`,
  )
})

test('objects without a namespace get another name, namespaces that of objects in them', () => {
  const object = `${head}{"name":"${'n'.repeat(60)}","resourceVersion":"7"}}`
  const nameOf = (text: string): string => JSON.parse(text).metadata.name
  assert.equal(nameOf(stamped(object)), `east--${'n'.repeat(60)}`)
  assert.equal(nameOf(stamped(object, 'declared', { areNamespaces: true })).length, 63)
  assert.equal(nameOf(stamped(object, 'declared', { mode: 'merged' })), 'n'.repeat(60))
})

test('an annotation goes to its place among others, and replaces what a client wrote there', () => {
  const cases: readonly [before: string, after: string][] = [
    ['', '"portcullis.io/cluster":"east"'],
    ['"a":"1"', '"a":"1","portcullis.io/cluster":"east"'],
    ['"z":"1"', '"portcullis.io/cluster":"east","z":"1"'],
    ['"a":"1","z":"2"', '"a":"1","portcullis.io/cluster":"east","z":"2"'],
    ['"a":"1","portcullis.io/cluster":"west"', '"a":"1","portcullis.io/cluster":"east"'],
    ['"portcullis.io\\/cluster":"west"', '"portcullis.io\\/cluster":"east"'],
  ]
  for (const [before, after] of cases)
    assert.equal(
      stamped(`${head}{"name":"web","resourceVersion":"7","annotations":{${before}}}}`, 'declared', { mode: 'merged' }),
      `${head}{"name":"web","resourceVersion":"10001997","annotations":{${after}}}}`,
    )
  assert.match(
    stamped(`${head}{"name":"web","resourceVersion":"7","annotations":null}}`),
    /"annotations":\{"portcullis.io\/cluster":"east"\}\}\}$/,
  )
})

test('custom resources have their keys sorted', () => {
  assert.equal(
    stamped(
      '{"apiVersion":"a.b/v1","kind":"Thing","metadata":{"creationTimestamp":"t","name":"x","namespace":"ns","resourceVersion":"7"}}',
      'sorted',
    ),
    '{"apiVersion":"a.b/v1","kind":"Thing","metadata":{"annotations":{"portcullis.io/cluster":"east"},"creationTimestamp":"t","name":"x","namespace":"east--ns","resourceVersion":"10001997"}}',
  )
})

test('what cannot be read is malformed, and nothing else', () => {
  for (const metadata of [
    '{"name":"x","resourceVersion":"7","annotations":[]}',
    '{"name":"x","resourceVersion":"7","annotations":"a"}',
  ])
    assert.throws(() => stamped(`${head}${metadata}}`), MalformedError)
})

test('objects that a kube-apiserver wrote are changed in these places only, and their metadata can be cut out', () => {
  let count = 0
  for (const list of readAnswers().lists.filter((answer) => isJson(answer) && !isPartial(answer))) {
    const objects: Buffer[] = []
    const splitter = new ListSplitter({ objectBytes: 1e7, objects: 1e6 }, (object) => objects.push(Buffer.from(object)))
    splitter.feed(bodyOf(list))
    const { form } = splitter.end()
    for (const json of objects) {
      count++
      const before = JSON.parse(json.toString())
      const text = stamped(json.toString(), form)
      const { metadata } = before
      assert.deepEqual(JSON.parse(text), {
        ...before,
        metadata: {
          ...metadata,
          ...(metadata.namespace === undefined
            ? { name: `east--${metadata.name}` }
            : { namespace: `east--${metadata.namespace}` }),
          resourceVersion: `1000199${metadata.resourceVersion}`,
          annotations: { ...metadata.annotations, [CLUSTER_ANNOTATION]: 'east' },
        },
      })
      const facts = reader.read(Buffer.from(text))
      const partial = answerForm(form, { encoding: 'json', partial: true })
      const cut = partial?.object({ content: Buffer.from(text), facts }).toString() ?? ''
      assert.deepEqual(JSON.parse(cut).metadata.annotations, JSON.parse(text).metadata.annotations)
      const order = Object.keys(JSON.parse(text).metadata)
      if (form === 'sorted') assert.deepEqual(order, order.toSorted())
      else assert.deepEqual(order, Object.keys(JSON.parse(cut).metadata))
    }
  }
  assert.ok(count > 20)
})

test('whatever a member writes is stamped or malformed', () => {
  const annotations = fc.dictionary(fc.string(), fc.string())
  const name = fc.string({ minLength: 1 })
  fc.assert(
    fc.property(name, fc.string(), annotations, fc.jsonValue(), (own, namespace, extra, spec) => {
      const object = {
        kind: 'Pod',
        apiVersion: 'v1',
        metadata: { name: own, namespace, resourceVersion: '7', annotations: extra },
        spec,
      }
      const after = JSON.parse(stamped(JSON.stringify(object)))
      assert.deepEqual(after.spec, JSON.parse(JSON.stringify(spec)))
      assert.equal(after.metadata.annotations[CLUSTER_ANNOTATION], 'east')
    }),
  )
})
