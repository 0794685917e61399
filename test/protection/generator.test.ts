// The generator of PodProtectors on the embedded API server's own registry, which here has workloads, too: finalizers, conflicts
// and validation are the real ones.

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { afterEach, test } from 'node:test'
import { openSqliteStore } from '../../src/apiserver/io/store/store.ts'
import { createInProcessClient } from '../../src/apiserver/registry/in-process-client.ts'
import { Registry } from '../../src/apiserver/registry/registry.ts'
import type { JsonObject } from '../../src/kit/api/json/json-object.ts'
import { DEPLOYMENTS, REPLICA_SETS, STATEFUL_SETS } from '../../src/kube/api/kinds/foreign-kinds.ts'
import { NAMESPACES } from '../../src/kube/api/kinds/namespace-kind.ts'
import type { ObjectClient } from '../../src/kube/api/object-client.ts'
import type { ResourceKind } from '../../src/kube/api/resource-kind.ts'
import { StatusError, statusError } from '../../src/kube/api/status.ts'
import { nodePemChecks } from '../../src/pki/io/pem-checks.ts'
import { SCHEME } from '../../src/program/api/scheme.ts'
import { POD_PROTECTORS } from '../../src/protection/api/pod-protector-kind.ts'
import { GENERATOR_FINALIZER, SOURCE_LABELS } from '../../src/protection/api/protection.ts'
import {
  type ProtectorGenerator,
  startProtectorGenerator,
} from '../../src/protection/controllers/generator/protector-generator.ts'
import {
  builtInKind,
  type GeneratorKind,
  type GeneratorKindOptions,
} from '../../src/protection/core/generator/kinds.ts'
import { protectorName } from '../../src/protection/core/generator/names.ts'
import type { Json } from '../harness/clients/control-client.ts'
import { Election } from '../harness/election.ts'
import { waitFor } from '../harness/wait.ts'

const PROTECTED = { protect: 'true' }

const worlds: World[] = []
afterEach(async () => {
  for (const world of worlds.splice(0)) await world.stop()
})

function kindOf(name: string, options: GeneratorKindOptions = {}): GeneratorKind {
  const kind = builtInKind(name, options)
  assert.ok(kind !== undefined)
  return kind
}

/** An API server, and generators on it. */
class World {
  readonly client: ObjectClient
  readonly logged: string[] = []
  readonly found: string[] = []
  readonly errors: string[] = []
  readonly writes: string[] = []
  readonly election = new Election()
  /** What a call is answered with instead. */
  refuse: (call: string) => Error | undefined = () => undefined
  readonly #store = openSqliteStore({ file: ':memory:', key: undefined })
  readonly #generators: ProtectorGenerator[] = []

  constructor() {
    const registry = new Registry({
      store: this.#store,
      kinds: [...SCHEME, DEPLOYMENTS, STATEFUL_SETS, REPLICA_SETS],
      pem: nodePemChecks,
      now: Date.now,
      uuid: randomUUID,
      random: Math.random,
    })
    this.client = createInProcessClient(registry)
    worlds.push(this)
  }

