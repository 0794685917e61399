// ScaleDownPolicies in the main thread: which are in force, what their status says, and that leftover deletion costs are removed,
// and no others.

import assert from 'node:assert/strict'
import { afterEach, test } from 'node:test'
import { Election } from '../../../test/harness/election.ts'
import { MemoryObjects } from '../../../test/harness/objects/memory-objects.ts'
import { waitFor } from '../../../test/harness/wait.ts'
import { type JsonObject, mapOf, nameOf, namespaceOf } from '../../kit/api/json/json-object.ts'
import { subdomainErrors } from '../../kit/api/validation/name-errors.ts'
import { systemClock } from '../../kit/io/world/clock.ts'
import { EVENTS } from '../../kube/api/kinds/event-kind.ts'
import { DEPLOYMENTS, PODS } from '../../kube/api/kinds/foreign-kinds.ts'
import { type Leading, leadAlone } from '../../kube/controllers/kernel/leadership.ts'
import type { ScaleDownReport } from '../api/scale-down.ts'
import type { ScaleDownPolicyStatus } from '../api/scale-down-policy.ts'
import { SCALE_DOWN_POLICIES } from '../api/scale-down-policy-kind.ts'
import { OWN_COST_ANNOTATION } from '../core/victim-choice/own-cost.ts'
import type { CompiledScaleDownPolicy } from '../core/victim-choice/policy.ts'
import { CostSweeper, type SweepPace } from './cost-sweeper.ts'
import { ScaleDownPolicyController } from './policies.ts'

const COST = 'controller.kubernetes.io/pod-deletion-cost'
const silent = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined }
const QUICK: SweepPace = { everyMs: 2, graceMs: 0, longestMs: 600_000 }
const SPEC = { selector: { matchLabels: { app: 'web' } }, prefer: [{ by: 'EmptiestNode' }] }
const POLICY: CompiledScaleDownPolicy = {
  namespace: 'default',
  name: 'web',
  clusters: [],
  selector: {},
  prefer: [],
  onUnavailable: 'Forward',
  settleMs: 0,
  maxDelayMs: 1_000,
  shadow: false,
}

const cleanups: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0)) await cleanup()
})

class Cluster extends MemoryObjects {
  close(): Promise<void> {
    return Promise.resolve()
  }

  pod(name: string, annotations: Readonly<Record<string, string>>): void {
    this.put(PODS, { metadata: { name, namespace: 'default', annotations } })
  }

  annotations(name: string): Readonly<Record<string, string>> {
    return mapOf(this.find(PODS, name, 'default') ?? {}, 'annotations')
  }

  deployment(replicas: number, has: number): void {
    const status = { observedGeneration: 99, replicas: has }
    this.put(DEPLOYMENTS, { metadata: { name: 'web', namespace: 'default' }, spec: { replicas }, status })
  }
}

function own(workload = 'deployments/web', id = 'one'): Readonly<Record<string, string>> {
  return { [COST]: '-1', [OWN_COST_ANNOTATION]: JSON.stringify({ id, workload, to: 1, at: '' }) }
}

interface SweeperOptions {
  readonly pace?: Partial<SweepPace>
  readonly policies?: () => readonly CompiledScaleDownPolicy[]
  readonly leadership?: Leading
}

function sweeper(
  cluster: Cluster,
  { pace = {}, policies = () => [POLICY], leadership = leadAlone(silent) }: SweeperOptions = {},
): CostSweeper {
  const connect = (): Cluster => cluster
  const deps = { clusters: () => ['prod'], connect, leadership, policies, clock: systemClock, log: silent }
  const made = new CostSweeper(deps, { ...QUICK, ...pace })
  cleanups.push(() => made.stop())
  return made
}

function without(cluster: Cluster, name: string): Promise<unknown> {
  return waitFor(`${name} to have no cost of ours`, () => cluster.annotations(name)[OWN_COST_ANNOTATION] === undefined)
}

test('a cost is taken back once the scale-down is done; a pod whose cost another client has changed keeps it', async () => {
  const cluster = new Cluster()
  cluster.deployment(1, 3)
  cluster.pod('a', own())
  cluster.pod('b', { ...own(), [COST]: '12', other: 'x' })
  cluster.pod('c', { [COST]: '-1' })
  const running = sweeper(cluster)
  running.update()
  // Its workload is gone: proves that it was checked.
  cluster.pod('gone', own('deployments/none'))
  await without(cluster, 'gone')
  assert.equal(cluster.annotations('a')[COST], '-1', 'the controller is not done')
  cluster.deployment(1, 1)
  await without(cluster, 'a')
  await without(cluster, 'b')
  assert.deepEqual(cluster.annotations('a'), {})
  assert.deepEqual(cluster.annotations('b'), { [COST]: '12', other: 'x' })
  assert.deepEqual(cluster.annotations('c'), { [COST]: '-1' })
})

