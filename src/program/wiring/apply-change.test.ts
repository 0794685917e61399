// The order of a change: who is notified before the threads, and who only when it is in force everywhere.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { ResolvedCluster, SourceChange, SourceError } from '../../gateway/api/resource-source.ts'
import type { CompiledChange } from '../../gateway/controllers/upstream-clusters.ts'
import { compileCluster } from '../../gateway/core/cluster/compile-cluster.ts'
import { ConfigChanges } from './apply-change.ts'

function clusterOf(name: string, generation: number): ResolvedCluster {
  const spec = { servers: [{ endpoint: 'https://a:1' }], dispatchPolicies: [] }
  const metadata = { name, generation }
  const object = { apiVersion: 'proxy.kubegateway.io/v1alpha1', kind: 'UpstreamCluster', metadata, spec } as const
  return { object, revision: String(generation) }
}

function deliver(...clusters: readonly ResolvedCluster[]): SourceChange {
  return { clusters: new Map(clusters.map((each) => [each.object.metadata.name, each])), problems: [] }
}

function problemOf(cluster: string): SourceError {
  return {
    reason: 'FieldValueInvalid',
    file: '',
    line: 0,
    path: 'spec',
    message: 'broken',
    fix: '',
    severity: 'error',
    cluster,
  }
}

function promisesRun(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

function setUp() {
  const steps: string[] = []
  const inForce: (() => void)[] = []
  const counted: object[] = []
  const clusters = { generation: 0, size: 0 }
  const time = { ms: 0 }
  /** Compilation result of the next change, in addition to what the source has. */
  const next: { removed: string[]; failing: string[] } = { removed: [], failing: [] }
  const step = (what: string): void => void steps.push(what)
  const changes = new ConfigChanges({
    clusters,
    controller: {
      compile: (source): CompiledChange => {
        step('compile')
        const { removed, failing } = next
        const changed = [...source.clusters.values()].filter(({ object }) => !failing.includes(object.metadata.name))
        const failures = new Map(failing.map((name) => [name, problemOf(name)]))
        return { changed: changed.map((one) => compileCluster(one)), removed, source, failures }
      },
      follow: ({ source }) => {
        step('follow')
        clusters.generation++
        clusters.size = source.clusters.size
      },
    },
    rights: { change: () => step('rights') },
    limits: { changed: (names) => step(`limits ${names.join()}`) },
    pool: {
      credentialFault: (cluster, fault) => step(`fault ${cluster} ${JSON.stringify(fault)}`),
      publish: (changed, removed) => {
        step(`publish ${changed.join()} without ${removed.join()}`)
        return new Promise((resolve) => inForce.push(resolve))
      },
    },
    metrics: {
      clustersChanged: () => step('series'),
      configApplied: (config) => {
        step(`in force ${config.generation}`)
        counted.push(config)
      },
    },
    clock: { now: () => time.ms },
  })
  const stop = changes.onApplied((generations, changed) => {
    const names = [...generations].map(([name, generation]) => `${name}=${generation}`)
    step(`told ${names.join()} of ${changed === undefined ? 'any' : [...changed].join()}`)
  })
  assert.deepEqual(steps.splice(0), ['told  of any'])
  return { changes, steps, inForce, counted, time, next, stop }
}

describe('applyChange', () => {
  it('compiles and publishes; listeners are called only when the threads have it in force', async () => {
    const { changes, steps, inForce, counted, time, next } = setUp()
    time.ms = 5
    next.removed = ['gone']
    const applied = changes.applyChange({ ...deliver(clusterOf('a', 3)), changed: new Set(['a', 'gone']) })
    const before = ['compile', 'follow', 'series', 'rights', 'fault gone ""', 'limits a,gone', 'publish a without gone']
    await promisesRun()
    assert.deepEqual(steps.splice(0), before)
    assert.deepEqual(changes.inForce, { problems: [], appliedAtMs: 0 })
    time.ms = 7
    inForce[0]?.()
    await applied
    assert.deepEqual(steps, ['in force 1', 'told a=3 of a,gone'])
    assert.deepEqual(changes.inForce, { problems: [], appliedAtMs: 7 })
    assert.deepEqual(counted, [{ generation: 1, nowMs: 7, clusters: 1, errors: 0, warnings: 0 }])
  })

  it('a change that arrives in the meantime is published at once, and the report of the first is about the first', async () => {
    const { changes, steps, inForce, next } = setUp()
    const first = changes.applyChange(deliver(clusterOf('a', 1)))
    next.failing = ['b']
    const second = changes.applyChange(deliver(clusterOf('a', 2), clusterOf('b', 1)))
    assert.deepEqual(
      steps.splice(0).filter((each) => each.startsWith('publish')),
      ['publish a without ', 'publish a without '],
    )
    inForce[0]?.()
    await first
    assert.deepEqual(steps.splice(0), ['in force 1', 'told a=1 of any'])
    assert.deepEqual(changes.inForce.problems, [])
    inForce[1]?.()
    await second
    assert.deepEqual(steps, ['in force 2', 'told a=2 of any'])
    assert.deepEqual(changes.inForce.problems, [problemOf('b')])
  })

  it('changes that come into force in one turn do so in their order', async () => {
    const { changes, steps, inForce } = setUp()
    const all = [1, 2, 3].map((generation) => changes.applyChange(deliver(clusterOf('a', generation))))
    steps.length = 0
    for (const resolve of inForce) resolve()
    await Promise.all(all)
    assert.deepEqual(
      steps.filter((each) => each.startsWith('told')),
      ['told a=1 of any', 'told a=2 of any', 'told a=3 of any'],
    )
  })

  it('a cluster that cannot be compiled keeps its generation, a removed one has none', async () => {
    const { changes, steps, inForce, next } = setUp()
    const first = changes.applyChange(deliver(clusterOf('a', 1), clusterOf('b', 1)))
    inForce[0]?.()
    await first
    next.failing = ['a']
    next.removed = ['b']
    steps.length = 0
    const second = changes.applyChange(deliver(clusterOf('a', 2)))
    inForce[1]?.()
    await second
    assert.equal(steps.at(-1), 'told a=1 of any')
  })

  it('a removed listener is not called', async () => {
    const { changes, steps, inForce, stop } = setUp()
    const applied = changes.applyChange(deliver(clusterOf('a', 1)))
    stop()
    inForce[0]?.()
    await applied
    assert.equal(steps.at(-1), 'in force 1')
  })
})
