// What the cache makes of the bytes of objects is, byte by byte, what a real kube-apiserver answered.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type AnswerForm, answerForm } from '../../src/cache/core/bytes/answer-form.ts'
import {
  atVersion,
  BookmarkTemplate,
  type EventType,
  type JsonObjectBytes,
  leftOut,
  listFrame,
  objectBody,
  plainBookmark,
} from '../../src/cache/core/bytes/answers.ts'
import { FactsReader } from '../../src/cache/core/bytes/object-facts.ts'
import type { JsonForm } from '../../src/cache/core/bytes/object-form.ts'
import { ListSplitter } from '../../src/cache/core/bytes/split-list.ts'
import { type EventBytes, readEvent } from '../../src/cache/core/bytes/watch-event.ts'
import { labelsMatch } from '../../src/kube/core/selectors/label-requirement.ts'
import { parseLabelSelector } from '../../src/kube/core/selectors/parse-selector.ts'
import { bodyOf, type RecordedAnswer, readAnswers } from './read-answers.ts'
import { isJson, isPartial, joinedParts, partialOf, placed, readParts } from './recorded-objects.ts'

const answers = readAnswers()
const reader = new FactsReader([])
const json = (form: JsonForm, partial: boolean): AnswerForm =>
  answerForm(form, { encoding: 'json', partial }) ?? assert.fail()
const written = (form: AnswerForm, type: EventType, content: Buffer): Buffer =>
  Buffer.concat(form.event(type, { content, facts: reader.readBookmark(content) }))

const full = (recorded: readonly RecordedAnswer[]): RecordedAnswer[] =>
  recorded.filter((answer) => isJson(answer) && !isPartial(answer))

/** Pages have a token, which the cache never writes. */
const wholeLists = full(answers.lists).filter(({ path }) => !path.includes('limit='))

interface TakenApart {
  readonly kind: string
  readonly apiVersion: string
  readonly resourceVersion: string
  readonly form: JsonForm
  readonly objects: readonly JsonObjectBytes[]
}

function takeApart(list: RecordedAnswer): TakenApart {
  const objects: JsonObjectBytes[] = []
  const splitter = new ListSplitter({ objectBytes: 1e7, objects: 1e6 }, (object) => {
    const json = Buffer.from(object)
    objects.push({ json, facts: reader.read(json) })
  })
  splitter.feed(bodyOf(list))
  return { ...splitter.end(), objects }
}

function joined(frame: ReturnType<typeof listFrame>, items: readonly Buffer[]): string {
  if (items.length === 0) return frame.empty.toString()
  const pieces = items.flatMap((item, index) => [index === 0 ? frame.first : frame.next, item])
  return Buffer.concat([...pieces, frame.last]).toString()
}

test('a list is put together as it came', () => {
  assert.ok(wholeLists.length >= 17)
  for (const list of wholeLists) {
    const { resourceVersion, form, objects, ...type } = takeApart(list)
    const items = objects.map(({ json, facts }) => json.subarray(leftOut(facts, form)))
    assert.equal(joined(listFrame(type, resourceVersion, form), items), bodyOf(list).toString(), list.path)
  }
})

test('whole lists and lists of metadata are made of the objects', () => {
  for (const list of wholeLists) {
    const { resourceVersion, form, objects, ...type } = takeApart(list)
    const kept = objects.map(({ json: content, facts }) => placed({ content, facts }))
    const [whole, partial] = [false, true].map((isPart) =>
      joinedParts(json(form, isPart).list(type, resourceVersion, kept)),
    )
    assert.equal(whole?.toString(), bodyOf(list).toString(), list.path)
    assert.equal(partial?.toString(), partialOf(list, answers.lists).toString(), list.path)
  }
})

test('the state of a watch is an event for each object', () => {
  for (const list of wholeLists) {
    const { form, objects } = takeApart(list)
    const kept = objects.map(({ json: content, facts }) => placed({ content, facts }))
    for (const isPart of [false, true]) {
      const of = json(form, isPart)
      const events = Buffer.concat(kept.flatMap((object) => of.event('ADDED', object)))
      for (const mostOpen of [0, 1000, 1e6])
        assert.equal(readParts(of.added(kept, mostOpen)).toString(), events.toString(), list.path)
    }
  }
})

