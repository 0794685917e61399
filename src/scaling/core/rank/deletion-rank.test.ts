// The deletion rank compared with kube-controller-manager's own tables, and with a plain copy of its sort on random pods.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import type { JsonObject } from '../../../kit/api/json/json-object.ts'
import { ageBucket, ageOrder, type ComparisonWindow } from './age-bucket.ts'
import { candidate, comparePods, type RankConditions, RULES } from './compare-pods.ts'
import { components, type DeletionRank, MAX_DELETIONS_AT_ONCE, rankDeletions } from './deletion-rank.ts'
import {
  type ReplicaSetFacts,
  ranked,
  rankReplicaSet,
  relatedPods,
  replicaSetFacts,
  siblings,
} from './replica-set-pods.ts'
import { isActive, parseDeletionCost, type ScalePod, scalePod } from './scale-pod.ts'

// biome-ignore lint/suspicious/noExplicitAny: a table
type Json = any
const TABLE: Json = JSON.parse(
  readFileSync(join(import.meta.dirname, '../../../../test/data/replicaset-rank.json'), 'utf8'),
)
const NOW = Date.parse(TABLE.conventions.now)
const AT_NOW: RankConditions = { window: { fromMs: NOW, toMs: NOW } }

function names(verdicts: DeletionRank['certain']): string[] {
  return verdicts.map(({ pod }) => pod.name)
}

function goes({ certain, possible }: DeletionRank): number {
  return certain.length + possible.count
}

