// The switch of many clusters, against objects in memory and a gateway that follows them: what is planned, written, left out and taken back.

import assert from 'node:assert/strict'
import { beforeEach, describe, test } from 'node:test'
import { MemoryObjects } from '../../../test/harness/objects/memory-objects.ts'
import type { Degrade } from '../../gateway/api/upstream-cluster/upstream-cluster.ts'
import { UPSTREAM_CLUSTERS } from '../../gateway/api/upstream-cluster-kind.ts'
import { LEADER_LEASE, replicaLease } from '../../gateway/core/status/gateways.ts'
import type { JsonObject } from '../../kit/api/json/json-object.ts'
import { metaMicroTime } from '../../kit/core/text/meta-time.ts'
import { LEASES } from '../../kube/api/kinds/lease-kind.ts'
import type { FollowEvents, Following } from '../../kube/api/object-client.ts'
import type { ResourceKind } from '../../kube/api/resource-kind.ts'
import { statusError } from '../../kube/api/status.ts'
import { degradeMany, type ManySwitchOptions } from './many.ts'

const NOW = Date.parse('2030-01-31T12:00:00Z')
const SWITCH = { mode: 'ReadOnly', reason: 'INC-1', yes: true } as const
let objects: Objects

/** With an answer to reviews of the caller's rights. */
class Objects extends MemoryObjects {
  /** May not be patched. */
  readonly denied = new Set<string>()
  /** What the gateway never applies. */
  readonly stuck = new Set<string>()

  override async create(kind: ResourceKind, object: JsonObject): Promise<JsonObject> {
    if (kind.kind !== 'SelfSubjectAccessReview') return await super.create(kind, object)
    const { resourceAttributes: asked } = object['spec'] as { resourceAttributes: { name?: string } }
    const allowed = asked.name === undefined ? this.denied.size === 0 : !this.denied.has(asked.name)
    return { ...object, status: { allowed, reason: allowed ? '' : 'RBAC: no rule' } }
  }

  /** Watches of commands say nothing any more, without an error. */
  isHung = false

  override follow(...[kind, namespace, events, choice]: Parameters<MemoryObjects['follow']>): Following {
    const onChange: FollowEvents['onChange'] = (type, object) => {
      if (!this.isHung) events.onChange(type, object)
    }
    const { onReplace, onState } = events
    const bound = { onReplace: onReplace.bind(events), onState: onState.bind(events), onChange }
    return super.follow(kind, namespace, choice?.from === undefined ? events : bound, choice)
  }

  /** A gateway of one replica that has everything in force at once. */
  serve(): void {
    this.put(LEASES, replicaLease('gw-1', 'portcullis-system', metaMicroTime(NOW)))
    const apply = (object: JsonObject): void => {
      const { name, generation } = object['metadata'] as { name: string; generation: number }
      const gateways = [{ name: 'gw-1', threads: 2, threadsApplied: 2, observedGeneration: generation }]
      const known = (object['status'] as { gateways?: { observedGeneration: number }[] } | undefined)?.gateways
      if (this.stuck.has(name) || known?.[0]?.observedGeneration === generation) return
      this.put(UPSTREAM_CLUSTERS, { ...object, status: { gateways } })
    }
    this.follow(UPSTREAM_CLUSTERS, '', {
      onReplace: (all) => all.forEach(apply),
      onChange: (type, object) => void (type !== 'DELETED' && apply(object)),
      onState: () => undefined,
    })
  }
}

function put(name: string, region: string, degrade: Degrade = {}): void {
  objects.put(UPSTREAM_CLUSTERS, {
    apiVersion: 'proxy.kubegateway.io/v1alpha1',
    kind: 'UpstreamCluster',
    metadata: { name, labels: { region } },
    spec: { degrade },
  })
}

function degradeOf(name: string): Degrade {
  return (objects.find(UPSTREAM_CLUSTERS, name)?.['spec'] as { degrade: Degrade }).degrade
}

function modes(): string {
  return objects
    .all(UPSTREAM_CLUSTERS)
    .map((object) => {
      const { name } = object['metadata'] as { name: string }
      return `${name} ${degradeOf(name).mode ?? '-'}`
    })
    .join(', ')
}

function patched(): string[] {
  return objects.writes.filter((write) => write.startsWith('patch')).map((write) => write.split(' ').at(-1) ?? '')
}

interface Ran {
  readonly code: number
  readonly out: string
  readonly err: string
  readonly asked: readonly string[]
}

