// `portcullis scale status` against objects in memory: the table, JSON, remarks, exit codes.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, test } from 'node:test'
import { MemoryObjects } from '../../../test/harness/objects/memory-objects.ts'
import type { AutoscalerReport } from '../../gateway/api/upstream-cluster/cluster-autoscaler.ts'
import { UPSTREAM_CLUSTERS } from '../../gateway/api/upstream-cluster-kind.ts'
import { statusError } from '../../kube/api/status.ts'
import { type ScaleStatusOptions, scaleStatus } from './status.ts'

const NOW = Date.parse('2030-01-31T12:00:00Z')
const PAGE = readFileSync(join(import.meta.dirname, '../../../docs/scale.md'), 'utf8')
const SPOT = {
  name: 'MachineDeployment/machines/spot',
  health: 'Healthy',
  scaleUp: 'Backoff',
  scaleUpSince: '2030-01-31T11:56:00Z',
  minSize: 0,
  maxSize: 10,
  target: 4,
  registered: 2,
  ready: 2,
  unready: 0,
  longUnregistered: 2,
  errorCode: 'OutOfResource.InsufficientInstanceCapacity',
  errorMessage: 'no m5.xlarge capacity in the zone',
}
const ON_DEMAND = {
  ...{ name: 'MachineDeployment/machines/on-demand', health: 'Healthy', scaleUp: 'InProgress' },
  ...{ scaleUpSince: '2030-01-31T11:59:45Z', minSize: 1, maxSize: 20, target: 6, registered: 5, ready: 4 },
}
let objects: MemoryObjects

beforeEach(() => {
  objects = new MemoryObjects()
})

function cluster(name: string, reason?: string, autoscaler?: AutoscalerReport, message = 'as it is'): void {
  const status = reason === 'Healthy' || reason === 'Backoff' ? 'True' : reason === 'Stale' ? 'False' : 'Unknown'
  const lastTransitionTime = '2030-01-31T11:00:00Z'
  const conditions = [{ type: 'AutoscalerHealthy', status, reason, message, lastTransitionTime }]
  objects.put(UPSTREAM_CLUSTERS, {
    apiVersion: 'proxy.kubegateway.io/v1alpha1',
    kind: 'UpstreamCluster',
    metadata: { name },
    spec: { autoscaler: {} },
    ...(reason !== undefined && { status: { conditions, ...(autoscaler !== undefined && { autoscaler }) } }),
  })
}

async function run(options: Partial<ScaleStatusOptions> = {}): Promise<{ code: number; out: string; err: string }> {
  const printed: string[] = []
  const told: string[] = []
  const write = { out: (text: string) => printed.push(text), err: (text: string) => told.push(text) }
  const code = await scaleStatus({ client: objects, now: () => NOW, ...write, ...options })
  return { code, out: printed.join(''), err: told.join('') }
}

test('all clusters in one table; what is wrong, after it', async () => {
  cluster('prod', 'Backoff', { groups: [SPOT, ON_DEMAND] }, '1 of 2 node groups are in backoff: ...')
  cluster('test', 'Healthy', { groups: [{ ...ON_DEMAND, name: 'pool', scaleUp: 'NoActivity' }], omittedGroups: 2 })
  cluster('new')
  objects.put(UPSTREAM_CLUSTERS, { metadata: { name: 'other' }, spec: {} })
  const { code, out, err } = await run()
  assert.deepEqual(out.split('\n'), [
    'CLUSTER  GROUP                                 SCALE-UP    FOR  HEALTH   TARGET  NODES  READY  NO NODE  MIN  MAX',
    'new      -',
    'prod     MachineDeployment/machines/spot       Backoff     4m   Healthy  4       2      2      2        0    10',
    'prod     MachineDeployment/machines/on-demand  InProgress  15s  Healthy  6       5      4      0        1    20',
    'test     pool                                  NoActivity  15s  Healthy  6       5      4      0        1    20',
    'test     (2 more)',
    '',
  ])
  assert.deepEqual(err.split('\n'), [
    'warning: new: Pending: no gateway has reported on it yet',
    'warning: prod: Backoff: 1 of 2 node groups are in backoff: ...',
    'prod: MachineDeployment/machines/spot: OutOfResource.InsufficientInstanceCapacity: no m5.xlarge capacity in the zone',
    'note: without spec.autoscaler, so not followed: other',
    '',
  ])
  assert.equal(code, 1)
  for (const line of [...out.split('\n').slice(2, 4), err.split('\n')[2] ?? '']) assert.ok(PAGE.includes(line), line)
})

test('all is well; one cluster only; the status is no longer written', async () => {
  cluster('prod', 'Healthy', { groups: [ON_DEMAND] })
  cluster('test', 'Stale', { groups: [ON_DEMAND] }, 'it has not been written for 1m')
  const well = await run({ cluster: 'prod' })
  assert.deepEqual([well.code, well.err], [0, ''])
  assert.ok(!well.out.includes('test'))
  const silent = await run()
  assert.equal(silent.code, 1)
  assert.equal(silent.err, 'warning: test: Stale: it has not been written for 1m\n')
})

