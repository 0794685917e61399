// The status of an UpstreamCluster, as the controller writes it: what it says at each moment, which replica writes it, how
// often, and what becomes of it while the API server is away. Objects are in memory; clusters and their endpoints are real.

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { afterEach, test } from 'node:test'
import { openSqliteStore } from '../../src/apiserver/io/store/store.ts'
import { createInProcessClient } from '../../src/apiserver/registry/in-process-client.ts'
import { Registry } from '../../src/apiserver/registry/registry.ts'
import type { SourceError } from '../../src/gateway/api/resource-source.ts'
import type {
  Condition,
  GatewayProtection,
  UpstreamClusterStatus,
} from '../../src/gateway/api/upstream-cluster/status.ts'
import type { UpstreamCluster, UpstreamClusterSpec } from '../../src/gateway/api/upstream-cluster/upstream-cluster.ts'
import { UPSTREAM_CLUSTERS } from '../../src/gateway/api/upstream-cluster-kind.ts'
import {
  type ClusterStatusController,
  type ClusterStatusDeps,
  startClusterStatus,
} from '../../src/gateway/controllers/status/cluster-status.ts'
import type { ClusterRights } from '../../src/gateway/controllers/status/facts.ts'
import { CellClocks } from '../../src/gateway/core/clocks/cell-clock.ts'
import { compileCluster } from '../../src/gateway/core/cluster/compile-cluster.ts'
import { gatewayRights } from '../../src/gateway/core/identity/gateway-rights.ts'
import { ClusterTable } from '../../src/gateway/state/clusters.ts'
import type { Clock, Logger } from '../../src/kit/api/ports.ts'
import { EVENTS } from '../../src/kube/api/kinds/event-kind.ts'
import { LEASES } from '../../src/kube/api/kinds/lease-kind.ts'
import { NAMESPACES } from '../../src/kube/api/kinds/namespace-kind.ts'
import type { ObjectClient } from '../../src/kube/api/object-client.ts'
import { nodePemChecks } from '../../src/pki/io/pem-checks.ts'
import { createCA, issueCertificate } from '../../src/pki/io/pki.ts'
import { SCHEME } from '../../src/program/api/scheme.ts'
import { Election } from '../harness/election.ts'
import { MemoryObjects } from '../harness/objects/memory-objects.ts'
import { ALLOW_ALL, base64 } from '../harness/objects/objects.ts'
import { waitFor } from '../harness/wait.ts'

const FIRST = 'https://10.0.0.1:6443'
const SECOND = 'https://10.0.0.2:6443'
/** Between two writes of a status. */
const SPACING_MS = 20
const quiet = (): void => undefined
const log: Logger = { debug: quiet, info: quiet, warn: quiet, error: quiet }
const running: Replica[] = []

afterEach(async () => {
  await Promise.all(running.splice(0).map((replica) => replica.stop()))
})

function clusterOf(name: string, spec: Partial<UpstreamClusterSpec> = {}): UpstreamCluster {
  return {
    apiVersion: 'proxy.kubegateway.io/v1alpha1',
    kind: 'UpstreamCluster',
    metadata: { name },
    spec: { servers: [{ endpoint: FIRST }, { endpoint: SECOND }], dispatchPolicies: [ALLOW_ALL], ...spec },
  }
}

/** One gateway: puts in force what it is told to, and has the controller write statuses. */
class Replica {
  readonly clusters = new ClusterTable()
  readonly objects: MemoryObjects | undefined
  readonly generations = new Map<string, number>()
  readonly clock: Clock
  readonly election: Election
  problems: readonly SourceError[] = []
  /** What every cluster says of the rights of the gateway. */
  rights: ClusterRights = { kind: 'granted' }
  /** What it says of shared limits; undefined = it has no Redis. */
  limits: string | undefined
  /** What this replica does to protect pods. */
  protects: GatewayProtection | undefined
  /** Added to the clock. */
  laterMs = 0
  readonly clocks = new CellClocks(2_000)
  readonly #statuses: ClusterStatusController

  constructor(objects: ObjectClient, name = 'replica-a', leads = true) {
    this.objects = objects instanceof MemoryObjects ? objects : undefined
    this.election = new Election(leads)
    this.clock = { now: () => Date.now() + this.laterMs, monotonic: () => performance.now() + this.laterMs }
    const parts: ClusterStatusDeps = {
      client: objects,
      replica: name,
      leadership: this.election.leadership,
      clusters: this.clusters,
      rights: () => this.rights,
      podProtection: () => this.protects,
      problems: () => this.problems,
      clock: this.clock,
      clocks: this.clocks,
      random: Math.random,
      log,
      pace: { spacingMs: SPACING_MS, sweepMs: 10, settleMs: 50, beatMs: 20 },
    }
    // Read at each look, so that a test can give it after the start.
    Object.defineProperty(parts, 'limitsMessage', {
      get: () => (this.limits === undefined ? undefined : () => this.limits),
    })
    this.#statuses = startClusterStatus(parts)
    running.push(this)
  }

  /** Puts objects as they are in force, in two threads. */
  apply(...names: string[]): void {
    this.put(...names.map((name) => this.objects?.find(UPSTREAM_CLUSTERS, name) as unknown as UpstreamCluster))
  }