async function run(given: Partial<ManySwitchOptions> & { answer?: string }): Promise<Ran> {
  let out = ''
  let err = ''
  const asked: string[] = []
  const { answer, ...options } = given
  let now = NOW
  const code = await degradeMany({
    clusters: [],
    status: false,
    client: objects,
    pollMs: 1,
    timeout: '200ms',
    // Time passes with each look, or waiting for what never comes would take its time.
    now: () => (now += 5),
    out: (text) => {
      out += text
    },
    err: (text) => {
      err += text
    },
    ...(answer !== undefined && {
      ask: async (question: string) => {
        asked.push(question)
        return answer
      },
    }),
    ...options,
  })
  return { code, out, err, asked }
}

beforeEach(() => {
  objects = new Objects()
  for (const at of [1, 2, 3, 4]) put(`eu-${at}`, 'eu')
  put('us-1', 'us')
  objects.serve()
  const spec = { holderIdentity: 'gw-1', leaseDurationSeconds: 15, renewTime: metaMicroTime(NOW) }
  objects.put(LEASES, { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: { ...LEADER_LEASE }, spec })
})

test('of a federated cluster the plan says which members are not among those that are changed', async () => {
  const members = [{ name: 'one', cluster: 'eu-1' }, { name: 'us-1' }]
  const spec = { members, degrade: {} }
  objects.put(UPSTREAM_CLUSTERS, { metadata: { name: 'world', labels: {} }, spec })
  const dry = { mode: 'Freeze', reason: 'INC-1', dryRun: true } as const
  const { out } = await run({ ...dry, clusters: ['world', 'us-1'] })
  assert.match(
    out,
    /\n {2}note: world: only requests to world are meant, and its members are clusters of their own: eu-1\n/,
  )
  // It has no nodes that would lose their heartbeats, as us-1 has.
  assert.match(out, /\n {2}stopped: us-1: .*heartbeats/)
  assert.ok(!/stopped: .*world/.test(out))
  assert.ok(!(await run({ ...dry, mode: 'ReadOnly', clusters: ['world', 'us-1', 'eu-*'] })).out.includes('note'))
})

