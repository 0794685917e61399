import assert from 'node:assert/strict'
import { mock, test } from 'node:test'
import { UPSTREAM_CLUSTERS } from '../api/scheme.ts'
import { createInProcessClient } from './in-process-client.ts'
import type { Registry } from './registry.ts'

test('objects that cannot be read are said to be so, and asked for again', async () => {
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
    const heard: unknown[] = []
    const following = createInProcessClient(registry as unknown as Registry).follow(UPSTREAM_CLUSTERS, '', {
      onReplace: (objects) => void heard.push(objects),
      onChange: () => undefined,
      onState: (current, message) => void heard.push([current, message]),
    })
    await Promise.resolve()
    assert.deepEqual(heard, [[false, 'the disk failed']])
    mock.timers.tick(1000)
    assert.deepEqual(heard.slice(1), [[], [true, '']])
    await following.stop()
  } finally {
    mock.timers.reset()
  }
})