test('the answer to a GET is the item of the list, with kind and apiVersion', () => {
  const objects = full(answers.objects)
  assert.equal(objects.length, 2)
  for (const object of objects) {
    const { objects: items, form } = takeApart(
      full(answers.lists).find(
        ({ path }) => path === (object.path.includes('/pods/') ? '/api/v1/pods' : '/apis/example.com/v1/things'),
      ) ?? object,
    )
    const { name } = JSON.parse(bodyOf(object).toString()).metadata
    const item = items.find(({ facts }) => facts.name === name)
    assert.ok(item)
    assert.equal(objectBody(item.json).toString(), bodyOf(object).toString())
    const partial = json(form, true).object({ content: item.json, facts: item.facts })
    assert.equal(partial.toString(), partialOf(object, answers.objects).toString())
  }
})

interface RecordedWatch {
  readonly watch: RecordedAnswer
  readonly form: JsonForm
  /** With their line feeds. */
  readonly lines: readonly Buffer[]
  readonly events: readonly EventBytes[]
}

function watches(selector: string): RecordedWatch[] {
  return full(answers.watches)
    .filter(({ path }) => (new URL(path, 'https://localhost').searchParams.get('labelSelector') ?? '') === selector)
    .map((watch) => {
      const lines = bodyOf(watch)
        .toString()
        .split(/(?<=\n)/)
        .map((line) => Buffer.from(line))
      const form = watch.path.startsWith('/apis/example.com/') ? 'sorted' : 'declared'
      return { watch, form, lines, events: lines.map((line) => readEvent(line)) }
    })
}

test('the lines of a watch are made of the objects, and so are those of a watch of metadata', () => {
  for (const { watch, form, lines, events } of [...watches(''), ...watches('pick=yes')]) {
    assert.deepEqual(
      events.map(({ type, object }) => written(json(form, false), type, object)),
      lines,
    )
    const partial = events.map(({ type, object }) => written(json(form, true), type, object))
    assert.equal(Buffer.concat(partial).toString(), partialOf(watch, answers.watches).toString(), watch.path)
  }
})

test('the object of a watch is that of the list', () => {
  for (const { watch, events } of watches('')) {
    const path = new URL(watch.path, 'https://localhost').pathname.replace('/namespaces/odd', '')
    const list = full(answers.lists).find((answer) => answer.path === path)
    assert.ok(list)
    const items = takeApart(list).objects.map(({ json }) => json.toString())
    const added = events.filter(({ type }) => type === 'ADDED').map(({ object }) => object.toString())
    for (const object of added) assert.ok(items.includes(object), object)
    assert.ok(added.length >= 2)
  }
})

test('an object that leaves a selection is its last state with the version of the event', () => {
  let left = 0
  for (const [index, { events: selected }] of watches('pick=yes').entries()) {
    const before = new Map<string, JsonObjectBytes>()
    for (const { type, object } of watches('')[index]?.events ?? []) {
      if (type === 'BOOKMARK') continue
      const facts = reader.read(object)
      const event = selected.find(
        ({ type: kind, object: other }) =>
          kind === 'DELETED' &&
          reader.read(other).name === facts.name &&
          reader.read(other).resourceVersion === facts.resourceVersion,
      )
      const last = before.get(facts.name)
      if (event !== undefined && last !== undefined && type === 'MODIFIED') {
        const moved = atVersion(last, facts.resourceVersion)
        assert.equal(moved.json.toString(), event.object.toString())
        assert.deepEqual(moved.facts, reader.read(moved.json))
        left++
      }
      before.set(facts.name, { json: object, facts })
    }
  }
  assert.equal(left, 3)
})

