// What the cache makes of the bytes of objects in protobuf is, byte by byte, what a real kube-apiserver answered.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { type AnswerForm, answerForm, type KeptObject } from '../../src/cache/core/bytes/answer-form.ts'
import type { EventType } from '../../src/cache/core/bytes/answers.ts'
import { bookmarkMaker } from '../../src/cache/core/bytes/bookmarks.ts'
import { encodeMetadata } from '../../src/cache/core/bytes/encode-metadata.ts'
import { MalformedError } from '../../src/cache/core/bytes/malformed.ts'
import { FactsReader } from '../../src/cache/core/bytes/object-facts.ts'
import { ProtobufBookmarkTemplate, protobufAtVersion } from '../../src/cache/core/bytes/protobuf-answers.ts'
import { type ProtobufFacts, ProtobufFactsReader } from '../../src/cache/core/bytes/protobuf-facts.ts'
import { type ProtobufListFacts, ProtobufListSplitter, readFrame } from '../../src/cache/core/bytes/split-protobuf.ts'
import { type EventBytes, readEvent } from '../../src/cache/core/bytes/watch-event.ts'
import { selectableFields } from '../../src/cache/core/fields/selectable-fields.ts'
import { EventFrames } from '../../src/kube/io/event-frames.ts'
import { BadWatchError } from '../../src/kube/io/watch-lines.ts'
import { bodyOf, type RecordedAnswer, readAnswers } from './read-answers.ts'
import {
  isJson,
  isPartial,
  joinedParts,
  objectsOf,
  partialOf,
  placed,
  readParts,
  resourceOf,
} from './recorded-objects.ts'

const answers = readAnswers()
const reader = new ProtobufFactsReader([])
const LIMITS = { objectBytes: 1e7, objects: 1e6 }

const full = (recorded: readonly RecordedAnswer[]): RecordedAnswer[] =>
  recorded.filter((answer) => !isJson(answer) && !isPartial(answer))

const wholeLists = full(answers.lists).filter(({ path }) => !path.includes('limit='))

interface ObjectBytes extends KeptObject {
  readonly facts: ProtobufFacts
}

const form = answerForm('protobuf', { encoding: 'protobuf', partial: false }) ?? assert.fail()
const partialForm = answerForm('protobuf', { encoding: 'protobuf', partial: true }) ?? assert.fail()
/** The metadata of custom resources, from their JSON. */
const encodedForm = answerForm('sorted', { encoding: 'protobuf', partial: true }) ?? assert.fail()
const written = (of: AnswerForm, type: EventType, content: Buffer): Buffer =>
  Buffer.concat(of.event(type, { content, facts: reader.readBookmark(content) }))
const UNLIMITED = { take: () => true, give: () => undefined }

function takeApart(
  body: Buffer,
  cuts: readonly number[] = [],
): ProtobufListFacts & { readonly objects: ObjectBytes[] } {
  const objects: ObjectBytes[] = []
  const splitter = new ProtobufListSplitter(LIMITS, (content) =>
    objects.push(placed({ content, facts: reader.read(content) })),
  )
  let start = 0
  for (const end of [...cuts, body.length]) {
    splitter.feed(Buffer.from(body.subarray(start, end)))
    start = end
  }
  return { ...splitter.end(), objects }
}

function takenObject(): Buffer {
  const list = wholeLists.find(({ path }) => path === '/api/v1/pods') ?? assert.fail()
  return takeApart(bodyOf(list)).objects[0]?.content ?? assert.fail()
}

test('a list is put together as it came, and so is the list of metadata', () => {
  assert.ok(wholeLists.length >= 15)
  for (const list of wholeLists) {
    const { objects, resourceVersion, ...type } = takeApart(bodyOf(list))
    assert.deepEqual(joinedParts(form.list(type, resourceVersion, objects)), bodyOf(list), list.path)
    const partial = joinedParts(partialForm.list(type, resourceVersion, objects))
    assert.deepEqual(partial, partialOf(list, answers.lists), list.path)
  }
})