  /** With the namespace `shop`. */
  static async create(): Promise<World> {
    const world = new World()
    await world.client.create(NAMESPACES, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } })
    return world
  }

  generate(kinds: readonly GeneratorKind[] = [kindOf('Deployment')], resyncMs = 60_000): ProtectorGenerator {
    const watched = this.#watched()
    const generator = startProtectorGenerator({
      workloads: watched,
      core: watched,
      kinds,
      leadership: this.election.leadership,
      limits: { maxConcurrentLag: 0, compactThreshold: 100, aggregationRateMs: 1_000, staleAfterMs: 0 },
      clock: { now: Date.now, monotonic: () => performance.now() },
      random: () => 0,
      log: {
        debug: () => undefined,
        info: () => undefined,
        warn: (message, fields) => void this.logged.push(`${message} ${JSON.stringify(fields)}`),
        error: (message, fields) => void this.logged.push(`ERROR ${message} ${String(fields?.['error'])}`),
      },
      events: {
        reconciled: (_kind, _namespace, error) => void this.errors.push(error),
        found: (_kind, _namespace, finding) => void this.found.push(finding),
      },
      resyncMs,
    })
    this.#generators.push(generator)
    return generator
  }

  /** The client as generators have it. */
  #watched(): ObjectClient {
    const through = async <T>(call: string, go: () => Promise<T>): Promise<T> => {
      const error = this.refuse(call)
      if (error !== undefined) throw error
      const result = await go()
      if (!call.startsWith('get')) this.writes.push(call)
      return result
    }
    const nameIn = (object: JsonObject): string => (object as Json).metadata.name
    const { client } = this
    return {
      get: (kind, at) => through(`get ${kind.singular} ${at.name}`, () => client.get(kind, at)),
      list: (kind, namespace, selector) => client.list(kind, namespace, selector),
      create: (kind, object) => through(`create ${kind.singular} ${nameIn(object)}`, () => client.create(kind, object)),
      update: (kind, object, subresource) =>
        through(`update ${kind.singular} ${nameIn(object)}`, () => client.update(kind, object, subresource)),
      patch: (kind, at, type, body, options) => client.patch(kind, at, type, body, options),
      delete: (kind, at) => through(`delete ${kind.singular} ${at.name}`, () => client.delete(kind, at)),
      follow: (kind, namespace, events) => client.follow(kind, namespace, events),
    }
  }

  async stop(): Promise<void> {
    await Promise.all(this.#generators.splice(0).map((generator) => generator.stop()))
    this.#store.close()
  }

  // === what people do ===

  async deploy(name: string, spec: Json = {}, metadata: Json = {}, kind: ResourceKind = DEPLOYMENTS): Promise<void> {
    await this.client.create(kind, {
      apiVersion: 'apps/v1',
      kind: kind.kind,
      metadata: { name, namespace: 'shop', ...metadata },
      spec: { replicas: 4, selector: { matchLabels: { app: name.slice(0, 63) } }, ...spec },
    })
  }

  /** undefined = there is none. */
  async get(kind: ResourceKind, name: string): Promise<Json | undefined> {
    try {
      return await this.client.get(kind, { namespace: 'shop', name })
    } catch (error) {
      if (error instanceof StatusError && error.code === 404) return undefined
      throw error
    }
  }

  /** Tried until no other writer is faster. */
  async change(kind: ResourceKind, name: string, how: (object: Json) => void, subresource?: 'status'): Promise<void> {
    await waitFor(`a change of ${name}`, async () => {
      const object = structuredClone(await this.client.get(kind, { namespace: 'shop', name })) as Json
      how(object)
      return this.client.update(kind, object, subresource)
    })
  }

  delete(kind: ResourceKind, name: string): Promise<void> {
    return this.client.delete(kind, { namespace: 'shop', name })
  }

  // === what is seen ===

  protector(name: string, minAvailable: number): Promise<Json> {
    return waitFor(`protector ${name} of ${minAvailable}`, async () => {
      const protector = await this.get(POD_PROTECTORS, name)
      return protector?.spec.minAvailable === minAvailable && protector
    })
  }

  gone(kind: ResourceKind, name: string): Promise<true> {
    return waitFor(`the end of ${kind.singular} ${name}`, async () => (await this.get(kind, name)) === undefined)
  }

  /** Everything that was to be done before is done: what comes after it is. */
  async settled(): Promise<void> {
    const name = `sentinel-${randomUUID()}`
    await this.deploy(name, {}, { labels: PROTECTED })
    await this.protector(`deployment-${name}`, 3)
  }
}

function finalizers(object: Json | undefined): readonly string[] {
  return object?.metadata.finalizers ?? []
}