test('several clusters: names, globs, and all but some', async () => {
  for (const name of ['prod-1', 'prod-2', 'test']) cluster(name, 'Healthy', { groups: [ON_DEMAND] })
  const shown = async (options: Partial<ScaleStatusOptions>): Promise<string> => {
    const { out, err } = await run({ output: 'json', ...options })
    return err === '' ? (JSON.parse(out) as { cluster: string }[]).map((one) => one.cluster).join(' ') : err
  }
  assert.equal(await shown({ clusters: ['prod-*'] }), 'prod-1 prod-2')
  assert.equal(await shown({ clusters: ['prod-1', 'test'] }), 'prod-1 test')
  assert.equal(await shown({ clusters: ['*'] }), 'prod-1 prod-2 test')
  assert.equal(await shown({ except: ['prod-?'] }), 'test')
  assert.match(await shown({ clusters: ['dev-*'] }), /^error: "dev-\*" matches no UpstreamCluster; .*known: prod-1/)
  assert.match(await shown({ cluster: 'test', clusters: ['prod-1'] }), /^error: --cluster is one cluster, and others/)
})

test('a federated cluster stands for its members, and is not one without an autoscaler itself', async () => {
  for (const name of ['east', 'west-1', 'prod']) cluster(name, 'Healthy', { groups: [ON_DEMAND] })
  const members = [{ name: 'east' }, { name: 'west', cluster: 'west-1' }]
  objects.put(UPSTREAM_CLUSTERS, { metadata: { name: 'all' }, spec: { members } })
  const shown = async (options: Partial<ScaleStatusOptions>): Promise<string> => {
    const { code, out, err } = await run({ output: 'json', ...options })
    assert.deepEqual([code, err], [0, ''])
    return (JSON.parse(out) as { cluster: string }[]).map((one) => one.cluster).join(' ')
  }
  assert.equal(await shown({ cluster: 'all' }), 'east west-1')
  assert.equal(await shown({ clusters: ['a*'] }), 'east west-1')
  assert.equal(await shown({ clusters: ['all', 'prod'], except: ['east'] }), 'prod west-1')
  assert.equal(await shown({}), 'east prod west-1')
})

test('a member without an UpstreamCluster is named with what to correct; of other federated clusters nothing is said', async () => {
  cluster('east', 'Healthy', { groups: [ON_DEMAND] })
  for (const [name, members] of [
    ['all', [{ name: 'east' }, { name: 'west', cluster: 'west-1' }]],
    ['none', [{ name: 'gone' }]],
  ] as const) {
    objects.put(UPSTREAM_CLUSTERS, { metadata: { name }, spec: { members } })
  }
  const { code, out, err } = await run({ cluster: 'all' })
  assert.match(out, /\neast /)
  assert.deepEqual([code, err], [1, 'error: there is no UpstreamCluster west-1; correct spec.members of all\n'])
  const none = await run({ clusters: ['none'] })
  const fault = 'error: there is no UpstreamCluster gone; correct spec.members of none\n'
  assert.deepEqual([none.code, none.out, none.err], [1, '', fault])
  assert.deepEqual((await run({ cluster: 'east' })).err, '')
})

test('members of a user who may not list: each is got by its name', async () => {
  cluster('east', 'Healthy', { groups: [ON_DEMAND] })
  objects.put(UPSTREAM_CLUSTERS, { metadata: { name: 'all' }, spec: { members: [{ name: 'east' }] } })
  objects.list = () => Promise.reject(statusError('Forbidden', 'no list'))
  const { code, out, err } = await run({ cluster: 'all' })
  assert.deepEqual([code, err], [0, ''])
  assert.match(out, /\neast /)
})

test('JSON', async () => {
  cluster('prod', 'Backoff', { health: 'Healthy', groups: [SPOT] })
  const { code, out, err } = await run({ output: 'json' })
  assert.deepEqual([code, err], [1, ''])
  assert.deepEqual(JSON.parse(out), [
    {
      cluster: 'prod',
      state: 'Backoff',
      since: '2030-01-31T11:00:00Z',
      message: 'as it is',
      trouble: true,
      health: 'Healthy',
      scaleUp: '',
      scaleDown: '',
      groups: [SPOT],
      omittedGroups: 0,
    },
  ])
})

test('errors say what to do', async () => {
  assert.match((await run()).err, /there is no UpstreamCluster; is --kubeconfig/)
  objects.put(UPSTREAM_CLUSTERS, { metadata: { name: 'other' }, spec: {} })
  const none = await run()
  assert.match(none.err, /no cluster-autoscaler is followed of: other; add spec.autoscaler: kubectl patch uc other/)
  assert.equal(none.code, 1)
  assert.match((await run({ cluster: 'othr' })).err, /there is no UpstreamCluster "othr"; did you mean other\?/)
  assert.match((await run({ output: 'yaml' })).err, /--output "yaml" is not known; write --output json/)
})
