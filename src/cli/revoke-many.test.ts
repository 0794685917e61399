// Revoking in several clusters, against objects in memory.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MemoryObjects } from '../../test/harness/objects/memory-objects.ts'
import { UPSTREAM_CLUSTERS } from '../gateway/api/upstream-cluster-kind.ts'
import { replicaLease } from '../gateway/core/status/gateways.ts'
import { metaMicroTime } from '../kit/core/text/meta-time.ts'
import { LEASES } from '../kube/api/kinds/lease-kind.ts'
import { statusError } from '../kube/api/status.ts'
import { revoke } from './revoke.ts'
import { type RevokeManyOptions, revokeMany } from './revoke-many.ts'

const NOW = Date.parse('2030-01-31T12:00:00Z')

function world(...names: string[]): MemoryObjects {
  const objects = new MemoryObjects()
  objects.put(LEASES, replicaLease('gw-1', 'portcullis-system', metaMicroTime(NOW)))
  for (const name of names) {
    // A status of generations to come: what is in force is another test's.
    const gateways = [{ name: 'gw-1', threads: 1, threadsApplied: 1, observedGeneration: 99 }]
    objects.put(UPSTREAM_CLUSTERS, { metadata: { name, labels: { region: 'eu' } }, spec: {}, status: { gateways } })
  }
  return objects
}

async function run(objects: MemoryObjects, options: Partial<RevokeManyOptions>): Promise<[number, string, string]> {
  const printed: string[] = []
  const told: string[] = []
  let now = NOW
  const code = await revokeMany({
    clusters: [],
    client: objects,
    now: () => (now += 5),
    pollMs: 1,
    timeout: '100ms',
    user: 'mallory',
    yes: true,
    out: (text) => void printed.push(text),
    err: (text) => void told.push(text),
    ...options,
  })
  return [code, printed.join(''), told.join('')]
}

function revokedIn(objects: MemoryObjects): string[] {
  return objects.all(UPSTREAM_CLUSTERS).flatMap(({ metadata, spec }) => {
    const { authentication } = spec as { authentication?: { revoked: unknown[] } }
    return (authentication?.revoked.length ?? 0) === 1 ? [(metadata as { name: string }).name] : []
  })
}

test('by a selector: a plan, a line for each, and nothing twice', async () => {
  const objects = world('a', 'b', 'c')
  assert.deepEqual(await run(objects, { clusters: ['a', 'b'], waveSize: '2', reason: 'INC-1' }), [
    0,
    [
      'plan: revoke user "mallory": 2 of 3 UpstreamClusters, 2 to change',
      '  FROM      TO       CLUSTERS  NAMES',
      '  accepted  revoked  2         a, b',
      '  all at once',
      'a: revoked on 1 of 1 replica',
      'b: revoked on 1 of 1 replica',
      '2 clusters: 2 revoked',
      '',
    ].join('\n'),
    '',
  ])
  const [code, out] = await run(objects, { selector: 'region=eu' })
  assert.equal(code, 0)
  assert.match(out, /1 to change\n.*\n.* c\n {2}unchanged: a, b: revoked already\n/)
  assert.deepEqual(revokedIn(objects), ['a', 'b', 'c'])
})

test('of a federated cluster the plan says in which members the user is not revoked', async () => {
  const objects = world('a', 'b')
  const object = { metadata: { name: 'all' }, spec: { members: [{ name: 'a' }, { name: 'b' }] } }
  objects.put(UPSTREAM_CLUSTERS, object)
  const [, out] = await run(objects, { clusters: ['all', 'a'], dryRun: true })
  assert.match(out, /\n {2}note: all: only requests to all are meant, and its members are .*: b\n/)
  const [, whole] = await run(objects, { all: true, dryRun: true })
  assert.ok(!whole.includes('note'))
})

test('what does not exist, or is refused, is named; the rest is not touched', async () => {
  const objects = world('a', 'b', 'c')
  const [gone, , err] = await run(objects, { clusters: ['a', 'x'] })
  assert.deepEqual([gone, err.split(';')[0]], [1, 'error: there is no UpstreamCluster "x"'])
  const patch = objects.patch.bind(objects)
  objects.patch = async (...given) => {
    if (given[1].name === 'b') throw statusError('Forbidden', 'no')
    return await patch(...given)
  }
  const [code, , faults] = await run(objects, { all: true, waveSize: '1' })
  assert.equal(code, 1)
  assert.match(
    faults,
    /^error: b: the API server refuses: no\nerror: stopped in wave 2 of 3: 1 in force, 1 not changed; 1 not touched: c\n/,
  )
  assert.deepEqual(revokedIn(objects), ['a'])
})

/** A few clusters, in which others are revoked as well. */
async function incident(): Promise<MemoryObjects> {
  const objects = world('a', 'b', 'c', 'd')
  await run(objects, { clusters: ['a'], reason: 'INC-0' })
  await run(objects, { clusters: ['b'], user: 'eve' })
  assert.equal((await run(objects, { clusters: ['a', 'b', 'c'], reason: 'INC-1' }))[0], 0)
  return objects
}