describe('tables of kube-controller-manager', () => {
  const rows = TABLE.TestSortingActivePodsWithRanks
  const podOf = (name: string): ScalePod => scalePod(rows.pods[name])
  const exactly = (rank: number): { low: number; high: number } => ({ low: rank, high: rank })

  for (const row of rows.equality) {
    test(`equal: ${row.p1} ${row.p2}`, () => {
      const a = candidate(podOf(row.p1), exactly(row.rank1), AT_NOW)
      const b = candidate(podOf(row.p2), exactly(row.rank2), AT_NOW)
      assert.equal(comparePods(a, b, AT_NOW).first, 'either')
      assert.equal(comparePods(b, a, AT_NOW).first, 'either')
    })
  }

  for (const row of rows.inequality) {
    test(`${row.lesser} (${row.lesserRank}) before ${row.greater} (${row.greaterRank})`, () => {
      const conditions = { ...AT_NOW, podDeletionCost: row.gates?.PodDeletionCost ?? true }
      const lesser = candidate(podOf(row.lesser), exactly(row.lesserRank), conditions)
      const greater = candidate(podOf(row.greater), exactly(row.greaterRank), conditions)
      const rule = RULES[row.decidingRule_derived - 1]
      assert.deepEqual(comparePods(lesser, greater, conditions), { first: 'a', rule })
      assert.deepEqual(comparePods(greater, lesser, conditions), { first: 'b', rule })
    })
  }

  test('TestSortingActivePods: without ranks, costs and logarithms', () => {
    const wanted: ScalePod[] = TABLE.TestSortingActivePods.wantOrder.map(scalePod)
    const conditions = { ...AT_NOW, podDeletionCost: false, logarithmicScaleDown: false }
    const candidates = wanted.toReversed().map((pod) => candidate(pod, exactly(0), conditions))
    const found = components(candidates, conditions).map((component) => component.map(({ pod }) => pod.name))
    assert.deepEqual(
      found,
      wanted.map(({ name }) => [name]),
    )
  })

  const deletions = TABLE.TestGetPodsToDelete
  for (const { name, pods, related = pods, diff, want, ranks_derived: ranks } of deletions.cases) {
    test(`TestGetPodsToDelete: ${name}`, () => {
      const read = (list: string[]): ScalePod[] => list.map((key) => scalePod(deletions.pods[key]))
      const candidates = ranked(read(pods), read(related), AT_NOW)
      assert.deepEqual(
        candidates.map(({ rank }) => rank.high),
        ranks,
      )
      const rank = rankDeletions(candidates, diff, AT_NOW)
      assert.equal(goes(rank), diff)
      const wanted: string[] = want.map((key: string) => deletions.pods[key].metadata.name)
      const certain = names(rank.certain)
      // Pods that differ only in their position in the list may be on either side.
      assert.deepEqual(certain, wanted.slice(0, certain.length))
      for (const one of wanted.slice(certain.length)) assert.ok(names(rank.possible.pods).includes(one), one)
    })
  }

  const objectOf = (name: string, owners: Json, selectors: Json, deleting: boolean): JsonObject => ({
    metadata: {
      name,
      uid: `uid-${name}`,
      ownerReferences: [{ uid: owners[name], controller: true }],
      ...(deleting && { deletionTimestamp: TABLE.conventions.now }),
    },
    spec: { selector: { matchLabels: selectors[name] ?? { rs: name } } },
  })
  const setsOf = (list: string[], owners: Json, selectors: Json = {}): ReplicaSetFacts[] =>
    list.map((text) => {
      const name = text.replace('(deleting)', '')
      return replicaSetFacts(objectOf(name, owners, selectors, text !== name))
    })
  const named = (list: readonly { name: string }[]): string[] => list.map(({ name }) => name)

  test('TestRelatedPodsLookup', () => {
    const { cases, owners, rsSelectors } = TABLE.TestRelatedPodsLookup
    for (const { name, rss, rs, pods, want } of cases) {
      const all = setsOf(rss, owners, rsSelectors)
      const target = all.find((one) => one.name === rs)
      assert.ok(target)
      const objects = Object.entries(pods).map(([pod, owner]) =>
        scalePod({ metadata: { name: pod, labels: rsSelectors[String(owner)] } }),
      )
      assert.deepEqual(named(relatedPods(siblings(target, all), objects)), want, name)
    }
  })

  test('TestGetReplicaSetsWithSameController', () => {
    const { cases, owners } = TABLE.TestGetReplicaSetsWithSameController
    for (const { name, rss, rs, want } of cases) {
      const all = setsOf(rss, owners)
      const target = all.find((one) => one.name === rs)
      assert.ok(target)
      assert.deepEqual(named(siblings(target, all)), want, name)
    }
    const [orphan] = setsOf(['rs1'], {})
    assert.ok(orphan)
    assert.deepEqual(siblings({ ...orphan, controllerUid: '' }, [orphan]), [], 'it is not even its own')
  })

  test('TestActivePodFiltering and TestCountTerminatingPods', () => {
    const read = (row: Json): ScalePod => {
      const { name = 'pod', phase, deleting } = row
      const metadata = { name, ...(deleting && { deletionTimestamp: TABLE.conventions.now }) }
      return scalePod({ metadata, status: { phase } })
    }
    const { pods, want } = TABLE.TestActivePodFiltering
    assert.deepEqual(named(pods.map(read).filter(isActive)), want)
    const counted: ScalePod[] = TABLE.TestCountTerminatingPods.pods.map(read)
    assert.equal(counted.filter(({ terminating }) => terminating).length, TABLE.TestCountTerminatingPods.want)
    assert.equal(counted.filter(isActive).length, 3)
  })

  test('TestControllerBurstReplicas: what goes beyond 500 is compared again', () => {
    assert.equal(TABLE.TestControllerBurstReplicas.productionBurst, MAX_DELETIONS_AT_ONCE)
    const pods = Array.from({ length: 1200 }, (_, at) => {
      return scalePod({
        metadata: { name: `pod-${at}`, annotations: { 'controller.kubernetes.io/pod-deletion-cost': `${at}` } },
      })
    })
    const rank = rankDeletions(ranked(pods, [], AT_NOW), 700, AT_NOW)
    assert.deepEqual([rank.certain.length, rank.possible.count, rank.possible.pods.length], [500, 200, 700])
    assert.equal(rank.possible.pods[0]?.decision.rule, 'LaterBatch')
    assert.deepEqual(names(rank.certain).slice(0, 2), ['pod-0', 'pod-1'])
  })

  for (const { value, cost, valid } of TABLE.deletionCostParsing_derived.cases) {
    test(`deletion cost ${JSON.stringify(value)}`, () => {
      assert.equal(parseDeletionCost(value ?? undefined), valid ? cost : undefined)
      const annotations = { 'controller.kubernetes.io/pod-deletion-cost': value }
      assert.equal(scalePod({ metadata: { name: 'pod', annotations } }).deletionCost, cost)
    })
  }
})