  put(...objects: UpstreamCluster[]): void {
    const compiled = objects.map((object) => {
      const { name, generation = 0 } = object.metadata
      this.generations.set(name, generation)
      return compileCluster({ object, revision: String(generation) })
    })
    const removed = [...this.clusters.names()].filter((name) => !this.generations.has(name))
    this.clusters.change(compiled, removed, this.clock.monotonic())
    this.#statuses.applied(this.generations, 2)
  }

  probed(cluster: string, url: string, message = ''): void {
    const live = this.clusters.get(cluster)
    const endpoint = live?.endpoints.byUrl(url)
    assert.ok(live !== undefined && endpoint !== undefined)
    const check = { ...live.compiled.healthCheck, unhealthyThreshold: 1 }
    live.endpoints.onProbe(endpoint, message === '', message, check, this.clock.monotonic())
  }

  deliver(problems: readonly SourceError[]): void {
    this.problems = problems
    this.#statuses.applied(this.generations, 2)
  }

  stop(): Promise<void> {
    return this.#statuses.stop()
  }
}

function statusOf(objects: MemoryObjects, name: string): UpstreamClusterStatus {
  return (objects.find(UPSTREAM_CLUSTERS, name)?.['status'] ?? {}) as UpstreamClusterStatus
}

function condition(objects: MemoryObjects, name: string, type: string): Condition | undefined {
  return statusOf(objects, name).conditions?.find((one) => one.type === type)
}

function reasonOf(objects: MemoryObjects, name: string, type: string): string {
  const found = condition(objects, name, type)
  return found === undefined ? 'none' : `${found.status} ${found.reason}`
}

function put(objects: MemoryObjects, name: string, spec: Partial<UpstreamClusterSpec> = {}): void {
  objects.put(UPSTREAM_CLUSTERS, clusterOf(name, spec) as unknown as Record<string, unknown>)
}

function statusWrites(objects: MemoryObjects, name: string): number {
  return objects.writes.filter((write) => write === `update/status upstreamclusters.proxy.kubegateway.io ${name}`)
    .length
}

const mistake = (cluster: string, message: string): SourceError => {
  return {
    reason: 'FieldValueInvalid',
    file: '',
    line: 0,
    path: 'spec.servers',
    message,
    fix: 'mend it',
    severity: 'error',
    cluster,
  }
}

function reasonsOfEvents(objects: MemoryObjects): string[] {
  return objects.all(EVENTS).map((event) => String(event['reason']))
}

async function serving(objects: MemoryObjects, name = 'prod'): Promise<Replica> {
  put(objects, name)
  const replica = new Replica(objects)
  replica.apply(name)
  for (const url of [FIRST, SECOND]) replica.probed(name, url)
  await waitFor('Ready', () => reasonOf(objects, name, 'Ready') === 'True Serving')
  return replica
}

test('the clocks of a protected cluster: whether they agree, and by how much they do not', async () => {
  const objects = new MemoryObjects()
  put(objects, 'prod', { podProtection: { cell: 'shop' } })
  put(objects, 'other')
  const replica = new Replica(objects)
  replica.apply('prod', 'other')
  const told = (reason: string): Promise<unknown> =>
    waitFor(reason, () => reasonOf(objects, 'prod', 'ClocksAgree') === reason)
  await told('Unknown NotMeasured')
  const answer = (aheadMs: number): void => {
    const { clock } = replica
    // The last minute is told.
    replica.laterMs += 60_000
    const monotonicMs = clock.monotonic()
    const date = new Date(clock.now() + aheadMs).toUTCString()
    replica.clocks.observe('shop', FIRST, date, monotonicMs, monotonicMs)
  }
  answer(0)
  await told('True WithinTolerance')
  answer(31_000)
  await told('False ClockSkew')
  assert.match(
    condition(objects, 'prod', 'ClocksAgree')?.message ?? '',
    /^its clock is 31 s ahead of the gateway's; .*NTP/,
  )
  answer(0)
  await told('True WithinTolerance')
  assert.equal(reasonOf(objects, 'other', 'ClocksAgree'), 'none', 'they are not used')
})

