// spec.cache on a real kube-apiserver: what is answered from the cache is what the cluster answers, byte by byte; a user that may not read gets the
// cluster's refusal; and what cannot be proved goes to the cluster.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { WatchLines } from '../harness/clients/watch-lines.ts'
import { startCluster, type TestCluster } from '../harness/clusters/cluster.ts'
import { type KubeResponse, kubeRequest } from '../harness/clusters/kube-request.ts'
import type { Credentials } from '../harness/clusters/kubeconfig.ts'
import { hostOf, kubeconfigThrough, upstreamClusterFor } from '../harness/clusters/upstream-cluster.ts'
import { startGateway, type TestGateway } from '../harness/gateways/gateway.ts'
import { gatewayCA } from '../harness/pki.ts'
import { waitFor } from '../harness/wait.ts'

const RBAC = readFileSync(join(import.meta.dirname, '../../deploy/rbac/read-cache.yaml'), 'utf8')
/** Endpoints are deprecated: each answer says so. */
const CACHED = ['pods', 'endpoints']
const PODS = '/api/v1/pods'
const IN_A = '/api/v1/namespaces/a/pods'
const IN_B = '/api/v1/namespaces/b/pods'

const TOKENS = ['alice', 'namer'].map((user) => ({ user, uid: `${user}-uid`, token: `${user}-token` }))
const ALICE: Credentials = { token: 'alice-token' }
const NAMER: Credentials = { token: 'namer-token' }

let cluster: TestCluster
let gateway: TestGateway

before(async () => {
  cluster = await startCluster({ tokens: TOKENS })
  await cluster.apply(RBAC.replace('resources: [pods]', `resources: [${CACHED}]`))
  await cluster.apply(
    [
      ...['a', 'b'].map((name) => ({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } })),
      ...['a', 'b'].map((namespace) => ({
        apiVersion: 'v1',
        kind: 'ServiceAccount',
        metadata: { name: 'default', namespace },
      })),
      role('reader', 'a', { resources: ['pods'], verbs: ['get', 'list', 'watch'] }, 'alice'),
      role('named', 'a', { resources: ['pods'], verbs: ['get', 'list', 'watch'], resourceNames: ['x'] }, 'namer'),
    ]
      .flat()
      .map((object) => `---\n${JSON.stringify(object)}\n`)
      .join(''),
  )
  for (const [namespace, name, labels, nodeName] of [
    ['a', 'x', { app: 'one' }, 'n1'],
    ['a', 'y', { app: 'two', 'html<': undefined }, 'n2'],
    ['b', 'x', { app: 'one' }, ''],
  ] as const) {
    await createPod(namespace, name, labels, nodeName)
  }
  gateway = await startGateway({
    clusters: [
      upstreamClusterFor(cluster, { spec: { cache: CACHED.map((resource) => ({ version: 'v1', resource })) } }),
    ],
  })
  // Each connection may be another thread's.
  await waitFor('the cache in all threads', async () => {
    const answers = await Promise.all(Array.from({ length: 12 }, () => through(`${PODS}?resourceVersion=0`)))
    return answers.every(({ hit }) => hit)
  })
})
after(async () => {
  await gateway?.stop()
  await cluster?.stop()
})

function role(name: string, namespace: string, rule: object, user: string): readonly object[] {
  const metadata = { name, namespace }
  return [
    { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'Role', metadata, rules: [{ apiGroups: [''], ...rule }] },
    {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'RoleBinding',
      metadata,
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name },
      subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: user }],
    },
  ]
}

async function createPod(namespace: string, name: string, labels: object, nodeName = ''): Promise<void> {
  const body = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, labels, annotations: { note: '<b>&amp;</b> \u2028 ü 1e3' } },
    spec: { containers: [{ name: 'c', image: 'c' }], ...(nodeName !== '' && { nodeName }) },
  }
  const { status, text } = await cluster.request(`/api/v1/namespaces/${namespace}/pods`, { method: 'POST', body })
  assert.equal(status, 201, text)
}

interface Answer extends KubeResponse {
  /** It came from the cache. */
  readonly hit: boolean
}

