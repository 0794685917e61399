// Watches of the embedded API server.

import assert from 'node:assert/strict'
import { after, afterEach, before, beforeEach, describe, test } from 'node:test'
import { MAX_WATCHER_BYTES } from '../../src/apiserver/watch-stream.ts'
import { ControlClient, cluster, type Json, type OpenWatch, secret, UC } from '../harness/clients/control-client.ts'
import { startControl, type TestControl } from '../harness/gateways/control.ts'
import { waitFor } from '../harness/wait.ts'

const SECRETS = '/api/v1/namespaces/default/secrets'
let control: TestControl
let client: ControlClient
const open: OpenWatch[] = []

before(async () => {
  control = await startControl({ historyRevisions: 2000 })
  client = new ControlClient(control, { cert: control.admin })
})
after(async () => {
  client.close()
  await control.stop()
  assert.deepEqual(control.errors, [])
})
beforeEach(async () => {
  await client.delete(UC)
  await client.delete(SECRETS)
})
afterEach(() => {
  for (const watch of open.splice(0)) watch.close()
})

async function watch(path: string, headers: Record<string, string> = {}): Promise<OpenWatch> {
  const stream = await client.watch(path, headers)
  open.push(stream)
  return stream
}

const shown = (events: Json[]): string[] => events.map(({ type, object }) => `${type} ${object.metadata.name ?? ''}`)

test('from a revision: everything since, in order, without a gap', async () => {
  const revision = (await client.get(UC)).json.metadata.resourceVersion
  await client.post(UC, cluster('a'))
  await client.mergePatch(`${UC}/a`, { spec: { default: true } })
  const stream = await watch(`${UC}?watch=1&resourceVersion=${revision}`)
  assert.equal(stream.code, 200)
  await stream.count(2)
  const { json } = await client.get(`${UC}/a`)
  await client.delete(`${UC}/a`)
  const events = await stream.count(3)
  assert.deepEqual(shown(events), ['ADDED a', 'MODIFIED a', 'DELETED a'])
  assert.deepEqual(events[1].object, json)
  // The last state, with a revision of its own.
  assert.equal(events[2].object.metadata.resourceVersion, String(control.store.revision))
  assert.equal(events[2].object.spec.default, true)
})

test('a write that changes nothing makes no event', async () => {
  const { json } = await client.post(UC, cluster('a'))
  const stream = await watch(`${UC}?watch=1&resourceVersion=${json.metadata.resourceVersion}`)
  await client.put(`${UC}/a`, json)
  await client.mergePatch(`${UC}/a`, {})
  await client.mergePatch(`${UC}/a`, { metadata: { labels: { last: 'x' } } })
  assert.deepEqual(shown(await stream.count(1)), ['MODIFIED a'])
})

describe('without a revision', () => {
  for (const query of ['', '&resourceVersion=0', '&resourceVersion=']) {
    test(`watch=1${query} begins with the existing objects`, async () => {
      await client.post(UC, cluster('a'))
      await client.post(UC, cluster('b'))
      const stream = await watch(`${UC}?watch=1${query}`)
      await stream.count(2)
      await client.post(UC, cluster('c'))
      assert.deepEqual(shown(await stream.count(3)), ['ADDED a', 'ADDED b', 'ADDED c'])
    })
  }

  test('sendInitialEvents ends them with an annotated bookmark', async () => {
    await client.post(UC, cluster('a'))
    const query = 'watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true'
    const stream = await watch(`${UC}?${query}`)
    const events = await stream.count(2)
    assert.deepEqual(shown(events), ['ADDED a', 'BOOKMARK '])
    const { kind, apiVersion, metadata } = events[1].object
    assert.equal(`${apiVersion} ${kind}`, 'proxy.kubegateway.io/v1alpha1 UpstreamCluster')
    assert.deepEqual(metadata.annotations, { 'k8s.io/initial-events-end': 'true' })
    assert.equal(metadata.resourceVersion, String(control.store.revision))
    await client.post(UC, cluster('b'))
    assert.deepEqual(shown(await stream.count(3)).at(-1), 'ADDED b')
  })

  test('sendInitialEvents=false begins with now', async () => {
    await client.post(UC, cluster('a'))
    const stream = await watch(`${UC}?watch=1&sendInitialEvents=false&resourceVersionMatch=NotOlderThan`)
    await client.post(UC, cluster('b'))
    assert.deepEqual(shown(await stream.count(1)), ['ADDED b'])
  })
})

