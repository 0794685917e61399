import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { createRecord, type RequestRecord } from '../../../gateway/api/request-record.ts'
import { DIMENSIONS, type Dimension } from '../../../process/api/dimensions.ts'
import { BYTES, RANKED, REQUESTS, SORTS, type Sort, TALLY_LENGTH } from './measures.ts'
import { nthLargest } from './nth-largest.ts'
import { DEFAULT_QUERY, readTopQuery, type TopQuery } from './query.ts'
import { sumOfReports, type TopReport, topReport } from './report.ts'
import { largest, ROW_LENGTH, type Sketch, SketchSum } from './sketch.ts'
import { SpaceSaving } from './space-saving.ts'
import { CAPACITY, Traffic } from './traffic.ts'
import { TopWindows } from './windows.ts'

const M = 8
const UNITS = Float64Array.from({ length: RANKED }, (_, i) => (i === REQUESTS ? 1 : 100))

function tallyOf(bytes: number): Float64Array {
  const tally = new Float64Array(TALLY_LENGTH)
  tally[BYTES] = bytes
  tally[REQUESTS] = 1
  return tally
}

type Stream = readonly (readonly [name: string, bytes: number])[]

const streams: fc.Arbitrary<Stream> = fc.array(
  fc.tuple(
    fc.oneof({ weight: 3, arbitrary: fc.constantFrom('a', 'b', 'c') }, fc.integer({ max: 60, min: 0 }).map(String)),
    fc.integer({ min: 0, max: 1000 }),
  ),
  // Otherwise the arrays stay so short that no table is ever full.
  { maxLength: 300, size: 'max' },
)

/** The true sums of each name, by REQUESTS and BYTES. */
function truth(stream: Stream): Map<string, Map<number, number>> {
  const sums = new Map<string, Map<number, number>>()
  for (const [name, bytes] of stream) {
    const before = sums.get(name)
    sums.set(
      name,
      new Map([
        [REQUESTS, (before?.get(REQUESTS) ?? 0) + 1],
        [BYTES, (before?.get(BYTES) ?? 0) + bytes],
      ]),
    )
  }
  return sums
}

function sketchOf(stream: Stream): Sketch {
  const table = new SpaceSaving(2 * M, UNITS)
  for (const [name, bytes] of stream) table.add('', name, tallyOf(bytes), 0)
  const names: string[] = []
  const rows: number[] = []
  table.forEach((_, name, sums, at, error) => {
    names.push(name)
    rows.push(...sums.subarray(at, at + TALLY_LENGTH))
    for (let i = 0; i < TALLY_LENGTH; i++) rows.push(error(i))
  })
  return { names, rows: Float64Array.from(rows), missing: table.missing() }
}

/** True sums lie between the count and the count plus the error; a name without a row has at most what is missing. */
function assertBounds({ names, rows, missing }: Sketch, stream: Stream): void {
  const sums = truth(stream)
  for (const [name, sum] of sums) {
    const row = names.indexOf(name)
    for (const measure of [REQUESTS, BYTES]) {
      const value = sum.get(measure) ?? 0
      if (row < 0) {
        assert.ok(value <= (missing[measure] ?? 0) + 1e-6, `${name} has ${value}, missing ${missing[measure]}`)
        continue
      }
      const counted = rows[row * ROW_LENGTH + measure] ?? 0
      const error = rows[row * ROW_LENGTH + TALLY_LENGTH + measure] ?? 0
      assert.ok(counted <= value && value <= counted + error + 1e-6, `${name}: ${value} in ${counted} + ${error}`)
    }
  }
}

test('sums lie within their errors, errors are at most 1/m of all weight, and no name with more than that is lost', () => {
  fc.assert(
    fc.property(streams, (stream) => {
      const sketch = sketchOf(stream)
      assert.ok(sketch.names.length <= 2 * M)
      assertBounds(sketch, stream)
      const weight = stream.reduce((sum, [, bytes]) => sum + 1 + bytes / 100, 0)
      assert.ok((sketch.missing[REQUESTS] ?? 0) <= weight / M)
      assert.ok((sketch.missing[BYTES] ?? 0) <= (100 * weight) / M + 1e-6)
    }),
  )
})

test('as long as names have room, all sums are exact', () => {
  const sketch = sketchOf(Array.from({ length: 100 }, (_, i) => [`n${i % (2 * M)}`, i] as const))
  assert.deepEqual([...sketch.missing], new Array(TALLY_LENGTH).fill(0))
  for (let row = 0; row < 2 * M; row++) {
    const errors = sketch.rows.subarray(row * ROW_LENGTH + TALLY_LENGTH, (row + 1) * ROW_LENGTH)
    assert.deepEqual([...errors], new Array(TALLY_LENGTH).fill(0))
  }
})