test('a new cluster becomes Ready once it is in force and an endpoint answers, and says which', async () => {
  const objects = new MemoryObjects()
  put(objects, 'prod')
  const replica = new Replica(objects)
  await waitFor('a first status', () => reasonOf(objects, 'prod', 'Ready') === 'Unknown Pending')
  replica.apply('prod')
  await waitFor('the entry of the replica', () => statusOf(objects, 'prod').gateways?.[0]?.observedGeneration === 1)
  assert.equal(reasonOf(objects, 'prod', 'Ready'), 'Unknown Pending', 'no endpoint has been checked')
  replica.probed('prod', FIRST)
  await waitFor('Ready', () => reasonOf(objects, 'prod', 'Ready') === 'True Serving')
  assert.equal(reasonOf(objects, 'prod', 'EndpointsHealthy'), 'Unknown Pending')
  replica.probed('prod', SECOND)
  await waitFor('both', () => reasonOf(objects, 'prod', 'EndpointsHealthy') === 'True AllHealthy')
  const status = statusOf(objects, 'prod')
  assert.deepEqual(status.endpoints, { ready: 2, total: 2 })
  assert.equal(status.observedGeneration, 1)
  assert.deepEqual(
    status.conditions?.map(({ type, observedGeneration }) => [type, observedGeneration]),
    [
      ['Ready', 1],
      ['EndpointsHealthy', 1],
      ['CredentialsValid', 1],
      ['ClientCertificatesAccepted', 1],
      ['Degraded', 1],
    ],
  )
  const [gateway] = status.gateways ?? []
  assert.ok(gateway)
  const { appliedAt, ...entry } = gateway
  assert.deepEqual(entry, { name: 'replica-a', threads: 2, threadsApplied: 2, observedGeneration: 1 })
  assert.ok(Date.parse(appliedAt) > 0)
  await waitFor('events', () => reasonsOfEvents(objects).includes('EndpointsHealthy'))
  assert.deepEqual(reasonsOfEvents(objects), ['Applied', 'ClientCertificatesNotAccepted', 'EndpointsHealthy'])
  const [event] = objects.all(EVENTS)
  const involved = event?.['involvedObject'] as { kind: string; name: string; uid: string }
  assert.deepEqual([involved.kind, involved.name], ['UpstreamCluster', 'prod'])
})

test('nothing is written when nothing has changed, nor does a change of the server start a circle', async () => {
  const objects = new MemoryObjects()
  const replica = await serving(objects)
  await waitFor('EndpointsHealthy', () => reasonOf(objects, 'prod', 'EndpointsHealthy') === 'True AllHealthy')
  const before = statusWrites(objects, 'prod')
  const leases = (): number => objects.writes.filter((write) => write.startsWith('update leases')).length
  const beats = leases()
  for (let i = 0; i < 5; i++) replica.apply('prod')
  await waitFor('some time', () => leases() > beats + 5)
  assert.equal(statusWrites(objects, 'prod'), before)
})

test('a change that is not in force leaves Ready at the generation before', async () => {
  const objects = new MemoryObjects()
  const replica = await serving(objects)
  put(objects, 'prod', { default: true })
  // Another cluster's turn shows that this one's has been.
  put(objects, 'witness')
  await waitFor('the witness', () => reasonOf(objects, 'witness', 'Ready') === 'Unknown Pending')
  assert.equal(condition(objects, 'prod', 'Ready')?.observedGeneration, 1)
  assert.equal(statusOf(objects, 'prod').observedGeneration, 1)
  replica.apply('prod')
  await waitFor('generation 2', () => condition(objects, 'prod', 'Ready')?.observedGeneration === 2)
  assert.equal(statusOf(objects, 'prod').gateways?.[0]?.observedGeneration, 2)
})

test('an invalid object is not Ready, reports all errors, and that the last good version stays', async () => {
  const objects = new MemoryObjects()
  const replica = await serving(objects)
  put(objects, 'prod', { default: true })
  replica.deliver([mistake('prod', 'is empty'), mistake('prod', 'is not a list'), mistake('other', 'is not ours')])
  await waitFor('Invalid', () => reasonOf(objects, 'prod', 'Ready') === 'False Invalid')
  const ready = condition(objects, 'prod', 'Ready')
  assert.equal(
    ready?.message,
    'spec.servers: is empty; mend it. spec.servers: is not a list; mend it. ' +
      'the last good version (generation 1) stays in force',
  )
  assert.equal(ready?.observedGeneration, 2)
  assert.equal(reasonOf(objects, 'prod', 'EndpointsHealthy'), 'True AllHealthy')
  assert.equal(condition(objects, 'prod', 'EndpointsHealthy')?.observedGeneration, 1)
  const [gateway] = statusOf(objects, 'prod').gateways ?? []
  assert.equal(gateway?.observedGeneration, 1)
  assert.equal(gateway?.message, 'generation 2 is invalid: spec.servers: is empty; mend it')
  await waitFor('an event', () => reasonsOfEvents(objects).includes('Invalid'))
  put(objects, 'prod')
  replica.problems = []
  replica.apply('prod')
  await waitFor('Ready', () => reasonOf(objects, 'prod', 'Ready') === 'True Serving')
  assert.equal(statusOf(objects, 'prod').gateways?.[0]?.message, undefined)
})

test('one that was never good has no version in force', async () => {
  const objects = new MemoryObjects()
  const replica = new Replica(objects)
  put(objects, 'bad')
  replica.deliver([{ ...mistake('bad', 'holds no PEM certificate'), path: 'spec.secureServing.certData' }])
  await waitFor('Invalid', () => reasonOf(objects, 'bad', 'Ready') === 'False Invalid')
  assert.match(condition(objects, 'bad', 'Ready')?.message ?? '', /no version of it is in force$/)
  assert.equal(reasonOf(objects, 'bad', 'CredentialsValid'), 'False Invalid')
  assert.deepEqual(statusOf(objects, 'bad').endpoints, { ready: 0, total: 0 })
  assert.equal(statusOf(objects, 'bad').gateways?.[0]?.threadsApplied, 0)
})