describe('ages', () => {
  test('a bucket ends at a power of two of nanoseconds', () => {
    for (let power = 1; power < 60; power++) {
      assert.equal(ageBucket(2 ** power), power)
      // Floating point can't represent the nanosecond below larger ones, and no clock is that accurate.
      assert.equal(ageBucket(2 ** power * (1 - 1e-9)), power - 1)
    }
    assert.deepEqual([ageBucket(0), ageBucket(-5)], [-1, -1])
  })

  test('the answer for a window is that of all its moments', () => {
    const ages = fc.integer({ min: -5_000, max: 40 * 3_600_000 })
    fc.assert(
      fc.property(
        ages,
        fc.integer({ min: 1, max: 10 * 3_600_000 }),
        fc.integer({ min: 0, max: 90_000 }),
        (a, d, span) => {
          const younger = NOW - a
          const older = younger - d
          const window: ComparisonWindow = { fromMs: NOW, toMs: NOW + span }
          const seen = new Set<boolean>()
          // Each edge that one of the two crosses, a moment later, and both ends.
          const edges: number[] = []
          for (let power = 0; power < 60; power++) {
            for (const age of [a, a + d]) edges.push(2 ** power / 1e6 - age)
          }
          const moments = [0, span, ...edges, ...edges.map((edge) => edge - 1e-3)]
          for (const moment of moments.filter((at) => at >= 0 && at <= span)) {
            seen.add(ageBucket((a + moment) * 1e6) === ageBucket((a + d + moment) * 1e6))
          }
          const wanted = seen.size === 2 ? 'Changing' : seen.has(true) ? 'ByUid' : 'ByAge'
          const found = ageOrder(younger, older, window)
          // If a window ends at an edge, floating point decides.
          const close = edges.some((at) => Math.abs(at) < 0.01 || Math.abs(at - span) < 0.01)
          assert.ok(found === wanted || (close && found === 'Changing'), `${found}, not ${wanted}`)
        },
      ),
      { numRuns: 2000 },
    )
  })
})

// ActivePodsWithRanks.Less again, transcribed from the Go source and without any window.
function goLess(pods: readonly ScalePod[], rank: readonly number[], i: number, j: number, nowMs: number): boolean {
  const a = pods[i] as ScalePod
  const b = pods[j] as ScalePod
  if (a.nodeName !== b.nodeName && (a.nodeName.length === 0 || b.nodeName.length === 0)) return a.nodeName.length === 0
  const ordinal = (phase: string): number => ['Pending', 'Unknown', 'Running'].indexOf(phase)
  if (Math.max(0, ordinal(a.phase)) !== Math.max(0, ordinal(b.phase))) {
    return Math.max(0, ordinal(a.phase)) < Math.max(0, ordinal(b.phase))
  }
  if (a.ready !== b.ready) return !a.ready
  if (a.deletionCost !== b.deletionCost) return a.deletionCost < b.deletionCost
  if (rank[i] !== rank[j]) return Number(rank[i]) > Number(rank[j])
  const byTime = (x: number, y: number): boolean => {
    if (x === 0 || y === 0) return x === 0
    const log = (time: number): number => (nowMs - time > 0 ? Math.floor(Math.log2((nowMs - time) * 1e6)) : -1)
    const difference = log(x) - log(y)
    return difference === 0 ? a.uid < b.uid : difference < 0
  }
  if (a.ready && b.ready && a.readySinceMs !== b.readySinceMs) return byTime(a.readySinceMs, b.readySinceMs)
  if (a.restarts !== b.restarts) return a.restarts > b.restarts
  if (a.sidecarRestarts !== b.sidecarRestarts) return a.sidecarRestarts > b.sidecarRestarts
  if (a.createdMs !== b.createdMs) return byTime(a.createdMs, b.createdMs)
  return false
}

type Swap = (i: number, j: number) => void

/** The three sorts that Go's pdqsort is made of: which one runs depends on the input. */
const SORTS: Readonly<Record<string, (length: number, less: (i: number, j: number) => boolean, swap: Swap) => void>> = {
  insertion: (length, less, swap) => {
    for (let i = 1; i < length; i++) for (let j = i; j > 0 && less(j, j - 1); j--) swap(j, j - 1)
  },
  quick: (length, less, swap) => {
    const sort = (low: number, high: number): void => {
      if (high - low < 2) return
      let store = low
      for (let i = low; i < high - 1; i++) if (less(i, high - 1)) swap(i, store++)
      swap(store, high - 1)
      sort(low, store)
      sort(store + 1, high)
    }
    sort(0, length)
  },
  heap: (length, less, swap) => {
    const sift = (root: number, end: number): void => {
      for (let child = 2 * root + 1; child < end; child = 2 * root + 1) {
        if (child + 1 < end && less(child, child + 1)) child++
        if (!less(root, child)) return
        swap(root, child)
        root = child
      }
    }
    for (let i = Math.floor(length / 2) - 1; i >= 0; i--) sift(i, length)
    for (let i = length - 1; i > 0; i--) {
      swap(0, i)
      sift(0, i)
    }
  },
}

