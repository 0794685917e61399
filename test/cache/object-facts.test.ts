// What is read of objects, compared with JSON.parse and with what a real kube-apiserver selected.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { answerForm } from '../../src/cache/core/bytes/answer-form.ts'
import { atVersion } from '../../src/cache/core/bytes/answers.ts'
import { MalformedError } from '../../src/cache/core/bytes/malformed.ts'
import { FactsReader, type ObjectFacts } from '../../src/cache/core/bytes/object-facts.ts'
import { skipValue } from '../../src/cache/core/bytes/skip-json.ts'
import { ListSplitter } from '../../src/cache/core/bytes/split-list.ts'
import { readEvent } from '../../src/cache/core/bytes/watch-event.ts'
import { type SelectableField, selectableFields } from '../../src/cache/core/fields/selectable-fields.ts'
import { recordOf } from '../../src/kit/api/json/object-shape.ts'
import { bodyOf, readAnswers } from './read-answers.ts'
import { isJson, isPartial, objectsOf, resourceOf } from './recorded-objects.ts'

const answers = readAnswers()
const POD = { group: '', version: 'v1', resource: 'pods', namespaced: true }
const podFields = selectableFields(POD).kept
const reader = new FactsReader(podFields)

test('the facts of recorded objects are those of JSON.parse', () => {
  let objects = 0
  for (const list of answers.lists.filter(isJson)) {
    const { kept } = selectableFields(resourceOf(list.path))
    const ofKind = new FactsReader(kept)
    for (const json of objectsOf(list)) {
      if (isPartial(list)) assertFacts(json, reader.read(json), podFields)
      else assertFacts(json, ofKind.read(json), kept)
      objects++
    }
  }
  assert.ok(objects > 60)
})

/** What JSON.parse finds. */
function assertFacts(json: Buffer, facts: ObjectFacts, kept: readonly SelectableField[]): void {
  const object = JSON.parse(json.toString())
  const { metadata } = object
  const { namespace = '', name, uid, resourceVersion, labels = {} } = metadata
  const expected = { kind: object.kind, apiVersion: object.apiVersion, namespace, name, uid, resourceVersion, labels }
  const { fields, metadata: range, version, bare, ...found } = facts
  assert.deepEqual(found, expected)
  assert.deepEqual(
    fields,
    kept.map((field) => expectedField(object, field)),
  )
  assert.deepEqual(JSON.parse(json.toString('utf8', range.start, range.end)), metadata)
  assert.equal(json.toString('utf8', version.start, version.end), JSON.stringify(resourceVersion))
  const begin = `{"kind":${JSON.stringify(object.kind)},"apiVersion":${JSON.stringify(object.apiVersion)},`
  assert.equal(bare, json.toString().startsWith(begin) ? Buffer.byteLength(begin) : 0)
}

function expectedField(object: unknown, { paths, absent }: SelectableField): string {
  for (const { json } of paths) {
    const value = json.reduce<unknown>((inside, key) => recordOf(inside)[key], object) ?? ''
    if (value !== '') return String(value)
  }
  return absent
}

const text = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 12 }),
  fc.constantFrom('', '"', '\\', '</b>', '\u2028', '😀'),
)
const labels = fc.dictionary(fc.oneof(text, fc.constant('__proto__')), text)
const anything = fc.jsonValue({ maxDepth: 4 })
const metadata = fc.record(
  {
    name: text.filter((name) => name !== ''),
    namespace: text,
    uid: text,
    labels,
    annotations: labels,
    managedFields: anything,
  },
  { requiredKeys: ['name'] },
)
const pod = fc.record(
  {
    kind: text.filter((kind) => kind !== ''),
    apiVersion: text.filter((version) => version !== ''),
    other: anything,
    spec: fc.record(
      { nodeName: text, hostNetwork: fc.boolean(), containers: anything, metadata: anything },
      { requiredKeys: [] },
    ),
    status: fc.record({ phase: text, podIPs: anything }, { requiredKeys: [] }),
  },
  { requiredKeys: ['kind', 'apiVersion'] },
)
/** Escapes that JSON.stringify does not write, and white space. */
const writings: readonly ((object: unknown) => string)[] = [
  (object) => JSON.stringify(object),
  (object) => JSON.stringify(object, undefined, '\t'),
  (object) =>
    JSON.stringify(object)
      .replaceAll('n', '\\u006e')
      .replaceAll(/(tr?u|fa|n?)\\u006e/g, '$1n'),
  (object) => JSON.stringify(object).replaceAll('<', '\\u003c').replaceAll('/', '\\/'),
]

