// The dashboard's view of several replicas, merged from their reports.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { ProtectorRow } from '../../../gateway/api/pod-protection-in-force.ts'
import type { CachedRow, EndpointRow, LimitRow } from '../../../insight/api/cluster-page.ts'
import type { Change, DegradeInForce } from '../../../insight/api/overview.ts'
import {
  type ClusterPart,
  type OverviewPart,
  PART_FORMAT,
  type SeriesPart,
  type TilePart,
} from '../../../insight/api/parts.ts'
import { readTileChoice } from '../../../insight/core/dashboard/choose-tiles.ts'
import { addDurations, durationsOf, quantileOf } from '../../../insight/core/dashboard/merge/durations.ts'
import { mergeChanges } from '../../../insight/core/dashboard/merge/merge-changes.ts'
import { mergeClusterPages } from '../../../insight/core/dashboard/merge/merge-cluster.ts'
import { mergeOverviews } from '../../../insight/core/dashboard/merge/merge-overview.ts'
import { mergeSeries } from '../../../insight/core/dashboard/merge/merge-series.ts'
import { mergeTile } from '../../../insight/core/dashboard/merge/merge-tile.ts'
import { isSome, type Parts } from './merge.ts'

const BOUNDS = Float64Array.of(0.01, 0.1, 1)
const ALL = readTileChoice(new URLSearchParams())

function series(part: Partial<SeriesPart> = {}): SeriesPart {
  return { endsAt: 0, stepSeconds: 10, requests: [], errors: [], refused: [], durations: [], ...part }
}

function tile(part: Partial<TilePart> = {}): TilePart {
  return {
    name: 'prod',
    labels: {},
    requestsPerSecond: 0,
    errorsPerSecond: 0,
    refusedPerSecond: 0,
    durations: [],
    inFlight: 0,
    watches: 0,
    endpoints: { up: 1, all: 1 },
    degrade: null,
    credentialFault: '',
    spark: [],
    ...part,
  }
}

/** Parts of replicas a, b, c. */
function of<T>(...parts: readonly T[]): Parts<T> {
  const all = parts.map((part, i) => ({ replica: 'abc'.charAt(i), part }))
  assert.ok(isSome(all))
  return all
}

describe('durations', () => {
  test('buckets are added before the quantile is computed: the mean of two quantiles is the quantile of neither', () => {
    const fast = durationsOf(Float64Array.of(99, 0, 0), 99)
    const slow = durationsOf(Float64Array.of(0, 0, 1), 1)
    assert.deepEqual(
      [fast, slow],
      [
        [0, 99],
        [2, 1],
      ],
    )
    const sum = addDurations([fast, slow, []])
    assert.deepEqual(sum, [0, 99, 2, 1])
    assert.equal(quantileOf(0.99, sum, BOUNDS), 10)
    assert.equal(quantileOf(0.99, fast, BOUNDS), 9.9)
    assert.equal(quantileOf(0.99, slow, BOUNDS), 991)
  })

  test('what takes longer than the last bound is counted, and nothing has no quantile', () => {
    assert.deepEqual(durationsOf(Float64Array.of(1, 0, 0), 3), [0, 1, 3, 2])
    assert.equal(quantileOf(0.99, [0, 1, 3, 2], BOUNDS), 1000)
    assert.deepEqual(durationsOf(Float64Array.of(0, 0, 0), 0), [])
    assert.equal(quantileOf(0.5, addDurations([[], []]), BOUNDS), null)
  })
})

describe('lines of time', () => {
  for (const [what, parts, endsAt, requests] of [
    ['none', [series()], 0, []],
    ['one', [series({ endsAt: 50_000, requests: [1, 2] })], 50_000, [1, 2]],
    [
      'samples less than a step apart belong together',
      [series({ endsAt: 50_000, requests: [1, 2] }), series({ endsAt: 41_000, requests: [10, 20] })],
      50_000,
      [11, 22],
    ],
    [
      'a replica that has stopped to sample is missing at the end',
      [series({ endsAt: 50_000, requests: [1, 2, 3] }), series({ endsAt: 30_000, requests: [10] })],
      50_000,
      [11, 2, 3],
    ],
    [
      'one that has started later is missing at the beginning',
      [series({ endsAt: 50_000, requests: [5] }), series({ endsAt: 50_000, requests: [1, 2, 3] })],
      50_000,
      [1, 2, 8],
    ],
    ['one that has no sample yet', [series(), series({ endsAt: 50_000, requests: [1, 2, 3] })], 50_000, [1, 2, 3]],
  ] as const) {
    test(what, () => {
      const merged = mergeSeries(of(...parts), BOUNDS)
      assert.deepEqual([merged.endsAt, merged.requests], [endsAt, requests])
      assert.equal(merged.p99.length, requests.length)
    })
  }

  test('each step has the quantile of all its requests', () => {
    const a = series({ endsAt: 1, requests: [1, 1], durations: [[0, 99], []] })
    const b = series({ endsAt: 1, requests: [1, 1], durations: [[2, 1], []] })
    assert.deepEqual(mergeSeries(of(a, b), BOUNDS).p99, [10, null])
  })
})