describe('the switch of many clusters', () => {
  test('a plan, a question, waves, and a line for each cluster', async () => {
    put('eu-2', 'eu', { mode: 'Limited', reason: 'INC-0' })
    const { code, out, err, asked } = await run({ ...SWITCH, yes: false, answer: 'y', selector: 'region=eu' })
    assert.deepEqual([code, err, asked], [0, '', ['Change 4 clusters? [y/N] ']])
    assert.equal(
      out,
      [
        'plan: degrade mode ReadOnly without an end (INC-1): 4 of 5 UpstreamClusters, 4 to change',
        '  FROM     TO        CLUSTERS  NAMES',
        '  Off      ReadOnly  3         eu-1, eu-3, eu-4',
        '  Limited  ReadOnly  1         eu-2',
        '  in 4 waves of at most 1, each in force before the next begins',
        'wave 1 of 4: in force on eu-1',
        'wave 2 of 4: in force on eu-2',
        'wave 3 of 4: in force on eu-3',
        'wave 4 of 4: in force on eu-4',
        'eu-1: ReadOnly in force on 1 of 1 replica',
        'eu-2: ReadOnly in force on 1 of 1 replica',
        'eu-3: ReadOnly in force on 1 of 1 replica',
        'eu-4: ReadOnly in force on 1 of 1 replica',
        '4 clusters: 4 ReadOnly in force',
        '',
      ].join('\n'),
    )
    assert.equal(modes(), 'eu-1 ReadOnly, eu-2 ReadOnly, eu-3 ReadOnly, eu-4 ReadOnly, us-1 -')
    assert.deepEqual(degradeOf('eu-1'), { mode: 'ReadOnly', reason: 'INC-1', before: { mode: 'Off' } })
    assert.deepEqual(degradeOf('eu-2').before, { mode: 'Limited', reason: 'INC-0' })
  })

  test('nothing is written without a yes, without a terminal, or with --dry-run', async () => {
    const all = { ...SWITCH, all: true }
    for (const [given, expected] of [
      [{ yes: false, answer: 'no' }, /^nothing was changed\n$/],
      [{ yes: false, answer: '' }, /^nothing was changed\n$/],
      [{ yes: false }, /^error: nothing was changed: there is no terminal to confirm the plan on; give --yes/],
      [{ yes: false, dryRun: true }, /^$/],
    ] as const) {
      const { code, out, err } = await run({ ...all, ...given })
      assert.match(err, expected)
      assert.match(out, /5 UpstreamClusters \(all there are\), 5 to change/)
      assert.equal(code, 'dryRun' in given ? 0 : 1)
    }
    assert.deepEqual(patched(), [])
  })

  test('one that is stricter, or that the shadow would disarm, is left alone unless forced', async () => {
    put('eu-1', 'eu', { mode: 'Freeze', reason: 'INC-0' })
    put('eu-2', 'eu', { mode: 'NoDisruption', reason: 'INC-0' })
    const stricter = await run({ ...SWITCH, clusters: ['eu-1', 'eu-3'] })
    assert.equal(stricter.code, 1)
    assert.match(stricter.out, /stopped: eu-1: is the stricter Freeze \(INC-0\): ReadOnly would let more through\n/)
    const shadow = await run({ ...SWITCH, shadow: true, clusters: ['eu-2', 'eu-4'] })
    assert.match(shadow.out, /stopped: eu-2: refuses by NoDisruption \(INC-0\): the shadow would end that\n/)
    assert.equal(modes(), 'eu-1 Freeze, eu-2 NoDisruption, eu-3 ReadOnly, eu-4 ReadOnly, us-1 -')
    const forced = await run({ ...SWITCH, force: true, clusters: ['eu-1', 'eu-3'] })
    assert.deepEqual([forced.code, degradeOf('eu-1').mode], [0, 'ReadOnly'])
  })

  test('guard rails stop some, and are named with the reason; the rest is changed', async () => {
    const lastSeen = { controllerManager: '2030-01-31T11:55:00Z' }
    const gateway = { name: 'gw-1', threads: 2, threadsApplied: 2, observedGeneration: 1, lastSeen }
    const object = objects.find(UPSTREAM_CLUSTERS, 'eu-1') ?? assert.fail()
    objects.put(UPSTREAM_CLUSTERS, { ...object, status: { gateways: [gateway] } })
    const { code, out } = await run({ ...SWITCH, mode: 'Freeze', clusters: ['eu-*'] })
    assert.equal(code, 1)
    assert.match(out, /stopped: eu-2, eu-3, eu-4: Freeze stops heartbeats, and kube-controller-manager has never come/)
    assert.equal(modes(), 'eu-1 Freeze, eu-2 -, eu-3 -, eu-4 -, us-1 -')
  })

  test('what the caller may not patch is named before anything is written', async () => {
    objects.denied.add('eu-3')
    const { code, out } = await run({ ...SWITCH, clusters: ['eu-*'], dryRun: true })
    assert.equal(code, 1)
    assert.match(
      out,
      /3 to change\n(.*\n)*.*stopped: eu-3: you may not patch upstreamclusters there \(RBAC: no rule\)\n/,
    )
  })

  test('the first failure stops the waves; the rest is not touched, and the same command goes on with it', async () => {
    objects.stuck.add('eu-2')
    const given = { ...SWITCH, selector: 'region=eu', timeout: '20ms', waveSize: '1' }
    const first = await run(given)
    assert.equal(first.code, 1)
    assert.equal(
      first.err,
      [
        'error: eu-2: generation 2 is not in force yet on gw-1',
        'error: stopped in wave 2 of 4: 1 in force, 1 changed but not in force; 2 not touched: eu-3, eu-4',
        'repeat the command to continue with the rest (--except NAME leaves one out); --recover for the same clusters reverts the changes',
        '',
      ].join('\n'),
    )
    assert.equal(modes(), 'eu-1 ReadOnly, eu-2 ReadOnly, eu-3 -, eu-4 -, us-1 -')
    objects.writes.length = 0
    const again = await run(given)
    assert.deepEqual(patched(), ['eu-3', 'eu-4'])
    assert.match(again.out, /unchanged: eu-1, eu-2: ReadOnly already\n/)
    // It is said to be so, and yet it is not in force.
    assert.deepEqual([again.code, again.err], [1, 'error: eu-2: generation 2 is not in force yet on gw-1\n'])
    const left = await run({ ...given, except: ['eu-2'] })
    assert.deepEqual([left.code, left.err], [0, ''])
  })

  test('a switch that another operator changes between plan and write is not overwritten; a new status does not matter', async () => {
    const { code, err } = await run({
      ...SWITCH,
      yes: false,
      clusters: ['eu-1', 'eu-2'],
      waveSize: '2',
      ask: async () => {
        put('eu-1', 'eu', { mode: 'Freeze', reason: 'INC-9' })
        const object = objects.find(UPSTREAM_CLUSTERS, 'eu-2') ?? assert.fail()
        objects.put(UPSTREAM_CLUSTERS, { ...object, status: { ...(object['status'] as object), conditions: [] } })
        return 'yes'
      },
    })
    assert.equal(code, 1)
    assert.match(err, /^error: eu-1: not changed: another client has changed it since the plan: Freeze\n/)
    assert.equal(degradeOf('eu-1').mode, 'Freeze')
  })

  test('a cluster that has been deleted and created again since the plan is not the one that was planned', async () => {
    const { code, err } = await run({
      ...SWITCH,
      yes: false,
      clusters: ['eu-1', 'eu-2'],
      waveSize: '1',
      ask: async () => {
        objects.remove(UPSTREAM_CLUSTERS, 'eu-1')
        put('eu-1', 'eu')
        return 'yes'
      },
    })
    assert.equal(code, 1)
    assert.match(err, /^error: eu-1: not changed: it has been deleted and created again since the plan\n/)
    assert.deepEqual([degradeOf('eu-1'), patched()], [{}, []])
  })

  test('what another operator changes at last is seen, even if the watch hangs by then', async () => {
    let out = ''
    const { code, err } = await run({
      ...SWITCH,
      all: true,
      waveSize: '3',
      out: (text) => {
        out += text
        if (!text.startsWith('wave 2')) return
        objects.isHung = true
        put('eu-1', 'eu', { mode: 'Off' })
      },
    })
    assert.equal(code, 1)
    assert.match(err, /eu-1: Off: another client has changed it since/)
    assert.match(out, /; 1 not: eu-1\n$/)
  })

  test('a refused write stops it, too', async () => {
    const patch = objects.patch.bind(objects)
    objects.patch = async (...given) => {
      if (given[1].name === 'eu-2') throw statusError('Forbidden', 'a webhook says no')
      return await patch(...given)
    }
    const { code, err } = await run({ ...SWITCH, clusters: ['eu-*'], waveSize: '1' })
    assert.equal(code, 1)
    assert.match(err, /^error: eu-2: the API server refuses: a webhook says no\n/)
    assert.match(err, /stopped in wave 2 of 4: 1 in force, 1 not changed; 2 not touched: eu-3, eu-4\n/)
  })

  test('what others have written as a reason is one line, and nothing that a terminal interprets', async () => {
    put('eu-1', 'eu', { mode: 'Freeze', reason: 'x\u001b[2J\n  unchanged: eu-2' })
    const plan = await run({ ...SWITCH, clusters: ['eu-1', 'eu-2'], dryRun: true })
    assert.match(plan.out, /stopped: eu-1: is the stricter Freeze \(x\\x1b\[2J\\n {2}unchanged: eu-2\): ReadOnly/)
    const status = await run({ clusters: ['eu-1', 'eu-2'], status: true })
    assert.match(status.out, /Freeze.*x\\x1b\[2J unchanged: eu-2\n/)
    // biome-ignore lint/suspicious/noControlCharactersInRegex: it is what must not be there
    for (const { out, err } of [plan, status]) assert.doesNotMatch(out + err, /\u001b/)
  })

  describe('an API server that goes away', () => {
    /** Lists fail from the first write on. @param times how often */
    function goAway(times: number): void {
      const list = objects.list.bind(objects)
      objects.list = async (...given) => {
        if (patched().length > 0 && times-- > 0) throw new Error('ECONNREFUSED')
        return await list(...given)
      }
    }

    test('for a moment: the wave is looked for again', async () => {
      goAway(2)
      const { code, err } = await run({ ...SWITCH, clusters: ['eu-1', 'eu-2'], waveSize: '1' })
      assert.deepEqual([code, err], [0, ''])
      assert.equal(modes(), 'eu-1 ReadOnly, eu-2 ReadOnly, eu-3 -, eu-4 -, us-1 -')
    })

    test('for good: what was changed is named, and the rest is not touched', async () => {
      goAway(Number.POSITIVE_INFINITY)
      const { code, err } = await run({ ...SWITCH, clusters: ['eu-*'], waveSize: '1' })
      assert.equal(code, 1)
      assert.match(err, /^error: eu-1: not known whether it is in force: ECONNREFUSED\n/)
      assert.match(
        err,
        /stopped in wave 1 of 4: 0 in force, 1 changed but not in force; 3 not touched: eu-2, eu-3, eu-4\n/,
      )
      assert.equal(modes(), 'eu-1 ReadOnly, eu-2 -, eu-3 -, eu-4 -, us-1 -')
    })

    test('and at the end: it says so', async () => {
      put('us-1', 'us', { mode: 'ReadOnly', reason: 'INC-1' })
      goAway(Number.POSITIVE_INFINITY)
      const { code, err } = await run({ ...SWITCH, clusters: ['eu-1', 'us-1'] })
      assert.equal(code, 1)
      assert.match(err, /error: not known what is in force: ECONNREFUSED\n/)
      assert.match(err, /stopped: 0 in force, 1 changed but not in force; none is left\n/)
    })

    test('while it writes: it may have written', async () => {
      objects.patch = async () => await Promise.reject(new Error('ECONNRESET'))
      const { code, err } = await run({ ...SWITCH, clusters: ['eu-1'] })
      assert.equal(code, 1)
      assert.match(err, /^error: eu-1: the API server does not answer, and may have changed it: ECONNRESET\n/)
    })
  })
})

describe('taking it back', () => {
  test('each to what applied before: by steps, or at once where that is stricter; nothing else', async () => {
    put('eu-2', 'eu', { mode: 'Limited', reason: 'INC-0' })
    put('eu-3', 'eu', { mode: 'Freeze', reason: 'INC-0' })
    await run({ ...SWITCH, clusters: ['eu-1', 'eu-2'] })
    await run({ ...SWITCH, clusters: ['eu-3', 'eu-4'], force: true })
    put('us-1', 'us', { mode: 'ReadOnly', reason: 'by itself' })
    // An escalation keeps what applied before the first of them.
    await run({ ...SWITCH, mode: 'HeartbeatsOnly', clusters: ['eu-1', 'eu-2'] })
    const { code, out, err } = await run({ recover: true, yes: true, all: true, hold: '90s' })
    assert.deepEqual([code, err], [0, ''])
    assert.match(out, /HeartbeatsOnly +Off by steps +1 +eu-1\n/)
    assert.match(out, /HeartbeatsOnly +Limited by steps +1 +eu-2\n/)
    assert.match(out, /ReadOnly +Freeze at once +1 +eu-3\n/)
    assert.match(out, /ReadOnly +Off by steps +1 +eu-4\n/)
    assert.match(out, /unchanged: us-1: ReadOnly, not set together with others: recover it by name, or give --force\n/)
    assert.match(out, /eu-2: HeartbeatsOnly, on the way back, in force on 1 of 1 replica\n/)
    assert.deepEqual(degradeOf('eu-2'), {
      mode: 'HeartbeatsOnly',
      reason: 'INC-1',
      before: { mode: 'Limited', reason: 'INC-0' },
      recovery: { hold: '90s' },
    })
    assert.deepEqual(degradeOf('eu-3'), { mode: 'Freeze', reason: 'INC-0' })
    const again = await run({ recover: true, yes: true, clusters: ['eu-1', 'eu-3', 'us-1'] })
    assert.match(again.out, /unchanged: eu-1: HeartbeatsOnly, on the way back already\n/)
    assert.match(again.out, /unchanged: us-1: ReadOnly, not set together/)
  })

  test('what expired is Off, and what applied before it comes back', async () => {
    put('eu-1', 'eu', { mode: 'Limited', reason: 'INC-0' })
    const { out } = await run({ ...SWITCH, ttl: '1s', clusters: ['eu-1', 'eu-2'] })
    assert.match(out, /note: eu-1: when --ttl expires, the mode is Off, not Limited as before: --recover restores it\n/)
    let laterMs = NOW + 60_000
    const later = (): number => (laterMs += 5)
    objects.put(LEASES, replicaLease('gw-1', 'portcullis-system', metaMicroTime(laterMs)))
    const { out: plan, code } = await run({ recover: true, yes: true, clusters: ['eu-1', 'eu-2'], now: later })
    assert.match(plan, /Off +Limited at once +1 +eu-1\n/)
    assert.match(plan, /unchanged: eu-2: Off already\n/)
    assert.deepEqual([code, degradeOf('eu-1').mode, degradeOf('eu-1').reason], [0, 'Limited', 'INC-0'])
    assert.equal(degradeOf('eu-1').before, undefined)
  })

  test('--mode Off is Off at once, and forgets what applied before', async () => {
    put('eu-1', 'eu', { mode: 'Limited', reason: 'INC-0' })
    await run({ ...SWITCH, clusters: ['eu-1', 'eu-2'] })
    const { code } = await run({ mode: 'Off', yes: true, clusters: ['eu-*'] })
    assert.deepEqual([code, degradeOf('eu-1'), degradeOf('eu-2')], [0, { mode: 'Off' }, { mode: 'Off' }])
  })

  test('without a leader nobody would take the steps', async () => {
    await run({ ...SWITCH, clusters: ['eu-1', 'eu-2'] })
    objects.remove(LEASES, LEADER_LEASE.name, LEADER_LEASE.namespace)
    const { code, err } = await run({ recover: true, yes: true, clusters: ['eu-*'] })
    assert.deepEqual(
      [code, err.split(';')[0]],
      [1, 'error: no gateway is the leader there, and only the leader takes the steps'],
    )
  })
})

describe('the status of many', () => {
  test('a summary first, and what is not in force by name', async () => {
    for (let at = 10; at < 60; at++) put(`eu-${at}`, 'eu')
    await run({ ...SWITCH, clusters: ['eu-*'], waveSize: '100%' })
    objects.stuck.add('eu-3')
    put('eu-3', 'eu', { mode: 'Freeze', reason: 'INC-9', expiresAt: '2030-01-31T13:00:00Z' })
    const { code, out, err } = await run({ status: true, selector: 'region=eu', timeout: '20ms' })
    assert.equal(code, 1)
    const names = 'eu-1, eu-10, eu-11, eu-12, eu-13, eu-14, eu-15, eu-16 and 45 more'
    assert.equal(
      out,
      [
        '54 clusters: 53 in force on every replica (1), 1 not',
        `  MODE      CLUSTERS  UNTIL                 ${'NAMES'.padEnd(names.length)}  REASON`,
        `  ReadOnly  53        -                     ${names}  INC-1`,
        `  Freeze    1         2030-01-31T13:00:00Z  ${'eu-3'.padEnd(names.length)}  INC-9`,
        '',
      ].join('\n'),
    )
    assert.equal(err, 'error: eu-3: generation 3 is not in force yet on gw-1\n')
    const wide = await run({ status: true, clusters: ['eu-1', 'us-1'] })
    assert.match(wide.out, /CLUSTER +MODE +REPLICAS +GENERATION +IN FORCE\n +eu-1 +ReadOnly +1\/1 +2 +yes\n/)
  })

  test('flags that do not go together, and choices that are none', async () => {
    for (const [given, expected] of [
      [{ status: true }, /^error: no cluster is named; name one or several, or give -l SELECTOR, a glob/],
      [{ status: true, local: true, clusters: ['eu-*'] }, /^error: --local is about one cluster; /],
      [{ status: true, yes: true, all: true }, /^error: --yes, --dry-run and --wave-size are for changes; /],
      [
        { ...SWITCH, clusters: ['*'] },
        /^error: '\*' is every UpstreamCluster, 5 of them; give --all instead, if all are meant\n$/,
      ],
      [{ ...SWITCH, all: true, waveSize: '0' }, /^error: --wave-size "0" is not a number of clusters; /],
      [{ ...SWITCH, all: true, waveSize: '101%' }, /^error: --wave-size "101%" is not/],
      [{ ...SWITCH, all: true, output: 'yaml' }, /^error: --output "yaml" is not known; /],
      [{ ...SWITCH, clusters: ['eu-1', 'eu-9'] }, /^error: there is no UpstreamCluster "eu-9"; did you mean eu-1\?/],
      [
        { ...SWITCH, clusters: ['eu-1', 'package.json'] },
        /^error: there is no UpstreamCluster "package.json"; a file of this name is here/,
      ],
      [{ ...SWITCH, selector: 'region=' + 'e,u=' + '(' }, /^error: --selector "region=e,u=\(": /],
      [{ ...SWITCH, ttl: 'soon', all: true }, /^error: --ttl "soon" is not a positive duration/],
    ] as const) {
      const { code, err } = await run(given)
      assert.deepEqual([code, err.split('\n').length], [1, 2], err)
      assert.match(err, expected)
    }
    assert.deepEqual(patched(), [])
  })
})
