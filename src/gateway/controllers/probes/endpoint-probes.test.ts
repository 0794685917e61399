// When endpoints are probed: with an upstream that answers, fails or stays silent on command, and a fake clock.

import assert from 'node:assert/strict'
import { describe, mock, test } from 'node:test'
import type { Stream, StreamEvents } from '../../../kit/api/stream.ts'
import type { UpstreamCluster } from '../../api/upstream-cluster/upstream-cluster.ts'
import { compileCluster } from '../../core/cluster/compile-cluster.ts'
import type { UpstreamEndpoint } from '../../io/upstream/pool.ts'
import { ClusterTable } from '../../state/clusters.ts'
import { probeIdleMs, startEndpointProbes } from './endpoint-probes.ts'

const INTERVAL_MS = 10_000
const TIMEOUT_MS = 1_000

/** Outcome of a probe: an answer, a connection that is refused or breaks, or silence. */
type Outcome = 'healthy' | 'bad gateway' | 'refused' | 'breaks' | 'silent'

class Scene {
  outcome: Outcome = 'healthy'
  /** Probes of each endpoint, in order. */
  readonly probed: string[] = []
  /** Fields of successful answers, besides the date. */
  fields: readonly string[] = ['audit-id', 'a']
  /** Dates of answers, in order. */
  readonly dates: string[] = []
  healthy = 0
  readonly #clusters = new ClusterTable()
  #revision = 0
  readonly probes = startEndpointProbes(
    this.#clusters,
    { get: (cluster, url) => this.#upstream(cluster, url) },
    { now: () => Date.now(), monotonic: () => Date.now() },
    () => 0.5,
    { debug: nothing, info: nothing, warn: nothing, error: nothing },
    {
      answered: (cluster, endpoint, date) => void this.dates.push(`${cluster.name} ${endpoint} ${date}`),
      probed: (_cluster, _endpoint, healthy) => {
        if (healthy) this.healthy++
      },
    },
  )

  /** Applies this many clusters of one endpoint each. */
  apply(count: number): void {
    this.#revision++
    const compiled = Array.from({ length: count }, (_, i) =>
      compileCluster({ object: clusterOf(i), revision: String(this.#revision) }),
    )
    const names = compiled.map(({ name }) => name)
    const removed = [...this.#clusters.names()].filter((name) => !names.includes(name))
    this.#clusters.change(compiled, removed, 0)
    this.probes.change(compiled, removed)
  }

  get first(): readonly [cluster: string, url: string] {
    return [nameOf(0), urlOf(0)]
  }

  #upstream(cluster: string, url: string): UpstreamEndpoint {
    const open = (events: StreamEvents): Stream => {
      this.probed.push(url)
      queueMicrotask(() => this.#end(cluster, url, events))
      return STREAM
    }
    return {
      open: (_kind, _head, _shared, _end, events) => open(events),
      connectHttp1: () => Promise.reject(new Error('not asked for')),
      isFull: () => false,
      relisting: false,
      dialRefusal: '',
      maxListBytes: () => Number.POSITIVE_INFINITY,
      drain: nothing,
      destroy: nothing,
      connections: 0,
      describe: () => assert.fail('not asked for'),
    }
  }

  #end(cluster: string, url: string, events: StreamEvents): void {
    switch (this.outcome) {
      case 'healthy':
      case 'bad gateway': {
        const status = this.outcome === 'healthy' ? '200' : '502'
        events.onHeaders([':status', status, 'date', 'Fri, 02 Jan 2026 03:04:05 GMT', ...this.fields], true)
        return
      }
      case 'refused':
      case 'breaks':
        // The pool reports first that a connection failed, and then that the request did.
        this.probes.probeNow(cluster, url)
        events.onReset(this.outcome === 'refused' ? 'refused' : 'connection')
        return
      case 'silent':
    }
  }
}

function nothing(): void {}

const STREAM: Stream = {
  queued: 0,
  headers: nothing,
  body: nothing,
  trailers: nothing,
  credit: nothing,
  reset: nothing,
}

const nameOf = (i: number): string => `c${i}.example.com`
const urlOf = (i: number): string => `https://127.0.0.1:${10_000 + i}`

function clusterOf(i: number): UpstreamCluster {
  return {
    apiVersion: 'proxy.kubegateway.io/v1alpha1',
    kind: 'UpstreamCluster',
    metadata: { name: nameOf(i) },
    spec: {
      servers: [{ endpoint: urlOf(i) }],
      dispatchPolicies: [{ rules: [{ verbs: ['*'], apiGroups: ['*'], resources: ['*'] }] }],
      healthCheck: { intervalSeconds: INTERVAL_MS / 1000, timeoutSeconds: TIMEOUT_MS / 1000 },
    },
  }
}

/** Advances the clock, letting follow-up work happen in between. */
async function pass(ms: number, stepMs = 10): Promise<void> {
  for (let passed = 0; passed < ms; passed += stepMs) {
    mock.timers.tick(Math.min(stepMs, ms - passed))
    await turn()
  }
}

/** Flushes all work that needs no time: uses the real event loop, not the fake clock. */
const turn = (): Promise<void> => new Promise((resolve) => void realImmediate(resolve))
const realImmediate = setImmediate

function setUp(context: { after(end: () => void): void }): Scene {
  mock.timers.enable({ apis: ['setTimeout', 'Date'] })
  const scene = new Scene()
  context.after(() => {
    scene.probes.stop()
    mock.timers.reset()
  })
  return scene
}

test('an answer tells what the clock of the endpoint says; no answer tells nothing', async (context) => {
  const scene = setUp(context)
  scene.apply(1)
  await pass(100)
  const [cluster, url] = scene.first
  assert.deepEqual(scene.dates, [`${cluster} ${url} Fri, 02 Jan 2026 03:04:05 GMT`])
  // A proxy in front of it has its own clock.
  for (const outcome of ['bad gateway', 'refused'] as const) {
    scene.outcome = outcome
    await pass(2 * INTERVAL_MS, 100)
  }
  assert.equal(scene.dates.length, 1)
})

test('an answer that a proxy may have dated tells nothing of the clock, and is as healthy as any other', async (context) => {
  const fields: readonly (readonly string[])[] = [
    [],
    ['audit-id', 'a', 'via', '1.1 proxy'],
    ['audit-id', 'a', 'server', 'nginx'],
    ['audit-id', 'a', 'age', '0'],
    ['audit-id', 'a', 'date', 'Fri, 02 Jan 2026 03:04:09 GMT'],
  ]
  const scene = setUp(context)
  for (const [i, more] of fields.entries()) {
    scene.fields = more
    scene.apply(1)
    await pass(2 * INTERVAL_MS, 100)
    assert.deepEqual(scene.dates, [], more.join())
    assert.ok(scene.healthy > i, more.join())
  }
  scene.fields = ['audit-id', 'a']
  await pass(2 * INTERVAL_MS, 100)
  assert.ok(scene.dates.length > 0)
})

describe('an endpoint that is dead', () => {
  for (const outcome of ['refused', 'breaks'] as const) {
    test(`${outcome}: one probe in an interval, for ever`, async (context) => {
      const scene = setUp(context)
      scene.outcome = outcome
      scene.apply(1)
      await pass(20 * INTERVAL_MS, 100)
      assert.ok(scene.probed.length >= 19 && scene.probed.length <= 22, `${scene.probed.length} probes`)
    })
  }

  test('silent, and its connection fails after the probe was given up: no other probe for that', async (context) => {
    const scene = setUp(context)
    scene.outcome = 'silent'
    scene.apply(1)
    await pass(2 * TIMEOUT_MS)
    scene.probes.probeNow(...scene.first)
    await pass(TIMEOUT_MS)
    assert.equal(scene.probed.length, 1)
  })

  test('it dies: a broken connection is followed by as many probes as settle it, and none more before the interval', async (context) => {
    const scene = setUp(context)
    scene.apply(1)
    await pass(1_000)
    scene.outcome = 'refused'
    scene.probes.probeNow(...scene.first)
    await pass(1_000)
    // unhealthyThreshold is 2.
    assert.equal(scene.probed.length, 3)
    scene.probes.probeNow(...scene.first)
    await pass(1_000)
    assert.equal(scene.probed.length, 3, 'requests that fail meanwhile tell nothing new')
  })
})

describe('a regular check is the first to notice a death', () => {
  test('with it, a connection breaks: as many checks as settle it follow at once', async (context) => {
    const scene = setUp(context)
    scene.apply(1)
    await pass(1_000)
    const before = scene.probed.length
    scene.outcome = 'refused'
    while (scene.probed.length === before) await pass(100, 100)
    await pass(1_000)
    assert.equal(scene.probed.length, before + 2, 'until it is unhealthy, requests go to it')
    scene.probes.probeNow(...scene.first)
    await pass(1_000)
    assert.equal(scene.probed.length, before + 2, 'it is unhealthy: broken connections tell nothing new')
  })

  test('a connection breaks after it: the same', async (context) => {
    const scene = setUp(context)
    scene.apply(1)
    await pass(1_000)
    const before = scene.probed.length
    scene.outcome = 'bad gateway'
    while (scene.probed.length === before) await pass(100, 100)
    await pass(1_000)
    assert.equal(scene.probed.length, before + 1)
    scene.probes.probeNow(...scene.first)
    await pass(1_000)
    assert.equal(scene.probed.length, before + 2)
  })
})

describe('out of turn', () => {
  test('connections that break all the time: one more probe in each interval', async (context) => {
    const scene = setUp(context)
    scene.apply(1)
    await pass(1_000)
    for (let ms = 0; ms < 10 * INTERVAL_MS; ms += 100) {
      scene.probes.probeNow(...scene.first)
      await pass(100, 100)
    }
    assert.ok(scene.probed.length >= 18 && scene.probed.length <= 23, `${scene.probed.length} probes`)
  })

  test('a connection that breaks while a probe runs which succeeds: another one', async (context) => {
    const scene = setUp(context)
    scene.apply(1)
    mock.timers.tick(1)
    assert.equal(scene.probed.length, 1)
    scene.probes.probeNow(...scene.first)
    await pass(1_000)
    assert.equal(scene.probed.length, 2)
  })

  test('the cluster has changed: a probe soon, whatever the last one said; one that runs is followed by another', async (context) => {
    const scene = setUp(context)
    scene.outcome = 'refused'
    scene.apply(1)
    await pass(1_000)
    scene.apply(1)
    scene.apply(1)
    await pass(1_000)
    assert.equal(scene.probed.length, 2)
    scene.outcome = 'silent'
    scene.apply(1)
    await pass(500)
    assert.equal(scene.probed.length, 3)
    scene.outcome = 'healthy'
    scene.apply(1)
    await pass(2_000)
    assert.equal(scene.probed.length, 4)
  })
})

describe('many at once', () => {
  test('64 first probes under way; each that is over makes room', async (context) => {
    const scene = setUp(context)
    scene.outcome = 'silent'
    scene.apply(1_000)
    await pass(20)
    assert.equal(scene.probed.length, 64)
    scene.outcome = 'refused'
    await pass(1_000)
    assert.equal(new Set(scene.probed).size, 1_000)
  })

  test('what is silent does not hold up the others: 5,000 first probes within 10 s', async (context) => {
    const scene = setUp(context)
    scene.outcome = 'silent'
    scene.apply(5_000)
    await pass(10_000)
    assert.equal(new Set(scene.probed).size, 5_000)
  })

  test('what came together at the start comes apart: second probes are spread over half an interval', async (context) => {
    const scene = setUp(context)
    scene.apply(1)
    await pass(INTERVAL_MS / 2 - 100)
    assert.equal(scene.probed.length, 1)
    // By the middle of [5 s, 10 s), since random() is always one half in this test.
    await pass(INTERVAL_MS / 4 + 200)
    assert.equal(scene.probed.length, 2)
  })
})

describe('the first round', () => {
  test('ends with the last first probe, or when the endpoint is gone', async (context) => {
    const scene = setUp(context)
    scene.outcome = 'silent'
    scene.apply(2)
    let over = 0
    void scene.probes.firstRound().then(() => over++)
    await pass(500)
    assert.equal(over, 0)
    await pass(TIMEOUT_MS)
    assert.equal(over, 1)
    scene.apply(3)
    void scene.probes.firstRound().then(() => over++)
    await pass(500)
    assert.equal(over, 1)
    scene.apply(2)
    await turn()
    assert.equal(over, 2)
    await scene.probes.firstRound()
  })

  test('is over after 3 s, however many are silent', async (context) => {
    const scene = setUp(context)
    scene.outcome = 'silent'
    scene.apply(5_000)
    let over = false
    void scene.probes.firstRound().then(() => {
      over = true
    })
    await pass(2_900)
    assert.equal(over, false)
    await pass(200)
    assert.equal(over, true)
  })
})

describe('ports', () => {
  const opened = (scene: Scene): (() => boolean) => {
    let open = false
    void scene.probes.mayServe().then(() => {
      open = true
    })
    return () => open
  }

  test('wait for the first round of as many as are checked at once', async (context) => {
    const scene = setUp(context)
    scene.outcome = 'silent'
    scene.apply(64)
    const open = opened(scene)
    await pass(900)
    assert.equal(open(), false)
    await pass(200)
    assert.equal(open(), true)
  })

  test('do not wait for checks that cannot begin yet', async (context) => {
    const scene = setUp(context)
    scene.outcome = 'silent'
    scene.apply(500)
    const open = opened(scene)
    await pass(240)
    assert.equal(open(), false)
    await pass(20)
    assert.equal(open(), true)
  })

  test('a cluster for which requests wait takes turns with all that wait before it', async (context) => {
    const scene = setUp(context)
    scene.outcome = 'silent'
    scene.apply(500)
    await pass(1)
    scene.probes.awaited(nameOf(499))
    scene.probes.awaited(nameOf(0))
    scene.probes.awaited('none')
    await pass(150)
    assert.deepEqual(scene.probed.slice(64, 66), [urlOf(64), urlOf(499)])
    assert.equal(scene.probed.length, 128)
  })
})

test('a connection is closed soon after its probe if the next one would not find it open, else stays for a minute', () => {
  const idleMs = (intervalMs: number): number => probeIdleMs({ intervalMs })
  assert.deepEqual([5_000, 60_000, 66_000].map(idleMs), [60_000, 60_000, 60_000])
  assert.deepEqual([67_000, 300_000].map(idleMs), [500, 500])
  assert.equal(probeIdleMs(undefined), 60_000, 'its cluster is gone')
})
