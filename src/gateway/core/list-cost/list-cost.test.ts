// The cost of lists, by tables: seats, selector shapes, requests, responses, and what is learned from them.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'
import fc from 'fast-check'
import type { ListAnswer, ListRequest } from '../../api/list-request.ts'
import { mayRelearn } from '../policy/list-guard.ts'
import { parseRequestInfo } from '../request/request-info.ts'
import { isUnlimited, listRequestOf } from './list-request.ts'
import { answerSize, LARGEST_MS, type ListKey, ListSizes, MAX_LISTS, seenOf } from './list-sizes.ts'
import { seatsOf } from './seats.ts'
import { isNarrow, selectorShape } from './selector-shape.ts'

const PODS: ListKey = { apiGroup: '', resource: 'pods', namespace: '', shape: '' }
const WHOLE = { partial: false, items: 0, itemBytes: 0 }

test('seats: bytes by 100 kB, at least 1, at most 100 (list_work_estimator.go)', () => {
  for (const [bytes, seats] of [
    [0, 1],
    [1, 1],
    [100_000, 1],
    [100_001, 2],
    [1_000_000, 10],
    [9_999_999, 100],
    [200_000_000, 100],
  ] as const) {
    assert.equal(seatsOf(bytes), seats, String(bytes))
  }
})

// [fieldSelector, labelSelector, shape, narrow]
const SHAPES: readonly (readonly [string, string, string, boolean])[] = [
  ['', '', '', false],
  ['spec.nodeName=a', '', 'spec.nodeName', true],
  ['spec.nodeName==a', '', 'spec.nodeName', true],
  ['spec.nodeName!=a', '', 'spec.nodeName!', false],
  ['status.phase!=Failed,spec.nodeName=a,', '', 'spec.nodeName,status.phase!', true],
  ['status.phase!=Failed,status.phase!=Succeeded', '', 'status.phase!', false],
  ['a=1,b=1,c=1,d=1', '', 'fields', true],
  ['a!=1,b!=1,c!=1,d!=1', '', 'fields!', false],
  ['a!=1,b!=1,c!=1,d=1', '', 'fields', true],
  ['status.phase!=a\\,b', '', 'status.phase!', false],
  ['a', '', 'fields', true],
  [`${'a'.repeat(200)}=1`, '', 'fields', true],
  ['', 'app=web', 'labels', true],
  ['', 'app', 'labels', true],
  ['', 'app in (a,b)', 'labels', true],
  ['', '!app', 'labels!', false],
  ['', 'app!=web', 'labels!', false],
  ['', 'app notin (a,b),!tier', 'labels!', false],
  ['', 'app notin (a,b),tier=x', 'labels', true],
  ['status.phase!=Failed', '!app', 'status.phase!,labels!', false],
  ['status.phase!=Failed', 'app=web', 'status.phase!,labels', true],
]
for (const [fields, labels, shape, narrow] of SHAPES) {
  test(`the shape of "${fields.slice(0, 40)}" and "${labels}"`, () => {
    assert.equal(selectorShape(fields, labels), shape)
    assert.equal(isNarrow(shape), narrow)
  })
}

test('whatever clients write, shapes are few, short, and cost time in proportion', () => {
  const text = fc.string({ maxLength: 300 })
  fc.assert(fc.property(text, text, (fields, labels) => selectorShape(fields, labels).length <= 140))
  const many = Array.from({ length: 2000 }, (_, i) => selectorShape('', `!key-${i},app!=x${i}`))
  assert.equal(new Set(many).size, 1)
})

function request(target: string, sizes: ListSizes, method = 'GET'): ListRequest | undefined {
  const info = parseRequestInfo(method, target)
  assert.ok(!('failure' in info), target)
  return listRequestOf(info, target, sizes)
}

function known(bytes: number, more: object = {}): ListSizes {
  const sizes = new ListSizes()
  sizes.learn(PODS, PODS, { ...WHOLE, bytes, nowMs: 0, ...more })
  return sizes
}