test('a version of another length moves what stands behind it', () => {
  for (const list of wholeLists) {
    for (const object of takeApart(list).objects) {
      for (const version of ['1', '123456789012345678901234567890']) {
        const moved = atVersion(object, version)
        assert.deepEqual(moved.facts, reader.read(moved.json))
        assert.equal(moved.facts.resourceVersion, version)
        const { metadata } = JSON.parse(object.json.toString())
        assert.deepEqual(JSON.parse(moved.json.toString()).metadata, { ...metadata, resourceVersion: version })
      }
    }
  }
})

test('bookmarks are as those of kube-apiserver, made of any of them', () => {
  for (const { watch, form, events } of [...watches(''), ...watches('pick=yes')]) {
    const bookmarks = events.filter(({ type }) => type === 'BOOKMARK').map(({ object }) => object)
    assert.ok(bookmarks.length >= 2)
    for (const template of bookmarks) {
      const made = new BookmarkTemplate(template, form, reader)
      for (const bookmark of bookmarks) {
        const { resourceVersion, endsInitialEvents } = reader.readBookmark(bookmark)
        assert.equal(made.object(resourceVersion, endsInitialEvents).toString(), bookmark.toString())
        const line = written(json(form, true), 'BOOKMARK', made.object(resourceVersion, endsInitialEvents))
        assert.ok(partialOf(watch, answers.watches).includes(line))
      }
    }
  }
})

test('bookmarks of older versions, which have an empty time, are a template too', () => {
  const declared = Buffer.from(
    '{"kind":"A","apiVersion":"v1","metadata":{"resourceVersion":"1","creationTimestamp":null},"status":{}}',
  )
  const sorted = Buffer.from(
    '{"apiVersion":"a/v1","kind":"A","metadata":{"creationTimestamp":null,"resourceVersion":"1"}}',
  )
  assert.equal(
    new BookmarkTemplate(declared, 'declared', reader).object('23', true).toString(),
    '{"kind":"A","apiVersion":"v1","metadata":{"resourceVersion":"23","creationTimestamp":null,"annotations":{"k8s.io/initial-events-end":"true"}},"status":{}}',
  )
  assert.equal(
    new BookmarkTemplate(sorted, 'sorted', reader).object('23', true).toString(),
    '{"apiVersion":"a/v1","kind":"A","metadata":{"annotations":{"k8s.io/initial-events-end":"true"},"creationTimestamp":null,"resourceVersion":"23"}}',
  )
})

test('before upstream has sent a bookmark there is one of kinds without empty parts', () => {
  for (const { form, events } of watches('')) {
    const bookmark = events.find(({ type }) => type === 'BOOKMARK')?.object ?? Buffer.of()
    const { kind, apiVersion } = JSON.parse(bookmark.toString())
    if (kind === 'Pod') continue
    const { resourceVersion } = reader.readBookmark(bookmark)
    const made = new BookmarkTemplate(plainBookmark({ kind, apiVersion }, form), form, reader)
    assert.equal(made.object(resourceVersion, true).toString(), bookmark.toString())
  }
})

test('an object without kind and apiVersion in front cannot be an item of a list that leaves them out', () => {
  const json = Buffer.from('{"apiVersion":"v1","kind":"A","metadata":{"name":"a","resourceVersion":"1"}}')
  assert.throws(() => leftOut(reader.read(json), 'declared'), { name: 'MalformedError' })
  assert.equal(leftOut(reader.read(json), 'sorted'), 0)
})

test('a list with a label selector is made of the objects of the whole list', () => {
  const selected = full(answers.lists).filter(({ path }) => path.includes('labelSelector='))
  assert.equal(selected.length, 4)
  for (const list of selected) {
    const { pathname, searchParams } = new URL(list.path, 'https://localhost')
    const whole = wholeLists.find(({ path }) => path === pathname)
    assert.ok(whole)
    const { resourceVersion, form, objects, ...type } = takeApart(whole)
    const requirements = parseLabelSelector(searchParams.get('labelSelector') ?? '')
    const items = objects
      .filter(({ facts }) => labelsMatch(requirements, facts.labels))
      .map(({ json, facts }) => json.subarray(leftOut(facts, form)))
    assert.equal(joined(listFrame(type, resourceVersion, form), items), bodyOf(list).toString(), list.path)
  }
})
