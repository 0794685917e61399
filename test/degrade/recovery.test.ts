// Recovery by steps, as the leader carries it out: what it writes, what it says, and what becomes of it when another client writes or
// leads. Objects are in the registry of the embedded API server; time runs fifty times as fast.

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { afterEach, describe, test } from 'node:test'
import { openSqliteStore } from '../../src/apiserver/io/store/store.ts'
import { createInProcessClient } from '../../src/apiserver/registry/in-process-client.ts'
import { Registry } from '../../src/apiserver/registry/registry.ts'
import type { DegradeStatus } from '../../src/gateway/api/upstream-cluster/status.ts'
import type { Degrade, UpstreamCluster } from '../../src/gateway/api/upstream-cluster/upstream-cluster.ts'
import { UPSTREAM_CLUSTERS } from '../../src/gateway/api/upstream-cluster-kind.ts'
import { compileCluster } from '../../src/gateway/core/cluster/compile-cluster.ts'
import { ClusterTable } from '../../src/gateway/state/clusters.ts'
import type { ClusterHealth, NodesSeen, UpstreamSeen } from '../../src/incidents/api/cluster-health.ts'
import { type RecoveryController, startDegradeRecovery } from '../../src/incidents/controllers/recovery/recovery.ts'
import { RECOVERY_MANAGER } from '../../src/incidents/controllers/recovery/recovery-writer.ts'
import type { JsonObject } from '../../src/kit/api/json/json-object.ts'
import { type Clock, SILENT } from '../../src/kit/api/ports.ts'
import { EVENTS } from '../../src/kube/api/kinds/event-kind.ts'
import { NAMESPACES } from '../../src/kube/api/kinds/namespace-kind.ts'
import type { FollowEvents, ObjectClient } from '../../src/kube/api/object-client.ts'
import { type Leading, leadAlone } from '../../src/kube/controllers/kernel/leadership.ts'
import { nodePemChecks } from '../../src/pki/io/pem-checks.ts'
import { SCHEME } from '../../src/program/api/scheme.ts'
import { Election } from '../harness/election.ts'
import { ALLOW_ALL } from '../harness/objects/objects.ts'
import { waitFor } from '../harness/wait.ts'

const ENDPOINT = 'https://10.0.0.1:6443'
const SERVERS = {
  servers: [{ endpoint: ENDPOINT }],
  clientConfig: { bearerToken: 'dG9rZW4=', insecure: true },
}
const AT = { namespace: '', name: 'prod' }
const SPEED = 50
const clock: Clock = { now: () => Date.now(), monotonic: () => performance.now() * SPEED }
const LADDER = ['Freeze', 'HeartbeatsOnly', 'ReadOnly', 'NoDisruption', 'Limited', 'Off']

class World implements ClusterHealth {
  readonly client: ObjectClient
  readonly clusters = new ClusterTable()
  /** Modes that the object has had, each once in a row. */
  readonly modes: string[] = []
  ready = 20
  failed5xx = 0
  refused = 0
  nodesKnown = true
  /** How often the nodes were read. */
  looks = 0
  readonly #running: RecoveryController[] = []

  constructor() {
    const store = openSqliteStore({ file: ':memory:', key: undefined })
    const parts = { store, kinds: SCHEME, pem: nodePemChecks, now: Date.now, uuid: randomUUID, random: Math.random }
    this.client = createInProcessClient(new Registry(parts))
  }

