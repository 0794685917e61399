// When a resource that could not be kept is tried again.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { CompiledCachedResource } from '../../gateway/core/cluster/compiled-cluster.ts'
import { SILENT } from '../../kit/api/ports.ts'
import type { FollowChoice, FollowEvents } from '../../kube/api/object-client.ts'
import type { KubeClient } from '../../kube/io/client.ts'
import { limitFollowedBytes } from '../../kube/io/followed-bytes.ts'
import type { CollectionNews } from '../core/changes/collection.ts'
import { IDLE_MS, ReadCaches } from './read-caches.ts'

const PODS: CompiledCachedResource = {
  group: '',
  version: 'v1',
  resource: 'pods',
  namespaces: [''],
  encodings: ['json', 'protobuf'],
  maxBytes: 1024 * 1024,
  maxStalenessMs: 10_000,
}

test('a cluster that goes back again and again is listed less often each time, and from the start again after half an hour', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  let nowMs = 0
  let lists = 0
  let goBack = (): void => assert.fail('not followed')
  const client = {
    follow: (_kind: unknown, _namespace: unknown, events: FollowEvents, { raw }: FollowChoice) => {
      lists++
      goBack = () => {
        for (const resourceVersion of ['10', '9']) {
          const page = { kind: 'PodList', apiVersion: 'v1', metadata: { resourceVersion }, items: [] }
          raw?.page(Buffer.from(JSON.stringify(page)))
          events.onReplace([])
        }
      }
      return { stop: async () => undefined }
    },
    pages: () => ({}),
    close: () => undefined,
  } as unknown as KubeClient
  const compiled = { name: 'c', endpoints: [], client: {}, cache: [PODS] }
  const caches = new ReadCaches({
    clusters: new Map([['c', { compiled }]]) as never,
    clientOf: () => client,
    publish: () => undefined,
    gauges: { set: () => undefined, remove: () => undefined },
    threads: 1,
    clock: { now: () => nowMs, monotonic: () => nowMs },
    log: SILENT,
  })
  const listedAfter = (ms: number): boolean => {
    const before = lists
    nowMs += ms
    t.mock.timers.tick(ms)
    return lists > before
  }
  caches.update()
  for (const ms of [1_000, 4_000, 16_000, 64_000, 256_000, 300_000, 300_000]) {
    goBack()
    assert.deepEqual([listedAfter(ms - 1), listedAfter(1)], [false, true], `${ms} ms`)
  }
  nowMs += 1_800_001
  goBack()
  assert.equal(listedAfter(1_000), true)
})

const DEPLOYMENTS = { ...PODS, group: 'apps', resource: 'deployments', namespaces: ['a', 'b'] }

/** What is followed of cluster `c`, by resource and namespace. */
function shownScene(cache: readonly object[]) {
  let nowMs = 0
  const followed = new Map<string, { events: FollowEvents; choice: FollowChoice }>()
  const client = {
    follow: (kind: { plural: string }, namespace: string, events: FollowEvents, choice: FollowChoice) => {
      followed.set(`${kind.plural}/${namespace}`, { events, choice })
      return { stop: async () => undefined }
    },
    pages: () => ({}),
    close: () => undefined,
  } as unknown as KubeClient
  const caches = new ReadCaches({
    threads: 1,
    clusters: new Map([['c', { compiled: { name: 'c', endpoints: [], client: {}, cache } }]]) as never,
    clientOf: () => client,
    publish: () => undefined,
    gauges: { set: () => undefined, remove: () => undefined },
    clock: { now: () => nowMs, monotonic: () => nowMs },
    log: SILENT,
  })
  caches.update()
  return {
    caches,
    pass: (ms: number): void => {
      nowMs += ms
      caches.tick()
    },
    state: (of: string, followed_: boolean, message: string, code?: number): void =>
      followed.get(of)?.events.onState(followed_, message, code),
    list(of: string, version: number, ...notes: readonly string[]): void {
      const { events, choice } = followed.get(of) ?? assert.fail()
      const items = notes.map((note, i) => ({
        metadata: {
          name: `p${i}`,
          namespace: 'a',
          uid: `u${i}`,
          resourceVersion: String(version),
          annotations: { note },
        },
      }))
      const page = { kind: 'PodList', apiVersion: 'v1', metadata: { resourceVersion: String(version) }, items }
      const kept = choice.raw?.page(Buffer.from(JSON.stringify(page))).objects ?? assert.fail()
      events.onReplace(kept)
    },
    said: (): readonly string[] =>
      caches.resourcesOf('c').map(({ resource, state, message }) => `${resource} ${state} ${message}`.trim()),
  }
}

