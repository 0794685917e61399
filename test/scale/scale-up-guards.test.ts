// The controller of scale-up guards among servers in memory: what must be written before what, and what is left alone.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { type TestContext, test } from 'node:test'
import { parse } from 'yaml'
import type { JsonObject } from '../../src/kit/api/json/json-object.ts'
import { systemClock } from '../../src/kit/io/world/clock.ts'
import { foreignKind } from '../../src/kube/api/kinds/foreign-kinds.ts'
import type {
  FollowChoice,
  FollowEvents,
  Following,
  ObjectName,
  PatchOptions,
} from '../../src/kube/api/object-client.ts'
import type { ResourceKind } from '../../src/kube/api/resource-kind.ts'
import { SCALE_UP_GUARDS } from '../../src/scale-up-guard/api/scale-up-guard-kind.ts'
import { ScaleUpGuards, type ScaleUpGuardsDeps } from '../../src/scale-up-guard/controllers/guard/scale-up-guards.ts'
import { compileGuard } from '../../src/scale-up-guard/core/guard/compile-guard.ts'
import type { Inaction } from '../../src/scale-up-guard/core/guard/evaluate-group.ts'
import type { GuardInForce } from '../../src/scale-up-guard/core/guard/guards-in-force.ts'
import { Election } from '../harness/election.ts'
import { MemoryObjects } from '../harness/objects/memory-objects.ts'
import { waitFor } from '../harness/wait.ts'

// biome-ignore lint/suspicious/noExplicitAny: objects of every kind
type Json = any

const kind = (name: string, plural: string): ResourceKind =>
  foreignKind({ group: 'cluster.x-k8s.io', version: 'v1beta2', kind: name, plural, namespaced: true })
const DEPLOYMENTS = kind('MachineDeployment', 'machinedeployments')
const SETS = kind('MachineSet', 'machinesets')
const MACHINES = kind('Machine', 'machines')
const PATH = 'cluster.x-k8s.io/cluster-api-autoscaler-node-group'

class Server extends MemoryObjects {
  /** Before a patch; what it throws is the answer. */
  before: (kind: ResourceKind, at: ObjectName, options?: PatchOptions) => void | Promise<void> = () => undefined

  /** After a patch. */
  after: (options?: PatchOptions) => void = () => undefined
  /** Nodes may not be watched. */
  blind = false

  override follow(kind: ResourceKind, namespace: string, events: FollowEvents, choice?: FollowChoice): Following {
    if (!this.blind || kind.plural !== 'nodes') return super.follow(kind, namespace, events, choice)
    events.onState(false, 'forbidden')
    return { stop: async () => undefined }
  }

  async close(): Promise<void> {
    await Promise.resolve()
  }

  override async patch(
    kind: ResourceKind,
    at: ObjectName,
    type: string,
    body: unknown,
    options?: PatchOptions,
  ): Promise<JsonObject> {
    await this.before(kind, at, options)
    const patched = await super.patch(kind, at, type, body, options)
    this.after(options)
    return patched
  }
}

interface Scene {
  readonly control: Server
  readonly cluster: Server
  readonly election: Election
  /** Terms that have begun. */
  terms: number
  inForce(): readonly GuardInForce[]
  status(): Json
  target(): number
}