describe('tiles', () => {
  test('rates are summed, shares are those of the sums', () => {
    const merged = mergeTile(
      of(
        tile({ requestsPerSecond: 90, errorsPerSecond: 9, inFlight: 3, watches: 2, durations: [0, 99], spark: [1, 2] }),
        tile({ requestsPerSecond: 10, refusedPerSecond: 8, inFlight: 1, watches: 5, durations: [2, 1], spark: [7] }),
      ),
      BOUNDS,
    )
    assert.deepEqual(merged, {
      name: 'prod',
      group: '',
      requestsPerSecond: 100,
      errorRatio: 0.09,
      refusedRatio: 0.08,
      p50: 5.05,
      p99: 10,
      inFlight: 4,
      watches: 7,
      endpoints: { up: 1, all: 1 },
      degrade: null,
      troubles: ['errors', 'refused'],
      spark: [1, 9],
    })
  })

  test('endpoints are those of the replica that reaches fewest, and its trouble is that of the cluster', () => {
    const merged = mergeTile(of(tile({ endpoints: { up: 2, all: 2 } }), tile({ endpoints: { up: 0, all: 2 } })), BOUNDS)
    assert.deepEqual([merged.endpoints, merged.troubles], [{ up: 0, all: 2 }, ['down']])
    const refused = mergeTile(of(tile(), tile({ credentialFault: '401' })), BOUNDS)
    assert.deepEqual(refused.troubles, ['credentials'])
  })

  const ReadOnly: DegradeInForce = { mode: 'ReadOnly', reason: 'r', by: 'eve', since: 1, expiresAt: 0, shadow: false }
  for (const [what, modes, expected] of [
    ['at all replicas', [ReadOnly, ReadOnly], ReadOnly],
    ['at one of them, as a switch on its machine', [null, ReadOnly], { ...ReadOnly, replicas: ['b'] }],
    [
      'another one elsewhere',
      [{ ...ReadOnly, mode: 'Freeze' }, ReadOnly],
      { ...ReadOnly, mode: 'Freeze', replicas: ['a'] },
    ],
    ['nowhere', [null, null], null],
  ] as const) {
    test(`a switch ${what}`, () => {
      assert.deepEqual(mergeTile(of(...modes.map((degrade) => tile({ degrade }))), BOUNDS).degrade, expected)
    })
  }
})

describe('changes', () => {
  const down = (at: number, text = 'e1 is down'): Change => ({
    at,
    kind: 'endpoint',
    cluster: 'prod',
    severity: 'bad',
    text,
    by: '',
  })
  for (const [what, parts, expected] of [
    ['noticed by both: once, with the time of the first', [[down(5_000)], [down(2_000)]], [down(2_000)]],
    ['noticed by one: it is named', [[], [down(2_000)]], [{ ...down(2_000), replicas: ['b'] }]],
    [
      'what flaps stays as often as it was',
      [
        [down(3_000), down(1_000)],
        [down(3_500), down(1_500)],
      ],
      [down(3_000), down(1_000)],
    ],
    [
      'much later it is another one',
      [[down(1_000)], [down(60_000)]],
      [
        { ...down(60_000), replicas: ['b'] },
        { ...down(1_000), replicas: ['a'] },
      ],
    ],
    [
      'no user or credential is named when there is only one replica',
      [[down(9_000, 'x'), down(1_000)]],
      [down(9_000, 'x'), down(1_000)],
    ],
    ['an Event is the same for all', [[{ ...down(1), kind: 'event' }], []], [{ ...down(1), kind: 'event' }]],
  ] as const) {
    test(what, () => assert.deepEqual(mergeChanges(of<readonly Change[]>(...parts)), expected))
  }
})

