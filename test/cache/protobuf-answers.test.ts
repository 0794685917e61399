// What the cache makes of the bytes of objects in protobuf is, byte by byte, what a real kube-apiserver answered.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { encodeMetadata } from '../../src/cache/core/bytes/encode-metadata.ts'
import { MalformedError } from '../../src/cache/core/bytes/malformed.ts'
import { FactsReader } from '../../src/cache/core/bytes/object-facts.ts'
import {
  eventFrame,
  itemHead,
  LIST_TAIL,
  ProtobufBookmarkTemplate,
  partialItemHead,
  protobufAtVersion,
  protobufListHead,
  protobufPartialListHead,
  protobufPartialObject,
} from '../../src/cache/core/bytes/protobuf-answers.ts'
import { type ProtobufFacts, ProtobufFactsReader } from '../../src/cache/core/bytes/protobuf-facts.ts'
import { EventFrames, type ProtobufListFacts, ProtobufListSplitter } from '../../src/cache/core/bytes/split-protobuf.ts'
import { type EventBytes, readEvent } from '../../src/cache/core/bytes/watch-event.ts'
import { selectableFields } from '../../src/cache/core/fields/selectable-fields.ts'
import { bodyOf, type RecordedAnswer, readAnswers } from './read-answers.ts'
import { isJson, isPartial, objectsOf, resourceOf } from './recorded-objects.ts'

const answers = readAnswers()
const reader = new ProtobufFactsReader([])
const LIMITS = { objectBytes: 1e7, objects: 1e6 }

const full = (recorded: readonly RecordedAnswer[]): RecordedAnswer[] =>
  recorded.filter((answer) => !isJson(answer) && !isPartial(answer))

/** The answer in the same words, but as PartialObjectMetadata. */
function partialOf({ path }: RecordedAnswer, among: readonly RecordedAnswer[]): Buffer {
  const partial = among.find((answer) => answer.path === path && !isJson(answer) && isPartial(answer))
  assert.ok(partial, path)
  return bodyOf(partial)
}

const wholeLists = full(answers.lists).filter(({ path }) => !path.includes('limit='))

interface ObjectBytes {
  readonly bytes: Buffer
  readonly facts: ProtobufFacts
}

function takeApart(
  body: Buffer,
  cuts: readonly number[] = [],
): ProtobufListFacts & { readonly objects: ObjectBytes[] } {
  const objects: ObjectBytes[] = []
  const splitter = new ProtobufListSplitter(LIMITS, (bytes) => objects.push({ bytes, facts: reader.read(bytes) }))
  let start = 0
  for (const end of [...cuts, body.length]) {
    splitter.feed(Buffer.from(body.subarray(start, end)))
    start = end
  }
  return { ...splitter.end(), objects }
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, number) => total + number, 0)
const within = (bytes: Buffer, { start, end }: { start: number; end: number }): Buffer => bytes.subarray(start, end)

test('a list is put together as it came', () => {
  assert.ok(wholeLists.length >= 15)
  for (const list of wholeLists) {
    const { objects, resourceVersion, ...type } = takeApart(bodyOf(list))
    const items = objects.flatMap(({ bytes, facts }) => {
      const message = within(bytes, facts.message)
      return [itemHead(message.length), message]
    })
    const head = protobufListHead(type, resourceVersion, sum(items.map(({ length }) => length)))
    assert.deepEqual(Buffer.concat([head, ...items, LIST_TAIL]), bodyOf(list), list.path)
  }
})