// For a list of 5 MB with items of 5 kB: [target, seats, unlimited]; 0 seats = not counted as a list.
const P = '/api/v1/pods'
const REQUESTS: readonly (readonly [string, number, boolean])[] = [
  [P, 50, true],
  [`${P}?limit=0`, 50, true],
  [`${P}?limit=-1`, 50, true],
  [`${P}?limit=x`, 50, true],
  [`${P}?limit=100`, 5, false],
  [`${P}?limit=500&continue=abc`, 25, false],
  [`${P}?limit=5000`, 50, false],
  [`${P}?limit=5001`, 50, true],
  [`${P}?limit=99999999999999999999`, 50, true],
  [`${P}?resourceVersion=0`, 50, false],
  // The cache ignores limits.
  [`${P}?resourceVersion=0&limit=100`, 50, false],
  [`${P}?resourceVersion=7`, 50, true],
  [`${P}?resourceVersion=7&resourceVersionMatch=Exact`, 50, true],
  [`${P}?fieldSelector=metadata.name%3Da`, 0, false],
  [`${P}/a`, 0, false],
  [`${P}?watch=true`, 50, false],
  [`${P}?watch=true&resourceVersion=0`, 50, false],
  [`${P}?watch=true&resourceVersion=7`, 0, false],
  [`${P}?watch=true&resourceVersion=7&sendInitialEvents=true`, 50, false],
  [`${P}?watch=true&resourceVersion=7&sendInitialEvents=false`, 0, false],
  [`${P}?watch=true&resourceVersion=7&sendInitialEvents`, 50, false],
  ['/api/v1/watch/pods', 50, false],
  // Nothing is known of these.
  [`${P}?fieldSelector=spec.nodeName%3Da`, 1, true],
  ['/api/v1/namespaces/x/pods', 1, true],
  ['/apis/metrics.k8s.io/v1beta1/pods', 1, true],
  ['/healthz', 0, false],
  ['/api/v1/namespaces/x/pods/y/log', 0, false],
]
for (const [target, seats, unlimited] of REQUESTS) {
  test(`${target}: ${seats} seats${unlimited ? ', unlimited' : ''}`, () => {
    const list = request(target, known(5_000_000, { items: 1000, itemBytes: 5000 }))
    assert.equal(list?.seats ?? 0, seats)
    assert.equal(list !== undefined && isUnlimited(list), unlimited)
  })
}

test('writes are not lists, and neither is the deletion of a collection', () => {
  for (const method of ['POST', 'DELETE', 'PUT', 'PATCH']) assert.equal(request(P, known(5_000_000), method), undefined)
})

test('a page of which nothing is known is assumed to have items of 4 kB', () => {
  assert.equal(request(`${P}?limit=500`, known(200_000_000))?.seats, 20)
  assert.equal(request(`${P}?limit=500`, new ListSizes())?.seats, 1)
})

function answered(chunks: readonly Buffer[], encoding = '', page = false): ListAnswer {
  const answer = answerSize(encoding, 'application/json', page)
  for (const chunk of chunks) answer.see(chunk)
  return answer
}

test('gzip says how long the text is, however its end is cut', () => {
  const whole = gzipSync('x'.repeat(1_234_567))
  for (let cut = 0; cut <= 6; cut++) {
    const chunks = [whole.subarray(0, -6), ...[...whole.subarray(-6)].map((byte) => Buffer.of(byte))]
    const cutHere = [Buffer.concat(chunks.slice(0, chunks.length - cut)), ...chunks.slice(chunks.length - cut)]
    assert.equal(answered(cutHere, 'gzip').bytes(true), 1_234_567, String(cut))
  }
  // The body's encoding is not what the header says.
  assert.equal(answered([Buffer.alloc(1000, 0xff)], 'gzip').bytes(true), 1000)
  assert.equal(answered([whole]).bytes(true), whole.length)
})

test('a client that hangs up within a gzip answer makes the list no larger than what came', () => {
  const list = request(P, new ListSizes()) ?? assert.fail()
  for (let bytes = 100_000; bytes < 100_100; bytes++) {
    // The bytes at the break would read as a size of 64 MB.
    const part = Buffer.alloc(bytes)
    part.writeUInt32LE(64_000_000, bytes - 4)
    assert.equal(seenOf(list, answered([part], 'gzip'), false, 0).bytes, bytes)
    assert.equal(seenOf(list, answered([part], 'gzip'), true, 0).bytes, 64_000_000)
  }
})