async function through(
  path: string,
  user: Credentials = cluster.admin,
  headers: Readonly<Record<string, string>> = {},
): Promise<Answer> {
  const answer = await kubeRequest({
    server: `https://127.0.0.1:${gateway.port}`,
    serverName: hostOf(cluster.name),
    ca: gatewayCA().certPem,
    user,
    path,
    headers,
  })
  const id = answer.headers['audit-id']
  const [line] = await gateway.logged(({ auditID }) => auditID === id)
  return { ...answer, hit: line?.['endpoint'] === undefined || line['endpoint'] === '' ? answer.status === 200 : false }
}

/** The version of a list is that of the whole store, and so of the moment. */
function withoutVersion(list: string): string {
  return list.replace(/"metadata":\{"resourceVersion":"\d+"/, '"metadata":{"resourceVersion":""')
}

function withoutAge(table: string): string {
  return table.replace(/\d+m?\d*s$/gm, '')
}

async function sameAsDirect(path: string, hit: boolean, user: Credentials = cluster.admin): Promise<Answer> {
  const answer = await through(path, user)
  const direct = await cluster.request(path, { user })
  assert.equal(answer.status, direct.status, `${path}: ${answer.text}`)
  assert.equal(withoutVersion(answer.text), withoutVersion(direct.text), path)
  for (const name of ['content-type', 'warning']) assert.equal(answer.headers[name], direct.headers[name], path)
  assert.equal(answer.hit, hit, `${path} is answered by the ${hit ? 'cache' : 'cluster'}`)
  return answer
}

describe('answers are those of the cluster', () => {
  test('lists of any age: all, of a namespace, of none; a limit changes nothing', async () => {
    for (const path of [PODS, IN_A, IN_B, '/api/v1/namespaces/none/pods']) {
      await sameAsDirect(`${path}?resourceVersion=0`, true)
    }
    const { json } = await sameAsDirect(`${PODS}?resourceVersion=0&limit=1`, true)
    assert.equal(json().items.length, 3)
    assert.equal(json().metadata.continue, undefined)
  })

  test('each selector', async () => {
    const fields = [
      ...[
        'metadata.name=x',
        'metadata.namespace=a',
        'spec.nodeName=n1',
        'spec.nodeName=',
        'spec.host=n2',
        'spec.nodeName!=n1',
      ],
      ...['spec.restartPolicy=Always', 'spec.schedulerName=default-scheduler', 'spec.serviceAccountName=default'],
      ...[
        'spec.hostNetwork=false',
        'status.phase=Pending',
        'status.podIP=',
        'status.nominatedNodeName=',
        'metadata.name=x,spec.nodeName=n1',
      ],
    ]
    for (const selector of fields) {
      await sameAsDirect(`${PODS}?resourceVersion=0&fieldSelector=${encodeURIComponent(selector)}`, true)
    }
    for (const selector of ['app=one', 'app!=one', 'app in (one,two)', 'app notin (one)', '!app', 'app', 'none=x']) {
      await sameAsDirect(`${IN_A}?resourceVersion=0&labelSelector=${encodeURIComponent(selector)}`, true)
    }
  })

  test('one object of any age; one that is not there is asked of the cluster', async () => {
    await sameAsDirect(`${IN_A}/x?resourceVersion=0`, true)
    await sameAsDirect(`${IN_A}/none?resourceVersion=0`, false)
    await sameAsDirect(`${PODS}/x?resourceVersion=0`, false)
    await sameAsDirect(`${IN_A}/x`, false)
  })

  test('a version that was just written is waited for', async () => {
    for (let i = 0; i < 20; i++) {
      const written = await cluster.request(`${IN_B}/x`, {
        method: 'PATCH',
        body: { metadata: { annotations: { round: String(i) } } },
        headers: { 'content-type': 'application/merge-patch+json' },
      })
      const version = written.json().metadata.resourceVersion
      const { json } = await sameAsDirect(`${IN_B}?resourceVersion=${version}`, true)
      assert.equal(json().items[0].metadata.annotations.round, String(i))
    }
  })

  test('many who list all at the same time get one list of the cluster, begun after they asked', async () => {
    // The store goes on while no pod changes: their cache cannot have reached its version.
    const written = await patch(`${IN_B}/x`, { metadata: { annotations: { before: 'all' } } })
    await cluster.apply(JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'later' } }))
    const answers = await Promise.all(Array.from({ length: 20 }, () => through(PODS)))
    for (const { text, json } of answers) {
      assert.equal(withoutVersion(text), withoutVersion((await cluster.request(PODS)).text))
      assert.ok(Number(json().metadata.resourceVersion) > Number(written))
    }
    const forwarded = answers.filter(({ hit }) => !hit).length
    assert.ok(forwarded < 10, `${forwarded} of 20 were forwarded`)
    // A watch from that version goes on with what comes later.
    const version = String(answers.findLast(({ hit }) => hit)?.json().metadata.resourceVersion)
    await watchBoth(`${IN_B}?watch=1&resourceVersion=${version}`, async ([cached, direct]) => {
      await patch(`${IN_B}/x`, { metadata: { annotations: { after: 'all' } } })
      await waitFor('the event', () => cached.lines.length > 0 && direct.lines.length > 0)
      assert.deepEqual(cached.lines, direct.lines)
    })
  })

  test("errors are the cluster's: unknown fields, versions that are none or too new, options that exclude each other", async () => {
    const bad = [
      ['fieldSelector=spec.foo%3Dx&resourceVersion=0', 400],
      ['labelSelector=a%3D%3D%3D&resourceVersion=0', 400],
      ['resourceVersion=0&resourceVersionMatch=Exact', 422],
      ['resourceVersionMatch=NotOlderThan', 422],
      ['resourceVersion=abc', 400],
    ] as const
    for (const [query, status] of bad) {
      const { status: answered } = await sameAsDirect(`${PODS}?${query}`, false)
      assert.equal(answered, status, query)
    }
    const list = await through(`${PODS}?resourceVersion=0`)
    const future = await through(`${PODS}?resourceVersion=${Number(list.json().metadata.resourceVersion) + 1000}`)
    assert.equal(future.status, 504, future.text)
    assert.equal(future.json().details.causes[0].reason, 'ResourceVersionTooLarge')
  })

  test('warnings of deprecated versions', async () => {
    const at = '/api/v1/namespaces/default/endpoints'
    await cluster.apply(JSON.stringify({ apiVersion: 'v1', kind: 'Endpoints', metadata: { name: 'x' } }))
    await waitFor('its arrival', async () => (await through(`${at}/x?resourceVersion=0`)).hit)
    for (const path of [`${at}?resourceVersion=0`, `${at}/x?resourceVersion=0`]) {
      assert.match(String((await sameAsDirect(path, true)).headers['warning']), /^299 - "v1 Endpoints is deprecated/)
    }
    const watch = `${at}?watch=true&resourceVersion=0&timeoutSeconds=1`
    const [cached, direct] = await Promise.all([through(watch), cluster.request(watch)])
    assert.ok(cached.hit)
    assert.equal(cached.headers['warning'], direct.headers['warning'])
  })

  test('kubectl get, JSON for people, and pages', async () => {
    const direct = await cluster.kubectl(['get', 'pods', '-A'])
    const kubeconfig = await kubeconfigThrough(gateway, cluster, cluster.admin)
    const table = await cluster.kubectl(['get', 'pods', '-A'], { kubeconfig })
    assert.equal(withoutAge(table.stdout), withoutAge(direct.stdout))
    const raw = await cluster.kubectl(['get', '--raw', `${PODS}?resourceVersion=0`], { kubeconfig })
    assert.equal(withoutVersion(raw.stdout), withoutVersion((await cluster.request(`${PODS}?resourceVersion=0`)).text))
    const pretty = await through(`${PODS}?resourceVersion=0`, cluster.admin, { 'user-agent': 'curl/8.0' })
    assert.match(pretty.text, /^\{\n {2}"kind": "PodList"/)
    const page = await through(`${PODS}?limit=2`)
    assert.equal(page.json().items.length, 2)
    const rest = await through(`${PODS}?limit=2&continue=${page.json().metadata.continue}`)
    assert.equal(rest.json().items.length, 1)
    assert.deepEqual([page.hit, rest.hit], [false, false])
  })
})