test('a protector lives as long as its workload does (G1)', async () => {
  const world = await World.create()
  world.generate()
  const strategy = { rollingUpdate: { maxUnavailable: '30%' } }
  await world.deploy('workload', { replicas: 10, minReadySeconds: 15, strategy })
  const protector = await world.protector('deployment-workload', 7)
  assert.deepEqual(finalizers(protector), [GENERATOR_FINALIZER])
  assert.deepEqual(finalizers(await world.get(DEPLOYMENTS, 'workload')), [GENERATOR_FINALIZER])
  assert.equal(protector.spec.minReadySeconds, 15)
  assert.equal(protector.metadata.ownerReferences, undefined)
  await world.change(DEPLOYMENTS, 'workload', (object) => {
    object.spec.replicas = 20
  })
  await world.protector('deployment-workload', 14)
  // Deleted by a user, it stays and still does its work.
  await world.delete(POD_PROTECTORS, 'deployment-workload')
  await world.change(DEPLOYMENTS, 'workload', (object) => {
    object.spec.replicas = 10
  })
  const going = await world.protector('deployment-workload', 7)
  assert.equal(typeof going.metadata.deletionTimestamp, 'string')
  await world.delete(DEPLOYMENTS, 'workload')
  await world.gone(POD_PROTECTORS, 'deployment-workload')
  await world.gone(DEPLOYMENTS, 'workload')
  assert.deepEqual(world.logged, [])
})

interface Row {
  readonly name: string
  readonly source: {
    readonly exists?: boolean
    readonly finalizer: boolean
    readonly otherFinalizers?: readonly string[]
    readonly terminating: boolean
    readonly protect: boolean
  }
  readonly ppr: { readonly finalizer: boolean; readonly minAvailable: number } | null
  readonly expect: {
    readonly sourceFinalizer?: boolean
    readonly ppr: { readonly minAvailable?: number } | null
    readonly actions: readonly string[]
    readonly cleanSourceFinalizerCalled: boolean
  }
}

const { generator: rows } = JSON.parse(
  readFileSync(new URL('../data/podseidon-generator.json', import.meta.url), 'utf8'),
) as { generator: Row[] }
const FINDINGS: Readonly<Record<string, string>> = {
  CreatingProtector: 'Create',
  SyncProtector: 'Sync',
  DeleteProtector: 'Delete',
  DanglingProtector: 'Dangling',
}

for (const { name, source, ppr, expect } of rows) {
  test(`Podseidon's table: ${name}`, async () => {
    const world = await World.create()
    if (source.exists !== false) {
      const finalizers = [...(source.finalizer ? [GENERATOR_FINALIZER] : []), ...(source.otherFinalizers ?? [])]
      // 14 replicas: ten have to stay.
      await world.deploy('www', { replicas: 14 }, { finalizers, ...(source.protect && { labels: PROTECTED }) })
      if (source.terminating) await world.delete(DEPLOYMENTS, 'www')
    }
    if (ppr !== null) {
      await world.client.create(POD_PROTECTORS, {
        apiVersion: 'podseidon.kubewharf.io/v1alpha1',
        kind: 'PodProtector',
        metadata: {
          name: 'deployment-www',
          namespace: 'shop',
          finalizers: ppr.finalizer ? [GENERATOR_FINALIZER] : [],
          labels: {
            [SOURCE_LABELS.group]: 'apps',
            [SOURCE_LABELS.kind]: 'Deployment',
            [SOURCE_LABELS.resource]: 'deployments',
            [SOURCE_LABELS.name]: 'www',
          },
        },
        spec: { minAvailable: ppr.minAvailable, minReadySeconds: 0, selector: { matchLabels: { app: 'www' } } },
      })
    }
    world.generate([kindOf('Deployment', { protectionSelector: { matchLabels: PROTECTED }, protectNonZero: true })])
    const expected = expect.actions.map((action) => FINDINGS[action] ?? action)
    if (expect.cleanSourceFinalizerCalled) expected.push('CleanSourceFinalizer')
    await waitFor('what is found', () => expected.every((finding) => world.found.includes(finding)))
    const before = world.found.length
    await world.settled()
    if (expected.length === 0) assert.deepEqual(world.found.slice(0, before), [])
    const workload = await world.get(DEPLOYMENTS, 'www')
    assert.equal(finalizers(workload).includes(GENERATOR_FINALIZER), expect.sourceFinalizer ?? false)
    const protector = await world.get(POD_PROTECTORS, 'deployment-www')
    assert.equal(protector !== undefined, expect.ppr !== null)
    if (expect.ppr?.minAvailable !== undefined) assert.equal(protector?.spec.minAvailable, expect.ppr.minAvailable)
    assert.equal(protector?.metadata.deletionTimestamp, undefined)
  })
}

