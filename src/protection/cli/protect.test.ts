// `portcullis protect` status, why and dry-run, against objects in memory: output, writes, exit codes.

import assert from 'node:assert/strict'
import { beforeEach, describe, test } from 'node:test'
import { MemoryObjects } from '../../../test/harness/objects/memory-objects.ts'
import type { PodProtection } from '../../gateway/api/upstream-cluster/cluster-protection.ts'
import type { GatewayProtection } from '../../gateway/api/upstream-cluster/status.ts'
import { UPSTREAM_CLUSTERS } from '../../gateway/api/upstream-cluster-kind.ts'
import { replicaLease } from '../../gateway/core/status/gateways.ts'
import type { JsonObject } from '../../kit/api/json/json-object.ts'
import { metaMicroTime } from '../../kit/core/text/meta-time.ts'
import { PODS } from '../../kube/api/kinds/foreign-kinds.ts'
import { LEASES } from '../../kube/api/kinds/lease-kind.ts'
import { statusError } from '../../kube/api/status.ts'
import { runProgram } from '../../program/cli/program.ts'
import type { CellStatus } from '../api/pod-protector.ts'
import { POD_PROTECTORS } from '../api/pod-protector-kind.ts'
import { type ProtectDryRunOptions, protectDryRun } from './dry-run.ts'
import { type ProtectStatusOptions, protectStatus } from './status.ts'
import { type ProtectWhyOptions, protectWhy } from './why.ts'

const NOW = Date.parse('2030-01-31T12:00:00Z')
const EVENT = '2030-01-31T11:59:57.500000Z'
const APP = { app: 'web' }
let core: MemoryObjects
let worker: MemoryObjects

beforeEach(() => {
  core = new MemoryObjects()
  worker = new MemoryObjects()
  cluster('prod', {})
  pod('web-1')
})

function cluster(name: string, podProtection?: PodProtection): void {
  core.put(UPSTREAM_CLUSTERS, {
    apiVersion: 'proxy.kubegateway.io/v1alpha1',
    kind: 'UpstreamCluster',
    metadata: { name },
    spec: { ...(podProtection !== undefined && { podProtection }) },
  })
}

interface Numbers {
  readonly name?: string
  readonly namespace?: string
  readonly required?: number
  readonly estimated?: number
  readonly cells?: readonly CellStatus[]
  readonly spec?: JsonObject
}

function protector(numbers: Numbers): void {
  const { name = 'web', namespace = 'shop', required = 5, cells = [], estimated = 0, spec } = numbers
  const aggregated = cells.reduce((all, { aggregation }) => all + (aggregation?.availableReplicas ?? 0), 0)
  const summary = {
    totalReplicas: aggregated,
    aggregatedAvailableReplicas: aggregated,
    estimatedAvailableReplicas: estimated,
    maxLatencyMillis: 1500,
  }
  core.put(POD_PROTECTORS, {
    apiVersion: 'podseidon.kubewharf.io/v1alpha1',
    kind: 'PodProtector',
    metadata: { name, namespace },
    spec: { minAvailable: required, minReadySeconds: 0, selector: { matchLabels: APP }, ...spec },
    ...(cells.length > 0 && { status: { cells, summary } }),
  })
}

function cell(cellID: string, available: number, ...uids: string[]): CellStatus {
  const aggregation = {
    totalReplicas: available,
    availableReplicas: available,
    readyReplicas: available,
    runningReplicas: available,
    scheduledReplicas: available,
    lastEventTime: EVENT,
  }
  const buckets = uids.map((podUID) => ({ startTime: EVENT, podUID }))
  return { cellID, aggregation, admissionHistory: { buckets } }
}

function pod(name: string, more: { status?: JsonObject; metadata?: JsonObject } = {}): void {
  const times = { lastTransitionTime: '2030-01-31T11:58:30Z' }
  const conditions = ['PodScheduled', 'Ready'].map((type) => ({ type, status: 'True', ...times }))
  worker.put(PODS, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'shop', labels: APP, creationTimestamp: '2030-01-31T11:58:30Z', ...more.metadata },
    status: { phase: 'Running', conditions, ...more.status },
  })
}

interface Ran {
  readonly code: number
  readonly out: string
  readonly err: string
}