test('what a table forgets goes where it was told to', () => {
  const all = new Map<string, number>()
  const take = (_: string, name: string, sums: Float64Array, at: number): void => {
    all.set(name, (all.get(name) ?? 0) + (sums[at + BYTES] ?? 0))
  }
  fc.assert(
    fc.property(streams, (stream) => {
      all.clear()
      const table = new SpaceSaving(2 * M, UNITS, take)
      for (const [name, bytes] of stream) table.add('prod', name, tallyOf(bytes), 0)
      table.forEach(take)
      for (const [name, sum] of truth(stream)) assert.equal(all.get(name), sum.get(BYTES), name)
    }),
  )
})

test('sums of sketches, cut to a few rows, lie within their errors', () => {
  fc.assert(
    fc.property(
      fc.array(streams, { minLength: 1, maxLength: 4, size: 'max' }),
      fc.integer({ min: 1, max: 30 }),
      (parts, count) => {
        const sum = new SketchSum()
        for (const stream of parts) sum.add(largest(sketchOf(stream), count))
        assertBounds(sum.sketch(count), parts.flat())
        assertBounds(sum.sketch(), parts.flat())
      },
    ),
  )
})

test('the n-th largest is the one that sorting finds', () => {
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: 0, max: 20 }), { maxLength: 80, size: 'max' }),
      fc.nat({ max: 90 }),
      (numbers, n) => {
        const sorted = numbers.slice().sort((a, b) => b - a)
        assert.equal(nthLargest(Float64Array.from(numbers), n), sorted[n] ?? Number.NEGATIVE_INFINITY)
      },
    ),
  )
})

function request(fields: Partial<RequestRecord>): RequestRecord {
  const known = { durationMs: 10, upstreamMs: 5, isResourceRequest: true, code: 200, cluster: 'prod' }
  return Object.assign(createRecord(), known, fields)
}

/** The report of a gateway with one thread. */
function reportOf(traffic: Traffic, query: Partial<TopQuery>, chosen?: readonly string[]): TopReport {
  const windows = new TopWindows(0)
  windows.add(1000, [traffic.take()])
  const whole = { ...DEFAULT_QUERY, ...query }
  const only = chosen ?? (whole.cluster === '' ? [] : [whole.cluster])
  return topReport(whole, windows.sum(DIMENSIONS.indexOf(whole.by), whole.minutes, only, 1000), chosen)
}

/** The numbers below `size` in a shuffled but deterministic order. */
function* mixed(size: number): Generator<number> {
  for (let i = 0, at = 0; i < size; i++) {
    at = (at + 7919) % size
    yield at
  }
}

const COUNT: Readonly<Record<Sort, (index: number) => Partial<RequestRecord>>> = {
  requests: () => ({}),
  bytes: (index) => ({ responseBytes: 1000 * (40 - index) }),
  latency: (index) => ({ durationMs: 10 * (40 - index) }),
  'upstream-seconds': (index) => ({ upstreamMs: 10 * (40 - index) }),
  'listed-bytes': (index) => ({ verb: 'list', responseBytes: 1000 * (40 - index) }),
  refused: () => ({ refusal: 'rate-limited', code: 429 }),
}

for (const sort of SORTS) {
  test(`the top 20 by ${sort} are exact beside 5,000 users who have less`, () => {
    const traffic = new Traffic()
    const heavy = Array.from({ length: 20 }, (_, i) => [`system:serviceaccount:jobs:heavy-${i}`, 600 - 20 * i] as const)
    const users = heavy.flatMap(([user, count], index) => new Array<[string, number]>(count).fill([user, index]))
    for (let i = 0; i < 5000; i++) users.push([`light-${i}`, -1], [`light-${i}`, -1])
    for (const at of mixed(users.length)) {
      const [user, index] = users[at] ?? ['', -1]
      const fields = index < 0 ? { responseBytes: 10 } : COUNT[sort](index)
      traffic.count(request({ user, verb: 'get', resource: 'pods', ...fields }))
    }
    const { rows } = reportOf(traffic, { by: 'user', sort })
    assert.deepEqual(
      rows.map(({ name }) => name),
      heavy.map(([user]) => user),
    )
    for (const [index, { requests, error }] of rows.entries()) {
      assert.equal(requests, heavy[index]?.[1])
      assert.deepEqual(new Set(Object.values(error)), new Set([0]))
    }
  })
}

function namesBy(traffic: TopReport): Map<string, number> {
  return new Map(traffic.rows.map(({ name, requests }) => [name, requests]))
}