function goSorted(pods: readonly ScalePod[], ranks: readonly number[], sort: string, nowMs: number): string[] {
  const list = [...pods]
  const rank = [...ranks]
  const swap: Swap = (i, j) => {
    ;[list[i], list[j]] = [list[j] as ScalePod, list[i] as ScalePod]
    ;[rank[i], rank[j]] = [rank[j] as number, rank[i] as number]
  }
  SORTS[sort]?.(list.length, (i, j) => goLess(list, rank, i, j, nowMs), swap)
  return list.map(({ name }) => name)
}

// Few values, so that rules often tie; whole seconds as in Kubernetes; ages around the edge of 2^43 ns (2.44 h).
const EDGE = 8_796
const seconds = fc.oneof(
  fc.integer({ min: 0, max: 4 }),
  fc.integer({ min: EDGE - 3, max: EDGE + 3 }),
  fc.integer({ min: -3, max: 90_000 }),
)
const somePod = fc.record({
  nodeName: fc.constantFrom('', 'n1', 'n2', 'n3', 'n3'),
  phase: fc.constantFrom('Pending', 'Running', 'Running', 'Running', 'Unknown'),
  ready: fc.oneof(fc.constant(true), fc.boolean()),
  deletionCost: fc.constantFrom(0, 0, 0, -5, 7),
  restarts: fc.constantFrom(0, 0, 1),
  sidecarRestarts: fc.constantFrom(0, 0, 1),
  readySinceMs: fc.oneof(
    { weight: 9, arbitrary: seconds.map((age) => NOW - age * 1000) },
    { weight: 1, arbitrary: fc.constant(0) },
  ),
  createdMs: seconds.map((age) => NOW - age * 1000),
})
const uids = fc.integer({ min: 0, max: 0xffffffff }).map((value) => value.toString(16).padStart(8, '0'))
const somePods = fc
  .tuple(
    fc.array(somePod, { minLength: 1, maxLength: 14 }),
    fc.uniqueArray(uids, { minLength: 14, maxLength: 14 }),
    // Pods rolled out together often differ little.
    fc.constantFrom('any', 'ready', 'twins'),
  )
  .map(([pods, ids, kind]): ScalePod[] => {
    return pods.map((pod, at) => ({
      ...pod,
      ...(kind !== 'any' && { nodeName: pod.nodeName || 'n1', phase: 'Running', ready: true, deletionCost: 0 }),
      ...(kind === 'twins' && { createdMs: NOW - EDGE * 1000, nodeName: `own-${at}` }),
      name: `pod-${at}`,
      uid: ids[at] ?? '',
      labels: {},
      controllerUid: 'rs',
      terminating: false,
    }))
  })

describe('random pods', () => {
  const settings = { numRuns: 1500 }

  test('certain and possible add up to what goes, and each pod has one verdict', () => {
    fc.assert(
      fc.property(somePods, fc.nat(15), fc.integer({ min: 0, max: 60_000 }), (pods, some, span) => {
        const count = Math.min(some, pods.length)
        const conditions = { window: { fromMs: NOW, toMs: NOW + span } }
        const { certain, possible, safe } = rankDeletions(ranked(pods, pods, conditions), count, conditions)
        assert.equal(certain.length + possible.count, count)
        assert.ok(possible.pods.length === 0 ? possible.count === 0 : possible.count < possible.pods.length)
        assert.ok(possible.pods.length === 0 || possible.count > 0)
        const every = [...names(certain), ...names(possible.pods), ...names(safe)]
        assert.deepEqual(every.sort(), pods.map(({ name }) => name).sort())
      }),
      settings,
    )
  })

  test('the order is total but for components: each pod of one is deleted before each pod of the next', () => {
    fc.assert(
      fc.property(somePods, (pods) => {
        const found = components(ranked(pods, pods, AT_NOW), AT_NOW)
        for (const [at, component] of found.entries()) {
          for (const a of component) {
            for (const b of found.slice(at + 1).flat()) {
              assert.equal(comparePods(a, b, AT_NOW).first, 'a')
              assert.equal(comparePods(b, a, AT_NOW).first, 'b')
            }
          }
          assert.ok(component.length === 1 || isOneCircle(component), 'it cannot be split')
        }
      }),
      settings,
    )
  })

  function isOneCircle(component: ReturnType<typeof components>[number]): boolean {
    return component.every((start) => {
      const reached = new Set([start])
      for (const one of reached) {
        for (const other of component) if (comparePods(other, one, AT_NOW).first !== 'a') reached.add(other)
      }
      return reached.size === component.length
    })
  }

  for (const sort of Object.keys(SORTS)) {
    test(`${sort} sort with the controller's comparison deletes nothing else, at any moment of the window`, () => {
      fc.assert(
        fc.property(
          somePods,
          fc.nat(15),
          fc.integer({ min: 0, max: 60_000 }),
          fc.nat(60_000),
          (pods, some, span, moment) => {
            const count = Math.min(some, pods.length - 1)
            const conditions = { window: { fromMs: NOW, toMs: NOW + span } }
            const candidates = ranked(pods, pods, conditions)
            const rank = rankDeletions(candidates, count, conditions)
            const ranks = candidates.map((one) => one.rank.high)
            const deleted = goSorted(pods, ranks, sort, NOW + Math.min(moment, span)).slice(0, count)
            for (const name of names(rank.certain)) assert.ok(deleted.includes(name), `${name} is certain and stays`)
            for (const name of names(rank.safe)) assert.ok(!deleted.includes(name), `${name} is safe and goes`)
          },
        ),
        settings,
      )
    })
  }
})