describe("rights are the cluster's", () => {
  test('a user of one namespace', async () => {
    assert.equal((await sameAsDirect(`${PODS}?resourceVersion=0`, false, ALICE)).status, 403)
    assert.equal((await sameAsDirect(`${IN_A}?resourceVersion=0`, true, ALICE)).status, 200)
    assert.equal((await sameAsDirect(`${IN_B}?resourceVersion=0`, false, ALICE)).status, 403)
    assert.equal((await sameAsDirect(`${IN_B}/x?resourceVersion=0`, false, ALICE)).status, 403)
  })

  test('a user of one name', async () => {
    assert.equal((await sameAsDirect(`${IN_A}?resourceVersion=0`, false, NAMER)).status, 403)
    assert.equal(
      (await sameAsDirect(`${IN_A}?resourceVersion=0&fieldSelector=metadata.name%3Dx`, true, NAMER)).status,
      200,
    )
    assert.equal(
      (await sameAsDirect(`${IN_A}?resourceVersion=0&fieldSelector=metadata.name%3Dy`, false, NAMER)).status,
      403,
    )
    assert.equal((await sameAsDirect(`${IN_A}/x?resourceVersion=0`, true, NAMER)).status, 200)
    assert.equal((await sameAsDirect(`${IN_A}/y?resourceVersion=0`, false, NAMER)).status, 403)
  })
})

