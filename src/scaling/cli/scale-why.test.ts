// `portcullis scale why` against objects in memory: the table, JSON, PodProtectors, errors and exit codes.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, test } from 'node:test'
import { MemoryObjects } from '../../../test/harness/objects/memory-objects.ts'
import { UPSTREAM_CLUSTERS } from '../../gateway/api/upstream-cluster-kind.ts'
import type { JsonObject } from '../../kit/api/json/json-object.ts'
import {
  DEPLOYMENTS,
  PODS,
  REPLICA_SETS,
  REPLICATION_CONTROLLERS,
  STATEFUL_SETS,
} from '../../kube/api/kinds/foreign-kinds.ts'
import type { ResourceKind } from '../../kube/api/resource-kind.ts'
import { statusError } from '../../kube/api/status.ts'
import { runProgram } from '../../program/cli/program.ts'
import { POD_PROTECTORS } from '../../protection/api/pod-protector-kind.ts'
import { SOURCE_LABELS } from '../../protection/api/protection.ts'
import { SCALE_DOWN_POLICIES } from '../api/scale-down-policy-kind.ts'
import { type ScaleWhyOptions, scaleWhy } from './why.ts'

const NOW = Date.parse('2030-01-31T12:00:00Z')
const HOUR_AGO = '2030-01-31T11:00:00Z'
const APP = { app: 'web' }
const PAGE = readFileSync(join(import.meta.dirname, '../../../docs/scale.md'), 'utf8')
let core: MemoryObjects
let worker: MemoryObjects

beforeEach(() => {
  core = new MemoryObjects()
  worker = new MemoryObjects()
  core.put(UPSTREAM_CLUSTERS, {
    apiVersion: 'proxy.kubegateway.io/v1alpha1',
    kind: 'UpstreamCluster',
    metadata: { name: 'prod' },
    spec: { podProtection: {} },
  })
  deployment('web', 4)
  pod('web-a', 'n1', { cost: '-5' })
  pod('web-b', 'n2')
  pod('web-c', 'n2')
  pod('web-d', 'n3')
})

function deployment(name: string, replicas: number, spec: JsonObject = {}): void {
  const template = { metadata: { labels: APP } }
  const strategy = { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: '25%', maxSurge: '25%' } }
  const selector = { matchLabels: APP }
  worker.put(DEPLOYMENTS, {
    metadata: { name, namespace: 'shop', uid: 'web' },
    spec: { replicas, selector, strategy, template, ...spec },
  })
  worker.put(REPLICA_SETS, {
    metadata: {
      name: `${name}-1`,
      namespace: 'shop',
      uid: 'set',
      annotations: { 'deployment.kubernetes.io/desired-replicas': `${replicas}` },
      ownerReferences: [{ uid: 'web', name, controller: true }],
    },
    spec: { replicas, selector, template },
  })
}

interface PodOptions {
  readonly owner?: string
  readonly cost?: string
  readonly ready?: boolean
}

function pod(name: string, nodeName: string, { owner = 'set', cost, ready = true }: PodOptions = {}): void {
  const condition = { type: 'Ready', status: ready ? 'True' : 'False', lastTransitionTime: HOUR_AGO }
  worker.put(PODS, {
    metadata: {
      name,
      namespace: 'shop',
      uid: name,
      labels: APP,
      creationTimestamp: HOUR_AGO,
      ownerReferences: [{ uid: owner, controller: true }],
      ...(cost !== undefined && { annotations: { 'controller.kubernetes.io/pod-deletion-cost': cost } }),
    },
    spec: { nodeName },
    status: { phase: 'Running', conditions: [{ type: 'PodScheduled', status: 'True' }, condition] },
  })
}

