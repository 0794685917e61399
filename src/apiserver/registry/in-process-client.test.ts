import assert from 'node:assert/strict'
import { mock, test } from 'node:test'
import { UPSTREAM_CLUSTERS } from '../../gateway/api/upstream-cluster-kind.ts'
import { EVENTS } from '../../kube/api/kinds/event-kind.ts'
import { POD_PROTECTORS } from '../../protection/api/pod-protector-kind.ts'
import type { StoreEvent, TaskResult } from '../api/object-store.ts'
import { GroupedWrites } from './grouped-writes.ts'
import { createInProcessClient } from './in-process-client.ts'
import type { Registry } from './registry.ts'

test('objects that cannot be read are reported, and read again', async () => {
  mock.timers.enable({ apis: ['setTimeout'] })
  try {
    let lists = 0
    const registry = {
      store: { watch: () => () => undefined },
      list() {
        if (++lists === 1) throw new Error('the disk failed')
        return { items: [], metadata: { resourceVersion: '1' } }
      },
    }
    const received: unknown[] = []
    const following = createInProcessClient(registry as unknown as Registry).follow(UPSTREAM_CLUSTERS, '', {
      onReplace: (objects) => void received.push(objects),
      onChange: () => undefined,
      onState: (current, message) => void received.push([current, message]),
    })
    await Promise.resolve()
    assert.deepEqual(received, [[false, 'the disk failed']])
    mock.timers.tick(1000)
    assert.deepEqual(received.slice(1), [[], [true, '']])
    await following.stop()
  } finally {
    mock.timers.reset()
  }
})

test('a follower with a label selector gets objects that enter and leave it, and every version', async () => {
  const object = (name: string, app: string, version: number) => ({
    metadata: { name, labels: { app }, resourceVersion: String(version) },
  })
  let tell: (event: StoreEvent) => void = () => undefined
  const registry = {
    store: {
      watch(_resource: string, _namespace: string, after: number, onEvent: typeof tell) {
        assert.equal(after, 7)
        tell = onEvent
        return () => undefined
      },
    },
    list: () => ({ items: [object('a', 'web', 3)], metadata: { resourceVersion: '7' } }),
  }
  const received: string[] = []
  const following = createInProcessClient(registry as unknown as Registry).follow(
    UPSTREAM_CLUSTERS,
    '',
    {
      onReplace: (objects) => void received.push(`all ${objects.map(({ name }) => name)}`),
      onChange: (type, { name }) => void received.push(`${type} ${name}`),
      onVersion: (version) => void received.push(version),
      onState: () => undefined,
    },
    {
      labelSelector: 'app in (web, site)',
      transform: ({ metadata }) => ({ name: (metadata as { name: string }).name }),
    },
  )
  await Promise.resolve()
  const event = (type: StoreEvent['type'], after: object, before?: object): void => {
    tell({ type, object: after, previous: before } as StoreEvent)
  }
  event('ADDED', object('b', 'other', 8))
  event('MODIFIED', object('b', 'site', 9), object('b', 'other', 8))
  event('MODIFIED', object('b', 'web', 10), object('b', 'site', 9))
  event('MODIFIED', object('a', 'other', 11), object('a', 'web', 3))
  event('DELETED', object('a', 'other', 12), object('a', 'other', 11))
  event('DELETED', object('b', 'web', 13), object('b', 'web', 10))
  const changes = ['8', 'ADDED b', '9', 'MODIFIED b', '10', 'DELETED a', '11', '12', 'DELETED b', '13']
  assert.deepEqual(received, ['all a', '7', ...changes])
  await following.stop()
  event('ADDED', object('c', 'web', 14))
  assert.equal(received.length, 2 + changes.length)
})

test('statuses and Events of one turn are written together; everything else at once', async () => {
  const groups: number[] = []
  let written = 0
  const write = (): object => ({ object: { written: ++written } })
  const grouped = new GroupedWrites({
    together<T>(tasks: Iterable<() => T>): readonly TaskResult<T>[] {
      const results = Array.from(tasks, (task) => ({ value: task() }))
      groups.push(results.length)
      return results
    },
  })
  const registry = {
    together: <T>(task: () => T) => grouped.add(task),
    create: write,
    update: write,
    patch: write,
  }
  const client = createInProcessClient(registry as unknown as Registry)
  const object = { metadata: { name: 'web', namespace: 'shop' } }
  const at = { namespace: 'shop', name: 'web' }
  const type = 'application/merge-patch+json'
  const later = [
    client.update(POD_PROTECTORS, object, 'status'),
    client.update(UPSTREAM_CLUSTERS, object, 'status'),
    client.patch(UPSTREAM_CLUSTERS, at, type, {}, { fieldManager: 'x', subresource: 'status' }),
    client.create(EVENTS, object),
    client.patch(EVENTS, at, type, {}, { fieldManager: 'x' }),
  ]
  assert.equal(written, 0)
  const atOnce = [
    client.update(POD_PROTECTORS, object),
    client.create(POD_PROTECTORS, object),
    client.patch(UPSTREAM_CLUSTERS, at, type, {}, { fieldManager: 'x' }),
  ]
  assert.equal(written, 3)
  assert.deepEqual(
    await Promise.all([...atOnce, ...later]),
    [1, 2, 3, 4, 5, 6, 7, 8].map((n) => ({ written: n })),
  )
  assert.deepEqual(groups, [5])
})