describe('the overview', () => {
  function overview(part: Partial<OverviewPart> = {}): OverviewPart {
    return {
      format: PART_FORMAT,
      sampledAt: 0,
      version: '1',
      totals: {
        requestsPerSecond: 1.5,
        errorsPerSecond: 0,
        refusedPerSecond: 0.5,
        inFlight: 2,
        watches: 3,
        series: series(),
      },
      tiles: [],
      changes: [],
      refusals: [],
      certificates: [],
      problems: [],
      omitted: {},
      ...part,
    }
  }
  const refusal = { cluster: 'prod', reason: 'rate-limited', rule: 'reads', code: 429, perSecond: 1, count: 10 }
  const certificate = { cluster: 'prod', certificate: 'serving', endsAt: 5 }
  const problem = { cluster: 'prod', severity: 'error' as const, message: 'm' }

  test('totals are sums, lists have no doubles, and who is missing is named', () => {
    const merged = mergeOverviews(
      of(
        overview({
          sampledAt: 7,
          tiles: [tile({ name: 'both' }), tile({ name: 'first' })],
          refusals: [refusal, { ...refusal, reason: 'policy-denied', count: 15 }],
          certificates: [certificate],
          problems: [problem],
        }),
        overview({
          sampledAt: 9,
          tiles: [tile({ name: 'both', endpoints: { up: 0, all: 1 } })],
          refusals: [{ ...refusal, count: 6 }],
          certificates: [certificate, { ...certificate, cluster: '', endsAt: 1 }],
          problems: [problem, { ...problem, message: 'other' }],
        }),
      ),
      ['z', 'y'],
      ALL,
      BOUNDS,
    )
    const { totals, clusters, refusals, certificates, problems, replicas, missing, sampledAt } = merged
    assert.deepEqual([replicas, missing, sampledAt], [['a', 'b'], ['y', 'z'], 9])
    const { series: _, ...sums } = totals
    assert.deepEqual(sums, {
      clusters: 2,
      hurting: 1,
      switched: 0,
      requestsPerSecond: 3,
      errorsPerSecond: 0,
      refusedPerSecond: 1,
      inFlight: 4,
      watches: 6,
    })
    assert.deepEqual(
      clusters.map(({ name }) => name),
      ['both', 'first'],
    )
    assert.deepEqual(
      refusals.map(({ reason, count, perSecond }) => [reason, count, perSecond]),
      [
        ['rate-limited', 16, 2],
        ['policy-denied', 15, 1],
      ],
    )
    assert.deepEqual(
      certificates.map(({ endsAt }) => endsAt),
      [1, 5],
    )
    assert.deepEqual(
      problems.map(({ message }) => message),
      ['m', 'other'],
    )
  })

  test('what is not shown is counted, also what a replica has left out', () => {
    const problems = Array.from({ length: 60 }, (_, i) => ({ ...problem, message: `${i}` }))
    const { omitted, problems: shown } = mergeOverviews(
      of(overview({ problems, omitted: { problems: 4 } }), overview({ problems, omitted: { problems: 3 } })),
      [],
      ALL,
      BOUNDS,
    )
    assert.deepEqual([shown.length, omitted], [50, { problems: 14 }])
  })
})