function protector(
  minAvailable: number,
  available: number,
  more: { labels?: JsonObject; spec?: JsonObject } = {},
): void {
  const counts = { totalReplicas: available, availableReplicas: available, readyReplicas: available }
  const aggregation = { ...counts, runningReplicas: available, scheduledReplicas: available, lastEventTime: HOUR_AGO }
  core.put(POD_PROTECTORS, {
    apiVersion: 'podseidon.kubewharf.io/v1alpha1',
    kind: 'PodProtector',
    metadata: { name: 'guard', namespace: 'shop', ...(more.labels && { labels: more.labels }) },
    spec: { minAvailable, minReadySeconds: 0, selector: { matchLabels: APP }, ...more.spec },
    status: {
      cells: [{ cellID: 'prod', aggregation }],
      summary: {
        totalReplicas: available,
        aggregatedAvailableReplicas: available,
        estimatedAvailableReplicas: available,
      },
    },
  })
}

interface Ran {
  readonly code: number
  readonly out: string
  readonly err: string
}

async function run(command: (io: Pick<ScaleWhyOptions, 'out' | 'err'>) => Promise<number>): Promise<Ran> {
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

function why(options: Partial<ScaleWhyOptions> = {}): Promise<Ran> {
  const preset = { target: 'deployment/web', namespace: 'shop', replicas: 2, client: worker, now: () => NOW }
  return run((io) => scaleWhy({ ...preset, ...io, ...options }))
}

/** With PodProtectors, which live elsewhere. */
function protectedWhy(options: Partial<ScaleWhyOptions> = {}): Promise<Ran> {
  return why({ cluster: 'prod', client: core, podClient: worker, ...options })
}

describe('a federated cluster', () => {
  beforeEach(() => {
    const members = [{ name: 'east', cluster: 'prod' }, { name: 'west' }]
    core.put(UPSTREAM_CLUSTERS, { metadata: { name: 'all' }, spec: { members } })
  })

  test('stands for the member that the namespace names: its PodProtectors and policies decide, under their own names', async () => {
    protector(3, 4)
    const asked = { cluster: 'all', namespace: 'east--shop' }
    const { code, out, err } = await protectedWhy(asked)
    assert.match(out, /^deployment east--shop\/web: 4 replicas now, 2 asked for; /)
    assert.match(out, /\nPodProtector shop\/guard: 3 required, 4 counted, 0 being deleted: refuses 1 of 2 deletions/)
    assert.match(err, /note: namespace east--shop of all is shop of prod\n/)
    assert.equal(code, 1)
    const direct = await protectedWhy()
    assert.equal(out.slice(out.indexOf('\n')), direct.out.slice(direct.out.indexOf('\n')))
    const json = JSON.parse((await protectedWhy({ ...asked, output: 'json' })).out)
    assert.deepEqual([json.namespace, json.protection.cell], ['east--shop', 'prod'])
  })

  for (const [what, asked, expected] of [
    [
      'a namespace of no member',
      { namespace: 'shop' },
      /^error: namespace "shop" of all names no member; write -n MEMBER--shop/,
    ],
    ['no namespace', { namespace: 'default' }, /write -n MEMBER--default, with one of its members: east, west\n$/],
    ['no such member', { namespace: 'eas--shop' }, /^error: all has no member "eas"; did you mean east\?/],
    [
      'a member without an UpstreamCluster',
      { namespace: 'west--shop' },
      /^error: there is no UpstreamCluster west; correct/,
    ],
    [
      'no such workload',
      { namespace: 'east--shop', target: 'deploy/wbe' },
      /there is no deployment east--shop\/wbe; known in namespace east--shop: web/,
    ],
  ] as const) {
    test(`${what}: one line, exit code 1`, async () => {
      const { code, out, err } = await protectedWhy({ cluster: 'all', ...asked })
      assert.match(err, expected)
      assert.match(err, /^error: [^\n]*\n$/)
      assert.deepEqual([code, out], [1, ''])
    })
  }
})

describe('the table', () => {
  test('certain, open and safe pods, each with its rule', async () => {
    const { code, out, err } = await why()
    assert.deepEqual(out.split('\n'), [
      'deployment shop/web: 4 replicas now, 2 asked for; 2 of its pods go: 1 certain, 1 of 2 open',
      'POD    NODE  VERDICT  RULE',
      'web-a  n1    goes     DeletionCost: deletion cost -5, web-b: 0',
      'web-b  n2    1 of 2   Tie: equal to web-c by all rules',
      'web-c  n2    1 of 2   Tie: equal to web-b by all rules',
      'web-d  n3    stays    DoubledUp: pods of its owner on its node: 1, web-b: 2',
      '',
    ])
    assert.ok(PAGE.includes(out), 'docs/scale.md shows it')
    assert.match(
      err,
      /^note: no UpstreamCluster was asked: .*ScaleDownPolicies may choose other pods.*; give --cluster\n$/,
    )
    assert.equal(code, 0)
  })

  test('nothing goes, all go, and one', async () => {
    assert.match(
      (await why({ replicas: 9 })).out,
      /9 asked for; no pod goes\n[\s\S]*web-a .* stays +Nothing: none is too many/,
    )
    assert.match(
      (await why({ replicas: 0 })).out,
      /0 asked for; 4 pods go\n[\s\S]*web-a .* goes +Everything: all of them go/,
    )
    assert.match((await why({ replicas: 3 })).out, /3 asked for; 1 pod goes\n/)
  })

  test('a rollout: a table for each ReplicaSet, and what is only part of it', async () => {
    worker.put(REPLICA_SETS, {
      metadata: {
        name: 'web-0',
        namespace: 'shop',
        uid: 'old',
        annotations: { 'deployment.kubernetes.io/desired-replicas': '4', 'deployment.kubernetes.io/max-replicas': '6' },
        ownerReferences: [{ uid: 'web', name: 'web', controller: true }],
      },
      spec: { replicas: 2, selector: { matchLabels: APP }, template: {} },
    })
    pod('web-x', 'n1', { owner: 'old' })
    pod('web-y', 'n4', { owner: 'old', ready: false })
    const { out, err } = await why()
    assert.match(out, /\nweb-0: 2 pods, 1 afterwards\nPOD +NODE +VERDICT +RULE\nweb-y +n4 +goes +NotReady: not ready\n/)
    assert.match(out, /\nweb-1: 4 pods, 2 afterwards\n/)
    assert.match(err, /^note: a rollout is in progress: this is what scaling alone deletes/)
  })

  test('--pod-kubeconfig alone is enough', async () => {
    const options = { target: 'deployment/web', namespace: 'shop', replicas: 2, now: () => NOW }
    const { code, out, err } = await run((io) => {
      return scaleWhy({ ...options, ...io, podClient: worker, kubeconfig: '/nowhere/kubeconfig' })
    })
    assert.match(out, /2 of its pods go/, err)
    assert.equal(code, 0)
  })

  test('every kind, by the names that kubectl knows', async () => {
    const at = { namespace: 'shop', uid: 'other' }
    const spec = { replicas: 2, selector: APP }
    worker.put(REPLICATION_CONTROLLERS, { metadata: { ...at, name: 'old' }, spec })
    worker.put(STATEFUL_SETS, { metadata: { ...at, name: 'db' }, spec: { ...spec, selector: { matchLabels: APP } } })
    pod('db-0', 'n1', { owner: 'other' })
    pod('db-1', 'n1', { owner: 'other' })
    for (const target of ['sts/db', 'statefulsets.apps/db', 'StatefulSet/db']) {
      assert.match((await why({ target, replicas: 1 })).out, /db-1 .* goes +Ordinal: ordinal 1\ndb-0 .* stays/)
    }
    assert.match((await why({ target: 'rc/old', replicas: 1 })).out, /replicationcontroller shop\/old: 2 replicas now/)
    const { out, err } = await why({ target: 'rs/web-1', replicas: 3 })
    assert.match(out, /replicaset shop\/web-1: .* 1 pod goes/)
    assert.match(err, /web-1 belongs to web, whose controller resets its replicas/)
  })

  test('-o json', async () => {
    protector(2, 4)
    const { code, out } = await protectedWhy({ output: 'json' })
    const { kind, namespace, name, replicas, sets, protection, notes } = JSON.parse(out)
    assert.deepEqual([kind, namespace, name, replicas], ['Deployment', 'shop', 'web', { from: 4, to: 2 }])
    assert.deepEqual(sets[0].certain, [
      { name: 'web-a', uid: 'web-a', node: 'n1', rule: 'DeletionCost', because: 'deletion cost -5, web-b: 0' },
    ])
    assert.deepEqual([sets[0].possible.count, sets[0].possible.pods.length, sets[0].safe.length], [1, 2, 1])
    assert.deepEqual(protection.protectors, [
      {
        protector: 'shop/guard',
        required: 2,
        requiredAfter: 2,
        counted: 4,
        beingDeleted: 0,
        deletions: 2,
        refused: { least: 0, most: 0 },
        delayed: 0,
        stale: false,
      },
    ])
    assert.deepEqual([code, notes], [0, []])
    assert.equal(JSON.parse((await why({ output: 'json' })).out).protection, null)
  })
})

describe('PodProtectors', () => {
  test('allow as many as they can spare', async () => {
    protector(2, 4)
    const { code, out } = await protectedWhy()
    assert.match(out, /\nPodProtector shop\/guard: 2 required, 4 counted, 0 being deleted: allows all 2 deletions\n$/)
    assert.equal(code, 0)
  })

  test('refuse what is too many of them together', async () => {
    protector(3, 4)
    const { code, out } = await protectedWhy()
    assert.match(out, /: 3 required, 4 counted, .*: refuses 1 of 2 deletions: too few would be left\n$/)
    assert.equal(code, 1)
  })

  test('when it is open which pods go, some of which need no quota', async () => {
    protector(3, 3)
    worker.remove(PODS, 'web-a', 'shop')
    pod('web-a', 'n1', { ready: false })
    assert.match(
      (await protectedWhy({ replicas: 3 })).out,
      /1 pod goes[\s\S]*: allows the deletion\n$/,
      'it is not ready',
    )
    const { code, out } = await protectedWhy({ replicas: 2 })
    assert.match(out, /refuses 1 of 2 deletions/)
    assert.equal(code, 1)
  })

  test('with the numbers that a generated one will have after the change', async () => {
    const labels = {
      [SOURCE_LABELS.group]: 'apps',
      [SOURCE_LABELS.kind]: 'Deployment',
      [SOURCE_LABELS.resource]: 'deployments',
      [SOURCE_LABELS.name]: 'web',
    }
    protector(3, 4, { labels })
    const { code, out } = await protectedWhy()
    const line = out.split('\n').at(-2) ?? ''
    assert.match(line, /: 3 required \(1 after the change\), 4 counted, .*: allows all 2 deletions$/)
    assert.ok(PAGE.includes(line), 'docs/scale.md shows it')
    assert.equal(code, 0)
    protector(4, 4, { labels })
    assert.equal((await protectedWhy()).code, 1, 'whose number is not of these replicas follows others')
    protector(3, 4, { labels: { ...labels, [SOURCE_LABELS.name]: 'other' } })
    assert.equal((await protectedWhy()).code, 1, 'it is of another workload')
  })

  test('let pass later what is too many at once', async () => {
    protector(0, 4, { spec: { admissionHistoryConfig: { maxConcurrentLag: 1 } } })
    const { code, out } = await protectedWhy()
    assert.match(out, /allows all 2 deletions; 1 have to wait until earlier ones have been observed\n$/)
    assert.equal(code, 0)
  })

  test('are not said to be missing when no pod goes', async () => {
    protector(3, 4)
    const { code, out } = await protectedWhy({ replicas: 9 })
    assert.match(out, /no PodProtector is asked: no pod goes\n$/)
    assert.equal(code, 0)
  })

  test('in dry run, excluded, none', async () => {
    const put = (podProtection: JsonObject): void => {
      core.put(UPSTREAM_CLUSTERS, { metadata: { name: 'prod' }, spec: { podProtection } })
    }
    assert.match((await protectedWhy()).out, /no PodProtector selects these pods\n$/)
    protector(4, 4)
    put({ shadow: true })
    const shadow = await protectedWhy()
    assert.match(shadow.out, /would refuse, were it not in dry run, 2 of 2 deletions/)
    assert.equal(shadow.code, 0)
    put({ excludedNamespaces: ['shop'] })
    const excluded = await protectedWhy()
    assert.match(excluded.out, /no PodProtector is asked: spec.podProtection excludes namespace shop\n$/)
    assert.equal(excluded.code, 0)
  })

  test('that cannot be read leave the rank, and exit code 1', async () => {
    core.list = (kind: ResourceKind) => {
      throw statusError('Forbidden', `no list of ${kind.plural} for you`)
    }
    const { code, out, err } = await protectedWhy()
    assert.match(out, /\nweb-a +n1 +goes +DeletionCost/)
    assert.match(
      err,
      /^note: the answer of PodProtectors is unknown: they cannot be read \(no list of .* for you\); see --kube/,
    )
    assert.equal(code, 1)
  })
})

describe('a ScaleDownPolicy', () => {
  const EMPTIEST = [{ by: 'EmptiestNode' }]
  const CHECKED = { podProtection: {} }

  function policy(spec: JsonObject = {}): void {
    core.put(SCALE_DOWN_POLICIES, {
      apiVersion: 'scale.portcullis.io/v1alpha1',
      kind: 'ScaleDownPolicy',
      metadata: { name: 'web', namespace: 'shop' },
      spec: { selector: { matchLabels: APP }, prefer: EMPTIEST, ...spec },
    })
  }

  function cluster(spec: JsonObject): void {
    core.put(UPSTREAM_CLUSTERS, { metadata: { name: 'prod' }, spec })
  }

  /** Pods on a node, for `EmptiestNode`. */
  function nodes(counts: Readonly<Record<string, number>>): void {
    const read = async (path: string): Promise<JsonObject> => {
      const node = /spec\.nodeName%3D(\w+)/.exec(path)?.[1] ?? ''
      const items = Array.from({ length: counts[node] ?? 0 }, (_, at) => ({ metadata: { name: `p${at}` } }))
      return { metadata: {}, items }
    }
    Object.assign(worker, { read })
  }

  beforeEach(() => {
    nodes({ n1: 9, n2: 9, n3: 1 })
    policy()
  })

  test('chooses: what is said to go, and to stay, is by its costs, which go behind a lower one of others', async () => {
    const { out, err } = await protectedWhy()
    assert.match(
      out,
      /2 pods go\nPOD .*\nweb-a .* goes .*\nweb-d +n3 +goes +DeletionCost: deletion cost -1, web-b: 0\n/,
    )
    assert.match(out, /\nweb-b +n2 +stays .*\nweb-c +n2 +stays /)
    assert.match(err, /^note: ScaleDownPolicy shop\/web chooses web-d; a write that does not go through the gateway/)
  })

  test('for another cluster or other pods, or in shadow mode: the controller decides', async () => {
    for (const spec of [{ clusters: ['staging'] }, { selector: { matchLabels: { app: 'x' } } }, { shadow: true }]) {
      policy(spec)
      const { out, err } = await protectedWhy()
      assert.match(out, /web-d +n3 +stays +DoubledUp/)
      assert.equal(/it would choose web-d/.test(err), spec.shadow === true)
    }
  })

  test('whose measure cannot be read here leaves open what it chooses among', async () => {
    Object.assign(worker, {
      read: () => Promise.reject(statusError('Forbidden', 'no pods of other namespaces for you')),
    })
    const { out, err } = await protectedWhy()
    assert.match(out, /web-a +n1 +goes .*\nweb-b +n2 +1 of 3 +Policy: a ScaleDownPolicy chooses between it and web-c\n/)
    assert.doesNotMatch(out, /stays/)
    assert.match(
      err,
      /chooses, and what its choice depends on cannot be read here: no pods of other namespaces for you/,
    )
  })

  test('that may not be read is said to be possible', async () => {
    const list = core.list.bind(core)
    core.list = async (kind, ...more) => {
      if (kind === SCALE_DOWN_POLICIES) throw statusError('Forbidden', 'no policies for you')
      return await list(kind, ...more)
    }
    assert.match((await protectedWhy()).err, /ScaleDownPolicies cannot be read \(no policies for you\): if one selects/)
  })

  test('chooses nothing of a StatefulSet, and without the feature gate', async () => {
    cluster({ ...CHECKED, controllerManager: { podDeletionCost: false } })
    const { out, err } = await protectedWhy()
    // Without costs the two that share a node are removed.
    assert.match(out, /web-b +n2 +goes +DoubledUp.*\nweb-c +n2 +goes /)
    assert.match(err, /chooses nothing: kube-controller-manager ignores deletion costs/)
  })
})

describe('ages just after a scale-up', () => {
  test('which pods go soon, and when ages change places, is said', async () => {
    const at = (seconds: number): string => new Date(NOW - seconds * 1000).toISOString().replace('.000', '')
    // The older one has the lower UID, so they swap places once they share a bucket.
    for (const [name, age] of Object.entries({ 'web-a': 31, 'web-b': 10, 'web-c': 0 })) {
      const found = worker.find(PODS, name, 'shop') ?? assert.fail()
      const conditions = [{ type: 'Ready', status: 'True', lastTransitionTime: at(age) }]
      const metadata = { ...(found['metadata'] as JsonObject), annotations: {} }
      worker.put(PODS, {
        ...found,
        metadata,
        spec: { nodeName: `of-${name}` },
        status: { phase: 'Running', conditions },
      })
    }
    const { out, err } = await why({ replicas: 3 })
    assert.match(out, /web-b +of-web-b +1 of 3 +AgeBoundary: its age and that of web-a change places in 24s\n/)
    assert.match(
      err,
      /note: among the uncertain ones web-c goes if the controller looks within 17s; then ages change places\n/,
    )
  })
})

describe('errors name place, error and fix', () => {
  const rows: readonly (readonly [string, Partial<ScaleWhyOptions>, RegExp])[] = [
    ['no slash', { target: 'web' }, /"web" is not TYPE\/NAME; write for example deployment\/web/],
    ['no name', { target: 'deployment/' }, /is not TYPE\/NAME/],
    [
      'another type',
      { target: 'pod/web' },
      /"pod" is not a type that scale why knows; write one of deployment, replicaset/,
    ],
    ['a name that is none', { target: 'deployment/..' }, /shop\/\.\. must be valid names/],
    [
      'no such workload',
      { target: 'deployment/wbe' },
      /there is no deployment shop\/wbe; known in namespace shop: web; give another one with -n/,
    ],
    [
      'in another namespace',
      { namespace: 'default' },
      /there is no deployment default\/web; there is none in namespace default/,
    ],
    ['format', { output: 'yaml' }, /-o yaml is not known; write -o json/],
    ['duration', { cluster: 'prod', staleAfter: 'x' }, /--stale-after "x" is not a duration/],
  ]
  for (const [name, options, pattern] of rows) {
    test(name, async () => {
      const { code, out, err } = await why(options)
      assert.match(err, /^error: .*\n$/)
      assert.match(err, pattern)
      assert.deepEqual([code, out], [1, ''])
    })
  }

  test('no rights, and no answer', async () => {
    worker.list = () => {
      throw statusError('Forbidden', 'pods is forbidden')
    }
    assert.match(
      (await why()).err,
      /^error: the API server refuses: pods is forbidden; .* needs get of the workload, list of pods/,
    )
    worker.away = true
    assert.match((await why()).err, /^error: the API server does not answer: /)
  })

  test('an API server without workloads, such as that of the gateway', async () => {
    const unknown = statusError('NotFound', 'the server could not find the requested resource')
    worker.get = () => {
      throw unknown
    }
    const expected = /^error: this API server has no Deployments; is it the one of the cluster\? see --/
    assert.match((await why()).err, expected)
    assert.match((await protectedWhy()).err, expected)
  })

  test('replicas, on the command line', async () => {
    const { code, err } = await run(({ out, err: print }) => {
      const program = { version: '0', settings: async () => [], out, err: print, env: {}, now: () => NOW }
      const input = (async function* () {})()
      const unused = (): Promise<number> => Promise.resolve(0)
      return runProgram(['scale', 'why', 'deployment/web', '--replicas', '-1'], {
        ...program,
        input,
        serve: unused,
        demo: unused,
      })
    })
    assert.match(err, /--replicas <n>.*'-1' is invalid. Write a whole number, 0 or more/)
    assert.equal(code, 1)
  })
})
