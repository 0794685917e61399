// The lines of `portcullis top` about reads that the gateway answers itself.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { CachedResourceInForce } from '../../../gateway/api/upstream-cluster/read-cache/read-cache-in-force.ts'
import { answeredLine, answeredReads, isAnsweredReads, mostAnswered, sumOfAnswered } from './answered-reads.ts'
import { DEFAULT_QUERY } from './query.ts'
import { sumOfReports, type TopReport } from './report.ts'
import { isTopAnswer, topLines } from './top-lines.ts'

const PODS: CachedResourceInForce = {
  resource: 'pods',
  version: 'v1',
  state: 'Serving',
  sinceMs: 0,
  message: '',
  objects: 30,
  bytes: 2048,
  ageMs: 2_600,
  hits: 95,
  passes: { encoding: 3, consistent: 2 },
}
const LOADING: CachedResourceInForce = {
  ...PODS,
  state: 'Loading',
  objects: 0,
  bytes: 0,
  ageMs: undefined,
  hits: 0,
  passes: {},
}
const bytesText = (bytes: number): string => `${bytes}B`

test('a line for each cluster: sums of its resources, the oldest age, and what is wrong', () => {
  const pods = answeredReads('prod', [PODS])
  assert.ok(pods)
  assert.equal(
    answeredLine(pods, bytesText),
    'read cache of prod: 95 hits of 100 reads (95 %), 30 objects, 2048B, 3s old',
  )
  const two = answeredReads('prod', [PODS, { ...LOADING, state: 'Refused' }])
  assert.ok(two)
  assert.match(answeredLine(two, bytesText), / 3s old; Refused: kubectl describe uc prod says why$/)
  const none = answeredReads('prod', [LOADING])
  assert.ok(none)
  assert.match(answeredLine(none, bytesText), /^read cache of prod: 0 hits of 0 reads, 0 objects, 0B; Loading: /)
  assert.equal(answeredReads('prod', []), undefined)
})

test('replicas are summed; each keeps the same objects', () => {
  const one = answeredReads('prod', [PODS])
  const other = answeredReads('prod', [{ ...PODS, state: 'Stale', ageMs: 60_000, hits: 5 }])
  const small = answeredReads('staging', [LOADING])
  assert.ok(one && other && small)
  const [small_, prod] = sumOfAnswered([small, one, other])
  assert.deepEqual(prod, {
    cluster: 'prod',
    state: 'Stale',
    hits: 100,
    passed: 10,
    objects: 30,
    bytes: 4096,
    ageSeconds: 60,
  })
  assert.deepEqual(
    mostAnswered([small_, prod].flatMap((each) => each ?? [])).map(({ cluster }) => cluster),
    ['prod', 'staging'],
  )
})

test('they are in the answer and among the lines; a malformed one is refused', () => {
  const numbers = { requests: 0, refused: 0, bytes: 0, listedBytes: 0, upstreamSeconds: 0 }
  const total = { ...numbers, latencySeconds: 0, timedRequests: 0 }
  const { by, sort, minutes, cluster } = DEFAULT_QUERY
  const report: TopReport = { by, sort, minutes, cluster, seconds: 60, total, rows: [], others: numbers }
  const reads = answeredReads('pr\u001bod', [PODS]) ?? assert.fail()
  const sum = sumOfReports(DEFAULT_QUERY, [{ ...report, answered: [reads] }, report])
  assert.deepEqual(sum.answered, [reads])
  const [, line = ''] = topLines(sum)
  assert.match(line, /^read cache of pr.*od: 95 hits/)
  assert.ok(!line.includes('\u001b'))
  assert.equal(topLines(report)[1], '')
  assert.ok(isTopAnswer(JSON.parse(JSON.stringify(sum))))
  for (const wrong of [{ ...reads, state: 'Odd' }, { ...reads, hits: '1' }, { ...reads, ageSeconds: undefined }, 'x'])
    assert.equal(isAnsweredReads([wrong]), false, JSON.stringify(wrong))
  assert.equal(isTopAnswer({ ...sum, answered: {} }), false)
})
