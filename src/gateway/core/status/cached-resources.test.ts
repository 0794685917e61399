// spec.cache in the status: when it is written again, what replicas make together, and what the condition says.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { CachedResourceInForce, CacheState } from '../../api/upstream-cluster/read-cache/read-cache-in-force.ts'
import type { CachedResourceStatus, GatewayStatus } from '../../api/upstream-cluster/status.ts'
import { CACHE_NUMBERS_MS, mergedCache, readCacheVerdict, shownCache } from './cached-resources.ts'

const PODS: CachedResourceInForce = {
  resource: 'pods',
  version: 'v1',
  state: 'Serving',
  sinceMs: Date.UTC(2026, 0, 1),
  message: '',
  objects: 1234,
  bytes: 3 * 1024 * 1024,
  ageMs: 12_000,
  hits: 56_789,
  passes: { consistent: 7, encoding: 123 },
}

test('numbers are rounded, and written twice a minute at most; a new state is written at once', () => {
  const first = shownCache([PODS], undefined, 0)
  assert.deepEqual(first?.resources, [
    {
      resource: 'pods',
      version: 'v1',
      state: 'Serving',
      since: '2026-01-01T00:00:00Z',
      objects: 1200,
      bytes: '3Mi',
      age: '<2m',
      hits: 56_000,
      passes: { consistent: 7, encoding: 120 },
    },
  ])
  const busy = { ...PODS, hits: 99_000 }
  assert.equal(shownCache([busy], first, CACHE_NUMBERS_MS - 1), first)
  assert.equal(shownCache([{ ...PODS, hits: 56_999, ageMs: 119_999 }], first, 10 * CACHE_NUMBERS_MS), first)
  const later = shownCache([busy], first, CACHE_NUMBERS_MS)
  assert.deepEqual([later?.resources[0]?.hits, later?.atMs], [99_000, CACHE_NUMBERS_MS])
  const stale = shownCache([{ ...busy, state: 'Stale', message: 'away' }], later, CACHE_NUMBERS_MS + 1)
  assert.deepEqual([stale?.resources[0]?.state, stale?.resources[0]?.message], ['Stale', 'away'])
  assert.equal(shownCache([], stale, CACHE_NUMBERS_MS + 2), undefined)
})

test('a busy cache is written ever less often', () => {
  let shown = shownCache([PODS], undefined, 0)
  let writes = 0
  const day = 24 * 60 * 60 * 1000
  for (let nowMs = 0; nowMs < day; nowMs += 1_000) {
    const next = shownCache([{ ...PODS, hits: nowMs, ageMs: nowMs % 60_000 }], shown, nowMs)
    if (next !== shown) writes++
    shown = next
  }
  assert.ok(writes < 300, `${writes} writes a day with a thousand hits a second`)
})

test('an age doubles with each step', () => {
  const ages = [0, 119_999, 120_000, 239_999, 240_000, 3_600_000].map(
    (ageMs) => shownCache([{ ...PODS, ageMs }], undefined, 0)?.resources[0]?.age,
  )
  assert.deepEqual(ages, ['<2m', '<2m', '>2m', '>2m', '>4m', '>32m'])
  assert.equal(shownCache([{ ...PODS, ageMs: undefined }], undefined, 0)?.resources[0]?.age, undefined)
})

function entry(resource: string, state: CacheState, more: Partial<CachedResourceStatus> = {}): CachedResourceStatus {
  const numbers = { objects: 10, bytes: '1.5Mi', hits: 70, passes: { encoding: 60 } }
  return { resource, version: 'v1', state, since: '2026-01-01T00:00:00Z', ...numbers, ...more }
}

function gateway(name: string, ...cache: readonly CachedResourceStatus[]): GatewayStatus {
  return { name, threads: 2, threadsApplied: 2, observedGeneration: 1, appliedAt: '2026-01-01T00:00:00Z', cache }
}

test('replicas together: the worst state, the oldest age, sums; each keeps the same objects', () => {
  const merged = mergedCache(
    ['pods', 'nodes'],
    [
      gateway('a', entry('pods', 'Serving', { age: '<2m' }), entry('nodes', 'Loading')),
      gateway('b', entry('pods', 'Stale', { age: '>4m', message: 'away' })),
    ],
  )
  const { resources = [], ...sums } = merged ?? {}
  assert.deepEqual(sums, { serving: '0/2', objects: 20, bytes: '4.5Mi', age: '>4m', hits: 210, passed: 180 })
  assert.deepEqual(resources[0], {
    ...entry('pods', 'Stale', { message: 'away', age: '>4m' }),
    bytes: '3Mi',
    hits: 140,
    passes: { encoding: 120 },
  })
  assert.equal(mergedCache(['pods'], [gateway('a'), gateway('b', entry('nodes', 'Serving'))]), undefined)
})

test('the condition names what is wrong, and of which replica if not of all', () => {
  const both = ['pods', 'widgets.example.com']
  const good = entry('pods', 'Serving')
  const missing = entry('widgets.example.com', 'UnknownResource', { message: 'spec.cache[1]: the cluster has none' })
  const said = (...gateways: readonly GatewayStatus[]): string => {
    const { status, reason, message } = readCacheVerdict(both, gateways)
    return `${status} ${reason}: ${message}`
  }
  assert.equal(
    said(gateway('a', good, entry('widgets.example.com', 'Serving'))),
    'True Serving: lists and watches of pods, widgets.example.com are answered',
  )
  assert.equal(said(gateway('a', good)), 'Unknown Loading: being read: widgets.example.com')
  assert.equal(said(), 'Unknown Loading: being read: pods, widgets.example.com')
  assert.equal(said(gateway('a', good, missing)), 'False UnknownResource: spec.cache[1]: the cluster has none')
  const large = entry('pods', 'TooLarge', { message: 'too much' })
  assert.equal(
    said(gateway('a', good, missing), gateway('b', large, missing)),
    'False UnknownResource: spec.cache[1]: the cluster has none. b: too much',
  )
  const before = entry('secrets', 'Refused', { message: 'not named any more' })
  assert.equal(readCacheVerdict(['pods'], [gateway('a', good, before)]).status, 'True')
})