function watching(path: string, user: Credentials = cluster.admin): WatchLines {
  return new WatchLines({ server: `https://127.0.0.1:${gateway.port}`, serverName: hostOf(cluster.name), path, user })
}

/** The same watch through the gateway and direct. */
async function watchBoth(path: string, run: (both: readonly [WatchLines, WatchLines]) => Promise<void>): Promise<void> {
  const both = [
    watching(path),
    new WatchLines({ server: cluster.apiservers[0]?.url ?? '', path, user: cluster.admin }),
  ] as const
  try {
    await waitFor('both watches to begin', () => both.every(({ status }) => status === 200))
    await run(both)
  } finally {
    for (const one of both) one.stop()
  }
}

async function patch(path: string, body: object): Promise<string> {
  const headers = { 'content-type': 'application/merge-patch+json' }
  const answer = await cluster.request(path, { method: 'PATCH', body, headers })
  assert.equal(answer.status, 200, answer.text)
  return answer.json().metadata.resourceVersion
}

async function currentVersion(): Promise<string> {
  return (await cluster.request(PODS)).json().metadata.resourceVersion
}

const withoutBookmarks = ({ lines }: WatchLines): readonly string[] =>
  lines.filter((line) => !line.startsWith('{"type":"BOOKMARK"'))

/** As far as both have come; without the text of both, which is long. */
function sameLines(cached: WatchLines, direct: WatchLines, what: string): void {
  const [a, b] = [withoutBookmarks(cached), withoutBookmarks(direct)]
  const length = Math.min(a.length, b.length)
  const differs = a.slice(0, length).findIndex((line, at) => line !== b[at])
  assert.equal(differs, -1, `${what}: ${a[differs]} is not ${b[differs]}`)
}

async function watchersServed(): Promise<number> {
  const text = await gateway.metrics()
  return Number(/^portcullis_cache_watchers\{.*resource="pods"\} (\d+)$/m.exec(text)?.[1] ?? 0)
}