function usersIn(objects: MemoryObjects): string[] {
  return objects.all(UPSTREAM_CLUSTERS).map(({ metadata, spec }) => {
    const { authentication } = spec as { authentication?: { revoked?: { user: string; reason?: string }[] } }
    const users = authentication?.revoked?.map(({ user, reason = '-' }) => `${user} ${reason}`) ?? []
    return `${(metadata as { name: string }).name}: ${users.join(', ')}`
  })
}

test('one command takes the whole back: the plan says what was revoked why, and other entries stay', async () => {
  const objects = await incident()
  const undo = { all: true, undo: true, waveSize: '9' }
  const [shown, plan] = await run(objects, { ...undo, dryRun: true })
  assert.equal(shown, 0)
  assert.deepEqual(usersIn(objects), ['a: mallory INC-0', 'b: eve -, mallory INC-1', 'c: mallory INC-1', 'd: '])
  assert.deepEqual(await run(objects, undo), [
    0,
    [
      'plan: lift the revocation of user "mallory": 4 UpstreamClusters (all there are), 3 to change',
      '  FROM             TO        CLUSTERS  NAMES',
      '  revoked (INC-0)  accepted  1         a',
      '  revoked (INC-1)  accepted  2         b, c',
      '  unchanged: d: not revoked',
      '  all at once',
      'a: accepted on 1 of 1 replica',
      'b: accepted on 1 of 1 replica',
      'c: accepted on 1 of 1 replica',
      'd: accepted on 1 of 1 replica',
      '4 clusters: 4 accepted',
      '',
    ].join('\n'),
    '',
  ])
  assert.ok(plan.includes('b, c'))
  assert.deepEqual(usersIn(objects), ['a: ', 'b: eve -', 'c: ', 'd: '])
  const writes = objects.writes.length
  const [again, nothing] = await run(objects, undo)
  assert.equal(again, 0)
  assert.match(nothing, /, 0 to change\n {2}unchanged: a, b, c, d: not revoked\n/)
  assert.equal(objects.writes.length, writes, 'nothing is written twice')
})

test('with a reason, only what was revoked for it is taken back', async () => {
  const objects = await incident()
  const [code, out] = await run(objects, { all: true, undo: true, reason: 'INC-1' })
  assert.equal(code, 0)
  assert.match(out, /unchanged: a: revoked \(INC-0\), which is another reason\n {2}unchanged: d: not revoked\n/)
  assert.match(out, /\n4 clusters: 1 revoked \(INC-0\), 3 accepted\n$/)
  assert.deepEqual(usersIn(objects), ['a: mallory INC-0', 'b: eve -', 'c: ', 'd: '])
})

test('entries that others add or remove between plan and write are theirs; a cluster created again is not touched', async () => {
  const objects = await incident()
  const undo = { all: true, undo: true, yes: false, waveSize: '9' }
  const [code, , err] = await run(objects, {
    ...undo,
    ask: async () => {
      await run(objects, { clusters: ['b', 'c'], user: 'carol' })
      await run(objects, { clusters: ['a'], undo: true })
      return 'y'
    },
  })
  assert.deepEqual([code, err], [0, ''])
  assert.deepEqual(usersIn(objects), ['a: ', 'b: eve -, carol -', 'c: carol -', 'd: '])
  const [gone, , told] = await run(objects, {
    ...undo,
    user: 'carol',
    ask: async () => {
      const before = objects.find(UPSTREAM_CLUSTERS, 'c') ?? assert.fail()
      objects.remove(UPSTREAM_CLUSTERS, 'c')
      objects.put(UPSTREAM_CLUSTERS, { ...before, metadata: { name: 'c' } })
      return 'y'
    },
  })
  assert.equal(gone, 1)
  assert.match(told, /^error: c: not changed: it has been deleted and created again since the plan\n/)
  assert.ok(usersIn(objects).includes('c: carol -'))
})

test('of one cluster: no question, and twice is once', async () => {
  const objects = await incident()
  const printed: string[] = []
  const options = { cluster: 'b', all: false, user: 'mallory', undo: true, client: objects, now: () => NOW }
  const print = { out: (text: string) => void printed.push(text), err: (text: string) => assert.fail(text) }
  assert.equal(await revoke({ ...options, ...print, reason: 'INC-2' }), 0)
  assert.match(printed.join(''), /^b: user "mallory" was not revoked for INC-2 \(generation 3\)\n/)
  for (const is of ['is no longer', 'was not']) {
    printed.length = 0
    assert.equal(await revoke({ ...options, ...print }), 0)
    assert.match(printed.join(''), new RegExp(`^b: user "mallory" ${is} revoked \\(generation 4\\)\n`))
  }
  assert.equal(usersIn(objects)[1], 'b: eve -')
})