/** A guard, and a group of four of which two machines have failed, unless told otherwise. */
function scene(t: TestContext, spec: Json = {}, failed = 2, blind = false): Scene {
  const [control, cluster] = [new Server(), new Server()]
  cluster.blind = blind
  const annotations = { [`${PATH}-min-size`]: '0', [`${PATH}-max-size`]: '9' }
  const metadata = { name: 'a', namespace: 'default', uid: 'md', annotations }
  cluster.put(DEPLOYMENTS, { metadata, spec: { clusterName: 'c', replicas: 4 } })
  cluster.put(SETS, { metadata: { ...owned('md', 'a-1'), uid: 'ms' }, spec: { replicas: 4 } })
  for (let index = 0; index < 4; index++) cluster.put(MACHINES, machine(`m${index}`, index >= 4 - failed))
  control.put(SCALE_UP_GUARDS, guard(spec))
  let inForce: readonly GuardInForce[] = []
  const log = { debug: none, info: none, warn: none, error: none }
  const events: ScaleUpGuardsDeps['events'] = {
    backedOff: none,
    corrected: none,
    counted: none,
    ended: none,
    invalid: none,
  }
  const made: Scene = {
    control,
    cluster,
    inForce: () => inForce,
    election: new Election(),
    terms: 0,
    status: () => (control.find(SCALE_UP_GUARDS, 'g') as Json).status ?? {},
    target: () => (cluster.find(DEPLOYMENTS, 'a', 'default') as Json).spec.replicas,
  }
  const guards = new ScaleUpGuards({
    control,
    clientOf: () => {
      made.terms++
      return cluster
    },
    elect: () => made.election.leadership,
    onInForce: (now) => {
      inForce = now
    },
    clock: systemClock,
    log,
    events,
  })
  t.after(() => guards.stop())
  return made
}

function none(): void {}

function guard(spec: Json = {}): JsonObject {
  const head = { apiVersion: 'scale.portcullis.io/v1alpha1', kind: 'ScaleUpGuard', metadata: { name: 'g' } }
  return { ...head, spec: { clusterRef: { management: 'mgmt' }, ...spec } }
}

function owned(owner: string, name: string): Json {
  return { name, namespace: 'default', ownerReferences: [{ uid: owner, controller: true }] }
}

function machine(name: string, failed: boolean): JsonObject {
  const creationTimestamp = new Date(Date.now() - 3_600_000).toISOString()
  const metadata = { ...owned('ms', name), uid: name, creationTimestamp }
  const rest = { type: 'InfrastructureReady', status: 'False', lastTransitionTime: creationTimestamp }
  const conditions = failed ? [{ ...rest, reason: 'InstanceProvisionFailed', message: 'none left' }] : []
  return { metadata, spec: { providerID: name }, status: failed ? { conditions } : { nodeRef: { name } } }
}

const marked = ({ cluster }: Scene): string[] =>
  (cluster.all(MACHINES) as Json[])
    .filter(({ metadata }) => metadata.annotations?.['cluster.x-k8s.io/delete-machine'] !== undefined)
    .map(({ metadata }) => metadata.name)

test('backoff, then machines, then target', async (t) => {
  const made = scene(t)
  const order: string[] = []
  made.control.before = () => void order.push('status')
  made.cluster.before = ({ plural }, { name }, options) =>
    void order.push(`${plural}/${name} ${options?.subresource ?? ''}`)
  await waitFor('the correction', () => made.target() === 2)
  assert.deepEqual(marked(made), ['m2', 'm3'])
  assert.deepEqual(order.slice(order.indexOf('machines/m2 ') - 1, order.indexOf('machines/m2 ') + 3), [
    'status',
    'machines/m2 ',
    'machines/m3 ',
    'machinedeployments/a scale',
  ])
  assert.equal(made.inForce()[0]?.backoffs[0]?.group, 'MachineDeployment/default/a')
})

test('a target that is written back at once is one that another client has just changed', async (t) => {
  const made = scene(t)
  let corrections = 0
  made.cluster.after = (options) => {
    if (options?.subresource !== 'scale' || corrections++ > 0) return
    const object = made.cluster.find(DEPLOYMENTS, 'a', 'default') as Json
    made.cluster.put(DEPLOYMENTS, { ...object, spec: { ...object.spec, replicas: 4 } })
  }
  await waitFor('it to be seen', () => {
    const [{ target, neverActed } = {} as Json] = made.status().groups ?? []
    return corrections === 1 && target === 4 && neverActed === 'target-changed'
  })
  await waitFor('the correction of it', () => made.target() === 2)
  assert.equal(corrections, 2)
})