describe('a cluster', () => {
  const endpoint: EndpointRow = {
    url: 'https://e1',
    state: 'up',
    message: '',
    inFlight: 1,
    requestsPerSecond: 5,
    errorsPerSecond: 0,
    weight: 1,
  }
  const limit: LimitRow = {
    index: 0,
    change: null,
    name: 'reads',
    kind: 'maxRequestsInflight',
    perUser: false,
    shadow: false,
    size: '10 at once',
    shared: null,
    fill: 0.2,
    inFlight: 2,
    watches: 0,
    users: 0,
    admittedPerSecond: 5,
    rejectedPerSecond: 1,
  }
  const row: ProtectorRow = {
    namespace: 'ns',
    name: 'web',
    minAvailable: 2,
    available: 3,
    pending: 0,
    mayGo: 1,
    stuck: [],
    stuckCount: 0,
    fault: '',
  }
  const pane = { cell: 'c1', shadow: false, state: 'Judging', message: '', protectors: [row], omitted: 0 }
  function part(of: Partial<ClusterPart> = {}): ClusterPart {
    return {
      sampledAt: 1,
      version: '1',
      tile: tile(),
      series: series(),
      hosts: ['prod.example'],
      endpoints: [endpoint],
      policies: [],
      limits: [limit],
      refusals: [],
      protection: null,
      cached: [],
      certificates: [{ certificate: 'serving', endsAt: 5 }],
      problems: [],
      changes: [],
      ...of,
    }
  }
  const merged = (...parts: readonly ClusterPart[]) => {
    const page = mergeClusterPages(of(...parts), [], BOUNDS)
    assert.ok(page !== undefined)
    return page
  }

  test('no replica knows it', () => assert.equal(mergeClusterPages([], ['b'], BOUNDS), undefined))

  test('an endpoint has the state of the replica that sees it worst, which is named', () => {
    const down = { ...endpoint, state: 'down' as const, message: 'connection refused', requestsPerSecond: 0 }
    const [row] = merged(part(), part({ endpoints: [down] })).endpoints
    assert.deepEqual(row, { ...down, message: 'b: connection refused', inFlight: 2, requestsPerSecond: 5 })
    const [same] = merged(part({ endpoints: [down] }), part({ endpoints: [down] })).endpoints
    assert.equal(same?.message, 'connection refused')
  })

  for (const [what, rows, fill, size] of [
    ['one replica', [limit], 0.2, '10 at once'],
    [
      'local: the fullest counts',
      [limit, { ...limit, fill: 0.9, inFlight: 9 }],
      0.9,
      '10 at once (each of 2 replicas)',
    ],
    [
      'shared: what all use of it counts as well',
      [
        { ...limit, shared: 12 },
        { ...limit, fill: 0.9, inFlight: 9, shared: 12 },
      ],
      0.917,
      '10 at once (each of 2 replicas)',
    ],
    [
      'shared rate: what all have admitted',
      [
        { ...limit, kind: 'tokenBucket', shared: 10 },
        { ...limit, kind: 'tokenBucket', shared: 10 },
      ],
      1,
      '10 at once (each of 2 replicas)',
    ],
    [
      'for each user: nothing to fill',
      [
        { ...limit, fill: null },
        { ...limit, fill: null },
      ],
      null,
      '10 at once (each of 2 replicas)',
    ],
  ] as const) {
    test(`fill of a limit, ${what}`, () => {
      const [row] = merged(...rows.map((one) => part({ limits: [one] }))).limits
      assert.deepEqual([row?.fill, row?.size], [fill, size])
      assert.equal(row?.rejectedPerSecond, rows.length)
    })
  }

  test('protection is as good as where it is worst, and protectors are counted once', () => {
    const broken = { ...pane, state: 'Broken', message: 'no API server' }
    const tight = { ...row, mayGo: 0, available: 2, stuck: ['web-0'], stuckCount: 1 }
    const { protection } = merged(part({ protection: pane }), part({ protection: { ...broken, protectors: [tight] } }))
    assert.deepEqual([protection?.state, protection?.message], ['Broken', 'b: no API server'])
    assert.deepEqual(protection?.protectors, [tight])
    assert.equal(merged(part(), part()).protection, null)
    assert.equal(merged(part({ protection: pane }), part({ protection: pane })).protection?.message, '')
  })

  test('a cached resource is as the replica has it that is worst off; objects count once, all else is summed', () => {
    const pods: CachedRow = {
      resource: 'pods',
      version: 'v1',
      state: 'Serving',
      message: '',
      objects: 10,
      bytes: 100,
      ageSeconds: 3,
      hits: 7,
      passes: [{ reason: 'encoding', count: 2 }],
    }
    const stale: CachedRow = {
      ...pods,
      state: 'Stale',
      message: 'no answer',
      ageSeconds: 40,
      passes: [
        { reason: 'stale', count: 5 },
        { reason: 'encoding', count: 1 },
      ],
    }
    assert.deepEqual(merged(part({ cached: [pods] }), part({ cached: [stale] })).cached, [
      {
        ...stale,
        message: 'b: no answer',
        bytes: 200,
        hits: 14,
        passes: [
          { reason: 'stale', count: 5 },
          { reason: 'encoding', count: 3 },
        ],
      },
    ])
    assert.equal(merged(part({ cached: [pods] }), part({ cached: [pods] })).cached[0]?.message, '')
    assert.deepEqual(merged(part()).cached, [])
  })

  test('certificates have no doubles, the names are those of the asked one', () => {
    const page = merged(part(), part({ hosts: ['x'], certificates: [{ certificate: 'serving', endsAt: 6 }] }), part())
    assert.deepEqual(
      page.certificates.map(({ endsAt }) => endsAt),
      [5, 6],
    )
    assert.deepEqual([page.hosts, page.replicas], [['prod.example'], ['a', 'b', 'c']])
  })
})