describe('selectors', () => {
  test('an object that leaves the selection is DELETED, one that enters it is ADDED', async () => {
    const stream = await watch(`${UC}?watch=1&labelSelector=tier%3Dfront`)
    await client.post(UC, cluster('a'))
    await client.mergePatch(`${UC}/a`, { metadata: { labels: { tier: 'front' } } })
    await client.mergePatch(`${UC}/a`, { metadata: { labels: { other: 'x' } } })
    await client.mergePatch(`${UC}/a`, { metadata: { labels: { tier: 'back' } } })
    await client.delete(`${UC}/a`)
    await client.post(UC, cluster('end', {}, { labels: { tier: 'front' } }))
    const events = await stream.count(4)
    assert.deepEqual(shown(events), ['ADDED a', 'MODIFIED a', 'DELETED a', 'ADDED end'])
    // What it was while it was selected, at the revision at which it left.
    assert.equal(events[2].object.metadata.labels.tier, 'front')
    assert.ok(Number(events[2].object.metadata.resourceVersion) > Number(events[1].object.metadata.resourceVersion))
  })

  test('one object by name, one namespace', async () => {
    const one = await watch(`${UC}?watch=1&fieldSelector=metadata.name%3Db`)
    const space = await watch(`${SECRETS}?watch=1`)
    for (const name of ['a', 'b']) await client.post(UC, cluster(name))
    await client.post('/api/v1/namespaces/kube-system/secrets', secret('elsewhere'))
    await client.post(SECRETS, secret('here'))
    assert.deepEqual(shown(await one.count(1)), ['ADDED b'])
    assert.deepEqual(shown(await space.count(1)), ['ADDED here'])
  })
})

describe('the end', () => {
  test('timeoutSeconds ends it cleanly, with a last bookmark', async () => {
    await client.post(UC, cluster('a'))
    const stream = await watch(
      `${UC}?watch=1&timeoutSeconds=1&allowWatchBookmarks=true&resourceVersion=${control.store.revision}`,
    )
    const events = await stream.end()
    assert.deepEqual(shown(events), ['BOOKMARK '])
    assert.equal(events[0].object.metadata.resourceVersion, String(control.store.revision))
  })

  test('two seconds before it there is one, which a cache waits for', async () => {
    const after = control.store.revision
    const stream = await watch(`${UC}?watch=1&timeoutSeconds=3&allowWatchBookmarks=true&resourceVersion=${after}`)
    // Another resource: only a bookmark tells of the change.
    await client.post(SECRETS, secret('elsewhere'))
    const events = await stream.end()
    assert.deepEqual(shown(events), ['BOOKMARK ', 'BOOKMARK '])
    assert.equal(events[0].object.metadata.resourceVersion, String(control.store.revision))
  })

  test('compacted history: an ERROR event with 410', async () => {
    let now = Date.now()
    const aged = await startControl({ historyRevisions: 2, now: () => now })
    const admin = new ControlClient(aged, { cert: aged.admin })
    try {
      await admin.post(UC, cluster('a'))
      await admin.mergePatch(`${UC}/a`, { metadata: { labels: { a: 'b' } } })
      now += 60 * 60 * 1000
      for (let i = 0; i < 10; i++) await admin.mergePatch(`${UC}/a`, { metadata: { annotations: { i: String(i) } } })
      const stream = await admin.watch(`${UC}?watch=1&resourceVersion=2`)
      assert.equal(stream.code, 200)
      const [event, ...more] = await stream.end()
      assert.deepEqual(more, [])
      assert.equal(event.type, 'ERROR')
      assert.equal(event.object.code, 410)
      assert.equal(event.object.reason, 'Expired')
      assert.match(event.object.message, /^too old resource version: 2 \(\d+\)$/)
    } finally {
      admin.close()
      await aged.stop()
    }
  })

  test('a revision of another history: 410 as well', async () => {
    const stream = await watch(`${UC}?watch=1&resourceVersion=999999999`)
    const [event] = await stream.end()
    assert.equal(event.object.reason, 'Expired')
  })

  test('options that cannot be: a Status instead of a stream, with the code of a kube-apiserver', async () => {
    for (const [query, code] of [
      ['sendInitialEvents=true', 422],
      ['resourceVersionMatch=NotOlderThan', 422],
      ['resourceVersion=x', 500],
      ['timeoutSeconds=x', 400],
    ] as const) {
      assert.equal((await client.get(`${UC}?watch=1&${query}`)).code, code, query)
    }
  })

  test('at a shutdown: each watch ends between two events', async () => {
    const stream = await watch(`${UC}?watch=1`)
    control.endWatches()
    assert.deepEqual(await stream.end(), [])
  })
})