test('without a written backoff nothing is done', async (t) => {
  const made = scene(t)
  let tries = 0
  made.control.before = () => {
    tries++
    throw new Error('connect ECONNREFUSED')
  }
  await waitFor('a second try', () => tries >= 2)
  assert.deepEqual([made.target(), marked(made), made.inForce()], [4, [], []])
  made.control.before = none
  await waitFor('the correction', () => made.target() === 2)
  assert.equal(made.status().groups[0].attempt, 1, 'it is still the first')
})

test('a machine that becomes a node in the meantime is neither marked nor taken from the target', async (t) => {
  const made = scene(t, {}, 1)
  let late = true
  made.cluster.before = (_, { name }) => {
    if (!late || name !== 'm3') return
    late = false
    made.cluster.put(MACHINES, machine('m3', false))
  }
  await waitFor('the backoff', () => made.status().backedOffCount === 1)
  await waitFor('another look', () => made.status().groups[0].failedCount === undefined)
  assert.deepEqual([late, made.target(), marked(made)], [false, 4, []])
})

test('a target that changes in the meantime is evaluated again', async (t) => {
  const made = scene(t)
  let late = true
  made.cluster.before = (_kind, _at, options) => {
    if (!late || options?.subresource !== 'scale') return
    late = false
    const object = made.cluster.find(DEPLOYMENTS, 'a', 'default') as Json
    made.cluster.put(DEPLOYMENTS, { ...object, spec: { ...object.spec, replicas: 3 } })
  }
  // Four machines for a target of three: one of the two that failed goes already.
  await waitFor('the correction of the new target', () => made.target() === 2)
  assert.equal(late, false)
})

test('a Machine whose instance is a Node has not failed, whatever Cluster API says', async (t) => {
  const made = scene(t, { failure: { noNodeFor: '1s' } }, 0)
  const nodes = foreignKind({ group: '', version: 'v1', kind: 'Node', plural: 'nodes', namespaced: false })
  await waitFor('the guard to watch', () => made.cluster.followers(nodes) === 1 && made.status().groupCount === 1)
  const { metadata, spec } = machine('m0', true) as Json
  // A node for Cluster API no longer, but still one of the workload cluster.
  made.cluster.put(nodes, { metadata: { name: 'n0' }, spec: { providerID: 'm0' } })
  made.cluster.put(MACHINES, { metadata, spec, status: {} })
  made.cluster.put(MACHINES, machine('m1', true))
  await waitFor('the other one to fail', () => made.status().groups[0].failedCount === 1)
  assert.equal(made.status().groups[0].failed[0].machine, 'm1')
  made.cluster.remove(nodes, 'n0')
  await waitFor('both to have failed', () => made.status().groups[0].failedCount === 2)
})

test('while the Nodes cannot be watched, no Machine counts as without one', async (t) => {
  const made = scene(t, { failure: { noNodeFor: '1s' } }, 1, true)
  const { metadata, spec } = machine('m0', true) as Json
  made.cluster.put(MACHINES, { metadata, spec, status: {} })
  await waitFor('the one whose condition says so', () => made.status().groups?.[0].failedCount === 1)
  assert.equal(made.status().groups[0].failed[0].machine, 'm3')
  const nodesKnown = made.status().conditions.find(({ type }: Json) => type === 'NodesKnown')
  assert.deepEqual([nodesKnown.status, nodesKnown.message], ['False', 'nodes cannot be watched: forbidden'])
})

test('who does not lead enforces and writes nothing', async (t) => {
  const made = scene(t)
  made.election.leads = false
  const until = new Date(Date.now() + 3_600_000).toISOString()
  const group = {
    name: 'MachineDeployment/default/a',
    target: 4,
    attempt: 1,
    backoffUntil: until,
    lastFailureTime: until,
  }
  const object = made.control.find(SCALE_UP_GUARDS, 'g') as Json
  made.control.put(SCALE_UP_GUARDS, { ...object, status: { groups: [group] } })
  await waitFor('the backoff to be in force', () => made.inForce().length === 1)
  assert.deepEqual([made.control.writes, made.cluster.writes], [[], []])
  made.control.remove(SCALE_UP_GUARDS, 'g')
  await waitFor('it to end with its guard', () => made.inForce().length === 0)
})