test('not before the scale-down may have been forwarded, and after a time in any case', async () => {
  const cluster = new Cluster()
  cluster.deployment(1, 1)
  cluster.pod('a', own())
  const waiting = sweeper(cluster, { pace: { graceMs: 1_000_000 } })
  waiting.update()
  await waitFor('it to be followed', () => cluster.followers(PODS) === 1)
  await waiting.stop()
  assert.equal(cluster.annotations('a')[COST], '-1')
  cluster.deployment(1, 5)
  sweeper(cluster, { pace: { longestMs: 0 } }).update()
  await without(cluster, 'a')
})

test('only the leader takes costs back, also those of a policy that is gone', async () => {
  const cluster = new Cluster()
  cluster.deployment(1, 3)
  cluster.pod('a', own())
  const election = new Election(false)
  let policies: readonly CompiledScaleDownPolicy[] = [POLICY]
  const running = sweeper(cluster, { leadership: election.leadership, policies: () => policies })
  running.update()
  assert.equal(cluster.followers(PODS), 0)
  election.leads = true
  assert.equal(cluster.followers(PODS), 1)
  await waitFor('the list', () => cluster.followers(PODS) === 1)
  await new Promise(setImmediate)
  policies = []
  running.update()
  cluster.deployment(1, 1)
  await without(cluster, 'a')
  await waitFor('nothing more to be followed', () => cluster.followers(PODS) === 0)
})

test('one policy that is not valid affects no other, and says why', async () => {
  const store = new MemoryObjects()
  const put = (name: string, spec: unknown): void => {
    const metadata = { name, namespace: 'default' }
    store.put(SCALE_DOWN_POLICIES, {
      apiVersion: 'scale.portcullis.io/v1alpha1',
      kind: 'ScaleDownPolicy',
      metadata,
      spec,
    })
  }
  put('good', SPEC)
  put('bad', { ...SPEC, prefer: [{ by: 'Weather' }] })
  put('keyless', { ...SPEC, prefer: [{ by: 'Annotation' }] })
  put('odd', 7)
  let inForce: readonly CompiledScaleDownPolicy[] = []
  const controller = new ScaleDownPolicyController({
    client: store,
    replica: 'gw-0',
    leadership: leadAlone(silent),
    onPolicies: (policies) => {
      inForce = policies
    },
    clock: systemClock,
    random: Math.random,
    log: silent,
  })
  cleanups.push(() => controller.stop())
  await waitFor('the policies', () => inForce.length > 0)
  assert.deepEqual(inForce, [
    { ...POLICY, name: 'good', selector: SPEC.selector, prefer: SPEC.prefer, settleMs: 300, maxDelayMs: 1500 },
  ])
  const statusOf = (name: string): ScaleDownPolicyStatus | undefined => {
    return store.find(SCALE_DOWN_POLICIES, name, 'default')?.['status'] as ScaleDownPolicyStatus | undefined
  }
  await waitFor('the statuses', () => ['good', 'bad', 'keyless', 'odd'].every((name) => statusOf(name) !== undefined))
  assert.equal(statusOf('good')?.conditions?.[0]?.status, 'True')
  assert.match(statusOf('bad')?.conditions?.[0]?.message ?? '', /spec\.prefer\[0\]\.by/)
  assert.match(statusOf('keyless')?.conditions?.[0]?.message ?? '', /spec\.prefer\[0\]\.annotation is required/)
  const report: ScaleDownReport = {
    ...{ namespace: 'default', policy: 'good', cluster: 'prod', workload: 'deployments/web', from: 3, to: 1 },
    ...{ outcome: 'Steered', message: '', victims: ['a'], conflicts: [], atMs: 0 },
  }
  controller.report({ ...report, outcome: 'Unsteerable', message: 'it is a StatefulSet' })
  const conditionOf = (type: string) => statusOf('good')?.conditions?.find((one) => one.type === type)
  await waitFor('the condition', () => conditionOf('Steered') !== undefined)
  const { status, reason, message } = conditionOf('Steered') ?? {}
  assert.deepEqual([status, reason, message], ['False', 'Unsteerable', 'deployments/web: it is a StatefulSet'])
  for (let i = 0; i < 100; i++) controller.report({ ...report, from: i, conflicts: ['b'] })
  await waitFor('the last scale-down', () => statusOf('good')?.lastScaleDown?.outcome === 'Steered')
  assert.equal(statusOf('good')?.lastScaleDown?.from, 99)
  assert.equal(conditionOf('Ready')?.status, 'True')
  assert.match(conditionOf('Steered')?.message ?? '', /deletion costs that other clients set were left unchanged: b/)
  const events = store.all(EVENTS).map(({ reason, type, message }) => `${type} ${reason} ${message}`)
  assert.deepEqual(events, [
    'Warning Unsteerable deployments/web: it is a StatefulSet',
    'Normal DeletionCostConflict deployments/web; deletion costs that other clients set were left unchanged: b',
  ])
  put('good', { ...SPEC, shadow: true })
  await waitFor('the change', () => inForce[0]?.shadow === true)
})