test('how many items are behind a page is read from its metadata only', () => {
  const of = (text: string, pieces = 1): number => {
    const body = Buffer.from(text)
    const size = Math.ceil(body.length / pieces)
    const chunks = Array.from({ length: pieces }, (_, i) => body.subarray(i * size, (i + 1) * size))
    return answered(chunks, '', true).remainingItems()
  }
  const meta = '{"kind":"PodList","metadata":{"resourceVersion":"7","continue":"a","remainingItemCount":42}'
  assert.equal(of(`${meta},"items":[]}`), 42)
  assert.equal(of(`${meta},"items":[]}`, 30), 42)
  assert.equal(of('{"metadata":{},"items":[{"a":{"remainingItemCount":42}}]}'), 0)
  assert.equal(of('{"metadata":{},"columnDefinitions":[{"remainingItemCount":42}]}'), 0)
  assert.equal(of(`{"x":"${'y'.repeat(3000)}","metadata":{"remainingItemCount":42}}`), 0)
  assert.equal(of('{"metadata":{"remainingItemCount":4200000000000000}}'), 0)
  assert.equal(of(''), 0)
})

test('what an answer shows of the whole list', () => {
  const body = (bytes: number, behind = 0): ListAnswer => ({
    bytes: () => bytes,
    see: () => undefined,
    remainingItems: () => behind,
  })
  const list = (target: string): ListRequest => request(target, new ListSizes()) ?? assert.fail(target)
  const seen = (target: string, answer: ListAnswer, complete = true): readonly number[] => {
    const { bytes, partial, items, itemBytes } = seenOf(list(target), answer, complete, 0)
    return [bytes, Number(partial), items, itemBytes]
  }
  assert.deepEqual(seen(P, body(5e6)), [5e6, 0, 0, 0])
  assert.deepEqual(seen(P, body(5e6), false), [5e6, 1, 0, 0])
  assert.deepEqual(seen(`${P}?limit=100`, body(5e5, 900)), [5e6, 0, 1000, 5000])
  assert.deepEqual(seen(`${P}?limit=100`, body(5e5, 900), false), [5e5, 1, 0, 0])
  assert.deepEqual(seen(`${P}?limit=100`, body(5e5)), [5e5, 1, 0, 0])
  // With few items the count is trusted, but not their size as a sample.
  assert.deepEqual(seen(`${P}?limit=1`, body(1e6, 99_999)), [400_000_000, 1, 100_000, 0])
  assert.deepEqual(seen(`${P}?limit=1`, body(1e3, 99_999)), [100_000_000, 1, 100_000, 0])
  assert.deepEqual(seen(`${P}?limit=1&continue=a`, body(1e6, 99_999)), [0, 1, 0, 0])
  const listed = request(`${P}?limit=1`, known(2e8, { items: 100_000, itemBytes: 2000 })) ?? assert.fail()
  assert.equal(seenOf(listed, body(1e6, 99_999), true, 0).bytes, 2e8, 'what pages have shown')
  assert.deepEqual(seen(`${P}?limit=100&continue=a`, body(5e5, 900)), [0, 1, 0, 5000])
  assert.deepEqual(seen(`${P}?limit=100&continue=a`, body(5e5)), [0, 1, 0, 0])
  assert.deepEqual(seen(`${P}?limit=100&resourceVersion=0`, body(5e6)), [5e6, 0, 0, 0])
})

test('a larger answer counts at once, a smaller one when the larger is old, one that broke off never', () => {
  const sizes = new ListSizes()
  const learn = (bytes: number, nowMs: number, partial = false): number => {
    sizes.learn(PODS, PODS, { ...WHOLE, bytes, nowMs, partial })
    return sizes.find({ apiGroup: '', resource: 'pods', namespace: '' }, { shape: '' })?.bytes ?? 0
  }
  assert.equal(learn(99_999, 0), 0)
  assert.equal(learn(2e6, 1), 2e6)
  assert.equal(learn(1e6, 2), 2e6)
  assert.equal(learn(3e6, 3, true), 3e6)
  assert.equal(learn(1e6, LARGEST_MS + 3, true), 3e6)
  assert.equal(learn(1e6, LARGEST_MS + 3), 1e6)
  assert.equal(learn(100, 3 * LARGEST_MS), 100)
})

test('what a narrow selector picks is a mean', () => {
  const sizes = new ListSizes()
  const key = { ...PODS, shape: 'labels' }
  for (const bytes of [4e6, 0.4e6, 0.4e6]) sizes.learn(key, key, { ...WHOLE, bytes, nowMs: 0 })
  const { bytes = 0 } = sizes.find({ apiGroup: '', resource: 'pods', namespace: '' }, { shape: 'labels' }) ?? {}
  assert.ok(bytes > 0.4e6 && bytes < 4e6, String(bytes))
})