  async begin(degrade: Degrade, annotations: Record<string, string> = {}, upstream: object = SERVERS): Promise<void> {
    await this.client
      .create(NAMESPACES, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'default' } })
      .catch(() => undefined)
    await this.client.create(UPSTREAM_CLUSTERS, {
      apiVersion: 'proxy.kubegateway.io/v1alpha1',
      kind: 'UpstreamCluster',
      metadata: { name: AT.name, annotations },
      spec: {
        ...upstream,
        dispatchPolicies: [ALLOW_ALL],
        degrade,
      },
    })
    const onObject = (object: JsonObject): void => this.#inForce(object)
    this.client.follow(UPSTREAM_CLUSTERS, '', {
      onReplace: (objects) => objects.forEach(onObject),
      onChange: (_, object) => onObject(object),
      onState: () => undefined,
    })
    await waitFor('it to be in force', () => this.clusters.get(AT.name))
  }

  #inForce(json: JsonObject): void {
    const object = json as unknown as UpstreamCluster
    const revision = String(object.metadata.generation)
    const mode = object.spec.degrade?.mode ?? 'Off'
    if (this.modes.at(-1) !== mode) this.modes.push(mode)
    if (this.clusters.get(AT.name)?.compiled.revision === revision) return
    this.clusters.change([compileCluster({ object, revision })], [], clock.monotonic())
    const live = this.clusters.get(AT.name)
    const endpoint = live?.endpoints.byUrl(ENDPOINT)
    if (live?.compiled.federation !== undefined) return
    assert.ok(live !== undefined && endpoint !== undefined)
    live.endpoints.onProbe(endpoint, true, '', live.compiled.healthCheck, clock.monotonic())
  }

  replica(replica: string, leadership: Leading = leadAlone(SILENT)): RecoveryController {
    const { client, clusters } = this
    const started = startDegradeRecovery({
      client,
      replica,
      leadership,
      clusters,
      health: this,
      clock,
      log: SILENT,
      lookMs: 5,
    })
    this.#running.push(started)
    return started
  }

  async stop(): Promise<void> {
    await Promise.all(this.#running.map((one) => one.stop()))
  }

  async patch(spec: object, metadata: object = {}): Promise<void> {
    const options = { fieldManager: 'somebody' }
    await this.client.patch(UPSTREAM_CLUSTERS, AT, 'application/merge-patch+json', { spec, metadata }, options)
  }

  async degrade(): Promise<Degrade> {
    return ((await this.client.get(UPSTREAM_CLUSTERS, AT))['spec'] as { degrade: Degrade }).degrade
  }

  async status(): Promise<DegradeStatus> {
    const { status } = (await this.client.get(UPSTREAM_CLUSTERS, AT)) as { status?: { degrade?: DegradeStatus } }
    return status?.degrade ?? {}
  }

  async until(what: string, holds: (status: DegradeStatus) => boolean): Promise<DegradeStatus> {
    return waitFor(what, async () => {
      const status = await this.status()
      return holds(status) && status
    })
  }

  async untilMode(mode: string): Promise<void> {
    await waitFor(`mode ${mode}`, async () => (await this.degrade()).mode === mode)
  }

  /** Event messages by reason. */
  async events(): Promise<Map<string, string>> {
    const { items } = await this.client.list(EVENTS, 'default')
    return new Map(items.map((event) => [String(event['reason']), String(event['message'])]))
  }

  nodes(): NodesSeen | undefined {
    this.looks++
    if (!this.nodesKnown) return undefined
    const observedAtMs = clock.monotonic()
    return {
      ready: this.ready,
      unready: 20 - this.ready,
      total: 20,
      notStarted: 0,
      complete: true,
      observedAtMs,
      message: '',
    }
  }

  upstream(): UpstreamSeen {
    const observedAtMs = clock.monotonic()
    return { requests: 100, failed5xx: this.failed5xx, p99Ms: 5, medianMs: 5, observedAtMs }
  }

  refusedDisruptive(): number {
    return this.refused
  }
}

let world: World | undefined
async function worldOf(
  degrade: Degrade,
  annotations: Record<string, string> = {},
  upstream: object = SERVERS,
): Promise<World> {
  world = new World()
  await world.begin(degrade, annotations, upstream)
  return world
}
afterEach(() => world?.stop())

const RECOVERY = { hold: '10s', ramp: '20s' }