test('the Event of a policy with a long name has a valid name, and counts what happens again', async () => {
  const store = new MemoryObjects()
  store.namespaces = ['team']
  // The 230th character is one that a name must not end in.
  const name = `${'a'.repeat(229)}-${'b'.repeat(20)}`
  store.put(SCALE_DOWN_POLICIES, {
    apiVersion: 'scale.portcullis.io/v1alpha1',
    kind: 'ScaleDownPolicy',
    metadata: { name, namespace: 'team' },
    spec: SPEC,
  })
  let inForce: readonly CompiledScaleDownPolicy[] = []
  const controller = new ScaleDownPolicyController({
    client: store,
    replica: 'gw-0',
    leadership: new Election(false).leadership,
    onPolicies: (policies) => {
      inForce = policies
    },
    clock: systemClock,
    random: Math.random,
    log: silent,
    eventPace: { objectMs: 1, spacingMs: 1 },
  })
  cleanups.push(() => controller.stop())
  await waitFor('the policy', () => inForce.length === 1)
  const report: ScaleDownReport = {
    ...{ namespace: 'team', policy: name, cluster: 'prod', workload: 'statefulsets/db', from: 3, to: 1 },
    ...{ outcome: 'Unsteerable', message: 'it is a StatefulSet', victims: [], conflicts: [], atMs: 0 },
  }
  controller.report(report)
  await waitFor('the Event', () => store.all(EVENTS).length > 0)
  assert.deepEqual(subdomainErrors(nameOf(store.all(EVENTS)[0] ?? {})), [])
  controller.report({ ...report, workload: 'statefulsets/queue' })
  await waitFor('the count', () => store.all(EVENTS)[0]?.['count'] === 2)
  const [event, ...others] = store.all(EVENTS)
  assert.deepEqual(others, [])
  assert.equal(namespaceOf(event ?? {}), 'team')
  assert.equal(event?.['message'], 'statefulsets/queue: it is a StatefulSet')
  assert.deepEqual(event?.['source'], { component: 'portcullis', host: 'gw-0' })
})

/** The first patches fail as configured. */
class Refusing extends MemoryObjects {
  readonly failures: (() => void)[] = []

  override async patch(...args: Parameters<MemoryObjects['patch']>): Promise<JsonObject> {
    this.failures.shift()?.()
    return await super.patch(...args)
  }

  policy(spec: object = SPEC): void {
    const metadata = { name: 'web', namespace: 'default' }
    const head = { apiVersion: 'scale.portcullis.io/v1alpha1', kind: 'ScaleDownPolicy' }
    this.put(SCALE_DOWN_POLICIES, { ...head, metadata, spec })
  }

  status(): ScaleDownPolicyStatus {
    return (this.find(SCALE_DOWN_POLICIES, 'web', 'default')?.['status'] ?? {}) as ScaleDownPolicyStatus
  }
}

function policies(store: MemoryObjects, leadership: Leading): ScaleDownPolicyController {
  const deps = { replica: 'gw-0', clock: systemClock, random: () => 0, log: silent }
  const controller = new ScaleDownPolicyController({ ...deps, client: store, leadership, onPolicies: () => undefined })
  cleanups.push(() => controller.stop())
  return controller
}

const REPORT: ScaleDownReport = {
  ...{ namespace: 'default', policy: 'web', cluster: 'prod', workload: 'deployments/web', from: 3, to: 1 },
  ...{ outcome: 'Steered', message: '', victims: ['a'], conflicts: [], atMs: 0 },
}

test('a status that could not be written is written later', async () => {
  const store = new Refusing()
  store.policy()
  store.failures.push(() => {
    throw new Error('connect ECONNREFUSED')
  })
  policies(store, leadAlone(silent))
  await waitFor('the condition', () => store.status().conditions?.[0]?.type === 'Ready')
})

test('what another client has written to a status in the meantime stays', async () => {
  const store = new Refusing()
  store.policy()
  store.failures.push(() => {
    const known = store.find(SCALE_DOWN_POLICIES, 'web', 'default') ?? {}
    const foreign = { type: 'Other', status: 'True', reason: 'R', message: '', lastTransitionTime: 't' }
    store.put(SCALE_DOWN_POLICIES, { ...known, status: { conditions: [foreign] } })
  })
  policies(store, leadAlone(silent))
  await waitFor('both', () => (store.status().conditions?.length ?? 0) > 1)
  assert.deepEqual(
    store.status().conditions?.map(({ type }) => type),
    ['Other', 'Ready'],
  )
})

test('the scale-down of a policy that was deleted and created again is not in the status of the new one', async () => {
  const store = new Refusing()
  store.policy()
  let refused = false
  const controller = policies(store, new Election(false).leadership)
  await waitFor('the policy', () => controller.policies.length === 1)
  store.failures.push(() => {
    refused = true
    // The watch lags.
    store.stall()
    store.remove(SCALE_DOWN_POLICIES, 'web', 'default')
    store.policy()
  })
  controller.report(REPORT)
  await waitFor('the write', () => refused)
  await waitFor('the answer to it', async () => {
    await store.get(SCALE_DOWN_POLICIES, { namespace: 'default', name: 'web' })
    return true
  })
  assert.deepEqual(store.status(), {})
  store.resume()
  // Proves that the new one is written to at all.
  controller.report({ ...REPORT, from: 9 })
  await waitFor('the last scale-down', () => store.status().lastScaleDown?.from === 9)
})