test('the facts of any object are those of JSON.parse', () => {
  fc.assert(
    fc.property(
      pod,
      metadata,
      fc.bigInt({ min: 0n, max: 10n ** 30n }),
      fc.constantFrom(...writings),
      (fields, meta, version, write) => {
        const object = { ...fields, metadata: { ...meta, resourceVersion: String(version) } }
        const written = write(object)
        // An escape may have made it another text.
        if (!isSame(written, object)) return
        assertSame(Buffer.from(written), object)
      },
    ),
    { numRuns: 2000 },
  )
})

function isSame(written: string, object: unknown): boolean {
  try {
    return JSON.stringify(JSON.parse(written)) === JSON.stringify(object)
  } catch {
    return false
  }
}

function assertSame(
  json: Buffer,
  object: { kind?: string; apiVersion?: string; metadata: Record<string, unknown> },
): void {
  const facts = reader.read(json)
  const {
    name,
    namespace = '',
    uid = '',
    resourceVersion,
    labels: expected = {},
  } = JSON.parse(json.toString()).metadata
  assert.deepEqual(
    { ...facts, bare: 0, fields: [], metadata: 0, version: 0 },
    {
      kind: object.kind ?? '',
      apiVersion: object.apiVersion ?? '',
      namespace,
      name,
      uid,
      resourceVersion,
      labels: expected,
      fields: [],
      bare: 0,
      metadata: 0,
      version: 0,
    },
  )
  assert.deepEqual(
    facts.fields,
    podFields.map((field) => expectedField(JSON.parse(json.toString()), field)),
  )
  assert.equal(JSON.parse(json.toString('utf8', facts.version.start, facts.version.end)), resourceVersion)
}

test('a value ends where JSON.parse says that it does, and what JSON.parse refuses is refused', () => {
  const pieces = fc.array(
    fc.constantFrom(...'{}[],:"\\ \n\t0123.eE+-truefalsn/b\u0001é😀', '\\u00e9', '\\u12', 'null', '"a":'),
    {
      maxLength: 14,
    },
  )
  fc.assert(
    fc.property(
      fc.oneof(
        pieces.map((parts) => parts.join('')),
        anything.map((value) => JSON.stringify(value)),
      ),
      (json) => {
        const bytes = Buffer.from(json)
        let isValid = true
        try {
          JSON.parse(json)
        } catch {
          isValid = false
        }
        assert.equal(endsAll(bytes), isValid, json)
      },
    ),
    { numRuns: 20_000 },
  )
})

/** Whether the whole is one value. */
function endsAll(bytes: Buffer): boolean {
  try {
    const end = skipValue(bytes, 0)
    return bytes.toString('utf8', end).trim() === ''
  } catch (error) {
    assert.ok(error instanceof MalformedError)
    return false
  }
}

test('what is not UTF-8 is refused', () => {
  const bytes = fc.uint8Array({ minLength: 1, maxLength: 8 }).map((array) => Buffer.from(array))
  const nearly = fc
    .tuple(fc.string({ unit: 'binary', maxLength: 4 }), fc.nat(), fc.nat(255))
    .map(([characters, at, byte]) => {
      const encoded = Buffer.from(characters)
      if (encoded.length > 0) encoded[at % encoded.length] = byte
      return encoded
    })
  fc.assert(
    fc.property(fc.oneof(bytes, nearly), (content) => {
      if (content.some((c) => c < 0x20 || c === 0x22 || c === 0x5c)) return
      const json = Buffer.concat([Buffer.from('"'), content, Buffer.from('"')])
      assert.equal(endsAll(json), Buffer.from(content.toString()).equals(content), content.toString('hex'))
    }),
    { numRuns: 20_000 },
  )
})

test('objects that are damaged are read, or refused with one error', () => {
  const objects = answers.lists.filter(isJson).flatMap((list) => objectsOf(list))
  fc.assert(
    fc.property(
      fc.constantFrom(...objects),
      fc.nat(),
      fc.nat(255),
      fc.constantFrom('set', 'cut', 'double'),
      (object, place, byte, how) => {
        const at = place % object.length
        const damaged = Buffer.from(object)
        damaged[at] = byte
        const json =
          how === 'set'
            ? damaged
            : how === 'cut'
              ? object.subarray(0, at)
              : Buffer.concat([object.subarray(0, at), object.subarray(at / 2)])
        try {
          assert.equal(reader.read(json).name, JSON.parse(json.toString()).metadata.name)
        } catch (error) {
          assert.ok(error instanceof MalformedError, String(error))
        }
      },
    ),
    { numRuns: 5000 },
  )
})

const TYPE = '{"kind":"Pod","apiVersion":"v1",'