test('others are told what is new, not each answer', () => {
  const sizes = new ListSizes()
  const told: number[] = []
  sizes.onLearned = ({ bytes }) => told.push(bytes)
  for (let i = 0; i < 1000; i++) sizes.learn(PODS, PODS, { ...WHOLE, bytes: 1e6 + i, nowMs: i })
  assert.deepEqual(told, [1e6])
  sizes.learn(PODS, PODS, { ...WHOLE, bytes: 2e6, nowMs: 1001 })
  sizes.learn(PODS, PODS, { ...WHOLE, bytes: 2.01e6, nowMs: 60_000 })
  assert.deepEqual(told, [1e6, 2e6, 2.01e6])
  const other = new ListSizes()
  for (const size of sizes.top()) other.merge(size)
  assert.deepEqual(other.top(), sizes.top())
  other.merge({ ...PODS, bytes: 7, items: 0, itemBytes: 0, seenMs: 1 })
  assert.equal(other.top()[0]?.bytes, 2.01e6, 'older news changes nothing')
})

test('memory is bounded: the list seen longest ago goes', () => {
  const sizes = new ListSizes()
  for (let i = 0; i < MAX_LISTS + 100; i++) {
    sizes.learn({ ...PODS, resource: `r${i % 7}`, namespace: `ns${i}` }, PODS, { ...WHOLE, bytes: 1e6 + i, nowMs: i })
  }
  assert.equal(sizes.size, MAX_LISTS)
  assert.equal(sizes.top().length, MAX_LISTS)
  assert.equal(sizes.find({ apiGroup: '', resource: 'r1', namespace: 'ns99' }, { shape: '' }), undefined)
  assert.ok(sizes.find({ apiGroup: '', resource: 'r2', namespace: 'ns100' }, { shape: '' }))
  assert.equal(sizes.top(3)[0]?.bytes, 1e6 + MAX_LISTS + 99)
})

test('a list that excludes some is about as large as everything, whatever it excludes', () => {
  const sizes = known(200_000_000)
  for (const query of [
    'fieldSelector=metadata.name!%3Dx',
    'labelSelector=!x',
    'fieldSelector=a!%3D1,b!%3D1,c!%3D1,d!%3D1',
  ]) {
    const list = request(`${P}?${query}`, sizes) ?? assert.fail(query)
    assert.equal(list.bytes, 200_000_000, query)
  }
  assert.equal(request(`${P}?labelSelector=x`, sizes)?.size, undefined)
  // A page of such a list, or one with few remaining items, says nothing about the others.
  sizes.learn(PODS, { shape: 'labels!' }, { ...WHOLE, bytes: 1e6, nowMs: 0, partial: true })
  assert.equal(request(`${P}?labelSelector=!x`, sizes)?.bytes, 200_000_000)
  sizes.learn(PODS, { shape: 'labels!' }, { ...WHOLE, bytes: 300_000_000, nowMs: 0 })
  assert.equal(request(`${P}?labelSelector=!x`, sizes)?.bytes, 300_000_000)
  assert.equal(request(P, sizes)?.bytes, 200_000_000)
})

test('shapes of selectors, of which a client can write many, push out no list of everything', () => {
  const sizes = known(200_000_000)
  for (let i = 1; i < 3 * MAX_LISTS; i++) {
    sizes.learn(PODS, { shape: `f${i}` }, { ...WHOLE, bytes: 1e6, nowMs: i })
  }
  assert.equal(sizes.size, MAX_LISTS)
  assert.equal(request(P, sizes)?.bytes, 200_000_000)
})

test('a clock that is set back keeps no size for ever', () => {
  const future = 1e12
  const sizes = new ListSizes()
  const told: number[] = []
  sizes.onLearned = ({ bytes }) => told.push(bytes)
  sizes.learn(PODS, PODS, { ...WHOLE, bytes: 200_000_000, nowMs: future })
  const other = new ListSizes()
  for (const size of sizes.top()) other.merge(size)
  const known = sizes.find(PODS, PODS) ?? assert.fail()
  assert.ok(mayRelearn(known, 1e9), 'it is not as of now')
  sizes.learn(PODS, PODS, { ...WHOLE, bytes: 1e6, nowMs: 1e9 })
  assert.deepEqual(told, [200_000_000, 1e6])
  for (const size of sizes.top()) other.merge(size)
  assert.equal(other.top()[0]?.bytes, 1e6)
})