test('the length of a list is known without writing what stands in front of its items', (t) => {
  const SIZES = [0, 1, 120, 125, 127, 128, 129, 16_377, 16_383, 16_384, 2_097_147, 2_097_151, 2_097_152]
  const objectOf = (bytes: number): ObjectBytes => {
    const range = { start: 0, end: bytes }
    const facts = { ...reader.read(takenObject()), message: range, metadata: range }
    return placed({ content: Buffer.alloc(bytes), facts })
  }
  for (const asked of [form, partialForm]) {
    for (const size of SIZES) {
      const pieces = asked.list({ kind: 'PodList', apiVersion: 'v1' }, '5', [objectOf(size)]) ?? assert.fail()
      assert.equal(pieces.length, joinedParts(pieces).length, `${size} bytes`)
    }
    const objects = Array.from({ length: 1000 }, () => objectOf(300))
    const concat = t.mock.method(Buffer, 'concat')
    asked.list({ kind: 'PodList', apiVersion: 'v1' }, '5', objects)
    assert.ok(concat.mock.callCount() < 100, `${concat.mock.callCount()} buffers were made of others`)
    concat.mock.restore()
  }
})

test('the state of a watch is an event for each object', () => {
  for (const list of wholeLists) {
    const { objects } = takeApart(bodyOf(list))
    for (const asked of [form, partialForm]) {
      const events = objects.flatMap((object) => asked.event('ADDED', object))
      for (const mostOpen of [0, 1000, 1e6])
        assert.deepEqual(readParts(asked.added(objects, mostOpen)), Buffer.concat(events), list.path)
    }
  }
})

test('the answer to a GET is the object of the list, in an envelope of its own', () => {
  const objects = full(answers.objects)
  assert.equal(objects.length, 1)
  for (const object of objects) {
    const list = wholeLists.find(({ path }) => path === '/api/v1/pods')
    assert.ok(list)
    const { name } = reader.read(bodyOf(object))
    const item = takeApart(bodyOf(list)).objects.find(({ facts }) => facts.name === name)
    assert.ok(item)
    assert.deepEqual(form.object(item), bodyOf(object))
    assert.deepEqual(partialForm.object(item), partialOf(object, answers.objects))
  }
})

test('the facts are those of the same objects in JSON', () => {
  let objects = 0
  for (const list of full(answers.lists)) {
    const { kept } = selectableFields(resourceOf(list.path))
    const json = answers.lists.find(({ path, accept }) => path === list.path && accept === 'application/json')
    assert.ok(json)
    const expected = objectsOf(json).map((object) => {
      const { metadata, version, bare, ...facts } = new FactsReader(kept).read(object)
      return facts
    })
    const found = takeApart(bodyOf(list)).objects.map(({ content }) => {
      const { metadata, message, ...facts } = new ProtobufFactsReader(kept).read(content)
      return facts
    })
    assert.deepEqual(found, expected)
    objects += found.length
  }
  assert.ok(objects > 20)
})

test('a page has a token', () => {
  const page = full(answers.lists).find(({ path }) => path === '/api/v1/pods?limit=1')
  assert.ok(page)
  const { next, kind, objects } = takeApart(bodyOf(page))
  assert.match(next, /^ey/)
  assert.deepEqual([kind, objects.length], ['PodList', 1])
})

test('the objects of a list are the same wherever its chunks end', () => {
  fc.assert(
    fc.property(fc.constantFrom(...full(answers.lists)), fc.array(fc.nat(), { maxLength: 20 }), (list, places) => {
      const body = bodyOf(list)
      const cuts = [...new Set(places.map((place) => place % body.length))].sort((a, b) => a - b)
      assert.deepEqual(takeApart(body, cuts), takeApart(body))
    }),
    { numRuns: 300 },
  )
  for (const list of full(answers.lists).slice(0, 3)) {
    const body = bodyOf(list)
    assert.deepEqual(takeApart(body, [...body.keys()]), takeApart(body))
  }
})

function eventsOf(watch: RecordedAnswer, cuts: readonly number[] = []): EventBytes[] {
  const events: EventBytes[] = []
  const frames = new EventFrames(UNLIMITED)
  const body = bodyOf(watch)
  let start = 0
  for (const end of [...cuts, body.length]) {
    for (const frame of frames.push(Buffer.from(body.subarray(start, end)))) events.push(readFrame(frame))
    start = end
  }
  return events
}

const watches = (selector: string): RecordedAnswer[] =>
  full(answers.watches).filter(
    ({ path }) => (new URL(path, 'https://localhost').searchParams.get('labelSelector') ?? '') === selector,
  )

test('the frames of a watch are made of the objects', () => {
  assert.equal(full(answers.watches).length, 4)
  for (const watch of full(answers.watches)) {
    const events = eventsOf(watch)
    assert.deepEqual(Buffer.concat(events.map(({ type, object }) => written(form, type, object))), bodyOf(watch))
    const partial = events.map(({ type, object }) => written(partialForm, type, object))
    assert.deepEqual(Buffer.concat(partial), partialOf(watch, answers.watches))
    assert.deepEqual(eventsOf(watch, [...bodyOf(watch).keys()]), events)
  }
})