test('an object without what the cache needs is refused, with the reason', () => {
  const rows: readonly (readonly [string, RegExp])[] = [
    ['', /not a JSON object/],
    ['[]', /not a JSON object/],
    ['{}', /no name/],
    ['{"metadata":null}', /no name/],
    ['{"metadata":[]}', /not an object/],
    ['{"metadata":{"name":"a","resourceVersion":"7"}}', /no kind or apiVersion/],
    [`${TYPE}"metadata":{"name":"a"}}`, /no decimal resourceVersion/],
    [`${TYPE}"metadata":{"name":"a","resourceVersion":"x"}}`, /no decimal resourceVersion/],
    [`${TYPE}"metadata":{"name":"a","resourceVersion":7}}`, /not a string/],
    [`${TYPE}"metadata":{"name":"a","name":"b","resourceVersion":"7"}}`, /twice/],
    [`${TYPE}"metadata":{"name":"a","resourceVersion":"7"},"metadata":{}}`, /twice/],
    [`${TYPE}"metadata":{"name":"a","resourceVersion":"7","labels":{"a":1}}}`, /labels are not strings/],
    [`${TYPE}"metadata":{"name":"a","resourceVersion":"7","labels":[]}}`, /labels are not a map/],
    [`${TYPE}"metadata":{"name":"a","resourceVersion":"7","annotations":[]}}`, /annotations are not a map/],
    [`${TYPE}"metadata":{"name":"a","resourceVersion":"7","annotations":"a"}}`, /annotations are not a map/],
    [`${TYPE}"metadata":{"name":"a","resourceVersion":"7"},"spec":{"nodeName":{}}}`, /selectable field/],
    [`${TYPE}"metadata":{"name":"a","resourceVersion":"7"}} {}`, /followed by something else/],
    [`{"a":${'['.repeat(1001)}`, /more than 1000 levels/],
  ]
  for (const [json, message] of rows) {
    assert.throws(() => reader.read(Buffer.from(json)), { name: 'MalformedError', message }, json.slice(0, 80))
  }
})

test('the objects of a list are the same wherever its chunks end', () => {
  const lists = answers.lists.filter(isJson)
  fc.assert(
    fc.property(fc.constantFrom(...lists), fc.array(fc.nat(), { maxLength: 20 }), (list, places) => {
      const body = bodyOf(list)
      const cuts = [...new Set(places.map((place) => place % body.length))].sort((a, b) => a - b)
      assert.deepEqual(split(body, cuts), split(body, []), list.path)
    }),
    { numRuns: 300 },
  )
  const [smallest] = lists.map((list) => bodyOf(list)).sort((a, b) => a.length - b.length)
  assert.ok(smallest)
  assert.deepEqual(split(smallest, [...smallest.keys()]), split(smallest, []))
})

const LIMITS = { objectBytes: 1e6, objects: 1000 }

function split(body: Buffer, cuts: readonly number[]): unknown {
  const objects: string[] = []
  const splitter = new ListSplitter(LIMITS, (object) => objects.push(object.toString()))
  let start = 0
  for (const end of [...cuts, body.length]) {
    splitter.feed(Buffer.from(body.subarray(start, end)))
    start = end
  }
  return { objects, facts: splitter.end() }
}

test('the objects of any list are those of JSON.parse, wherever its chunks end', () => {
  const type = { kind: 'PodList', apiVersion: 'v1' }
  const member = fc.tuple(
    text.filter((key) => !['kind', 'apiVersion', 'metadata', 'items'].includes(key)),
    anything,
  )
  const list = fc.record({
    before: fc.array(member, { maxLength: 3 }),
    items: fc.option(fc.array(fc.record({ metadata: fc.record({ name: text }), other: anything }), { maxLength: 4 }), {
      nil: null,
    }),
    behind: fc.array(member, { maxLength: 3 }),
    indent: fc.constantFrom(undefined, ' '),
  })
  fc.assert(
    fc.property(list, fc.array(fc.nat(), { maxLength: 20 }), ({ before, items, behind, indent }, places) => {
      const around = new Map([...before, ...behind])
      const members: [string, unknown][] = [
        ...[...around].slice(0, before.length),
        ...Object.entries({ ...type, metadata: { resourceVersion: '7', continue: 'x' }, items }),
        ...[...around].slice(before.length),
      ]
      const colon = indent === undefined ? ':' : ' :\n'
      const written = members.map(([key, value]) => `${JSON.stringify(key)}${colon}${JSON.stringify(value)}`)
      const body = Buffer.from(`{${written.join(indent === undefined ? ',' : ' , ')}}\n`)
      const cuts = [...new Set(places.map((place) => place % body.length))].sort((a, b) => a - b)
      for (const where of [cuts, [...body.keys()]]) {
        const { objects, facts } = split(body, where) as { objects: string[]; facts: Record<string, string> }
        assert.deepEqual(
          objects.map((object) => JSON.parse(object)),
          JSON.parse(JSON.stringify(items ?? [])).map((item: object) => ({ kind: 'Pod', apiVersion: 'v1', ...item })),
        )
        assert.deepEqual([facts['resourceVersion'], facts['next'], facts['kind']], ['7', 'x', 'PodList'])
      }
    }),
    { numRuns: 500 },
  )
})