test('manual changes of a protector are reverted, and tunable fields stay', async () => {
  const world = await World.create()
  world.generate()
  await world.deploy('www')
  const original = await world.protector('deployment-www', 3)
  await world.change(POD_PROTECTORS, 'deployment-www', (object) => {
    object.spec.minAvailable = 0
    object.spec.aggregationSelector = {}
    object.spec.admissionHistoryConfig = { compactThreshold: 7 }
    object.metadata.labels = { team: 'x' }
    object.metadata.finalizers = []
  })
  const repaired = await world.protector('deployment-www', 3)
  assert.deepEqual(repaired.spec, { ...original.spec, admissionHistoryConfig: { compactThreshold: 7 } })
  assert.deepEqual(repaired.metadata.labels, { ...original.metadata.labels, team: 'x' })
  assert.deepEqual(finalizers(repaired), [GENERATOR_FINALIZER])
  // One that is taken away by force comes again.
  world.election.leads = false
  await world.change(POD_PROTECTORS, 'deployment-www', (object) => {
    object.metadata.finalizers = []
  })
  await world.delete(POD_PROTECTORS, 'deployment-www')
  world.election.leads = true
  await world.protector('deployment-www', 3)
})

test('a protector of that name without labels is taken over', async () => {
  const world = await World.create()
  await world.client.create(POD_PROTECTORS, {
    apiVersion: 'podseidon.kubewharf.io/v1alpha1',
    kind: 'PodProtector',
    metadata: { name: 'deployment-www', namespace: 'shop' },
    spec: { minAvailable: 9, minReadySeconds: 0, selector: { matchLabels: { app: 'www' } } },
  })
  world.generate()
  await world.deploy('www')
  const protector = await world.protector('deployment-www', 3)
  assert.equal(protector.metadata.labels[SOURCE_LABELS.name], 'www')
})

test('cells are removed once, and what is left is summed up', async () => {
  const world = await World.create()
  world.generate()
  await world.deploy('www')
  await world.protector('deployment-www', 3)
  const cell = (cellID: string, count: number): Json => ({
    cellID,
    aggregation: { totalReplicas: count, availableReplicas: count },
  })
  const setCells = (name: string): Promise<void> =>
    world.change(
      POD_PROTECTORS,
      name,
      (object) => {
        const summary = { totalReplicas: 6, aggregatedAvailableReplicas: 6, estimatedAvailableReplicas: 6 }
        object.status = { cells: [cell('a', 3), cell('b', 2), cell('c', 1)], summary }
      },
      'status',
    )
  // One belongs to no workload.
  await world.client.create(POD_PROTECTORS, {
    apiVersion: 'podseidon.kubewharf.io/v1alpha1',
    kind: 'PodProtector',
    metadata: { name: 'by-hand', namespace: 'shop' },
    spec: { minAvailable: 1, minReadySeconds: 0, selector: { matchLabels: { app: 'x' } } },
  })
  for (const name of ['deployment-www', 'by-hand']) {
    await setCells(name)
    await world.change(POD_PROTECTORS, name, (object) => {
      object.metadata.annotations = { 'podseidon.kubewharf.io/remove-cell-once': ' a, c ,nope', note: 'x' }
    })
    const protector = await waitFor('the annotation to go', async () => {
      const object = await world.get(POD_PROTECTORS, name)
      return object?.metadata.annotations['podseidon.kubewharf.io/remove-cell-once'] === undefined && object
    })
    assert.deepEqual(protector.metadata.annotations, { note: 'x' })
    assert.deepEqual(
      protector.status.cells.map(({ cellID }: Json) => cellID),
      ['b'],
    )
    const { totalReplicas, aggregatedAvailableReplicas, estimatedAvailableReplicas } = protector.status.summary
    assert.deepEqual([totalReplicas, aggregatedAvailableReplicas, estimatedAvailableReplicas], [2, 2, 2])
  }
})