describe('recovery by steps', () => {
  test('from Freeze to Off, a mode at a time; at the end nothing of the incident is left in the object', async () => {
    const { client } = await worldOf({
      mode: 'Freeze',
      reason: 'INC-1',
      exempt: [{ verbs: ['get'] }],
      recovery: RECOVERY,
    })
    const it = world ?? assert.fail()
    it.replica('a')
    await waitFor('the end', async () => (await it.degrade()).recovery === undefined)
    assert.deepEqual(it.modes, LADDER)
    assert.deepEqual(await it.degrade(), { mode: 'Off', exempt: [{ verbs: ['get'] }] })
    await it.until('the status to be empty', (status) => status.recovery === undefined)
    const object = await client.get(UPSTREAM_CLUSTERS, AT)
    const { managedFields = [] } = object['metadata'] as { managedFields?: { manager: string; operation: string }[] }
    assert.ok(
      managedFields.some(({ manager }) => manager === RECOVERY_MANAGER),
      'the mode is its own in managedFields',
    )
    const told = await waitFor('the events', async () => {
      const events = await it.events()
      return events.has('Recovered') && /^Limited -> Off/.test(events.get('RecoveryStep') ?? '') && events
    })
    assert.match(told.get('RecoveryStarted') ?? '', /^from Freeze, a step when its checks have held for 10s, ramp 20s$/)
    assert.match(told.get('RecoveryStep') ?? '', /^Limited -> Off: the checks of Limited have held for 20s$/)
    assert.match(told.get('Recovered') ?? '', /the recovery from Freeze is complete$/)
  })

  test('a cluster that is read from its members comes back, too: it has no servers or nodes to wait for', async () => {
    const upstream = { members: [{ name: 'east', trustUsers: true }], federation: {} }
    const it = await worldOf({ mode: 'Freeze', reason: 'INC-1', recovery: RECOVERY }, {}, upstream)
    it.nodesKnown = false
    it.replica('a')
    await waitFor('the end', async () => (await it.degrade()).recovery === undefined)
    assert.deepEqual(it.modes, LADDER)
  })

  test('ends at what applied before a switch of many clusters, and restores it', async () => {
    const before = { mode: 'Limited', reason: 'INC-0', expiresAt: '2999-01-01T00:00:00Z' } as const
    const it = await worldOf({ mode: 'ReadOnly', reason: 'INC-1', recovery: RECOVERY, before })
    it.replica('a')
    await waitFor('the end', async () => (await it.degrade()).recovery === undefined)
    assert.deepEqual(it.modes, ['ReadOnly', 'NoDisruption', 'Limited'])
    const { since, ...left } = await it.degrade()
    assert.deepEqual(left, before)
    assert.ok(since !== undefined, 'the rate of Limited has a beginning')
    const told = await waitFor('the event', async () => (await it.events()).get('Recovered'))
    assert.equal(told, 'Limited is what applied before: the recovery from ReadOnly is complete')
  })

  test('what applied before has expired: the recovery leads to Off, and forgets it', async () => {
    const before = { mode: 'NoDisruption', expiresAt: '2020-01-01T00:00:00Z' } as const
    const it = await worldOf({ mode: 'ReadOnly', reason: 'INC-1', recovery: RECOVERY, before })
    it.replica('a')
    await waitFor('the end', async () => (await it.degrade()).recovery === undefined)
    assert.deepEqual(await it.degrade(), { mode: 'Off' })
  })

  test('loosened by hand beyond what applied before: it ends there, and nothing becomes stricter', async () => {
    const before = { mode: 'ReadOnly' } as const
    const it = await worldOf({ mode: 'Limited', reason: 'INC-1', recovery: RECOVERY, before })
    it.replica('a')
    await waitFor('the end', async () => (await it.degrade()).recovery === undefined)
    assert.deepEqual(await it.degrade(), { mode: 'Limited', reason: 'INC-1' })
    assert.deepEqual(it.modes, ['Limited'])
  })

  test('the status says the step, its checks, and what is waited for', async () => {
    const it = await worldOf({ mode: 'HeartbeatsOnly', reason: 'x', recovery: RECOVERY })
    it.ready = 3
    it.replica('a')
    const { recovery } = await it.until('the checks', (status) => status.recovery?.checks.length === 3)
    assert.equal(recovery?.step, 'HeartbeatsOnly')
    assert.equal(recovery?.startedFrom, 'HeartbeatsOnly')
    assert.equal(recovery?.holdingSince, undefined)
    assert.match(recovery?.waitingFor ?? '', /^Nodes: 3 of 20 nodes are Ready, 95 % are needed$/)
    assert.deepEqual(
      recovery?.checks.map(({ name, ok }) => [name, ok]),
      [
        ['Endpoints', true],
        ['Upstream', true],
        ['Nodes', false],
      ],
    )
    it.ready = 20
    await it.untilMode('ReadOnly')
  })

  test('what was before the incident is remembered with it, and is what nodes have to come back to', async () => {
    const it = await worldOf({ mode: 'Off' })
    it.ready = 14
    it.replica('a')
    await waitFor('a look at the nodes', () => it.looks > 0)
    await it.patch({ degrade: { mode: 'ReadOnly', reason: 'x' } })
    await it.until('the share before', ({ readyNodesBefore }) => readyNodesBefore === 70)
    it.ready = 13
    await it.patch({ degrade: { recovery: RECOVERY } })
    await it.until('the nodes to be waited for', ({ recovery }) =>
      /13 of 20 nodes are Ready, 70 % are needed, 70 % were before the incident/.test(recovery?.waitingFor ?? ''),
    )
    it.ready = 14
    await waitFor('the end', async () => (await it.degrade()).recovery === undefined)
    await it.until('it to be forgotten', (status) => status.readyNodesBefore === undefined)
  })

  test('what fails goes back a step, and not below where it began', async () => {
    const it = await worldOf({ mode: 'ReadOnly', reason: 'x', recovery: RECOVERY })
    it.replica('a')
    await it.untilMode('NoDisruption')
    it.failed5xx = 50
    await it.untilMode('ReadOnly')
    const events = await waitFor('the event', async () => {
      const found = await it.events()
      return found.has('RecoverySetBack') && found
    })
    assert.match(events.get('RecoverySetBack') ?? '', /^\w+ -> \w+: Upstream: 50 of 100 requests failed/)
    const from = it.modes.length
    await it.until('a hold that is not there', ({ recovery }) => recovery?.holdingSince === undefined)
    assert.deepEqual(it.modes.slice(from), [])
    it.failed5xx = 0
    await waitFor('the end', async () => (await it.degrade()).recovery === undefined)
    for (const [i, mode] of it.modes.entries()) {
      if (i === 0) continue
      assert.equal(Math.abs(LADDER.indexOf(mode) - LADDER.indexOf(it.modes[i - 1] ?? '')), 1, it.modes.join())
    }
  })

  test('another leader goes on from where it is, with where it began', async () => {
    const it = await worldOf({ mode: 'HeartbeatsOnly', reason: 'x', recovery: RECOVERY })
    const [a, b] = [new Election(), new Election(false)]
    it.replica('a', a.leadership)
    it.replica('b', b.leadership)
    await it.until('the second step', ({ recovery }) => recovery?.step === 'ReadOnly')
    a.leads = false
    const held = (await it.degrade()).mode
    b.leads = true
    it.failed5xx = 50
    await it.untilMode('HeartbeatsOnly')
    assert.notEqual(held, 'HeartbeatsOnly')
    assert.equal((await it.status()).recovery?.startedFrom, 'HeartbeatsOnly')
    it.failed5xx = 0
    await waitFor('the end', async () => (await it.degrade()).recovery === undefined)
  })

  test('since when it is at a step is what the leader before has written; the next step has its own time', async () => {
    const it = await worldOf({ mode: 'HeartbeatsOnly', reason: 'x', recovery: RECOVERY })
    const longAgo = '2020-01-02T03:04:05Z'
    const recovery = { step: 'HeartbeatsOnly', since: longAgo, startedFrom: 'Freeze', checks: [], waitingFor: 'x' }
    const status = { degrade: { recovery } }
    const options = { fieldManager: RECOVERY_MANAGER, subresource: 'status' as const }
    await it.client.patch(UPSTREAM_CLUSTERS, AT, 'application/merge-patch+json', { status }, options)
    const since = new Map<string, string>()
    it.replica('a')
    await it.until('both steps', ({ recovery }) => {
      if (recovery !== undefined) since.set(recovery.step, recovery.since)
      return recovery?.step === 'ReadOnly'
    })
    assert.equal(since.get('HeartbeatsOnly'), longAgo)
    assert.notEqual(since.get('ReadOnly'), longAgo)
  })

  test('two that believe to lead do not skip a step: the second write is refused', async () => {
    const it = await worldOf({ mode: 'Freeze', reason: 'x', recovery: RECOVERY })
    it.replica('a')
    it.replica('b')
    await waitFor('the end', async () => (await it.degrade()).recovery === undefined)
    assert.deepEqual(it.modes, LADDER)
  })

  test('disruptive requests that another replica refuses count, too', async () => {
    const it = await worldOf({ mode: 'NoDisruption', reason: 'x', recovery: RECOVERY })
    const gateways = [
      { name: 'a', refusedDisruptive: 64 },
      { name: 'b', refusedDisruptive: 32 },
    ]
    const says = (body: object): Promise<unknown> =>
      it.client.patch(
        UPSTREAM_CLUSTERS,
        AT,
        'application/merge-patch+json',
        { status: body },
        { fieldManager: 'b', subresource: 'status' },
      )
    await says({ gateways })
    it.refused = 3
    it.replica('a')
    await it.until('the queue to be waited for', ({ recovery }) =>
      /^Disruption: 35 disruptive requests were refused in the last minute/.test(recovery?.waitingFor ?? ''),
    )
    assert.equal((await it.degrade()).mode, 'NoDisruption')
    await says({ gateways: null })
    await it.untilMode('Limited')
  })

  test('an object that is deleted and created again in the moment in which its status is written starts without it', async () => {
    const degrade = { mode: 'Freeze', reason: 'x', recovery: RECOVERY } as const
    const it = await worldOf(degrade)
    const patch = it.client.patch.bind(it.client)
    let outcome: Promise<JsonObject> | undefined
    it.client.patch = async (kind, at, type, body, options) => {
      if (outcome !== undefined || options.subresource !== 'status') return await patch(kind, at, type, body, options)
      const { spec } = await it.client.get(UPSTREAM_CLUSTERS, AT)
      await it.client.delete(UPSTREAM_CLUSTERS, AT)
      const again = {
        apiVersion: 'proxy.kubegateway.io/v1alpha1',
        kind: 'UpstreamCluster',
        metadata: { name: AT.name },
        spec,
      }
      await it.client.create(UPSTREAM_CLUSTERS, again)
      outcome = patch(kind, at, type, body, options)
      return await outcome
    }
    it.replica('a')
    await waitFor('the write', () => outcome !== undefined)
    await assert.rejects(async () => await outcome, /the object has been modified/)
  })

  test('an object that was deleted and created again while the watch was down has no past', async () => {
    const it = await worldOf({ mode: 'Off' })
    const follow = it.client.follow.bind(it.client)
    let events: FollowEvents | undefined
    it.client.follow = (kind, namespace, given, choice) => {
      events = given
      return follow(kind, namespace, given, choice)
    }
    const written: unknown[] = []
    it.client.patch = (_kind, _at, _type, body) => {
      written.push(body)
      return Promise.resolve(body as JsonObject)
    }
    it.replica('a')
    await waitFor('the nodes to be seen', () => it.looks > 2)
    it.nodesKnown = false
    const spec = { degrade: { mode: 'Freeze', recovery: RECOVERY } }
    events?.onReplace([{ metadata: { name: AT.name, uid: 'another', resourceVersion: '99' }, spec }])
    await waitFor('a status', () => written.length > 0)
    const [first] = written as { status: { degrade: DegradeStatus } }[]
    assert.equal(first?.status.degrade.readyNodesBefore, null)
  })

  test('a mode that is set in the moment in which a step is written: the step is not taken', async () => {
    const it = await worldOf({ mode: 'HeartbeatsOnly', reason: 'x', recovery: RECOVERY })
    const patch = it.client.patch.bind(it.client)
    let interfered = false
    it.client.patch = async (kind, at, type, body, options) => {
      if (!interfered && options.fieldManager === RECOVERY_MANAGER && options.subresource === undefined) {
        interfered = true
        const freeze = { spec: { degrade: { mode: 'Freeze', recovery: null } } }
        await patch(kind, at, 'application/merge-patch+json', freeze, { fieldManager: 'somebody' })
      }
      return await patch(kind, at, type, body, options)
    }
    it.replica('a')
    await it.untilMode('Freeze')
    await it.until('the end', ({ recovery }) => recovery === undefined)
    assert.deepEqual(await it.degrade(), { mode: 'Freeze', reason: 'x' })
  })

  test('a step that is taken back in the moment in which it was written: its checks have to hold again', async () => {
    const it = await worldOf({ mode: 'HeartbeatsOnly', reason: 'x', recovery: { hold: '40s' } })
    const patch = it.client.patch.bind(it.client)
    const waits: string[] = []
    let takenBack = false
    it.client.patch = async (kind, at, type, body, options) => {
      const written = await patch(kind, at, type, body, options)
      const { degrade } = (written['status'] ?? {}) as { degrade?: DegradeStatus }
      if (takenBack) waits.push(degrade?.recovery?.waitingFor ?? '')
      if (!takenBack && options.fieldManager === RECOVERY_MANAGER && options.subresource === undefined) {
        takenBack = true
        const back = { spec: { degrade: { mode: 'HeartbeatsOnly', recovery: { hold: '1h' } } } }
        await patch(kind, at, 'application/merge-patch+json', back, { fieldManager: 'somebody' })
      }
      return written
    }
    it.replica('a')
    const first = await waitFor('what is waited for', () => waits.find((text) => /have held for 1h/.test(text)))
    assert.match(first, /at most 1h more$/)
    assert.equal((await it.degrade()).mode, 'HeartbeatsOnly')
  })

  test('setting a mode by hand and removing the recovery ends it; setting only the mode moves it', async () => {
    const it = await worldOf({ mode: 'HeartbeatsOnly', reason: 'x', recovery: { hold: '1h' } })
    it.replica('a')
    await it.until('the recovery', ({ recovery }) => recovery?.step === 'HeartbeatsOnly')
    await it.patch({ degrade: { mode: 'Freeze' } })
    await it.until('it to follow', ({ recovery }) => recovery?.step === 'Freeze' && recovery.startedFrom === 'Freeze')
    await it.patch({ degrade: { mode: 'ReadOnly', recovery: null } })
    await it.until('the end', ({ recovery }) => recovery === undefined)
    const events = await waitFor('the event', async () => {
      const found = await it.events()
      return found.has('RecoveryEnded') && found
    })
    assert.equal(events.get('RecoveryEnded'), 'the recovery from Freeze was ended by hand; the mode is ReadOnly')
    assert.equal((await it.degrade()).mode, 'ReadOnly')
  })

  test('nodes that cannot be seen hold it up, and it says so', async () => {
    const it = await worldOf({ mode: 'Freeze', reason: 'x', recovery: RECOVERY })
    it.nodesKnown = false
    it.replica('a')
    await it.until('the nodes to be waited for', ({ recovery }) =>
      /^Nodes: .*not been listed/.test(recovery?.waitingFor ?? ''),
    )
    assert.equal((await it.degrade()).mode, 'HeartbeatsOnly')
  })

  test("KubeGateway's annotation outranks the mode: no step is taken behind its back", async () => {
    const it = await worldOf(
      { mode: 'Freeze', reason: 'x', recovery: RECOVERY },
      { 'proxy.kubegateway.io/feature-gates': 'DenyAllRequests=true' },
    )
    it.replica('a')
    const { recovery } = await it.until('it to say so', (status) => status.recovery !== undefined)
    assert.match(recovery?.waitingFor ?? '', /DenyAllRequests=true freezes the cluster whatever the mode: remove it/)
    assert.equal((await it.degrade()).mode, 'Freeze')
    await it.patch({}, { annotations: { 'proxy.kubegateway.io/feature-gates': null } })
    await it.untilMode('HeartbeatsOnly')
  })

  test('the expiry of the mode ends the recovery with it', async () => {
    const expiresAt = new Date(Date.now() - 1_000).toISOString()
    const it = await worldOf({ mode: 'ReadOnly', reason: 'x', expiresAt, recovery: { hold: '1h' } })
    it.replica('a')
    await waitFor('the end', async () => (await it.degrade()).recovery === undefined)
    assert.deepEqual(await it.degrade(), { mode: 'Off' })
  })
})