test('Ready is not set before the cluster has confirmed that the gateway may send requests', async () => {
  const objects = new MemoryObjects()
  put(objects, 'prod')
  const replica = new Replica(objects)
  replica.rights = { kind: 'unasked' }
  replica.apply('prod')
  for (const url of [FIRST, SECOND]) replica.probed('prod', url)
  await waitFor('endpoints', () => reasonOf(objects, 'prod', 'EndpointsHealthy') === 'True AllHealthy')
  assert.equal(reasonOf(objects, 'prod', 'Ready'), 'Unknown Pending')
  assert.equal(reasonOf(objects, 'prod', 'CredentialsValid'), 'Unknown Pending')
  replica.rights = { kind: 'granted' }
  await waitFor('Ready', () => reasonOf(objects, 'prod', 'Ready') === 'True Serving')
  assert.equal(reasonOf(objects, 'prod', 'CredentialsValid'), 'True Valid')
  assert.ok(!reasonsOfEvents(objects).includes('CredentialsValid'))
})

test('rights that are missing: not Ready, with what is missing, an event, and the way back', async () => {
  const objects = new MemoryObjects()
  const replica = await serving(objects)
  const message = 'the gateway\'s user "gw" may not impersonate users: apply deploy/rbac/upstream-gateway-user.yaml'
  replica.rights = { kind: 'missing', missing: [], message }
  await waitFor('Forbidden', () => reasonOf(objects, 'prod', 'CredentialsValid') === 'False Forbidden')
  assert.equal(condition(objects, 'prod', 'CredentialsValid')?.message, `spec.clientConfig: ${message}`)
  await waitFor('not Ready', () => reasonOf(objects, 'prod', 'Ready') === 'False CredentialsInvalid')
  await waitFor('an event', () => reasonsOfEvents(objects).includes('CredentialsInvalid'))
  replica.rights = { kind: 'granted' }
  await waitFor('Ready', () => reasonOf(objects, 'prod', 'Ready') === 'True Serving')
  await waitFor('the other event', () => reasonsOfEvents(objects).includes('CredentialsValid'))
})

test('warnings about credentials stand in CredentialsValid, whether they are valid or not, until they end', async () => {
  const objects = new MemoryObjects()
  const replica = await serving(objects)
  const says = (): string => condition(objects, 'prod', 'CredentialsValid')?.message ?? ''
  const path = 'spec.clientConfig.bearerTokenRef'
  const message =
    'Secret portcullis-system/x is released to all UpstreamClusters, which ends with the next minor version'
  const fix = 'annotate it for all that use it, with commas: portcullis.io/usable-by=prod'
  const warning = { ...mistake('prod', message), path, fix, severity: 'warning' as const }
  const elsewhere = { ...mistake('prod', 'is odd'), severity: 'warning' as const }
  replica.deliver([warning, elsewhere])
  await waitFor('the warning', () => says().includes(message))
  assert.equal(reasonOf(objects, 'prod', 'CredentialsValid'), 'True Valid')
  assert.equal(
    says(),
    `the cluster accepts the credential and grants every right that the gateway needs. ${path}: ${message}; ${fix}`,
  )
  replica.rights = { kind: 'rejected', message: 'the cluster does not accept it (401)' }
  await waitFor('Refused', () => reasonOf(objects, 'prod', 'CredentialsValid') === 'False Refused')
  assert.ok(says().endsWith(`. ${path}: ${message}; ${fix}`), says())
  replica.rights = { kind: 'granted' }
  replica.deliver([elsewhere])
  await waitFor(
    'its end',
    () => reasonOf(objects, 'prod', 'CredentialsValid') === 'True Valid' && !says().includes(message),
  )
})

test('a refused credential and a cluster that does not answer are distinguished', async () => {
  const objects = new MemoryObjects()
  const replica = await serving(objects)
  replica.rights = { kind: 'rejected', message: 'the cluster does not accept it (401)' }
  await waitFor('Refused', () => reasonOf(objects, 'prod', 'CredentialsValid') === 'False Refused')
  assert.equal(reasonOf(objects, 'prod', 'Ready'), 'False CredentialsInvalid')
  replica.rights = { kind: 'unanswered', message: 'no answer within 5000 ms' }
  await waitFor('Unreachable', () => reasonOf(objects, 'prod', 'CredentialsValid') === 'Unknown Unreachable')
  assert.equal(reasonOf(objects, 'prod', 'Ready'), 'Unknown RightsUnknown')
  await waitFor('an event', () => reasonsOfEvents(objects).includes('CredentialsUnknown'))
})

test('a new leader that has not checked yet keeps what the previous one has found', async () => {
  const objects = new MemoryObjects()
  const first = await serving(objects)
  const second = new Replica(objects, 'replica-b', false)
  second.rights = { kind: 'unasked' }
  second.apply('prod')
  for (const url of [FIRST, SECOND]) second.probed('prod', url)
  first.election.leads = false
  second.election.leads = true
  put(objects, 'witness')
  await waitFor('the second one leads', () => reasonOf(objects, 'witness', 'Ready') === 'Unknown Pending')
  assert.equal(reasonOf(objects, 'prod', 'Ready'), 'True Serving')
  assert.equal(reasonOf(objects, 'prod', 'CredentialsValid'), 'True Valid')
})

