// The switch and revocations from the command line, against objects in memory: writes, waits, exit codes.

import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, beforeEach, describe, test } from 'node:test'
import { MemoryObjects } from '../../../test/harness/objects/memory-objects.ts'
import { waitFor } from '../../../test/harness/wait.ts'
import { type RevokeOptions, revoke } from '../../cli/revoke.ts'
import { DEGRADE_MODES, type DegradeMode } from '../../gateway/api/upstream-cluster/degrade-modes.ts'
import type { ClientsSeen, GatewayStatus } from '../../gateway/api/upstream-cluster/status.ts'
import type { DispatchRule, UpstreamClusterSpec } from '../../gateway/api/upstream-cluster/upstream-cluster.ts'
import { UPSTREAM_CLUSTERS } from '../../gateway/api/upstream-cluster-kind.ts'
import { LEADER_LEASE, replicaLease } from '../../gateway/core/status/gateways.ts'
import { certificateHashes, revocableTokenHash } from '../../gateway/io/reviews/credential-hashes.ts'
import { metaMicroTime } from '../../kit/core/text/meta-time.ts'
import { LEASES } from '../../kube/api/kinds/lease-kind.ts'
import { statusError } from '../../kube/api/status.ts'
import { createCA } from '../../pki/io/pki.ts'
import type { DegradeOptions } from './change.ts'
import { degradeCommand } from './degrade.ts'
import { degradeMany } from './many.ts'

const WRITTEN = 'written; --status shows where it is in force\n'
const NOW = Date.parse('2030-01-31T12:00:00Z')
const dir = mkdtempSync(join(tmpdir(), 'portcullis-'))
after(() => rmSync(dir, { recursive: true, force: true }))
let objects: MemoryObjects

beforeEach(() => {
  objects = new MemoryObjects()
  put('prod')
})

/** The page begins its example of a recovery with this mode. */
function shownMode(): DegradeMode {
  const page = readFileSync(new URL('../../../docs/degrade.md', import.meta.url), 'utf8')
  const [, recovery = ''] = page.split('## Recovery by steps')
  const [, shown] = /degrade prod --mode (\w+) --reason '[^']*'\n/.exec(recovery) ?? []
  const mode = DEGRADE_MODES.find((known) => known === shown)
  assert.ok(mode !== undefined, 'the page shows a mode, and no --force')
  return mode
}

function put(name: string, spec: object = {}, annotations: Record<string, string> = {}): void {
  objects.put(UPSTREAM_CLUSTERS, {
    apiVersion: 'proxy.kubegateway.io/v1alpha1',
    kind: 'UpstreamCluster',
    metadata: { name, annotations },
    spec,
  })
}

/** No guard rail objects to a Freeze then: kube-controller-manager comes through, and no kubelet does. */
function seen(cluster: string, lastSeen: ClientsSeen = { controllerManager: '2030-01-31T11:55:00Z' }): void {
  replica('gw-1', cluster, { lastSeen })
}

function specOf(name: string): UpstreamClusterSpec {
  return objects.find(UPSTREAM_CLUSTERS, name)?.['spec'] as UpstreamClusterSpec
}

function generationOf(name: string): number {
  return (objects.find(UPSTREAM_CLUSTERS, name)?.['metadata'] as { generation: number }).generation
}

/** A live replica, with this much of a cluster in force. */
function replica(name: string, cluster: string, entry: Partial<GatewayStatus> = {}, renewedMs = NOW): void {
  objects.put(LEASES, replicaLease(name, 'portcullis-system', metaMicroTime(renewedMs)))
  const object = objects.find(UPSTREAM_CLUSTERS, cluster)
  const gateways = (object?.['status'] as { gateways?: GatewayStatus[] } | undefined)?.gateways ?? []
  const full = {
    name,
    threads: 4,
    threadsApplied: 4,
    observedGeneration: generationOf(cluster),
    appliedAt: '2030-01-31T11:59:00Z',
    ...entry,
  }
  objects.put(UPSTREAM_CLUSTERS, { ...object, status: { gateways: [...gateways, full] } })
}