type Io = { out: (text: string) => void; err: (text: string) => void }

async function run(command: (io: Io) => Promise<number>): Promise<Ran> {
  let out = ''
  let err = ''
  const code = await command({
    out: (text) => {
      out += text
    },
    err: (text) => {
      err += text
    },
  })
  return { code, out, err }
}

const now = (): number => NOW

function status(options: Partial<ProtectStatusOptions> = {}): Promise<Ran> {
  return run((io) => protectStatus({ allNamespaces: false, namespace: 'shop', client: core, now, ...io, ...options }))
}

function why(options: Partial<ProtectWhyOptions> = {}): Promise<Ran> {
  const preset = { pod: 'web-1', namespace: 'shop', cluster: 'prod', client: core, podClient: worker, now }
  return run((io) => protectWhy({ ...preset, ...io, ...options }))
}

function dryRun(options: Partial<ProtectDryRunOptions> = {}): Promise<Ran> {
  return run((io) => protectDryRun({ mode: 'on', clusters: [], client: core, now, ...io, ...options }))
}

describe('status', () => {
  test('numbers, cells, and what may go', async () => {
    const stale = { ...cell('west', 2), stale: true }
    protector({ required: 2, estimated: 3, cells: [cell('east', 4, 'a'), stale] })
    const { code, out, err } = await status()
    assert.equal(err, '')
    assert.equal(code, 0)
    const [head = '', first = '', second = ''] = out.split('\n')
    assert.match(head, /^NAMESPACE +NAME +REQUIRED +AGGREGATED +ESTIMATED +BEING DELETED +LAG +STATE +CELLS$/)
    assert.match(
      first,
      /^shop +web +2 +6 +3 +1 +1\.5s +1 may go +east: 4 available of 4, 1 being deleted, last event 2s ago$/,
    )
    assert.match(second, /^ +west: 2 available of 2, last event 2s ago, stale: its pods do not count$/)
    assert.equal(first.indexOf('east'), second.indexOf('west'))
  })

  test('a cell whose clock is wrong, as it was measured when its pods were counted', async () => {
    const { aggregation, ...east } = cell('east', 4)
    const skewed = { ...east, aggregation: { ...Object(aggregation), clockSkewMillis: -29_600 } }
    protector({ required: 2, estimated: 4, cells: [skewed] })
    assert.match((await status()).out, /last event 2s ago, its clock is 30 s behind the gateway's$/m)
  })

  test('below the minimum: named, exit code 1', async () => {
    protector({ required: 5, estimated: 4, cells: [cell('east', 4)] })
    protector({ name: 'fine', required: 4, estimated: 4, cells: [cell('east', 4)] })
    const { code, out, err } = await status()
    assert.equal(code, 1)
    assert.equal(err, 'error: PodProtector shop/web is below its minimum: 5 required, 4 estimated\n')
    assert.match(out, /web .* below /)
    assert.match(out, /fine .* at its limit /)
  })

  test('one without counts is below', async () => {
    protector({ required: 1 })
    const { code, err } = await status()
    assert.match(err, /requires 1 pods, which have not been counted/)
    assert.equal(code, 1)
  })

  /** As reported by a gateway. */
  function said(name: string, state: GatewayProtection['state'], reason: string, message = ''): void {
    const object = core.find(UPSTREAM_CLUSTERS, name)
    const since = '2030-01-31T11:50:00Z'
    const conditions = [{ type: 'PodsProtected', status: 'False', reason, message, lastTransitionTime: since }]
    const gateways = [{ name: 'gw-a', podProtection: { cell: name, state, since, message: 'the 403' } }]
    core.put(UPSTREAM_CLUSTERS, { ...object, status: { conditions, gateways } })
    core.put(LEASES, replicaLease('gw-a', 'portcullis-system', metaMicroTime(NOW)))
  }

  test('a cell that is not counted any more: marked, since when, and exit code 1; what was counted is not shown as a number', async () => {
    cluster('east', {})
    cluster('west', {})
    said('east', 'Broken', 'Forbidden', 'may not watch pods')
    // It may be counting, but incompletely.
    said('west', 'Counting', 'Forbidden', 'may not create events')
    protector({ required: 1, estimated: 4, cells: [cell('east', 2), cell('west', 2)] })
    protector({ name: 'db', required: 1, estimated: 2, cells: [cell('west', 2)] })
    const { code, out, err } = await status()
    assert.match(out, /web .* not known +east: 2 available of 2, last event 2s ago, NOT COUNTED for 10m\n/)
    assert.match(out, /db .* 1 may go +west: 2 available of 2, last event 2s ago\n/)
    assert.equal(
      err,
      'error: the pods of cell east are not counted since 2030-01-31T11:50:00Z: the 403; may not watch pods\n',
    )
    assert.equal(code, 1)
    const other = await status({ name: 'db' })
    assert.equal(other.err, '')
    assert.equal(other.code, 0)
  })

  test('one without counts, with the reason', async () => {
    cluster('east', {})
    said('east', 'Broken', 'Broken', 'gw-a: pods is forbidden')
    protector({ required: 1 })
    const { err } = await status()
    assert.match(
      err,
      /which have not been counted.*\nerror: the pods of cell east are not counted since .*: the 403\n$/,
    )
  })

  test('a generator that may not follow workloads: said, exit code 1, also where there is no PodProtector yet', async () => {
    cluster('east', {})
    said('east', 'Counting', 'NotGenerated', 'gw-a: PodProtectors are not generated: deployments is forbidden')
    const none = await status()
    assert.match(
      none.err,
      /^error: gw-a: PodProtectors are not generated: deployments is forbidden\nerror: there is no PodProtector/,
    )
    protector({ required: 1, estimated: 2, cells: [cell('east', 2)] })
    const { code, err } = await status()
    assert.deepEqual([code, err], [1, 'error: gw-a: PodProtectors are not generated: deployments is forbidden\n'])
  })

  test('what was said by a gateway that is gone does not count', async () => {
    cluster('east', {})
    said('east', 'Counting', 'Protecting')
    core.put(LEASES, replicaLease('gw-a', 'portcullis-system', metaMicroTime(NOW - 3_600_000)))
    protector({ required: 1, estimated: 2, cells: [cell('east', 2)] })
    const { code, err } = await status()
    assert.equal(err, 'error: the pods of cell east are not counted: no gateway renews its Lease\n')
    assert.equal(code, 1)
  })

  test('where the UpstreamClusters are elsewhere, it is reported as unknown', async () => {
    protector({ required: 1, estimated: 2, cells: [cell('east', 2)] })
    const { list } = core
    core.list = (kind, ...rest) => {
      if (kind === UPSTREAM_CLUSTERS) return Promise.reject(statusError('NotFound', 'no such resource'))
      return list.call(core, kind, ...rest)
    }
    const { code, err } = await status()
    assert.match(
      err,
      /^warning: no UpstreamClusters are visible here: it is not known whether each cell is still counted/,
    )
    assert.equal(code, 0)
  })

  test('by name, and in all namespaces', async () => {
    protector({ required: 0, cells: [cell('east', 1)] })
    protector({ name: 'db', namespace: 'data', required: 0, cells: [cell('east', 1)] })
    assert.ok(!(await status()).out.includes('db'))
    assert.match((await status({ name: 'web' })).out, /web/)
    const all = await run((io) => protectStatus({ allNamespaces: true, client: core, now, ...io }))
    assert.match(all.out, /data +db[\s\S]*shop +web/)
  })

  const errors: [string, Partial<ProtectStatusOptions>, RegExp][] = [
    ['none', {}, /there is no PodProtector in namespace shop; see -n and -A/],
    ['none of the name', { name: 'wbe' }, /there is no PodProtector "wbe" in namespace shop/],
    ['a name everywhere', { name: 'web', allNamespaces: true }, /give -n NAMESPACE with the name/],
    ['both', { allNamespaces: true }, /--namespace and --all-namespaces are both given/],
  ]
  for (const [what, options, expected] of errors) {
    test(`${what}: one line, exit code 1`, async () => {
      const { code, err } = await status(options)
      assert.match(err, expected)
      assert.match(err, /^error: [^\n]*\n$/)
      assert.equal(code, 1)
    })
  }

  test('a protector that cannot be read is shown with what is wrong; a server that is away is one line', async () => {
    protector({ spec: { minAvailable: 'many' }, required: 0, cells: [cell('east', 1)] })
    assert.match((await status()).err, /warning: PodProtector shop\/web: spec\.minAvailable is not a whole number/)
    core.list = () => Promise.reject(statusError('Forbidden', 'no'))
    assert.match((await status()).err, /needs get and list of podprotectors\n$/)
    core.list = () => Promise.reject(new Error('connect ECONNREFUSED'))
    assert.match((await status()).err, /^error: the API server does not answer: connect ECONNREFUSED/)
  })
})

describe('why', () => {
  test('enough are left: passes', async () => {
    protector({ required: 5, cells: [cell('prod', 7, 'a')] })
    const { code, out, err } = await why()
    assert.equal(err, '')
    assert.equal(
      out,
      'pod shop/web-1: ready for 1m30s, evaluated as Available\n' +
        'PodProtector shop/web: 5 required, 7 counted, 1 being deleted: allows it\n' +
        'a deletion now passes: enough pods are left\n',
    )
    assert.equal(code, 0)
  })

  test('too few would be left: which protector, with numbers; nothing is written', async () => {
    protector({ required: 6, cells: [cell('prod', 6)] })
    protector({ name: 'other', required: 1, cells: [cell('prod', 6)] })
    protector({ name: 'unrelated', required: 9, spec: { selector: { matchLabels: { app: 'db' } } } })
    const { code, out } = await why()
    assert.match(out, /PodProtector shop\/other: 1 required, 6 counted, 0 being deleted: allows it\n/)
    assert.match(
      out,
      /PodProtector shop\/web: 6 required, 6 counted, 0 being deleted: refuses: too few would be left\n/,
    )
    assert.match(
      out,
      /a deletion now is refused: PodProtector shop\/web reports too few available replicas .*: 6 required/,
    )
    assert.ok(!out.includes('unrelated'))
    assert.equal(code, 1)
    assert.deepEqual(core.writes, [])
  })

  test('a full buffer: for now', async () => {
    protector({ required: 1, cells: [cell('prod', 6, 'a')], spec: { admissionHistoryConfig: { maxConcurrentLag: 1 } } })
    const { code, out } = await why()
    assert.match(out, /refuses for now: earlier deletions/)
    assert.match(out, /has full admission buffer .*; it may pass in a moment\n/)
    assert.equal(code, 1)
  })

  test('shadow mode and force-delete: refused, and passes', async () => {
    cluster('prod', { shadow: true })
    protector({ required: 6, cells: [cell('prod', 6)] })
    const shadow = await why()
    assert.match(shadow.out, /passes, because protection is in dry run; it would be refused: PodProtector shop\/web/)
    assert.equal(shadow.code, 0)
    cluster('prod', {})
    pod('web-1', { metadata: { annotations: { 'podseidon.kubewharf.io/force-delete': '' } } })
    const forced = await why()
    assert.match(forced.out, /passes, because of force-delete; it would be refused/)
    assert.equal(forced.code, 0)
  })

  test('what is not available is let through', async () => {
    protector({ required: 6, cells: [cell('prod', 6)] })
    pod('web-1', { status: { conditions: [] } })
    assert.match((await why()).out, /being deleted: is not asked\na deletion now passes: the pod is not ready/)
    pod('web-1', { metadata: { deletionTimestamp: '2030-01-31T11:59:00Z' } })
    assert.match((await why()).out, /passes: the pod is already being deleted/)
    pod('web-1')
    protector({ required: 6, cells: [cell('prod', 6)], spec: { minReadySeconds: 100 } })
    assert.match((await why()).out, /minReadySeconds and is not counted\na deletion now passes: the pod does not count/)
    assert.equal((await why({ clockSkew: '10s' })).code, 1)
  })

  test('cells that are silent count as nothing, as marked or by --stale-after', async () => {
    const silent = { ...cell('prod', 9), stale: true }
    protector({ required: 2, cells: [silent, cell('b', 2)] })
    const marked = await why()
    assert.match(marked.out, /2 required, 2 counted, 0 being deleted: refuses/)
    assert.match(marked.out, / {2}cell prod is silent: its pods do not count\n/)
    protector({ required: 2, cells: [cell('prod', 9)] })
    assert.equal((await why({ staleAfter: '5s' })).code, 0)
    assert.equal((await why({ staleAfter: '2s' })).code, 1)
  })

  test('no cluster asks for it', async () => {
    protector({ required: 9 })
    const passes = async (options: Partial<ProtectWhyOptions>, reason: RegExp): Promise<void> => {
      const { code, out } = await why(options)
      assert.match(out, reason)
      assert.equal(code, 0)
    }
    cluster('bare')
    await passes({ cluster: 'bare' }, /passes: UpstreamCluster bare has no spec\.podProtection/)
    cluster('prod', { excludedNamespaces: ['shop'] })
    await passes({}, /passes: spec\.podProtection excludes namespace shop/)
    cluster('prod', { objectSelector: { matchLabels: { tier: 'gold' } } })
    await passes({}, /passes: spec\.podProtection\.objectSelector leaves it out/)
    cluster('prod', {})
    pod('web-1', { metadata: { labels: {} } })
    await passes({}, /passes: no PodProtector selects the pod/)
  })

  test('a cell by its own name; one that no cluster has is taken as it is', async () => {
    cluster('prod', { cell: 'east' })
    protector({ required: 5, cells: [cell('east', 6)] })
    const known = await why({ cluster: 'east' })
    assert.deepEqual([known.code, known.err], [0, ''])
    assert.ok(!known.out.includes('have not been counted'))
    const other = await why({ cluster: 'prd' })
    assert.match(other.err, /^note: there is no UpstreamCluster prd .*did you mean prod\?\n$/)
    assert.match(other.out, / {2}its pods in cell prd have not been counted\n/)
    core.list = (kind, ...rest) =>
      kind === UPSTREAM_CLUSTERS
        ? Promise.reject(statusError('NotFound', 'the server could not find the requested resource'))
        : MemoryObjects.prototype.list.call(core, kind, ...rest)
    assert.equal((await why({ cluster: 'east' })).code, 0)
  })

  const errors: [string, Partial<ProtectWhyOptions>, RegExp][] = [
    ['no such pod', { pod: 'web-2' }, /there is no pod shop\/web-2; is --pod-context that of the cluster\?/],
    ['a duration that is none', { clockSkew: 'much' }, /--clock-skew "much" is not a duration/],
  ]
  for (const [what, options, expected] of errors) {
    test(`${what}: one line, exit code 1`, async () => {
      const { code, err } = await why(options)
      assert.match(err, expected)
      assert.match(err, /^error: [^\n]*\n$/)
      assert.equal(code, 1)
    })
  }

  test('the cluster of the pod is away: says which kubeconfig', async () => {
    worker.away = true
    const { code, err } = await why()
    assert.match(err, /^error: the API server does not answer: .*is --pod-kubeconfig the right one[^\n]*\n$/)
    assert.equal(code, 1)
  })
})

/** What a federated cluster answers for UpstreamClusters. */
function notFederated(path: string): Error {
  const why = `cluster "all" is read from its members, and spec.federation.resources does not name ${path}`
  return statusError('NotFound', `${why}; ask a member at /clusters/MEMBER`)
}

test('the context of a federated cluster is not taken for the core, even if it shows PodProtectors', async () => {
  protector({ required: 6, cells: [cell('prod', 6)] })
  const { list } = core
  core.list = (kind, ...rest) =>
    kind === UPSTREAM_CLUSTERS ? Promise.reject(notFederated('/apis/x')) : list.call(core, kind, ...rest)
  for (const ran of [await why(), await status({ cluster: 'prod' })]) {
    assert.match(ran.err, /^error: the API server refuses: cluster "all" is read from its members, .*see --kubeconfig/)
    assert.deepEqual([ran.code, ran.out], [1, ''])
  }
  // To look at, they are as good as there.
  assert.match((await status()).out, /\nshop +web +6 /)
})

describe('a federated cluster', () => {
  beforeEach(() => {
    core.put(UPSTREAM_CLUSTERS, {
      metadata: { name: 'all' },
      spec: { members: [{ name: 'east', cluster: 'prod' }, { name: 'west' }, { name: 'bare' }], podProtection: {} },
    })
    cluster('west', { excludedNamespaces: ['shop'] })
    cluster('bare')
  })

  test('why: stands for the member that the namespace names', async () => {
    protector({ required: 6, cells: [cell('prod', 4), cell('west', 2)] })
    const refused = await why({ cluster: 'all', namespace: 'east--shop' })
    assert.equal(refused.err, 'note: namespace east--shop of all is shop of prod\n')
    assert.match(refused.out, /^pod east--shop\/web-1: ready for .*\nPodProtector shop\/web: 6 required, 6 counted/)
    assert.equal(refused.code, 1)
    // By the settings of the member.
    const west = await why({ cluster: 'all', namespace: 'west--shop' })
    assert.match(west.out, /a deletion now passes: spec\.podProtection excludes namespace shop\n$/)
    const bare = await why({ cluster: 'all', namespace: 'bare--shop' })
    assert.match(bare.out, /passes: UpstreamCluster bare has no spec\.podProtection/)
    const none = await why({ cluster: 'all', namespace: 'shop' })
    assert.match(none.err, /^error: namespace "shop" of all names no member; .*east, west, bare\n$/)
    const gone = await why({ cluster: 'all', namespace: 'east--shop', pod: 'web-2' })
    assert.match(gone.err, /\nerror: there is no pod east--shop\/web-2; /)
  })

  test('status: a namespace of one member, with its cell only', async () => {
    protector({ required: 2, estimated: 6, cells: [cell('prod', 4), cell('west', 2)] })
    protector({ name: 'other', required: 1, estimated: 2, cells: [cell('west', 2)] })
    const { code, out, err } = await status({ cluster: 'all', namespace: 'east--shop' })
    const [, row = '', ...more] = out.split('\n')
    assert.match(row, /^east--shop +web +2 +6 +6 +0 .*4 may go +prod: 4 available of 4, last event 2s ago$/)
    assert.deepEqual(more, [''])
    assert.deepEqual([code, err], [0, 'note: namespace east--shop of all is shop of prod\n'])
  })

  test('status: all members, each with what concerns it', async () => {
    protector({ required: 2, estimated: 6, cells: [cell('prod', 4), cell('west', 2)] })
    protector({ name: 'db', namespace: 'data', required: 1, estimated: 2, cells: [cell('west', 2)] })
    const all = { allNamespaces: true, client: core, now }
    const { code, out, err } = await run((io) => protectStatus({ ...all, ...io, cluster: 'all' }))
    const rows = out.split('\n').slice(1, -1)
    assert.deepEqual(
      rows.map((row) => row.replaceAll(/ {2,}/g, ' ').replace(/ available.*/, '')),
      [
        'east--shop web 2 6 6 0 1500ms 4 may go prod: 4',
        'west--data db 1 2 2 0 1500ms 1 may go west: 2',
        'west--shop web 2 6 6 0 1500ms 4 may go west: 2',
      ].map((row) => row.replace('1500ms', rows[0]?.match(/1\S*s/)?.[0] ?? '')),
    )
    assert.deepEqual([code, err], [0, 'note: UpstreamCluster bare has no spec.podProtection\n'])
  })

  test('status: one cluster, one cell, and errors', async () => {
    protector({ required: 2, estimated: 6, cells: [cell('prod', 4), cell('west', 2)] })
    const west = await status({ cluster: 'west' })
    assert.match(west.out, /\nshop +web .* west: 2 available of 2, last event 2s ago\n$/)
    assert.ok(!west.out.includes('prod'))
    const bare = await status({ cluster: 'bare' })
    assert.match(bare.err, /^error: UpstreamCluster bare has no spec\.podProtection; name a cluster whose pods/)
    const member = await status({ cluster: 'all', namespace: 'bare--shop' })
    assert.match(member.err, /^error: UpstreamCluster bare has no spec\.podProtection; /)
    assert.match((await status({ cluster: 'all', namespace: 'eas--shop' })).err, /did you mean east\?/)
    const none = await status({ cluster: 'all', namespace: 'east--data' })
    assert.match(none.err, /\nerror: there is no PodProtector in namespace east--data; see -n and -A\n$/)
  })
})

describe('dry-run', () => {
  /** One replica, which follows every write. */
  function follow(): void {
    core.put(LEASES, replicaLease('gw-a', 'portcullis-system', metaMicroTime(NOW)))
    const { patch } = core
    const applied = (object: JsonObject): void => {
      const { generation } = object['metadata'] as { generation: number }
      const gateways = [{ name: 'gw-a', threads: 1, threadsApplied: 1, observedGeneration: generation, appliedAt: '' }]
      core.put(UPSTREAM_CLUSTERS, { ...object, status: { gateways } })
    }
    for (const object of core.all(UPSTREAM_CLUSTERS)) applied(object)
    core.patch = async (...args) => {
      const answer = await patch.apply(core, args)
      applied(answer)
      return answer
    }
  }

  function protectionOf(name: string): PodProtection | undefined {
    return (core.find(UPSTREAM_CLUSTERS, name)?.['spec'] as { podProtection?: PodProtection }).podProtection
  }

  test('a federated cluster stands for its members whose pods are protected', async () => {
    cluster('west', {})
    cluster('bare')
    const federated = (name: string, members: readonly JsonObject[]): unknown =>
      core.put(UPSTREAM_CLUSTERS, { metadata: { name }, spec: { members, podProtection: {} } })
    federated('all', [{ name: 'east', cluster: 'prod' }, { name: 'west' }, { name: 'bare' }])
    federated('bares', [{ name: 'bare' }])
    follow()
    const { code, out, err } = await dryRun({ clusters: ['all', 'west'] })
    assert.deepEqual([code, err], [0, ''])
    assert.deepEqual(out.match(/^.*: dry run is on/gm), ['prod: dry run is on', 'west: dry run is on'])
    assert.equal(protectionOf('all')?.shadow, undefined)
    const none = await dryRun({ clusters: ['bares'] })
    assert.match(none.err, /^error: no member of bares has spec\.podProtection; .*add podProtection to bare\n$/)
    assert.equal(none.code, 1)
    const all = await dryRun({ mode: 'off' })
    assert.deepEqual(all.out.match(/^.*: dry run is off/gm), ['prod: dry run is off', 'west: dry run is off'])
  })

  test('on and off, of all that are protected; other fields stay', async () => {
    cluster('prod', { cell: 'east' })
    cluster('stage', { shadow: true })
    cluster('bare')
    follow()
    const on = await dryRun()
    assert.equal(on.err, '')
    assert.equal(on.code, 0)
    assert.match(
      on.out,
      /^prod: dry run is on, protection refuses nothing \(generation 3\)\nstage: dry run was already on/,
    )
    assert.match(on.out, /prod, generation 3:\n[\s\S]*gw-a +1\/1 +3 .*in force\nstage, generation 1:\n/)
    assert.deepEqual(protectionOf('prod'), { cell: 'east', shadow: true })
    assert.equal(protectionOf('bare'), undefined)
    const off = await dryRun({ mode: 'off', clusters: ['stage', 'stage'] })
    assert.match(off.out, /^stage: dry run is off, protection refuses \(generation 2\)\n/)
    assert.deepEqual([protectionOf('stage')?.shadow, protectionOf('prod')?.shadow], [false, true])
  })

  test('off where no gateway can protect: it is switched, but fails', async () => {
    follow()
    const conditions = [
      { type: 'PodsProtected', status: 'False', reason: 'Broken', message: 'gw-a: pods is forbidden' },
    ]
    const object = core.find(UPSTREAM_CLUSTERS, 'prod')
    core.put(UPSTREAM_CLUSTERS, { ...object, status: { ...(object?.['status'] as object), conditions } })
    const { code, err } = await dryRun({ mode: 'off' })
    assert.equal(err, 'error: the pods of prod are still not protected: gw-a: pods is forbidden\n')
    assert.equal(code, 1)
  })

  test('off where shadow was never said writes nothing', async () => {
    follow()
    const before = core.writes.length
    assert.match((await dryRun({ mode: 'off' })).out, /was already off/)
    assert.equal(core.writes.length, before)
  })

  test('another client writes meanwhile: tried again', async () => {
    follow()
    const { patch } = core
    let once = true
    core.patch = async (...args) => {
      if (!once) return await patch.apply(core, args)
      once = false
      throw statusError('Conflict', 'the object has been modified')
    }
    assert.equal((await dryRun()).code, 0)
    assert.equal(protectionOf('prod')?.shadow, true)
  })

  test('protection that is removed meanwhile is not switched on again', async () => {
    const { patch } = core
    core.patch = (...args) => {
      core.patch = patch
      const spec = core.find(UPSTREAM_CLUSTERS, args[1].name)
      core.put(UPSTREAM_CLUSTERS, { ...spec, spec: {} })
      return Promise.reject(statusError('Conflict', 'the object has been modified'))
    }
    const { code, err } = await dryRun()
    assert.match(err, /prod has no spec\.podProtection/)
    assert.equal(code, 1)
    assert.equal(protectionOf('prod'), undefined)
  })

  test('a replica that does not follow: exit code 1', async () => {
    core.put(LEASES, replicaLease('gw-a', 'portcullis-system', metaMicroTime(NOW)))
    let at = NOW
    const ticking = (): number => {
      at += 1000
      return at
    }
    const { code, err } = await dryRun({ timeout: '2s', now: ticking })
    assert.match(err, /not in force yet on: gw-a/)
    assert.equal(code, 1)
  })

  const errors: [string, Partial<ProtectDryRunOptions>, RegExp][] = [
    ['no switch', { mode: 'prod' }, /"prod" is neither on nor off/],
    ['a cluster without protection', { clusters: ['prod', 'bare'] }, /bare has no spec\.podProtection/],
    ['no such cluster', { clusters: ['prd'] }, /there is no UpstreamCluster "prd"; did you mean prod\?/],
    ['a timeout that is none', { timeout: 'soon' }, /--timeout "soon" is not a positive duration/],
  ]
  for (const [what, options, expected] of errors) {
    test(`${what}: one line, exit code 1, nothing written`, async () => {
      cluster('bare')
      const { code, err } = await dryRun(options)
      assert.match(err, expected)
      assert.match(err, /^error: [^\n]*\n$/)
      assert.equal(code, 1)
      assert.deepEqual(core.writes, [])
    })
  }
})

describe('the command line', () => {
  async function program(...argv: string[]): Promise<Ran> {
    return await run((io) =>
      runProgram(argv, {
        version: '0',
        settings: async () => [],
        ...io,
        input: (async function* () {})(),
        now,
        serve: () => Promise.resolve(0),
        demo: () => Promise.resolve(0),
      }),
    )
  }

  test('every command of protect has its help', async () => {
    const { out } = await program('protect', '--help')
    for (const name of ['status', 'why', 'dry-run', 'install']) assert.match(out, new RegExp(`^  ${name} `, 'm'))
    assert.match((await program('protect', 'why', '--help')).out, /--pod-context <name>/)
    for (const path of [['protect', 'install'], ['control', 'kubeconfig'], ['protect']]) {
      const asked = await program('help', ...path)
      assert.deepEqual([asked.code, asked.out], [0, (await program(...path, '--help')).out])
      assert.match(asked.out, new RegExp(`^Usage: portcullis ${path.join(' ')} `))
    }
    const wrong = await program('help', 'protect', 'instal')
    assert.deepEqual([wrong.code, wrong.out], [1, ''])
    assert.match(wrong.err, /^error: unknown command 'protect instal'/)
  })

  test('an unknown command names the help that lists all, which works', async () => {
    const wrong = await program('protectt')
    assert.match(wrong.err, /portcullis help lists all commands/)
    assert.match((await program('help')).out, /^ {2}protect /m)
  })

  test('what is missing or wrong is said', async () => {
    assert.match((await program('protect', 'why', 'web-1')).err, /required option '--cluster <name>' not specified/)
    const lag = await program('protect', 'why', 'web-1', '--cluster', 'a', '--max-concurrent-lag', '-1')
    assert.match(lag.err, /Write a whole number, 0 or more/)
    const nowhere = await program('protect', 'status', '--kubeconfig', '/nonexistent')
    assert.match(nowhere.err, /^error: .*\/nonexistent/)
    assert.equal(nowhere.code, 1)
  })
})