function sampleTraffic(): Traffic {
  const traffic = new Traffic()
  const fields = {
    user: 'ann',
    userAgent: 'kubectl/v1.34.1 (linux/amd64)',
    verb: 'list',
    namespace: 'shop',
    remoteAddress: '10.0.0.1',
  }
  for (const part of [
    { resource: 'pods', responseBytes: 1000, requestBytes: 1 },
    { resource: 'deployments', apiGroup: 'apps', responseBytes: 10 },
    { resource: 'pods', subresource: 'log', verb: 'get', responseBytes: 5, cluster: 'dev' },
    { resource: 'pods', namespace: '', refusal: 'rate-limited', code: 429, upstreamMs: -1, durationMs: 40 },
    { isResourceRequest: false, path: '/openapi/v3', verb: 'get', namespace: '', user: '', remoteAddress: 'fd00::1:2' },
    { isResourceRequest: false, path: '/openapi/v3', verb: 'get', namespace: '', user: '', remoteAddress: 'fd00::9:9' },
  ]) {
    traffic.count(request({ ...fields, ...part }))
  }
  return traffic
}

const EXPECTED: Readonly<Record<Dimension, Readonly<Record<string, number>>>> = {
  user: { ann: 4, '': 2 },
  userAgent: { 'kubectl/v1.34.1 (linux/amd64)': 6 },
  resource: { pods: 2, 'deployments.apps': 1, 'pods/log': 1, '/openapi/v3': 2 },
  verb: { list: 3, get: 3 },
  namespace: { shop: 3, '': 3 },
  address: { '10.0.0.1': 4, 'fd00::/64': 2 },
  cluster: { prod: 5, dev: 1 },
}

for (const by of DIMENSIONS) {
  test(`requests are told apart by ${by}`, () => {
    assert.deepEqual(Object.fromEntries(namesBy(reportOf(sampleTraffic(), { by }))), EXPECTED[by])
  })
}

test('a row has all numbers, and the total that of all requests', () => {
  const { rows, total } = reportOf(sampleTraffic(), { by: 'user' })
  const { name, error, ...numbers } = rows[0] ?? assert.fail()
  assert.equal(name, 'ann')
  assert.deepEqual(numbers, {
    requests: 4,
    refused: 1,
    bytes: 1016,
    listedBytes: 1010,
    upstreamSeconds: 0.015,
    latencySeconds: 0.0175,
    timedRequests: 4,
  })
  assert.equal(total.requests, 6)
  assert.equal(error.requests, 0)
})

test('with a cluster only its requests count', () => {
  const report = reportOf(sampleTraffic(), { by: 'resource', cluster: 'prod' })
  assert.deepEqual(Object.fromEntries(namesBy(report)), { '/openapi/v3': 2, 'deployments.apps': 1, pods: 2 })
  assert.equal(report.total.requests, 5)
  assert.deepEqual(namesBy(reportOf(sampleTraffic(), { by: 'cluster', cluster: 'dev' })), new Map([['dev', 1]]))
  assert.deepEqual(reportOf(sampleTraffic(), { by: 'user', cluster: 'none' }).rows, [])
})

test('with several clusters their requests count together, and the report names them', () => {
  const of = (by: Dimension, ...chosen: string[]): TopReport => reportOf(sampleTraffic(), { by }, chosen)
  const both = of('resource', 'dev', 'prod', 'quiet')
  assert.deepEqual(Object.fromEntries(namesBy(both)), EXPECTED.resource)
  assert.deepEqual([both.total.requests, both.clusters], [6, ['dev', 'prod', 'quiet']])
  assert.deepEqual(Object.fromEntries(namesBy(of('cluster', 'dev', 'prod'))), EXPECTED.cluster)
  assert.deepEqual(Object.fromEntries(namesBy(of('cluster', 'dev', 'quiet'))), { dev: 1 })
  assert.equal(of('cluster', 'dev', 'quiet').total.requests, 1)
})

test('a watch counts when it begins, its bytes when it ends, and its time never', () => {
  const traffic = new Traffic()
  const watch = request({ user: 'ann', verb: 'watch', resource: 'pods', longRunning: true, durationMs: -1 })
  traffic.started(watch)
  const begun = reportOf(traffic, {}).rows[0]
  assert.deepEqual([begun?.requests, begun?.timedRequests], [1, 0])
  traffic.count(Object.assign(watch, { durationMs: 3_600_000, responseBytes: 500 }))
  traffic.count(request({ user: 'ann', verb: 'watch', longRunning: true, refusal: 'rate-limited', code: 429 }))
  const { requests, refused, bytes, latencySeconds, timedRequests } = reportOf(traffic, {}).rows[0] ?? assert.fail()
  assert.deepEqual(
    { requests, refused, bytes, latencySeconds, timedRequests },
    { requests: 1, refused: 1, bytes: 500, latencySeconds: 0, timedRequests: 0 },
  )
})