test('the example of the page is a guard, and the page names every reason to leave a target alone', () => {
  const page = readFileSync(new URL('../../docs/scale.md', import.meta.url), 'utf8')
  const [, example = ''] = /^```yaml\n(apiVersion: \S+\nkind: ScaleUpGuard\n[\s\S]*?)^```/m.exec(page) ?? []
  const guard = compileGuard(parse(example))
  assert.ok(typeof guard !== 'string', String(guard))
  assert.deepEqual([guard.management, guard.workload, guard.policy.shadow], ['mgmt', 'prod', true])
  for (const reason of Object.keys(REASONS)) assert.ok(page.includes(`| \`${reason}\` |`), reason)
})

/** All but the one that is no news. */
const REASONS: Readonly<Record<Exclude<Inaction, 'none-failed'> | 'shadow', true>> = {
  'correction-is-off': true,
  paused: true,
  'rolling-out': true,
  'target-changed': true,
  'at-minimum': true,
  'already-lowered': true,
  'unregistered-are-kept': true,
  shadow: true,
}

test('nothing of shadow mode is written but the status', async (t) => {
  const made = scene(t, { shadow: true })
  await waitFor('the status', () => made.status().groups?.[0].neverActed === 'shadow')
  assert.deepEqual([made.target(), marked(made), made.cluster.writes], [4, [], []])
  assert.equal(made.inForce()[0]?.shadow, true)
})

test('a guard that was deleted and created again begins when the last write for the old one is over', async (t) => {
  const { promise: answered, resolve: answer } = Promise.withResolvers<void>()
  t.after(() => answer())
  const made = scene(t)
  let writing = false
  made.cluster.before = () => {
    writing = true
    return answered
  }
  await waitFor('a write', () => writing)
  made.control.remove(SCALE_UP_GUARDS, 'g')
  made.control.put(SCALE_UP_GUARDS, guard({ shadow: true }))
  assert.equal(made.terms, 1)
  answer()
  await waitFor('the new one', () => made.status().groups?.[0].neverActed === 'shadow')
  assert.equal(made.terms, 2)
})

test('the status of a guard that was deleted and created again is not that of the new one', async (t) => {
  const made = scene(t)
  let refused = false
  made.control.before = () => {
    if (refused) return
    refused = true
    made.control.stall()
    made.control.remove(SCALE_UP_GUARDS, 'g')
    made.control.put(SCALE_UP_GUARDS, guard({ shadow: true }))
  }
  await waitFor('the write', () => refused)
  await made.control.get(SCALE_UP_GUARDS, { namespace: '', name: 'g' })
  await made.control.get(SCALE_UP_GUARDS, { namespace: '', name: 'g' })
  assert.deepEqual(made.status(), {})
  made.control.resume()
  await waitFor('the new one', () => made.status().groups?.[0].neverActed === 'shadow')
  assert.equal(made.target(), 4)
})

test('a change of the object in the meantime does not keep a status from being written', async (t) => {
  const made = scene(t)
  let changes = 0
  made.control.before = () => {
    if (changes++ > 1) return
    const object = made.control.find(SCALE_UP_GUARDS, 'g') as Json
    const annotations = { by: `alice ${changes}` }
    made.control.put(SCALE_UP_GUARDS, { ...object, metadata: { ...object.metadata, annotations } })
  }
  await waitFor('the correction', () => made.target() === 2)
  assert.equal(made.status().backedOffCount, 1)
})

test('that a guard cannot be used is said when the API server is there again', async (t) => {
  const made = scene(t, { clusterRef: {} })
  let tries = 0
  made.control.before = () => {
    if (tries++ === 0) throw new Error('connect ECONNREFUSED')
  }
  await waitFor('the condition', () => made.status().conditions?.[0].reason === 'Invalid')
})