test('the list of metadata is made of the objects', () => {
  for (const list of wholeLists) {
    const { objects, resourceVersion } = takeApart(bodyOf(list))
    const items = objects.flatMap(({ bytes, facts }) => {
      const metadata = within(bytes, facts.metadata)
      return [partialItemHead(metadata.length), metadata]
    })
    const head = protobufPartialListHead(resourceVersion, sum(items.map(({ length }) => length)))
    assert.deepEqual(Buffer.concat([head, ...items, LIST_TAIL]), partialOf(list, answers.lists), list.path)
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
    const found = takeApart(bodyOf(list)).objects.map(({ bytes }) => {
      const { metadata, message, ...facts } = new ProtobufFactsReader(kept).read(bytes)
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
  const frames = new EventFrames(1e7, ({ type, object }) => events.push({ type, object: Buffer.from(object) }))
  const body = bodyOf(watch)
  let start = 0
  for (const end of [...cuts, body.length]) {
    frames.feed(Buffer.from(body.subarray(start, end)))
    start = end
  }
  assert.equal(frames.isInEvent, false)
  return events
}

const watches = (selector: string): RecordedAnswer[] =>
  full(answers.watches).filter(
    ({ path }) => (new URL(path, 'https://localhost').searchParams.get('labelSelector') ?? '') === selector,
  )

test('the frames of a watch are made of the objects, and so are those of a watch of metadata', () => {
  assert.equal(full(answers.watches).length, 4)
  for (const watch of full(answers.watches)) {
    const events = eventsOf(watch)
    assert.deepEqual(Buffer.concat(events.map(({ type, object }) => eventFrame(type, object))), bodyOf(watch))
    const partial = events.map(({ type, object }) => {
      const { metadata } = reader.readBookmark(object)
      return eventFrame(type, protobufPartialObject(within(object, metadata)))
    })
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
    for (const { type, object: bytes } of eventsOf(all)) {
      if (type === 'BOOKMARK') continue
      const facts = reader.read(bytes)
      const last = before.get(facts.name)
      const event = eventsOf(selected).find(
        ({ type: kind, object }) => kind === 'DELETED' && reader.read(object).resourceVersion === facts.resourceVersion,
      )
      if (event !== undefined && last !== undefined && type === 'MODIFIED') {
        assert.deepEqual(protobufAtVersion(last.bytes, last.facts, facts.resourceVersion), event.object)
        left++
      }
      before.set(facts.name, { bytes, facts })
    }
  }
  assert.equal(left, 2)
})

test('bookmarks are as those of kube-apiserver, made of any of them', () => {
  for (const watch of full(answers.watches)) {
    const bookmarks = eventsOf(watch).filter(({ type }) => type === 'BOOKMARK')
    const partial = partialOf(watch, answers.watches)
    assert.ok(bookmarks.length >= 2)
    for (const { object: template } of bookmarks) {
      const made = new ProtobufBookmarkTemplate(template, reader)
      for (const { object } of bookmarks) {
        const { resourceVersion, endsInitialEvents } = reader.readBookmark(object)
        assert.deepEqual(made.object(resourceVersion, endsInitialEvents), object)
        const frame = eventFrame('BOOKMARK', made.partialObject(resourceVersion, endsInitialEvents))
        assert.ok(partial.includes(frame))
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
          const frames = new EventFrames(1e7, ({ object }) => reader.readBookmark(object))
          frames.feed(damaged)
        } else takeApart(damaged)
      } catch (error) {
        assert.ok(error instanceof MalformedError, String(error))
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
  const frames = new EventFrames(100, () => undefined)
  assert.throws(() => frames.feed(Buffer.from([0, 0, 1, 0])), {
    name: 'MalformedError',
    message: /more than 100 bytes/,
  })
  assert.throws(() => reader.read(Buffer.from('k8s\0')), { name: 'MalformedError', message: /no message/ })
  assert.throws(() => reader.read(Buffer.from('{}')), { name: 'MalformedError', message: /does not appear to be/ })
})

test('metadata of custom resources is made of their JSON', () => {
  const json = (path: string, among: readonly RecordedAnswer[]): RecordedAnswer => {
    const answer = among.find((other) => other.path === path && other.accept === 'application/json')
    assert.ok(answer)
    return answer
  }
  const things = '/apis/example.com/v1/things'
  const facts = new FactsReader([])
  const list = json(things, answers.lists)
  const items = objectsOf(list).flatMap((object) => {
    const metadata = encodeMetadata(object, facts.read(object).metadata)
    return [partialItemHead(metadata.length), metadata]
  })
  const { resourceVersion } = JSON.parse(bodyOf(list).toString()).metadata
  const head = protobufPartialListHead(resourceVersion, sum(items.map(({ length }) => length)))
  assert.deepEqual(Buffer.concat([head, ...items, LIST_TAIL]), partialOf(list, answers.lists))

  const ofThings = answers.watches.filter(
    ({ path, accept }) => path.startsWith(things) && accept === 'application/json',
  )
  assert.equal(ofThings.length, 2)
  for (const watch of ofThings) {
    const frames = bodyOf(watch)
      .toString()
      .split(/(?<=\n)/)
      .map((line) => {
        const { type, object } = readEvent(Buffer.from(line))
        return eventFrame(type, protobufPartialObject(encodeMetadata(object, facts.readBookmark(object).metadata)))
      })
    assert.deepEqual(Buffer.concat(frames), partialOf(watch, answers.watches))
  }
})

test("metadata of Kubernetes' own kinds in JSON makes the same", () => {
  const facts = new FactsReader([])
  for (const list of wholeLists) {
    const json = answers.lists.find(({ path, accept }) => path === list.path && accept === 'application/json')
    assert.ok(json)
    const made = objectsOf(json).map((object) => encodeMetadata(object, facts.read(object).metadata))
    const found = takeApart(bodyOf(list)).objects.map(({ bytes, facts: { metadata } }) => within(bytes, metadata))
    assert.deepEqual(made, found, list.path)
  }
})

test('metadata that protobuf cannot hold is refused', () => {
  for (const metadata of [
    '[]',
    '{"name":1}',
    '{"generation":1.5}',
    '{"generation":-1}',
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