test('certificates: over soon, over, and not valid yet', async () => {
  const objects = new MemoryObjects()
  const ca = createCA({ commonName: 'a' })
  const { certPem, keyPem } = issueCertificate(ca, { commonName: 'prod', usage: 'server', days: 365 })
  const serving = { certData: base64(certPem), keyData: base64(keyPem) }
  put(objects, 'prod', { secureServing: serving })
  const replica = new Replica(objects)
  replica.apply('prod')
  for (const url of [FIRST, SECOND]) replica.probed('prod', url)
  await waitFor('Valid', () => reasonOf(objects, 'prod', 'CredentialsValid') === 'True Valid')
  const day = 86_400_000
  replica.laterMs = 336 * day
  await waitFor('soon', () => reasonOf(objects, 'prod', 'CredentialsValid') === 'True EndsSoon')
  assert.match(
    condition(objects, 'prod', 'CredentialsValid')?.message ?? '',
    /secureServing.certData: the certificate expires at/,
  )
  assert.equal(reasonOf(objects, 'prod', 'Ready'), 'True Serving')
  await waitFor('the event', () => reasonsOfEvents(objects).includes('CertificateEndsSoon'))
  replica.laterMs = 366 * day
  await waitFor('over', () => reasonOf(objects, 'prod', 'CredentialsValid') === 'False Expired')
  // Clients that verify it do not get as far as a request.
  assert.equal(reasonOf(objects, 'prod', 'Ready'), 'False CredentialsInvalid')
  const early = issueCertificate(ca, { commonName: 'x', usage: 'server', notBefore: new Date(Date.now() + 500 * day) })
  put(objects, 'early', { secureServing: { certData: base64(early.certPem), keyData: base64(early.keyPem) } })
  replica.apply('prod', 'early')
  await waitFor('before', () => reasonOf(objects, 'early', 'CredentialsValid') === 'False NotYetValid')
})

test('client CAs that have all expired are reported, and tokens still work', async () => {
  const objects = new MemoryObjects()
  const [old, current] = [createCA({ commonName: 'old', days: 1 }), createCA({ commonName: 'new', days: 100 })]
  const clientCAData = base64(`${old.certPem}${current.certPem}`)
  put(objects, 'prod', { secureServing: { clientCAData } })
  const replica = new Replica(objects)
  replica.apply('prod')
  for (const url of [FIRST, SECOND]) replica.probed('prod', url)
  replica.laterMs = 50 * 86_400_000
  await waitFor('one of them counts', () => reasonOf(objects, 'prod', 'CredentialsValid') === 'True Valid')
  replica.laterMs = 101 * 86_400_000
  await waitFor('none', () => reasonOf(objects, 'prod', 'CredentialsValid') === 'False Expired')
  assert.equal(reasonOf(objects, 'prod', 'Ready'), 'True Serving')
})

test('an endpoint of weight 0 takes no requests by configuration: that is not an error', async () => {
  const objects = new MemoryObjects()
  put(objects, 'prod', { servers: [{ endpoint: FIRST }, { endpoint: SECOND, weight: 0 }] })
  const replica = new Replica(objects)
  replica.apply('prod')
  for (const url of [FIRST, SECOND]) replica.probed('prod', url)
  await waitFor('healthy', () => reasonOf(objects, 'prod', 'EndpointsHealthy') === 'True AllHealthy')
})

test('shadow mode is reported next to Ready', async () => {
  const objects = new MemoryObjects()
  const replica = await serving(objects)
  put(objects, 'prod', {
    accessControl: { allow: [{ name: 'all', users: ['*'] }], shadow: true },
    flowControl: { flowControlSchemas: [{ name: 'lists', tokenBucket: { qps: 1, burst: 1 }, shadow: true }] },
    dispatchPolicies: [{ ...ALLOW_ALL, action: 'Deny', shadow: true }],
  })
  replica.apply('prod')
  const expected = 'in shadow mode, refusing nothing: accessControl, flow control schema lists, dispatchPolicies[0]'
  await waitFor('the shadows', () => condition(objects, 'prod', 'Ready')?.message.includes(expected) === true)
})

test('limits that replicas share: no Redis, Redis away from one of them, and all is well', async () => {
  const objects = new MemoryObjects()
  const shared = {
    name: 'shared',
    strategy: 'globalCount',
    tokenBucket: { qps: 10, burst: 10 },
    globalTokenBucket: { qps: 10, burst: 10 },
  } as const
  put(objects, 'prod', { flowControl: { flowControlSchemas: [shared] } })
  const alone = new Replica(objects)
  alone.apply('prod')
  await waitFor('NoRedis', () => reasonOf(objects, 'prod', 'LimitsShared') === 'False NoRedis')
  await alone.stop()
  const [leader, other] = [new Replica(objects, 'replica-c'), new Replica(objects, 'replica-b', false)]
  for (const replica of [leader, other]) {
    replica.limits = ''
    replica.apply('prod')
  }
  await waitFor('Shared', () => reasonOf(objects, 'prod', 'LimitsShared') === 'True Shared')
  other.limits = 'Redis is away (ECONNREFUSED)'
  await waitFor('RedisAway', () => reasonOf(objects, 'prod', 'LimitsShared') === 'False RedisAway')
  assert.equal(condition(objects, 'prod', 'LimitsShared')?.message, 'replica-b: Redis is away (ECONNREFUSED)')
  await waitFor('the event', () => reasonsOfEvents(objects).includes('LimitsNotShared'))
})