describe('watches are those of the cluster', () => {
  test('changes behind a version, byte by byte: of all, of a namespace, and of what enters and leaves a selection', async () => {
    const version = await currentVersion()
    const queries = [
      PODS,
      IN_A,
      `${PODS}?labelSelector=app%3Done`,
      `${IN_A}?fieldSelector=metadata.name%3Dx`,
      `${PODS}?fieldSelector=spec.nodeName%3Dn1`,
    ].map(
      (path) => `${path}${path.includes('?') ? '&' : '?'}watch=1&resourceVersion=${version}&allowWatchBookmarks=true`,
    )
    await createPod('a', 'z', { app: 'one' }, 'n1')
    await patch(`${IN_A}/z`, { metadata: { labels: { app: 'two' } } })
    await patch(`${IN_A}/z`, { metadata: { labels: { app: 'one' }, annotations: { resourceVersion: version } } })
    await patch(`${IN_A}/x`, { metadata: { annotations: { touched: 'yes' } } })
    await cluster.request(`${IN_A}/z?gracePeriodSeconds=0`, { method: 'DELETE' })
    await patch(`${IN_A}/x`, { metadata: { annotations: { touched: null } } })
    for (const path of queries) {
      await watchBoth(path, async ([cached, direct]) => {
        await waitFor('what the cluster sends', () => direct.lines.length >= 2)
        await waitFor(
          'as much from the cache',
          () => withoutBookmarks(cached).length >= withoutBookmarks(direct).length,
        )
        sameLines(cached, direct, path)
      })
    }
    await waitFor('their lines in the access log', async () => (await hits('watch=1')) === queries.length)
  })

  test('changes as they happen; a selection that is left deletes the previous object, at the version of the change', async () => {
    const version = await currentVersion()
    await watchBoth(`${IN_A}?watch=1&labelSelector=app%3Done&resourceVersion=${version}`, async ([cached, direct]) => {
      await patch(`${IN_A}/x`, { metadata: { labels: { app: 'three' } } })
      await patch(`${IN_A}/x`, { metadata: { labels: { app: 'one' } } })
      await waitFor('both events', () => cached.lines.length >= 2 && direct.lines.length >= 2)
      assert.deepEqual(cached.lines, direct.lines)
      const [left] = cached.events
      assert.deepEqual([left?.type, left?.object.metadata.labels.app], ['DELETED', 'one'])
      assert.ok(Number(left?.object.metadata.resourceVersion) > Number(version))
    })
  })

  test('the state first, of any age', async () => {
    for (const query of [
      'resourceVersion=0',
      'resourceVersion=0&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan',
    ]) {
      await watchBoth(`${PODS}?watch=1&${query}`, async ([cached, direct]) => {
        await waitFor('the objects', () => direct.lines.length >= 3 && cached.lines.length >= direct.lines.length)
        sameLines(cached, direct, query)
      })
    }
  })

  test('a watch that wants the current state has what was just written, and one mark of its end', async () => {
    const before = await hits('watch=1&allow')
    for (let i = 0; i < 3; i++) {
      const written = await patch(`${IN_B}/x`, { metadata: { annotations: { last: String(i) } } })
      const cached = watching(`${PODS}?watch=1&allowWatchBookmarks=true`)
      await waitFor('the mark', () => cached.events.some(({ type }) => type === 'BOOKMARK'))
      const { events } = cached
      const object = events.find(({ object: { metadata } }) => metadata.namespace === 'b')?.object
      assert.equal(object.metadata.annotations.last, String(i))
      const marks = events.filter(
        ({ object: { metadata } }) => metadata.annotations?.['k8s.io/initial-events-end'] === 'true',
      )
      assert.equal(marks.length, 1)
      assert.ok(Number(marks[0]?.object.metadata.resourceVersion) >= Number(written))
      cached.stop()
    }
    await waitFor('three lines in the access log', async () => (await hits('watch=1&allow')) - before === 3)
  })

  test('a history that is gone is for the cluster to tell of', async () => {
    const path = `${PODS}?watch=1&resourceVersion=1`
    await watchBoth(path, async ([cached, direct]) => {
      await waitFor('what the cluster sends', () => cached.lines.length > 0 && direct.lines.length > 0)
      assert.equal(cached.lines[0], direct.lines[0])
      cached.stop()
      await waitFor('its line', () => gateway.accessLog().some(({ target, endpoint }) => target === path && endpoint))
    })
  })

  test('timeoutSeconds ends it', async () => {
    const cached = watching(`${PODS}?watch=1&resourceVersion=0&timeoutSeconds=1`)
    await waitFor('its end', () => cached.ended)
    assert.ok(cached.lines.length >= 3)
  })

  test('a user whose right is taken reads nothing more, and its watch ends', { timeout: 120_000 }, async () => {
    const open = watching(`${IN_A}?watch=1&resourceVersion=0`, ALICE)
    await waitFor('its state', () => open.lines.length >= 2)
    await cluster.request('/apis/rbac.authorization.k8s.io/v1/namespaces/a/rolebindings/reader', { method: 'DELETE' })
    await waitFor('a refusal', async () => (await through(`${IN_A}?resourceVersion=0`, ALICE)).status === 403)
    await waitFor('the end of the watch', () => open.ended)
  })

  test('watches end cleanly when the gateway stops', async () => {
    const open = watching(`${IN_A}?watch=1&resourceVersion=0`)
    await waitFor('its state', () => open.lines.length >= 2)
    await waitFor('its place', async () => (await watchersServed()) > 0)
    await gateway.stop()
    assert.ok(open.ended)
  })
})

/** Requests whose target has this part, and that came from the cache. */
async function hits(part: string): Promise<number> {
  return gateway
    .accessLog()
    .filter(({ target, endpoint, code }) => String(target).includes(part) && !endpoint && code === 200).length
}