describe('forms', () => {
  test('Table: the columns come once', async () => {
    await client.post(UC, cluster('a'))
    const accept = 'application/json;as=Table;v=v1;g=meta.k8s.io'
    const stream = await watch(`${UC}?watch=1`, { accept })
    await client.post(UC, cluster('b'))
    const events = await stream.count(2)
    assert.equal(events[0].object.kind, 'Table')
    assert.equal(events[0].object.columnDefinitions[0].name, 'Name')
    assert.equal(events[0].object.rows[0].cells[0], 'a')
    assert.equal(events[1].object.columnDefinitions, null)
    assert.equal(events[1].object.rows[0].cells[0], 'b')
  })

  test('PartialObjectMetadata', async () => {
    await client.post(UC, cluster('a'))
    const accept = 'application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io'
    const stream = await watch(`${UC}?watch=1`, { accept })
    const [event] = await stream.count(1)
    assert.equal(event.object.kind, 'PartialObjectMetadata')
    assert.equal(event.object.metadata.name, 'a')
    assert.equal(event.object.spec, undefined)
  })
})

describe('slow watchers', () => {
  const bulk = (name: string, bytes: number): Json => secret(name, { stringData: { text: 'x'.repeat(bytes) } })

  test('one that does not read is ended, the others go on', async () => {
    const slow = await watch(`${SECRETS}?watch=1`)
    const quick = await watch(`${SECRETS}?watch=1`)
    slow.pause()
    const step = 700 * 1024
    // Beyond what the sockets between hold, and then what may wait.
    const writes = Math.ceil((4 * MAX_WATCHER_BYTES) / step)
    for (let i = 0; i < writes; i++) {
      const response =
        i === 0
          ? await client.post(SECRETS, bulk('big', step))
          : await client.put(`${SECRETS}/big`, bulk('big', step + i))
      assert.ok(response.code < 300, response.text)
      // On a busy machine it would not be quick otherwise.
      assert.equal((await quick.count(i + 1)).length, i + 1)
    }
    slow.resume()
    await waitFor('the end of the slow watch', () => slow.ended)
    assert.ok(slow.events.length < writes)
  })

  test('initial objects do not count: they are sent as they are read', async () => {
    for (let i = 0; i < 8; i++) assert.equal((await client.post(SECRETS, bulk(`big-${i}`, 700 * 1024))).code, 201)
    const stream = await watch(
      `${SECRETS}?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true`,
    )
    stream.pause()
    await client.post(SECRETS, secret('later'))
    stream.resume()
    const events = await stream.count(10)
    assert.equal(events.length, 10)
    assert.deepEqual(shown(events).slice(-2), ['BOOKMARK ', 'ADDED later'])
  })
})