test('an object that leaves a selection is its last state with the version of the event', () => {
  let left = 0
  for (const [index, selected] of watches('pick=yes').entries()) {
    const all = watches('')[index]
    assert.ok(all)
    const before = new Map<string, ObjectBytes>()
    for (const { type, object: content } of eventsOf(all)) {
      if (type === 'BOOKMARK') continue
      const facts = reader.read(content)
      const last = before.get(facts.name)
      const event = eventsOf(selected).find(
        ({ type: kind, object }) => kind === 'DELETED' && reader.read(object).resourceVersion === facts.resourceVersion,
      )
      if (event !== undefined && last !== undefined && type === 'MODIFIED') {
        const moved = protobufAtVersion(last, facts.resourceVersion)
        assert.deepEqual(moved.content, event.object)
        assert.deepEqual(moved.facts, reader.read(moved.content))
        left++
      }
      before.set(facts.name, placed({ content, facts }))
    }
  }
  assert.equal(left, 2)
})

test('bookmarks are as those of kube-apiserver, made of any of them', () => {
  for (const watch of full(answers.watches)) {
    const bookmarks = eventsOf(watch).filter(({ type }) => type === 'BOOKMARK')
    assert.ok(bookmarks.length >= 2)
    for (const { object: template } of bookmarks) {
      const made = new ProtobufBookmarkTemplate(template, reader)
      for (const { object } of bookmarks) {
        const { resourceVersion, endsInitialEvents } = reader.readBookmark(object)
        assert.deepEqual(made.object(resourceVersion, endsInitialEvents), object)
      }
    }
  }
})

test('bodies that are damaged are read, or refused with one error', () => {
  const bodies = [...full(answers.lists), ...full(answers.watches)]
  fc.assert(
    fc.property(fc.constantFrom(...bodies), fc.nat(), fc.nat(255), fc.boolean(), (answer, place, byte, isCut) => {
      const body = Buffer.from(bodyOf(answer))
      const at = place % body.length
      body[at] = byte
      const damaged = isCut ? body.subarray(0, at) : body
      try {
        if (answer.path.includes('watch=')) {
          for (const frame of new EventFrames(UNLIMITED).push(damaged)) reader.readBookmark(readFrame(frame).object)
        } else takeApart(damaged)
      } catch (error) {
        assert.ok(error instanceof MalformedError || error instanceof BadWatchError, String(error))
      }
    }),
    { numRuns: 5000 },
  )
})

test('what is beyond a limit is refused with the reason', () => {
  const [pods] = wholeLists
  assert.ok(pods)
  const refused = (limits: { objectBytes: number; objects: number }, message: RegExp): void => {
    const feed = (): void => new ProtobufListSplitter(limits, () => undefined).feed(bodyOf(pods))
    assert.throws(feed, { name: 'MalformedError', message })
  }
  refused({ objectBytes: 100, objects: 100 }, /an object has more than 100 bytes/)
  refused({ objectBytes: 1e6, objects: 2 }, /more than 2 objects/)
  assert.throws(() => reader.read(Buffer.from('k8s\0')), { name: 'MalformedError', message: /no message/ })
  assert.throws(() => reader.read(Buffer.from('{}')), { name: 'MalformedError', message: /does not appear to be/ })
})

test('a version of another length moves what stands behind it', () => {
  for (const list of wholeLists) {
    for (const object of takeApart(bodyOf(list)).objects) {
      for (const version of ['1', '123456789012345678901234567890']) {
        const moved = protobufAtVersion(object, version)
        assert.deepEqual(moved.facts, { ...reader.read(moved.content), resourceVersion: version })
      }
    }
  }
})

test('before upstream has sent a bookmark there is one that means the same', () => {
  for (const watch of full(answers.watches)) {
    const { object } = eventsOf(watch).find(({ type }) => type === 'BOOKMARK') ?? assert.fail()
    const { kind, apiVersion, resourceVersion, endsInitialEvents, metadata } = reader.readBookmark(object)
    const { content: made } = bookmarkMaker('protobuf', { kind, apiVersion }, undefined).object(
      resourceVersion,
      endsInitialEvents,
    )
    const facts = reader.readBookmark(made)
    assert.deepEqual(
      made.subarray(facts.metadata.start, facts.metadata.end),
      object.subarray(metadata.start, metadata.end),
    )
    assert.equal(facts.kind, kind)
  }
})