describe('what is undetermined says why', () => {
  const base = { nodeName: 'n', phase: 'Running', ready: true, deletionCost: 0, restarts: 0, sidecarRestarts: 0 }
  const pod = (name: string, more: Partial<ScalePod>): ScalePod => ({
    ...base,
    name,
    uid: name,
    labels: {},
    controllerUid: 'rs',
    terminating: false,
    readySinceMs: NOW - 3_600_000,
    createdMs: NOW - 3_600_000,
    ...more,
  })
  const reasons = (pods: ScalePod[], count: number, span = 0): string[] => {
    const conditions = { window: { fromMs: NOW, toMs: NOW + span } }
    return rankDeletions(ranked(pods, pods, conditions), count, conditions).possible.pods.map(
      ({ pod: { name }, decision: { rule, against } }) => `${name} ${rule} ${against?.pod.name}`,
    )
  }

  test('a tie', () => {
    assert.deepEqual(reasons([pod('a', {}), pod('b', {}), pod('c', { restarts: 1 })], 2), ['a Tie b', 'b Tie a'])
  })

  test('an age that crosses a power of two within the window', () => {
    const older = pod('a', { readySinceMs: NOW - (EDGE - 30) * 1000 })
    const younger = pod('b', { readySinceMs: NOW - (EDGE - 300) * 1000 })
    assert.deepEqual(reasons([older, younger], 1), [], 'by UID')
    assert.deepEqual(reasons([older, younger], 1, 60_000), ['a AgeBoundary b', 'b AgeBoundary a'])
  })

  test('a cycle: by UID where ready times differ, by restarts where they do not', () => {
    const first = NOW - 3_600_000
    const pods = [
      pod('a', { readySinceMs: first }),
      pod('b', { readySinceMs: first - 1000 }),
      pod('c', { readySinceMs: first, restarts: 1 }),
    ]
    assert.deepEqual(reasons(pods, 1), ['a Cycle c', 'b Cycle a', 'c Cycle b'])
  })

  test('siblings that shrink at the same time change how many pods share a node', () => {
    const set = (name: string): ReplicaSetFacts =>
      replicaSetFacts({
        metadata: { name, uid: name, ownerReferences: [{ uid: 'web', controller: true }] },
        spec: { selector: { matchLabels: { rs: name } } },
      })
    const [old, young] = [set('old'), set('young')]
    const of = (name: string, controllerUid: string, nodeName: string): ScalePod =>
      pod(name, { controllerUid, nodeName, labels: { rs: controllerUid } })
    const pods = [of('a', 'old', 'n1'), of('b', 'old', 'n2'), of('c', 'young', 'n1'), of('d', 'young', 'n3')]
    const alone = rankReplicaSet({ replicaSet: old, replicas: 1 }, [], [old, young], pods, AT_NOW)
    assert.deepEqual(names(alone.certain), ['a'], 'it shares its node with c')
    const others = [{ replicaSet: young, replicas: 1 }]
    const both = rankReplicaSet({ replicaSet: old, replicas: 1 }, others, [old, young], pods, AT_NOW)
    assert.deepEqual(
      both.possible.pods.map(({ decision }) => decision.rule),
      ['SiblingDeletions', 'SiblingDeletions'],
    )
  })
})