test('what is kept is shown, with the field that is wrong, why, and how to fix it', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const { caches, said, state, list, pass } = shownScene([PODS, DEPLOYMENTS])
  assert.deepEqual(said(), ['pods Loading', 'deployments.apps Loading'])
  state('pods/', false, 'connect ECONNREFUSED')
  assert.equal(said()[0], 'pods Loading spec.cache[0]: pods cannot be read: connect ECONNREFUSED')
  pass(5_000)
  list('pods/', 10, 'x', 'y')
  list('deployments/a', 10, 'z')
  assert.deepEqual(said(), ['pods Serving', 'deployments.apps Loading'])
  const [pods] = caches.resourcesOf('c')
  assert.deepEqual([pods?.objects, pods?.sinceMs, pods?.ageMs], [2, 5_000, 0])
  pass(7_000)
  state('pods/', false, 'no answer')
  assert.equal(said()[0], 'pods Stale spec.cache[0]: pods cannot be followed: no answer')
  assert.deepEqual([caches.resourcesOf('c')[0]?.ageMs, caches.resourcesOf('c')[0]?.sinceMs], [7_000, 12_000])
  state('deployments/b', false, 'deployments.apps is forbidden', 403)
  assert.equal(
    said()[1],
    'deployments.apps Refused spec.cache[1]: the cluster does not let deployments.apps in namespace b be followed (403: deployments.apps is forbidden); ' +
      'if "kubectl api-resources" shows it, let the user portcullis-cache list and watch it, as in deploy/rbac/read-cache.yaml',
  )
  state('deployments/a', false, 'not found', 404)
  assert.equal(
    said()[1],
    'deployments.apps UnknownResource spec.cache[1]: the cluster has no deployments.apps of version v1; write group, version and resource as ' +
      '"kubectl api-resources" shows them',
  )
  list('pods/', 20, 'n'.repeat(2 * 1024 * 1024))
  assert.match(
    said()[0] ?? '',
    /^pods TooLarge spec\.cache\[0\]\.maxBytes: pods: .* more than 1048576 bytes.*; raise it/,
  )
})

test('without room in the memory for followed objects the message names its setting, and not maxBytes', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  limitFollowedBytes(1024 * 1024)
  t.after(() => limitFollowedBytes(0))
  const { said, list } = shownScene([{ ...PODS, maxBytes: 10 * 1024 * 1024 }])
  list('pods/', 20, ...Array(2000).fill('n'.repeat(1000)))
  const [message = ''] = said()
  assert.match(message, /^pods TooLarge spec\.cache\[0\]: pods: .*--max-followed-bytes/)
  assert.doesNotMatch(message, /maxBytes|retry in/)
})

test('reads are counted for what is kept, and forgotten with it', () => {
  const { caches } = shownScene([PODS])
  const of = { cluster: 'c', group: '', version: 'v1', resource: 'pods' }
  caches.count([
    { id: of, counts: { hit: 3, encoding: 1 } },
    { id: { ...of, resource: 'nodes' }, counts: { hit: 9 } },
    { id: of, counts: { hit: 2 } },
  ])
  const [pods] = caches.resourcesOf('c')
  assert.deepEqual([pods?.hits, pods?.passes], [5, { encoding: 1 }])
  assert.deepEqual(caches.resourcesOf('other'), [])
})

test('Protobuf is followed from when a thread asks for it until none has for ten minutes', async () => {
  let nowMs = 0
  const followed: string[] = []
  const gone: string[] = []
  const client = {
    follow: (_kind: unknown, _namespace: unknown, _events: FollowEvents, { raw }: FollowChoice) => {
      followed.push(raw?.encoding ?? '')
      return { stop: async () => undefined }
    },
    pages: () => ({}),
    close: () => undefined,
  } as unknown as KubeClient
  const compiled = { name: 'c', endpoints: [], client: {}, cache: [PODS] }
  const caches = new ReadCaches({
    clusters: new Map([['c', { compiled }]]) as never,
    clientOf: () => client,
    publish: (news: CollectionNews) => news.type === 'gone' && gone.push(news.collection.encoding),
    threads: 1,
    gauges: { set: () => undefined, remove: () => undefined },
    clock: { now: () => nowMs, monotonic: () => nowMs },
    log: SILENT,
  })
  const id = { cluster: 'c', group: '', version: 'v1', resource: 'pods', namespace: '', encoding: 'protobuf' as const }
  caches.update()
  for (const other of [{ cluster: 'd' }, { resource: 'secrets' }, { namespace: 'a' }]) caches.want({ ...id, ...other })
  assert.deepEqual(followed, ['json'])
  caches.want(id)
  caches.want(id)
  caches.update()
  assert.deepEqual(followed, ['json', 'protobuf'])
  nowMs += IDLE_MS - 1
  caches.want(id)
  nowMs += IDLE_MS - 1
  caches.tick()
  assert.deepEqual(gone, [])
  nowMs += 1
  caches.tick()
  caches.update()
  assert.deepEqual([gone, followed.length], [['protobuf'], 2])
  caches.want(id)
  assert.equal(followed.length, 3)
  compiled.cache = []
  caches.update()
  assert.deepEqual(gone.slice(1).sort(), ['json', 'protobuf'])
  caches.want(id)
  assert.equal(followed.length, 3)
  await caches.stop()
})