const asJson = (path: string, among: readonly RecordedAnswer[]): RecordedAnswer =>
  among.find((other) => other.path === path && other.accept === 'application/json') ?? assert.fail()
const asPartialProtobuf = (path: string, among: readonly RecordedAnswer[]): Buffer =>
  bodyOf(among.find((other) => other.path === path && !isJson(other) && isPartial(other)) ?? assert.fail())
const facts = new FactsReader([])

test('metadata of custom resources in Protobuf is made of their JSON', () => {
  const things = '/apis/example.com/v1/things'
  const list = asJson(things, answers.lists)
  const objects = objectsOf(list).map((content) => placed({ content, facts: facts.read(content) }))
  const { resourceVersion } = JSON.parse(bodyOf(list).toString()).metadata
  const made = joinedParts(
    encodedForm.list({ kind: 'ThingList', apiVersion: 'example.com/v1' }, resourceVersion, objects),
  )
  assert.deepEqual(made, asPartialProtobuf(things, answers.lists))
  const one = asJson('/apis/example.com/v1/namespaces/odd/things/owned', answers.objects)
  const object = objects.find(({ facts: { name } }) => name === 'owned') ?? assert.fail()
  assert.deepEqual(encodedForm.object(object), asPartialProtobuf(one.path, answers.objects))
  const ofThings = answers.watches.filter(
    ({ path, accept }) => path.startsWith(things) && accept === 'application/json',
  )
  assert.equal(ofThings.length, 2)
  for (const watch of ofThings) {
    const frames = bodyOf(watch)
      .toString()
      .split(/(?<=\n)/)
      .map((line) => {
        const { type, object: content } = readEvent(Buffer.from(line))
        return Buffer.concat(encodedForm.event(type, { content, facts: facts.readBookmark(content) }))
      })
    assert.deepEqual(Buffer.concat(frames), asPartialProtobuf(watch.path, answers.watches))
  }
})

test("metadata of Kubernetes' own kinds in JSON makes the same", () => {
  for (const list of wholeLists) {
    const made = objectsOf(asJson(list.path, answers.lists)).map((object) =>
      encodeMetadata(object, facts.read(object).metadata),
    )
    const found = takeApart(bodyOf(list)).objects.map(
      ({
        content,
        facts: {
          metadata: { start, end },
        },
      }) => content.subarray(start, end),
    )
    assert.deepEqual(made, found, list.path)
  }
})

test('times before 1970 and large numbers are written as Go writes an int64', () => {
  const encoded = (text: string): string => {
    const json = Buffer.from(text)
    return encodeMetadata(json, { start: 0, end: json.length }).toString('hex')
  }
  const without = encoded('{}')
  // 1969-12-31T23:59:59Z is -1 second, of ten bytes.
  const time = encoded('{"creationTimestamp":"1969-12-31T23:59:59Z"}')
  assert.ok(time.includes(`08${'ff'.repeat(9)}01`), time)
  const seconds = encoded('{"deletionGracePeriodSeconds":9223372036854775807}')
  assert.equal(seconds, `${without}50${'ff'.repeat(8)}7f`)
})

test('metadata that Protobuf cannot hold is refused', () => {
  for (const metadata of [
    '[]',
    '{"name":1}',
    '{"generation":1.5}',
    '{"generation":1e3}',
    '{"creationTimestamp":"now"}',
    '{"labels":{"a":1}}',
    '{"finalizers":{}}',
    '{"finalizers":[1]}',
    '{"managedFields":[1]}',
  ]) {
    const json = Buffer.from(metadata)
    assert.throws(() => encodeMetadata(json, { start: 0, end: json.length }), { name: 'MalformedError' }, metadata)
  }
})

test('a list of much metadata, which would have to be encoded at once, is not made', () => {
  const content = Buffer.from(
    `{"metadata":{"name":"a","resourceVersion":"1","annotations":{"a":"${'x'.repeat(1024)}"}},"kind":"A","apiVersion":"v1"}`,
  )
  const object = placed({ content, facts: facts.read(content) })
  const listed = (count: number): unknown =>
    encodedForm.list({ kind: 'AList', apiVersion: 'v1' }, '1', Array(count).fill(object))
  assert.ok(listed(100))
  assert.equal(listed(1024), undefined)
})