test('protected pods: the condition follows what the replicas do, whichever leads', async () => {
  const objects = new MemoryObjects()
  put(objects, 'prod', { podProtection: {} })
  const [leader, counter] = [new Replica(objects), new Replica(objects, 'replica-b', false)]
  const doing = (state: GatewayProtection['state'], message?: string): GatewayProtection => {
    return { cell: 'prod', state, since: '2026-01-01T00:00:00Z', ...(message !== undefined && { message }) }
  }
  leader.protects = doing('Judging')
  for (const replica of [leader, counter]) {
    replica.apply('prod')
    for (const url of [FIRST, SECOND]) replica.probed('prod', url)
  }
  await waitFor('pods are not counted', () => reasonOf(objects, 'prod', 'PodsProtected') === 'Unknown Pending')
  counter.protects = doing('Counting')
  await waitFor('pods are counted', () => reasonOf(objects, 'prod', 'PodsProtected') === 'True Protecting')
  counter.protects = doing('Broken', 'pods is forbidden')
  await waitFor('Broken', () => reasonOf(objects, 'prod', 'PodsProtected') === 'False Broken')
  assert.equal(
    condition(objects, 'prod', 'PodsProtected')?.message,
    'replica-b, since 2026-01-01T00:00:00Z: pods is forbidden',
  )
  await waitFor('the event', () => reasonsOfEvents(objects).includes('PodsNotProtected'))
  counter.protects = doing('Counting')
  await waitFor('the way back', () => reasonsOfEvents(objects).includes('PodsProtected'))
  leader.protects = doing('Judging', 'PodProtectors are not generated: deployments is forbidden')
  await waitFor('NotGenerated', () => reasonOf(objects, 'prod', 'PodsProtected') === 'False NotGenerated')
  assert.equal(
    condition(objects, 'prod', 'PodsProtected')?.message,
    'replica-a: PodProtectors are not generated: deployments is forbidden',
  )
  leader.protects = doing('Judging')
  await waitFor('Protecting', () => reasonOf(objects, 'prod', 'PodsProtected') === 'True Protecting')
  leader.rights = {
    kind: 'missing',
    missing: gatewayRights({ protection: { aggregation: { updateTrigger: undefined } } }).slice(-3),
    message: 'events',
  }
  await waitFor('Forbidden', () => reasonOf(objects, 'prod', 'PodsProtected') === 'False Forbidden')
  // Requests of users pass all the same.
  assert.equal(reasonOf(objects, 'prod', 'CredentialsValid'), 'False Forbidden')
  assert.equal(reasonOf(objects, 'prod', 'Ready'), 'True Serving')
  assert.equal(
    condition(objects, 'prod', 'PodsProtected')?.message,
    'the user of the gateway may not get events; may not create events; may not patch events: ' +
      'apply deploy/rbac/protection-worker.yaml to the cluster',
  )
  leader.rights = {
    kind: 'missing',
    missing: gatewayRights({ protection: { aggregation: { updateTrigger: undefined } } }),
    message: 'all',
  }
  await waitFor('not Ready', () => reasonOf(objects, 'prod', 'Ready') === 'False CredentialsInvalid')
  leader.rights = { kind: 'granted' }
  put(objects, 'prod', { podProtection: { shadow: true } })
  for (const replica of [leader, counter]) replica.apply('prod')
  await waitFor('shadow', () => reasonOf(objects, 'prod', 'PodsProtected') === 'False Shadow')
  await waitFor('the event of it', () => reasonsOfEvents(objects).includes('PodProtectionInShadow'))
  put(objects, 'prod', {})
  leader.protects = undefined
  counter.protects = undefined
  for (const replica of [leader, counter]) replica.apply('prod')
  await waitFor('no condition', () => condition(objects, 'prod', 'PodsProtected') === undefined)
})

test('a degrade mode shows, and ends by itself', async () => {
  const objects = new MemoryObjects()
  const replica = await serving(objects)
  const expiresAt = new Date(Date.now() + 3_600_000).toISOString()
  put(objects, 'prod', { degrade: { mode: 'Freeze', reason: 'etcd is full', expiresAt } })
  replica.apply('prod')
  await waitFor('Degraded', () => reasonOf(objects, 'prod', 'Degraded') === 'True Freeze')
  const degraded = condition(objects, 'prod', 'Degraded')
  assert.equal(degraded?.message, `Freeze until ${expiresAt}: etcd is full`)
  assert.equal(reasonOf(objects, 'prod', 'Ready'), 'True Serving')
  replica.laterMs = 3_600_000
  await waitFor('the end of it', () => reasonOf(objects, 'prod', 'Degraded') === 'False Expired')
  assert.notEqual(condition(objects, 'prod', 'Degraded')?.lastTransitionTime, degraded?.lastTransitionTime)
  await waitFor('events', () => reasonsOfEvents(objects).includes('DegradeExpired'))
  assert.ok(reasonsOfEvents(objects).includes('Degraded'))
})