test('the head of a list is read', () => {
  const [pods, things] = ['/api/v1/pods?limit=1', '/apis/example.com/v1/things?limit=1'].map((path) => {
    const list = answers.lists.find((answer) => answer.path === path && answer.accept === 'application/json')
    assert.ok(list)
    return split(bodyOf(list), []) as { facts: Record<string, string> }
  })
  assert.match(pods?.facts['resourceVersion'] ?? '', /^[0-9]+$/)
  assert.match(pods?.facts['next'] ?? '', /^ey/)
  assert.equal(pods?.facts['kind'], 'PodList')
  assert.equal(pods?.facts['form'], 'declared')
  assert.equal(things?.facts['kind'], 'ThingList')
  assert.equal(things?.facts['form'], 'sorted')
  assert.match(things?.facts['next'] ?? '', /^ey/)
})

test('a list that is not one, or beyond a limit, is refused with the reason', () => {
  const item = '{"metadata":{"name":"a"}}'
  const rows: readonly (readonly [string, RegExp])[] = [
    ['', /ends too early/],
    ['[', /not JSON/],
    ['{}', /no items/],
    ['{"items":[]} x', /followed by something else/],
    ['{"items":[1]}', /not JSON/],
    ['{"items":{}}', /not JSON/],
    [`{"items":[${item}]}`, /not known/],
    [`{"kind":"List","apiVersion":"v1","items":[${item}]}`, /not known/],
    [`{"kind":"PodList","apiVersion":"v1","items":[${item},]}`, /not JSON/],
    [`{"kind":"PodList","apiVersion":"v1","items":[${item}${item}]}`, /not JSON/],
    [`{"kind":"PodList","apiVersion":"v1","items":[],"items":[]}`, /twice/],
    [`{"kind":"PodList","kind":"PodList","items":[]}`, /twice/],
    [`{"kind":"PodList","apiVersion":"v1","items":[${item},${item},${item},${item}]}`, /more than 3 objects/],
    [`{"items":[{"apiVersion":"${'v'.repeat(200)}"}]}`, /an object has more than 100 bytes/],
    [`{"kind":"${'P'.repeat(70_000)}"}`, /the head of a list has more than/],
    [`{"kind":tru}`, /not JSON/],
    [`{${Array.from({ length: 30 }, (_, index) => `"k${index}":1`).join()}}`, /more than 20 fields/],
    [`{"a":${'['.repeat(1001)}`, /more than 1000 levels/],
  ]
  for (const [body, message] of rows) {
    for (const size of [1, 7, body.length]) {
      const feed = (): void => {
        const splitter = new ListSplitter({ objectBytes: 100, objects: 3 }, () => undefined)
        for (let at = 0; at < body.length; at += size) splitter.feed(Buffer.from(body.slice(at, at + size)))
        splitter.end()
      }
      assert.throws(feed, { name: 'MalformedError', message }, body.slice(0, 80))
    }
  }
})

test('lines of a watch are taken apart', () => {
  for (const type of ['ADDED', 'MODIFIED', 'DELETED', 'BOOKMARK', 'ERROR'] as const) {
    const { type: read, object } = readEvent(Buffer.from(`{"type":"${type}","object":{"a":1}}\n`))
    assert.deepEqual([read, object.toString()], [type, '{"a":1}'])
  }
  for (const line of [
    '',
    '\n',
    '{"type":"ADDED"}',
    '{"type":"OTHER","object":{}}',
    '{"type":"ADDED","object":{}]',
    '{"object":{}}',
  ]) {
    assert.throws(() => readEvent(Buffer.from(line)), { name: 'MalformedError' }, line)
  }
})

test('objects in memory that threads share are read, and answered with, as others are', () => {
  for (const answer of answers.lists.filter((one) => isJson(one) && !isPartial(one))) {
    for (const json of objectsOf(answer)) {
      const shared = Buffer.from(new SharedArrayBuffer(json.length))
      json.copy(shared)
      const facts = reader.read(shared)
      assert.deepEqual(facts, reader.read(json))
      assert.deepEqual(atVersion({ json: shared, facts }, '77').json, atVersion({ json, facts }, '77').json)
      for (const partial of [false, true]) {
        const form = answerForm('sorted', { encoding: 'json', partial }) ?? assert.fail()
        const [made, expected] = [shared, json].map((content) => Buffer.concat(form.event('ADDED', { content, facts })))
        assert.deepEqual(made, expected)
      }
    }
  }
})