function rule(...userGroups: string[]): DispatchRule {
  return { verbs: ['*'], apiGroups: ['*'], resources: ['*'], ...(userGroups.length > 0 && { userGroups }) }
}

function gatewaysOf(cluster: string): readonly GatewayStatus[] {
  return (objects.find(UPSTREAM_CLUSTERS, cluster)?.['status'] as { gateways?: GatewayStatus[] }).gateways ?? []
}

/** An elected gateway. */
function leads(renewedMs: number): void {
  const spec = { holderIdentity: 'a_1', leaseDurationSeconds: 15, renewTime: metaMicroTime(renewedMs) }
  objects.put(LEASES, { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: { ...LEADER_LEASE }, spec })
}

interface Ran {
  readonly code: number
  readonly out: string
  readonly err: string
}

async function run(
  command: (io: { out: (text: string) => void; err: (text: string) => void }) => Promise<number>,
): Promise<Ran> {
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

function throwSwitch(options: Partial<DegradeOptions>, now = (): number => NOW): Promise<Ran> {
  return run((io) => degradeCommand({ cluster: 'prod', status: false, client: objects, now, ...io, ...options }))
}

function cutOff(options: Partial<RevokeOptions>, now = (): number => NOW): Promise<Ran> {
  return run((io) => revoke({ all: false, client: objects, now, ...io, ...options }))
}

/** Each call is a second later. */
function ticking(): () => number {
  let now = NOW
  return () => {
    now += 1_000
    return now
  }
}

describe('degrade', () => {
  test('throws the switch with an end, and leaves the rest of spec.degrade alone', async () => {
    put('prod', { degrade: { mode: 'Off', exempt: [{ users: ['root'] }] } })
    seen('prod')
    const { code, out, err } = await throwSwitch({ mode: 'freeze', reason: 'etcd is full', ttl: '30m' })
    assert.equal(err, '')
    assert.equal(out, `prod: degrade mode Freeze until 2030-01-31T12:30:00Z (generation 3): etcd is full\n${WRITTEN}`)
    assert.equal(code, 0)
    assert.deepEqual(specOf('prod').degrade, {
      mode: 'Freeze',
      reason: 'etcd is full',
      expiresAt: '2030-01-31T12:30:00Z',
      exempt: [{ users: ['root'] }],
    })
  })

  test('of a federated cluster: set for requests to it, and its members are named, which have their own', async () => {
    put('all', { members: [{ name: 'east' }, { name: 'west', cluster: 'west-1' }] })
    const { code, out, err } = await throwSwitch({ cluster: 'all', mode: 'Freeze', reason: 'x', ttl: '5m' })
    assert.equal(err, 'note: only requests to all are meant, and its members are clusters of their own: east, west-1\n')
    assert.match(out, /^all: degrade mode Freeze until /)
    assert.equal(code, 0)
  })

  test('Off takes reason and end away', async () => {
    put('prod', { degrade: { mode: 'Freeze', reason: 'x', expiresAt: '2030-01-31T13:00:00Z' } })
    const { out } = await throwSwitch({ mode: 'Off' })
    assert.deepEqual(specOf('prod').degrade, { mode: 'Off' })
    assert.equal(out, `prod: degrade mode Off (generation 3)\n${WRITTEN}`)
  })

  const errors: [string, Partial<DegradeOptions>, RegExp][] = [
    [
      'no such mode',
      { mode: 'Frezze', reason: 'x' },
      new RegExp(`"Frezze" is not a mode; did you mean Freeze\\? modes are ${DEGRADE_MODES.join(', ')}\n`),
    ],
    ['no reason', { mode: 'Freeze' }, /Freeze needs a reason; give --reason TEXT/],
    [
      'a ttl that is none',
      { mode: 'Freeze', reason: 'x', ttl: '30 minutes' },
      /--ttl "30 minutes" is not a positive duration; write --ttl 30m/,
    ],
    ['a ttl that is over', { mode: 'Freeze', reason: 'x', ttl: '-5m' }, /is not a positive duration/],
    ['a ttl beyond all calendars', { mode: 'Freeze', reason: 'x', ttl: '99999999h' }, /--ttl is too long/],
    ['an end of nothing', { mode: 'Off', ttl: '5m' }, /Off does not expire/],
    ['nothing to do', {}, /nothing to do; give --mode MODE/],
    [
      'a recovery and a mode',
      { recover: true, mode: 'Freeze', reason: 'x' },
      /--recover continues from the mode that is set/,
    ],
    ['a hold of nothing', { hold: '60s', status: true }, /--hold and --ramp need --recover/],
    [
      'a hold that is none',
      { recover: true, hold: '1 minute' },
      /--hold "1 minute" is not a duration; write --hold 90s/,
    ],
    ['a watch alone', { watch: true }, /--watch needs --status; give both/],
    ['a watch without status', { mode: 'Off', watch: true }, /--watch needs --status/],
    ['a recovery from Off', { recover: true }, /the degrade mode of prod is Off; there is nothing to recover from/],
    ['a reason for nothing', { reason: 'x', status: true }, /--reason, --ttl and --shadow need --mode/],
    ['a shadow of nothing', { shadow: true, status: true }, /--reason, --ttl and --shadow need --mode/],
    ['a shadow of Off', { mode: 'Off', shadow: true }, /Off refuses nothing/],
    [
      'no such cluster',
      { cluster: 'prd', mode: 'Off' },
      /there is no UpstreamCluster "prd"; did you mean prod\? known: prod/,
    ],
  ]
  for (const [what, options, expected] of errors) {
    test(`${what}: one line, exit code 1, nothing written`, async () => {
      const { code, out, err } = await throwSwitch(options)
      assert.match(err, expected)
      assert.match(err, /^error: [^\n]*\n$/)
      assert.equal(out, '')
      assert.equal(code, 1)
      assert.equal(generationOf('prod'), 1)
    })
  }

  const FREEZE = { mode: 'Freeze', reason: 'x', ttl: '5m' } as const
  const LATELY = '2030-01-31T11:50:00Z'
  const rails: [string, object, ClientsSeen | undefined, Partial<DegradeOptions>, RegExp | undefined][] = [
    [
      'no client has come through',
      {},
      undefined,
      FREEZE,
      /kube-controller-manager has never come through the gateway: it bypasses the gateway, and would evict/,
    ],
    [
      'kube-controller-manager bypasses the gateway',
      {},
      { controllerManager: '2030-01-31T11:49:00Z' },
      FREEZE,
      /^error: prod: Freeze stops heartbeats, and kube-controller-manager has not come through the gateway for 11 minutes: it bypasses the gateway, and would evict the pods of all nodes that become NotReady\n/,
    ],
    ['it comes through', {}, { controllerManager: LATELY }, FREEZE, undefined],
    [
      'kubelets are cut off',
      {},
      { controllerManager: LATELY, kubelets: LATELY },
      FREEZE,
      /^error: prod: Freeze cuts off kubelets, which come through this gateway: .*HeartbeatsOnly keeps them Ready\n/,
    ],
    ['heartbeats are exempt', { exempt: [rule('system:nodes')] }, { kubelets: LATELY }, FREEZE, undefined],
    [
      'who evicts is exempt, and heartbeats are not',
      { exempt: [{ ...rule(), users: ['system:kube-controller-manager'] }] },
      { controllerManager: LATELY },
      FREEZE,
      /spec.degrade.exempt lets kube-controller-manager delete pods/,
    ],
    ['heartbeats go on', {}, undefined, { ...FREEZE, mode: 'HeartbeatsOnly' }, undefined],
    [
      'the recovery of docs/degrade.md begins as printed, with both through the gateway',
      {},
      { controllerManager: LATELY, kubelets: LATELY },
      { ...FREEZE, mode: shownMode() },
      undefined,
    ],
    ['nothing is refused', {}, undefined, { ...FREEZE, shadow: true }, undefined],
    [
      'the command itself comes through the gateway, by name',
      {},
      { controllerManager: LATELY },
      { ...FREEZE, mode: 'ReadOnly', server: 'https://prod.example.com:6443' },
      /^error: prod: ReadOnly cuts off user "alice": this command itself comes through the gateway to prod /,
    ],
    [
      'by path',
      {},
      undefined,
      { ...FREEZE, mode: 'ReadOnly', server: 'https://gateway.example.com/clusters/prod' },
      /could not lift the mode again; name user "alice" in spec.degrade.exempt/,
    ],
    [
      'with a lane',
      { exempt: [rule('admins')] },
      undefined,
      { ...FREEZE, mode: 'ReadOnly', server: 'https://prod.example.com:6443' },
      undefined,
    ],
    [
      'that lets writes pass',
      {},
      undefined,
      { ...FREEZE, mode: 'Limited', server: 'https://prod.example.com' },
      undefined,
    ],
    [
      'by another name',
      {},
      undefined,
      { ...FREEZE, mode: 'ReadOnly', server: 'https://objects.example.com' },
      undefined,
    ],
  ]
  for (const [what, given, lastSeen, options, expected] of rails) {
    test(`guard rail: ${what}`, async () => {
      const servers = [{ endpoint: 'https://10.0.0.1' }]
      const secureServing = { serverNames: ['prod.example.com'] }
      put('prod', { servers, dispatchPolicies: [], secureServing, default: true, degrade: given })
      if (lastSeen !== undefined) seen('prod', lastSeen)
      const userInfo = { username: 'alice', groups: ['admins'] }
      objects.create = (_, object) => Promise.resolve({ ...object, status: { userInfo } })
      const before = generationOf('prod')
      const { code, out, err } = await throwSwitch(options)
      if (expected === undefined) {
        assert.deepEqual([err, code], ['', 0])
        assert.equal(specOf('prod').degrade?.mode, options.mode)
        return
      }
      assert.match(err, expected)
      assert.match(err, /\nerror: nothing was changed; use --force to set the mode anyway\n$/)
      assert.deepEqual([out, code, generationOf('prod')], ['', 1, before])
      const forced = await throwSwitch({ ...options, force: true })
      assert.equal(forced.err, err.replace(/^error: nothing.*\n$/m, '').replaceAll(/^error/gm, 'warning'))
      assert.deepEqual([forced.code, specOf('prod').degrade?.mode], [0, options.mode])
    })
  }

  test('guard rails say the same of one cluster and of many, and nothing that a terminal would interpret', async () => {
    const servers = [{ endpoint: 'https://10.0.0.1' }]
    put('prod', { servers, dispatchPolicies: [], secureServing: { serverNames: ['prod.example.com'] }, degrade: {} })
    const userInfo = { username: '\u001b[2Jmallory\u202e', groups: [] }
    objects.create = (_, object) => Promise.resolve({ ...object, status: { userInfo } })
    const options = { ...FREEZE, server: 'https://prod.example.com:6443' }
    const one = await throwSwitch(options)
    const [objections = ''] = one.err.split('\n')
    const many: string[] = []
    const out = (text: string): void => void many.push(text)
    await degradeMany({
      ...options,
      clusters: ['pro*'],
      status: false,
      client: objects,
      now: () => NOW,
      out,
      err: out,
      yes: true,
    })
    assert.deepEqual(
      many
        .join('')
        .match(/ {2}stopped: (.*)/)
        ?.slice(1),
      [objections.replace('error: ', '')],
    )
    assert.match(objections, /NotReady; Freeze cuts off user "\\x1b\[2Jmallory\\u202e": this command itself/)
  })

  test('Limited ramps from the moment that it is set; every other mode forgets it', async () => {
    await throwSwitch({ mode: 'Limited', reason: 'x', ttl: '1h' })
    assert.equal(specOf('prod').degrade?.since, '2030-01-31T12:00:00Z')
    await throwSwitch({ mode: 'NoDisruption', reason: 'x', ttl: '1h' })
    assert.equal(specOf('prod').degrade?.since, undefined)
  })

  test('without a ttl it stays, and that is said', async () => {
    const { code, err } = await throwSwitch({ mode: 'ReadOnly', reason: 'x' })
    assert.match(err, /^warning: without --ttl/)
    assert.equal(code, 0)
  })

  for (const mode of ['Freeze', 'Off']) {
    test(`${mode} ends a shadow that was left there: the mode that is asked for is the one in force`, async () => {
      put('prod', { degrade: { mode: 'ReadOnly', reason: 'x', shadow: true } })
      seen('prod')
      const { code, err } = await throwSwitch({ mode, ...(mode === 'Freeze' && { reason: 'x', ttl: '5m' }) })
      assert.equal(err, '')
      assert.equal(code, 0)
      assert.equal(specOf('prod').degrade?.shadow, undefined)
    })
  }

  test('--shadow is asked for, and said: nothing is refused', async () => {
    const { code, out, err } = await throwSwitch({ mode: 'Freeze', reason: 'x', ttl: '5m', shadow: true })
    assert.equal(specOf('prod').degrade?.shadow, true)
    assert.match(out, /degrade mode Freeze in shadow, nothing is refused, until /)
    assert.equal(err, '')
    assert.equal(code, 0)
  })

  test('--status of a mode in shadow: the table says it, and the exit code is 1', async () => {
    put('prod', { degrade: { mode: 'Freeze', reason: 'x', shadow: true } })
    replica('gw-a', 'prod')
    const { code, out, err } = await throwSwitch({ status: true })
    assert.match(out, /gw-a .*in shadow\n/)
    assert.doesNotMatch(out, /in force/)
    assert.match(err, /^error: Freeze is in shadow on prod: nothing is refused, only counted and warned about; /)
    assert.equal(code, 1)
  })

  test('--status does not report a mode that has ended as in force', async () => {
    put('prod', { degrade: { mode: 'Freeze', reason: 'x', expiresAt: '2030-01-31T11:00:00Z' } })
    replica('gw-a', 'prod')
    const { code, out } = await throwSwitch({ status: true })
    assert.match(out, /gw-a .*ended\n/)
    assert.doesNotMatch(out, /in force/)
    assert.equal(code, 0)
  })

  test('an annotation that freezes whatever the mode is an error, for every mode but Freeze', async () => {
    const annotations = { 'proxy.kubegateway.io/feature-gates': 'DenyAllRequests=true' }
    put('prod', {}, annotations)
    seen('prod')
    const off = await throwSwitch({ mode: 'Off' })
    assert.match(off.err, /^error: .*DenyAllRequests=true freezes prod whatever the mode; remove the annotation/)
    assert.equal(off.code, 1)
    const freeze = await throwSwitch({ mode: 'Freeze', reason: 'x', ttl: '5m' })
    assert.equal(freeze.err, '')
    assert.equal(freeze.code, 0)
  })

  test('--recover begins from the mode that is set, without its end', async () => {
    put('prod', {
      degrade: { mode: 'Freeze', reason: 'x', expiresAt: '2030-01-31T13:00:00Z', recovery: { hold: '1h' } },
    })
    leads(NOW)
    const { code, out, err } = await throwSwitch({ recover: true, ramp: '5m' })
    assert.equal(err, '')
    assert.equal(code, 0)
    assert.equal(
      out,
      'prod: recovery from Freeze: a mode at a time, each when its checks have held for 60s, Limited for 5m\n' +
        'prod: degrade mode Freeze without an end (generation 3): x\nwritten; --status --watch shows the steps\n',
    )
    assert.deepEqual(specOf('prod').degrade, { mode: 'Freeze', reason: 'x', recovery: { ramp: '5m' } })
  })

  test('--recover needs a leader: with objects in files there is none', async () => {
    put('prod', { degrade: { mode: 'Freeze', reason: 'x' } })
    const refused = await throwSwitch({ recover: true })
    assert.equal(refused.code, 1)
    assert.match(
      refused.err,
      /^error: no gateway is the leader there.*; objects that are files have no leader: set spec.degrade.mode/,
    )
    assert.equal(specOf('prod').degrade?.recovery, undefined)
    leads(NOW - 600_000)
    const { code, err } = await throwSwitch({ recover: true })
    assert.equal(code, 0)
    assert.match(err, /^warning: no gateway has led since .*: the steps are taken once one does\n$/)
  })

  test('a mode that is set by hand ends a recovery', async () => {
    put('prod', { degrade: { mode: 'ReadOnly', reason: 'x', recovery: {} } })
    await throwSwitch({ mode: 'Freeze', reason: 'y', force: true })
    assert.deepEqual(specOf('prod').degrade, { mode: 'Freeze', reason: 'y' })
  })

  test('--status shows step, checks and what is waited for; --watch until it is over', async () => {
    const recovery = {
      step: 'ReadOnly',
      since: '2030-01-31T11:00:00Z',
      startedFrom: 'Freeze',
      checks: [
        { name: 'Upstream', ok: true, message: '0 of 100 requests failed' },
        { name: 'Nodes', ok: false, message: '3 of 20 nodes are Ready, 95 % are needed' },
      ],
      waitingFor: 'Nodes: 3 of 20 nodes are Ready, 95 % are needed',
    }
    const spec = { degrade: { mode: 'ReadOnly', reason: 'x', recovery: {} } }
    put('prod', spec)
    replica('a', 'prod')
    objects.put(UPSTREAM_CLUSTERS, {
      ...objects.find(UPSTREAM_CLUSTERS, 'prod'),
      status: { gateways: gatewaysOf('prod'), degrade: { recovery } },
    })
    const report =
      'recovery: ReadOnly since 2030-01-31T11:00:00Z, step 3 of 6, started from Freeze\n' +
      '  CHECK     HOLDS  SEEN\n  Upstream  yes    0 of 100 requests failed\n' +
      '  Nodes     no     3 of 20 nodes are Ready, 95 % are needed\n' +
      '  waits for: Nodes: 3 of 20 nodes are Ready, 95 % are needed\n'
    const once = await throwSwitch({ status: true })
    assert.equal(once.code, 0)
    assert.ok(once.out.endsWith(report), once.out)
    const shown: string[] = []
    const io = { out: (text: string) => void shown.push(text), err: (text: string) => void shown.push(text) }
    const following = { cluster: 'prod', status: true, watch: true, pollMs: 1, client: objects, now: () => NOW }
    const watching = degradeCommand({ ...following, ...io })
    await waitFor('the report', () => shown.includes(report))
    put('prod', { degrade: { mode: 'Off' } })
    assert.equal(await watching, 0)
    assert.deepEqual(shown.slice(-2), [report, 'prod: recovery complete, the degrade mode is Off\n'])
  })

  test('a server that is away, or refuses: one line', async () => {
    objects.away = true
    assert.match(
      (await throwSwitch({ status: true })).err,
      /^error: the API server does not answer: connect ECONNREFUSED; is --kubeconfig/,
    )
    objects.away = false
    objects.patch = () => Promise.reject(statusError('Forbidden', 'prod is forbidden'))
    const { code, err } = await throwSwitch({ mode: 'Off' })
    assert.match(err, /^error: the API server refuses: prod is forbidden; the user of the kubeconfig needs/)
    assert.equal(code, 1)
  })
})

describe('--status', () => {
  test('is content when every live replica has it in all threads', async () => {
    replica('gw-a', 'prod')
    replica('gw-b', 'prod', { threads: 8, threadsApplied: 8 })
    replica('gone', 'prod', { observedGeneration: 0 }, NOW - 3_600_000)
    const { code, out, err } = await throwSwitch({ status: true })
    // It may be dead, or still serving without receiving updates.
    assert.match(err, /^warning: no Lease is renewed by gone: if it still serves, .* it does not have this\n$/)
    assert.equal(code, 0)
    assert.match(out, /gw-a +4\/4 +1 +2030-01-31T11:59:00Z +in force\n/)
    assert.match(out, /gw-b +8\/8 +1 .*in force\n/)
    assert.match(out, /gone +4\/4 +0 .*gone\n/)
  })

  test('names the replica that has not, and fails', async () => {
    replica('gw-a', 'prod')
    replica('gw-b', 'prod', { observedGeneration: 0 })
    replica('gw-c', 'prod', { threadsApplied: 3 })
    const { code, err } = await throwSwitch({ status: true, timeout: '3s' }, ticking())
    assert.equal(err, 'error: generation 1 of prod is not in force yet on: gw-b, gw-c\n')
    assert.equal(code, 1)
  })

  test('waits for one that comes round', async () => {
    replica('gw-a', 'prod', { observedGeneration: 0 })
    const { list } = objects
    let looks = 0
    objects.list = (...args) => {
      if (++looks === 3) {
        const object = objects.find(UPSTREAM_CLUSTERS, 'prod')
        const gateways = [{ name: 'gw-a', threads: 4, threadsApplied: 4, observedGeneration: 1, appliedAt: '' }]
        objects.put(UPSTREAM_CLUSTERS, { ...object, status: { gateways } })
      }
      return list.apply(objects, args)
    }
    assert.equal((await throwSwitch({ status: true })).code, 0)
  })

  test('without any gateway it fails', async () => {
    const { code, err } = await throwSwitch({ status: true, timeout: '2s' }, ticking())
    assert.match(err, /^error: no gateway renews its Lease/)
    assert.equal(code, 1)
  })

  test('a replica that lives but has said nothing yet is waited for', async () => {
    objects.put(LEASES, replicaLease('gw-new', 'default', metaMicroTime(NOW)))
    const { code, err } = await throwSwitch({ status: true, timeout: '2s' }, ticking())
    assert.match(err, /not in force yet on: gw-new\n/)
    assert.equal(code, 1)
  })

  test('an object that is invalid is not waited for until the time is over', async () => {
    replica('gw-a', 'prod', { observedGeneration: 0 })
    const object = objects.find(UPSTREAM_CLUSTERS, 'prod')
    const ready = {
      type: 'Ready',
      status: 'False',
      reason: 'Invalid',
      message: 'spec.servers: is empty',
      observedGeneration: 1,
    }
    objects.put(UPSTREAM_CLUSTERS, { ...object, status: { ...(object?.['status'] as object), conditions: [ready] } })
    const { code, err } = await throwSwitch({ status: true })
    assert.equal(err, 'error: generation 1 of prod is invalid: spec.servers: is empty\n')
    assert.equal(code, 1)
  })
})

describe('revoke', () => {
  /** Replicas follow every write. */
  function follow(...clusters: string[]): void {
    const { patch } = objects
    for (const cluster of clusters) replica('gw-a', cluster)
    objects.patch = async (...args) => {
      const answer = await patch.apply(objects, args)
      const { name, generation } = answer['metadata'] as { name: string; generation: number }
      const gateways = [{ name: 'gw-a', threads: 1, threadsApplied: 1, observedGeneration: generation, appliedAt: '' }]
      objects.put(UPSTREAM_CLUSTERS, {
        ...answer,
        metadata: { ...(answer['metadata'] as object), name },
        status: { gateways },
      })
      return answer
    }
  }

  test('of a federated cluster: its members are named, in which the user is not revoked', async () => {
    put('all', { members: [{ name: 'east' }, { name: 'west', cluster: 'prod' }] })
    put('east')
    follow('all', 'east', 'prod')
    const one = await cutOff({ cluster: 'all', user: 'alice' })
    assert.equal(
      one.err,
      'note: only requests to all are meant, and its members are clusters of their own: east, prod\n',
    )
    assert.match(one.out, /^all: user "alice" is revoked/)
    const all = await cutOff({ all: true, user: 'alice' })
    assert.deepEqual([all.code, all.err], [0, ''])
  })

  test('a user, once; with when and why, and beside what is there', async () => {
    follow('prod')
    put('prod', { authentication: { audiences: ['x'], revoked: [{ user: 'old' }] } })
    const first = await cutOff({ cluster: 'prod', user: 'alice', reason: 'left' })
    assert.equal(first.err, '')
    assert.equal(first.code, 0)
    assert.match(first.out, /^prod: user "alice" is revoked \(generation 3\)\n/)
    const expected = {
      audiences: ['x'],
      revoked: [{ user: 'old' }, { user: 'alice', reason: 'left', revokedAt: '2030-01-31T12:00:00Z' }],
    }
    assert.deepEqual(specOf('prod').authentication, expected)
    const second = await cutOff({ cluster: 'prod', user: 'alice' })
    assert.match(second.out, /^prod: user "alice" was already revoked \(generation 3\)\n/)
    assert.equal(second.code, 0)
    assert.deepEqual(specOf('prod').authentication, expected)
  })

  test('a certificate, by both its hashes; a token, by what cannot be rewritten', async () => {
    follow('prod')
    const { certPem } = createCA({ commonName: 'alice' })
    const [certificate, tokenFile] = [join(dir, 'alice.crt'), join(dir, 'token')]
    writeFileSync(certificate, certPem)
    writeFileSync(tokenFile, 'a-token\n')
    const { out } = await cutOff({ cluster: 'prod', certificateFile: certificate })
    assert.match(out, /^prod: the certificate of CN=alice \(SHA-256 [0-9a-f]{64}\) is revoked/)
    assert.equal((await cutOff({ cluster: 'prod', tokenFile })).code, 0)
    const der = Buffer.from(certPem.replace(/-----[^-]+-----|\s/g, ''), 'base64')
    const revoked = specOf('prod').authentication?.revoked ?? []
    assert.deepEqual(
      revoked.map(({ certificateFingerprint, tokenHash }) => certificateFingerprint ?? tokenHash),
      [...certificateHashes(der), revocableTokenHash('a-token')],
    )
    assert.ok(!JSON.stringify(objects.all(UPSTREAM_CLUSTERS)).includes('a-token'))
  })

  test('--all: every cluster, and each is waited for', async () => {
    put('stage')
    follow('prod', 'stage')
    const { code, out } = await cutOff({ all: true, user: 'alice' })
    assert.equal(code, 0)
    assert.match(out, /prod: user "alice" is revoked/)
    assert.match(out, /stage, generation 2:\n/)
    assert.equal(specOf('stage').authentication?.revoked?.length, 1)
  })

  test('one replica that does not follow: exit code 1', async () => {
    replica('gw-a', 'prod')
    const { code, err } = await cutOff({ cluster: 'prod', user: 'alice', timeout: '2s' }, ticking())
    assert.match(err, /not in force yet on: gw-a/)
    assert.equal(code, 1)
  })

  test('two at the same time both count', async () => {
    follow('prod')
    const { patch } = objects
    let once = true
    objects.patch = async (...args) => {
      if (once) {
        once = false
        put('prod', { authentication: { revoked: [{ user: 'bob' }] } })
        throw statusError('Conflict', 'the object has been modified')
      }
      return await patch.apply(objects, args)
    }
    assert.equal((await cutOff({ cluster: 'prod', user: 'alice' })).code, 0)
    assert.deepEqual(
      specOf('prod').authentication?.revoked?.map(({ user }) => user),
      ['bob', 'alice'],
    )
  })

  const files: [string, string, RegExp][] = [
    ['an empty token', ' \n', /is empty; give a file with the bearer token/],
    ['two tokens', 'a b', /holds no bearer token/],
    ['a JWT as JSON', '{"payload":""}', /holds no bearer token/],
  ]
  for (const [what, text, expected] of files) {
    test(`${what} is refused`, async () => {
      const tokenFile = join(dir, 'bad-token')
      writeFileSync(tokenFile, text)
      const { code, err } = await cutOff({ cluster: 'prod', tokenFile })
      assert.match(err, expected)
      assert.equal(code, 1)
    })
  }

  const errors: [string, Partial<RevokeOptions>, RegExp][] = [
    ['nobody', { cluster: 'prod' }, /no user or credential is named; give one of --user/],
    ['two at once', { cluster: 'prod', user: 'a', tokenFile: 'b' }, /more than one is named/],
    ['an empty user', { cluster: 'prod', user: '' }, /the user has no name/],
    ['no cluster', { user: 'a' }, /no cluster is named; name one, or give --all/],
    ['a cluster and all', { cluster: 'prod', all: true, user: 'a' }, /give one of the two/],
    ['a file that is not there', { cluster: 'prod', tokenFile: '/nonexistent' }, /cannot read \/nonexistent/],
    [
      'a certificate that is none',
      { cluster: 'prod', certificateFile: import.meta.filename },
      /holds no PEM certificate/,
    ],
  ]
  for (const [what, options, expected] of errors) {
    test(`${what}: one line, exit code 1, nothing written`, async () => {
      const { code, err } = await cutOff(options)
      assert.match(err, expected)
      assert.match(err, /^error: [^\n]*\n$/)
      assert.equal(code, 1)
      assert.equal(generationOf('prod'), 1)
    })
  }
})