test('a protector outlives a workload that was erased', async () => {
  const world = await World.create()
  world.generate()
  await world.deploy('www')
  await world.protector('deployment-www', 3)
  // As when etcd loses it: no finalizer runs.
  world.election.leads = false
  await world.change(DEPLOYMENTS, 'www', (object) => {
    object.metadata.finalizers = []
  })
  await world.delete(DEPLOYMENTS, 'www')
  world.election.leads = true
  await waitFor('the loss to be found', () => world.found.includes('Dangling'))
  await world.settled()
  const protector = await world.protector('deployment-www', 3)
  assert.equal(protector.metadata.deletionTimestamp, undefined)
  // And belongs to one that comes in its place.
  await world.deploy('www', { replicas: 8 })
  const again = await world.protector('deployment-www', 6)
  assert.equal(again.metadata.uid, protector.metadata.uid)
})

test('protectNonZero: a deleted workload stays until it is scaled down', async () => {
  const world = await World.create()
  world.generate([kindOf('Deployment', { protectNonZero: true })])
  await world.deploy('www')
  await world.protector('deployment-www', 3)
  await world.delete(DEPLOYMENTS, 'www')
  await world.settled()
  await world.protector('deployment-www', 3)
  await world.change(DEPLOYMENTS, 'www', (object) => {
    object.spec.replicas = 0
  })
  await world.gone(POD_PROTECTORS, 'deployment-www')
  await world.gone(DEPLOYMENTS, 'www')
})

test('names of any length', async () => {
  const world = await World.create()
  const kind = kindOf('Deployment')
  world.generate([kind])
  for (const length of [64, 253]) {
    const name = 'n'.repeat(length)
    await world.deploy(name)
    await world.protector(protectorName(kind, name), 3)
    await world.delete(DEPLOYMENTS, name)
    await world.gone(POD_PROTECTORS, protectorName(kind, name))
    await world.gone(DEPLOYMENTS, name)
  }
})

test('StatefulSets, and ReplicaSets without an owner', async () => {
  const world = await World.create()
  world.generate(['Deployment', 'StatefulSet', 'ReplicaSet'].map((name) => kindOf(name)))
  const ownerReferences = [{ apiVersion: 'apps/v1', kind: 'Deployment', name: 'www', uid: 'u', controller: true }]
  await world.deploy('owned', {}, { ownerReferences }, REPLICA_SETS)
  await world.deploy('own', {}, {}, REPLICA_SETS)
  await world.deploy('db', { replicas: 3 }, {}, STATEFUL_SETS)
  await world.protector('replicaset-own', 3)
  await world.protector('statefulset-db', 2)
  await world.settled()
  assert.equal(await world.get(POD_PROTECTORS, 'replicaset-owned'), undefined)
  assert.deepEqual(finalizers(await world.get(REPLICA_SETS, 'owned')), [])
})

test('a protector of an old name is deleted when the new one exists', async () => {
  const world = await World.create()
  const first = world.generate([kindOf('Deployment', { prefix: 'old' })])
  await world.deploy('www')
  await world.protector('old-www', 3)
  await first.stop()
  world.generate([kindOf('Deployment')])
  await world.gone(POD_PROTECTORS, 'old-www')
  await world.protector('deployment-www', 3)
})

test('only the leader writes, and a new one looks at everything', async () => {
  const world = await World.create()
  world.election.leads = false
  await world.deploy('before')
  world.generate()
  await world.deploy('after')
  const both = new World()
  await both.client.create(NAMESPACES, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } })
  both.generate()
  // As long as another process takes for all of it.
  await both.settled()
  assert.deepEqual(world.writes, [])
  world.election.leads = true
  await world.protector('deployment-before', 3)
  await world.protector('deployment-after', 3)
})