test('whatever is sent, what is kept is bounded, and names are cut', () => {
  const traffic = new Traffic()
  for (let i = 0; i < 20_000; i++) {
    const name = `${i}-`.padEnd(2000, 'x')
    const names = {
      user: name,
      userAgent: name,
      resource: name,
      verb: name,
      namespace: name,
      remoteAddress: `10.0.${i}`,
    }
    traffic.count(request({ ...names, cluster: `c${i % 50}` }))
  }
  const { dimensions } = traffic.take()
  for (const { all, clusters } of dimensions) {
    const names = [...clusters.values()].reduce((sum, sketch) => sum + sketch.names.length, all.names.length)
    assert.ok(names <= CAPACITY, `${names} names`)
    assert.ok(all.names.every((name) => name.length <= 256))
  }
  const { total } = traffic.take()
  assert.equal(total[REQUESTS], 0, 'what was taken is gone')
})

test('what many clusters and clients leave in memory is bounded, and each moment counts once', () => {
  const windows = new TopWindows(0)
  const traffic = new Traffic()
  let [most, inTwoHours] = [0, 0]
  for (let second = 10; second <= 4 * 3600; second += 10) {
    for (let i = 0; i < 40; i++) traffic.count(request({ user: `u${i}-${second % 70}`, cluster: `c${i % 20}` }))
    windows.add(second * 1000, [traffic.take()])
    most = Math.max(most, windows.rows())
    if (second === 2 * 3600) inTwoHours = most
    if (second % 590 !== 0) continue
    for (const minutes of [1, 5, 60] as const) {
      const { total, seconds } = windows.sum(0, minutes, [], second * 1000)
      assert.equal(total[REQUESTS], seconds * 4, `${minutes} minutes at ${second} s`)
      const wanted = Math.min(second, minutes * 60)
      assert.ok(Math.abs(seconds - wanted) <= Math.max(10, minutes * 10), `${seconds} s are counted for ${wanted} s`)
    }
  }
  assert.ok(inTwoHours > 0)
  assert.equal(most, inTwoHours)
})

test('more clusters than there are rows for leave no more in memory, and their numbers stay within the errors', () => {
  const windows = new TopWindows(0)
  const traffic = new Traffic()
  const clusters = 4000
  for (let slot = 1; slot <= 2; slot++) {
    for (let i = 0; i < clusters; i++) traffic.count(request({ user: `u${i}`, cluster: `c${i}` }))
    windows.add(slot * 10_000, [traffic.take()])
  }
  assert.ok(windows.rows() <= 2 * 7 * (2048 + 6 * 64), `${windows.rows()} rows`)
  const last = windows.sum(0, 1, [`c${clusters - 1}`], 20_000)
  assert.ok((last.sketch.names.length === 0 ? (last.sketch.missing[REQUESTS] ?? 0) : 2) >= 2)
})

test('the sum over replicas is what one gateway would have counted', () => {
  const whole = reportOf(sampleTraffic(), { limit: 1000 })
  const sum = sumOfReports({ ...DEFAULT_QUERY, limit: 1 }, [whole, whole])
  assert.equal(sum.rows.length, 1)
  assert.deepEqual(
    { ...sum.rows[0], error: undefined },
    {
      name: 'ann',
      requests: 8,
      refused: 2,
      bytes: 2032,
      listedBytes: 2020,
      upstreamSeconds: 0.03,
      latencySeconds: 0.0175,
      timedRequests: 8,
      error: undefined,
    },
  )
  assert.equal(sum.others.requests, 4, 'the one without a row')
  assert.equal(sum.total.requests, 12)
})

test('what is wrong with a query is said with what may be asked for', () => {
  const read = (text: string): unknown => {
    const parameters = new URLSearchParams(text)
    return readTopQuery(parameters)
  }
  assert.deepEqual(read(''), DEFAULT_QUERY)
  assert.deepEqual(read('by=address&sort=listed-bytes&minutes=60&limit=5&cluster=prod'), {
    by: 'address',
    sort: 'listed-bytes',
    minutes: 60,
    limit: 5,
    cluster: 'prod',
    choice: undefined,
  })
  const choice = { names: [], selector: undefined, all: false, except: [] }
  for (const [text, chosen] of [
    ['cluster=a&cluster=b-*', { ...choice, names: ['a', 'b-*'] }],
    ['cluster=a*', { ...choice, names: ['a*'] }],
    ['selector=region%3Deu', { ...choice, selector: 'region=eu' }],
  ] as const) {
    assert.deepEqual(read(text), { ...DEFAULT_QUERY, choice: chosen }, text)
  }
  const many = Array.from({ length: 33 }, (_, i) => `cluster=c${i}`).join('&')
  for (const text of [
    'by=pod',
    'sort=size',
    'minutes=2',
    'limit=0',
    'limit=1001',
    'limit=x',
    'by=',
    'minutes=1.0',
    many,
    'selector=',
    'selector=a%3D%3D%3D',
    'cluster=a&selector=b',
    'cluster=a&cluster=a',
  ]) {
    assert.ok('problem' in Object(read(text)), text)
  }
})
