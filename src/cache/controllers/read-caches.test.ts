// When a resource that could not be kept is tried again.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SILENT } from '../../kit/api/ports.ts'
import type { FollowChoice, FollowEvents } from '../../kube/api/object-client.ts'
import type { KubeClient } from '../../kube/io/client.ts'
import { ReadCaches } from './read-caches.ts'

const PODS = {
  group: '',
  version: 'v1',
  resource: 'pods',
  namespaces: [''],
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
          raw?.itemsOf(Buffer.from(JSON.stringify(page)))
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