test('a mode in shadow is reported: condition, reason and a warning event', async () => {
  const objects = new MemoryObjects()
  const replica = await serving(objects)
  put(objects, 'prod', { degrade: { mode: 'Freeze', reason: 'a trial', shadow: true } })
  replica.apply('prod')
  await waitFor('Shadow', () => reasonOf(objects, 'prod', 'Degraded') === 'False Shadow')
  await waitFor('the event', () => reasonsOfEvents(objects).includes('DegradeInShadow'))
})

test('endpoints that flap: the transitions count, and writes keep their distance', async () => {
  const objects = new MemoryObjects()
  const replica = await serving(objects)
  const readyBefore = condition(objects, 'prod', 'Ready')
  replica.probed('prod', SECOND, 'answered with 500')
  await waitFor('unhealthy', () => reasonOf(objects, 'prod', 'EndpointsHealthy') === 'False SomeUnhealthy')
  assert.equal(condition(objects, 'prod', 'EndpointsHealthy')?.message, `${SECOND}: answered with 500`)
  assert.deepEqual(statusOf(objects, 'prod').endpoints, { ready: 1, total: 2 })
  assert.equal(condition(objects, 'prod', 'Ready')?.lastTransitionTime, readyBefore?.lastTransitionTime)
  const before = statusWrites(objects, 'prod')
  const sinceMs = performance.now()
  for (let i = 0; i < 200; i++) {
    replica.probed('prod', FIRST, i % 2 === 0 ? 'answered with 500' : '')
    await new Promise((resolve) => setImmediate(resolve))
  }
  replica.probed('prod', FIRST, 'answered with 401')
  await waitFor('none', () => reasonOf(objects, 'prod', 'Ready') === 'False NoHealthyEndpoint')
  const writes = statusWrites(objects, 'prod') - before
  const spacings = (performance.now() - sinceMs) / SPACING_MS
  assert.ok(writes <= 2 + spacings, `${writes} writes in ${spacings} times the distance`)
  await waitFor('the event', () => {
    const counted = objects.all(EVENTS).filter((event) => event['reason'] === 'EndpointsUnhealthy')
    return counted.length === 1
  })
})

test('a credential that upstream refuses is not valid', async () => {
  const objects = new MemoryObjects()
  put(objects, 'prod', { clientConfig: { bearerToken: 'dG9rZW4=' } })
  const replica = new Replica(objects)
  replica.apply('prod')
  replica.probed('prod', FIRST, 'answered with 401')
  replica.probed('prod', SECOND)
  await waitFor('CredentialsValid', () => reasonOf(objects, 'prod', 'CredentialsValid') === 'False Refused')
  assert.equal(reasonOf(objects, 'prod', 'Ready'), 'True Serving')
  await waitFor('the event', () => reasonsOfEvents(objects).includes('CredentialsInvalid'))
})

test('replicas write their own entries only; the leader removes those of replicas that are gone', async () => {
  const objects = new MemoryObjects()
  const leader = await serving(objects)
  const other = new Replica(objects, 'replica-b', false)
  const third = new Replica(objects, 'replica-c', false)
  other.apply('prod')
  third.apply('prod')
  const names = (): string => (statusOf(objects, 'prod').gateways ?? []).map(({ name }) => name).join(' ')
  await waitFor('all', () => names() === 'replica-a replica-b replica-c')
  assert.equal(
    reasonOf(objects, 'prod', 'Ready'),
    'True Serving',
    'a follower sees no endpoints and says nothing of them',
  )
  assert.equal(objects.all(LEASES).length, 3)
  await third.stop()
  assert.equal(objects.all(LEASES).length, 2, 'who leaves takes its Lease along')
  leader.laterMs = 20_000
  await waitFor('a look', () => objects.all(LEASES).length === 2)
  for (let i = 0; i < 6; i++) {
    leader.laterMs += 10_000
    const seen = objects.writes.length
    await waitFor(
      'two beats',
      () => objects.writes.slice(seen).filter((write) => write.startsWith('update leases')).length > 4,
    )
  }
  await waitFor('its entry to go', () => names() === 'replica-a replica-b')
})

test('on a conflict the other write is kept, ours is added', async () => {
  const objects = new MemoryObjects()
  const replica = await serving(objects)
  put(objects, 'prod', { default: true })
  objects.beforeUpdate = () => {
    const object = objects.find(UPSTREAM_CLUSTERS, 'prod')
    const status = { ...statusOf(objects, 'prod') }
    const theirs = {
      name: 'replica-z',
      threads: 1,
      threadsApplied: 1,
      observedGeneration: 1,
      appliedAt: '2026-01-01T00:00:00Z',
    }
    objects.put(UPSTREAM_CLUSTERS, { ...object, status: { ...status, gateways: [...(status.gateways ?? []), theirs] } })
  }
  replica.apply('prod')
  await waitFor('both entries', () => {
    const gateways = statusOf(objects, 'prod').gateways ?? []
    return gateways.length === 2 && gateways[0]?.observedGeneration === 2
  })
})

test('the API server is unreachable: statuses are written when it is back', async () => {
  const objects = new MemoryObjects()
  const replica = await serving(objects)
  objects.away = true
  put(objects, 'prod', { default: true })
  replica.apply('prod')
  replica.probed('prod', FIRST, 'answered with 500')
  await waitFor('nothing', async () => {
    await new Promise((resolve) => setImmediate(resolve))
    return true
  })
  assert.equal(condition(objects, 'prod', 'Ready')?.observedGeneration, 1)
  objects.comeBack()
  await waitFor('the status', () => condition(objects, 'prod', 'Ready')?.observedGeneration === 2)
  assert.equal(reasonOf(objects, 'prod', 'EndpointsHealthy'), 'False SomeUnhealthy')
})