test('a replica that loses leadership in the middle stops there', async () => {
  const world = await World.create()
  world.refuse = (call) => {
    if (call.startsWith('update deployment')) world.election.leads = false
    return undefined
  }
  world.generate()
  await world.deploy('www')
  await waitFor('the first write', () => world.writes.length > 0)
  await waitFor('the end of the turn', () => world.errors.length > 0)
  assert.deepEqual(world.writes, ['update deployment www'])
})

test('a right that is missing is a problem of the whole generator, until it is granted', async () => {
  const world = await World.create()
  let refusing = true
  world.refuse = (call) => {
    return refusing && call.startsWith('create') ? statusError('Forbidden', 'may not create podprotectors') : undefined
  }
  const generator = world.generate([kindOf('Deployment')], 50)
  assert.equal(generator.problem, '')
  await world.deploy('www')
  await waitFor('the problem', () => generator.problem === 'may not create podprotectors')
  world.election.leads = false
  assert.equal(generator.problem, '')
  world.election.leads = true
  refusing = false
  await world.protector('deployment-www', 3)
  await waitFor('the end of the problem', () => generator.problem === '')
})

test('workloads that may not be followed are a problem of the generator', async () => {
  const world = await World.create()
  let state: ((current: boolean, message: string) => void) | undefined
  const { follow } = world.client
  world.client.follow = (kind, namespace, events) => {
    if (kind === DEPLOYMENTS) state = (current, message) => events.onState(current, message)
    return follow.call(world.client, kind, namespace, events)
  }
  const generator = world.generate()
  state?.(false, 'deployments.apps is forbidden')
  assert.equal(generator.problem, 'Deployment objects cannot be followed: deployments.apps is forbidden')
  state?.(true, '')
  assert.equal(generator.problem, '')
})

test('conflicts and failures are tried again, and one workload never holds up another', async () => {
  const world = await World.create()
  let conflicts = 3
  let failures = 2
  world.refuse = (call) => {
    if (call === 'update deployment slow' && conflicts-- > 0)
      return statusError('Conflict', 'another client was faster')
    if (call === 'create podprotector deployment-broken' && failures-- > 0) return new Error('connect ECONNREFUSED')
    return undefined
  }
  world.generate()
  await world.deploy('odd', { selector: {} })
  await world.deploy('slow')
  await world.deploy('broken')
  for (const name of ['sound', 'slow', 'broken']) {
    if (name === 'sound') await world.deploy(name)
    await world.protector(`deployment-${name}`, 3)
  }
  assert.deepEqual([conflicts, failures], [-1, -1])
  await waitFor('what is wrong to be said', () =>
    world.logged.some((line) => line.includes('is empty, so it selects all')),
  )
  assert.equal(await world.get(POD_PROTECTORS, 'deployment-odd'), undefined)
  for (const error of ['Conflict', 'NoAnswer', 'Unclear']) assert.ok(world.errors.includes(error), error)
  assert.equal(world.logged.filter((line) => line.includes('ECONNREFUSED')).length, 1)
})

test('what was missed is found by looking at everything again', async () => {
  const world = await World.create()
  // The API server refuses it for good, as far as the generator can tell, until it is repaired.
  let refusing = true
  world.refuse = (call) => {
    if (refusing && call.startsWith('create')) return statusError('Invalid', 'refused')
    return undefined
  }
  world.generate([kindOf('Deployment')], 50)
  await world.deploy('www')
  await waitFor('a refusal', () => world.errors.includes('Invalid'))
  refusing = false
  await world.protector('deployment-www', 3)
  const writes = world.writes.length
  const seen = world.errors.length
  await world.settled()
  // Nothing is written, nor even asked, where all is well.
  assert.equal(world.writes.filter((write) => write.endsWith('www')).length, 2)
  assert.ok(world.writes.length > writes && world.errors.length > seen)
})

test('nothing runs on after the end', async () => {
  const world = await World.create()
  const generator = world.generate()
  await generator.stop()
  await world.deploy('www')
  const other = await World.create()
  other.generate()
  await other.settled()
  assert.deepEqual(world.writes, [])
})