test('a cluster that is deleted and made again starts over', async () => {
  const objects = new MemoryObjects()
  const replica = await serving(objects)
  objects.remove(UPSTREAM_CLUSTERS, 'prod')
  replica.generations.delete('prod')
  replica.apply()
  put(objects, 'prod')
  await waitFor('a status', () => reasonOf(objects, 'prod', 'Ready') === 'Unknown Pending')
  replica.apply('prod')
  replica.probed('prod', FIRST)
  await waitFor('Ready', () => reasonOf(objects, 'prod', 'Ready') === 'True Serving')
})

test('where portcullis-system does not exist, Leases are in default', async () => {
  const objects = new MemoryObjects()
  objects.namespaces = ['default']
  await serving(objects)
  const lease = objects.find(LEASES, 'portcullis-replica-replica-a', 'default')
  assert.equal((lease?.['spec'] as { holderIdentity: string }).holderIdentity, 'replica-a')
})

test('the condition says that a mode is on its way back', async () => {
  const objects = new MemoryObjects()
  put(objects, 'prod', { degrade: { mode: 'ReadOnly', reason: 'INC-1', recovery: {} } })
  new Replica(objects).apply('prod')
  await waitFor('the mode', () => reasonOf(objects, 'prod', 'Degraded') === 'True ReadOnly')
  const { message } = condition(objects, 'prod', 'Degraded') ?? assert.fail()
  assert.equal(message, 'ReadOnly without an expiry, on the way back to Off by steps: INC-1')
})

test('each replica reports how many disruptive requests it has refused, rounded where there are many', async () => {
  const objects = new MemoryObjects()
  objects.put(UPSTREAM_CLUSTERS, { ...clusterOf('prod') })
  const one = new Replica(objects, 'a')
  one.apply('prod')
  const own = (): number | undefined => statusOf(objects, 'prod').gateways?.[0]?.refusedDisruptive
  await waitFor('an entry', () => statusOf(objects, 'prod').gateways?.length === 1)
  assert.equal(own(), undefined)
  const { incident } = one.clusters.get('prod') ?? assert.fail()
  for (let i = 0; i < 3; i++) incident.countRefused(`user ${i}`, 'request', one.clock.now())
  await waitFor('3', () => own() === 3)
  for (let i = 0; i < 40; i++) incident.countRefused(`user ${i}`, 'request', one.clock.now())
  await waitFor('a power of two', () => own() === 64 || own() === 32)
})

test('on the embedded API server: a status is stored unchanged, and written once', async (t) => {
  const store = openSqliteStore({ file: ':memory:', key: undefined })
  const registry = new Registry({
    store,
    kinds: SCHEME,
    pem: nodePemChecks,
    now: Date.now,
    uuid: randomUUID,
    random: Math.random,
  })
  const client = createInProcessClient(registry)
  const at = { namespace: '', name: 'prod' }
  const insecure = { clientConfig: { insecure: true, bearerToken: 'dG9rZW4=' } }
  for (const name of ['default', 'portcullis-system']) {
    await client.create(NAMESPACES, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } }).catch(() => undefined)
  }
  await client.create(UPSTREAM_CLUSTERS, clusterOf('prod', insecure) as unknown as Record<string, unknown>)
  const replica = new Replica(client)
  t.after(() => store.close())
  const read = async (): Promise<UpstreamCluster & { status?: UpstreamClusterStatus }> =>
    (await client.get(UPSTREAM_CLUSTERS, at)) as unknown as UpstreamCluster & { status?: UpstreamClusterStatus }
  const reason = async (type: string): Promise<string> => {
    const found = (await read()).status?.conditions?.find((one) => one.type === type)
    return `${found?.status} ${found?.reason}`
  }
  await waitFor('a first status', async () => (await reason('Ready')) === 'Unknown Pending')
  replica.put(await read())
  for (const url of [FIRST, SECOND]) replica.probed('prod', url)
  await waitFor('Ready', async () => (await reason('EndpointsHealthy')) === 'True AllHealthy')
  const patch = { spec: { degrade: { mode: 'ReadOnly', reason: 'move' } } }
  const options = { fieldManager: 'test' }
  await client.patch(UPSTREAM_CLUSTERS, at, 'application/merge-patch+json', patch, options)
  replica.put(await read())
  await waitFor('Degraded', async () => (await reason('Degraded')) === 'True ReadOnly')
  const { metadata, status } = await read()
  assert.equal(metadata.generation, 2, 'a status is no new generation')
  assert.equal(status?.gateways?.[0]?.observedGeneration, 2)
  await waitFor('events', async () => (await client.list(EVENTS, 'default')).items.length >= 3)
  const lease = async (): Promise<string> => JSON.stringify((await client.list(LEASES, '')).items)
  const before = await lease()
  await waitFor('a beat', async () => (await lease()) !== before)
  assert.equal((await read()).metadata.resourceVersion, metadata.resourceVersion, 'nothing more to say')
})
