// spec.cache in the encodings of Go clients, on a real kube-apiserver: byte by byte what the cluster answers; custom resources, which have no Protobuf, in
// JSON; and nothing is followed in Protobuf before a client asks.

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { ProtobufFactsReader } from '../../src/cache/core/bytes/protobuf-facts.ts'
import { ProtobufListSplitter, readFrame } from '../../src/cache/core/bytes/split-protobuf.ts'
import type { EventBytes } from '../../src/cache/core/bytes/watch-event.ts'
import type { CachedResource } from '../../src/gateway/api/upstream-cluster/read-cache/read-cache.ts'
import { EventFrames } from '../../src/kube/io/event-frames.ts'
import { BEFORE, OBJECTS, ODD } from '../cache/odd-objects.ts'
import { startCluster, type TestCluster } from '../harness/clusters/cluster.ts'
import { type KubeRequest, type KubeResponse, kubeRequest } from '../harness/clusters/kube-request.ts'
import { hostOf, kubeconfigThrough, upstreamClusterFor } from '../harness/clusters/upstream-cluster.ts'
import { startGateway, type TestGateway } from '../harness/gateways/gateway.ts'
import { gatewayCA } from '../harness/pki.ts'
import { waitFor } from '../harness/wait.ts'

const PODS = '/api/v1/pods'
const IN_ODD = `/api/v1/namespaces/${ODD}/pods`
const CONFIG_MAPS = `/api/v1/namespaces/${ODD}/configmaps`
const THINGS = `/apis/example.com/v1/namespaces/${ODD}/things`
const JSON_TYPE = 'application/json'
const PROTOBUF = 'application/vnd.kubernetes.protobuf'
/** As client-go asks. */
const GO = `${PROTOBUF},${JSON_TYPE}`

const CACHED: readonly CachedResource[] = [
  { version: 'v1', resource: 'pods' },
  { version: 'v1', resource: 'configmaps' },
  { version: 'v1', resource: 'nodes' },
  { version: 'v1', resource: 'secrets', encodings: ['JSON'] },
  { group: 'example.com', version: 'v1', resource: 'things' },
]

const RIGHTS = [
  {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRole',
    metadata: { name: 'cached' },
    rules: CACHED.map(({ group = '', resource }) => ({
      apiGroups: [group],
      resources: [resource],
      verbs: ['list', 'watch'],
    })),
  },
  {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRoleBinding',
    metadata: { name: 'cached' },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'cached' },
    subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'portcullis-cache' }],
  },
]

let cluster: TestCluster
let gateway: TestGateway

before(async () => {
  cluster = await startCluster()
  await cluster.apply(RIGHTS.map((object) => `---\n${JSON.stringify(object)}\n`).join(''))
  for (const { path, object } of [...BEFORE, ...OBJECTS]) await create(path, object)
  gateway = await startGateway({ clusters: [upstreamClusterFor(cluster, { spec: { cache: CACHED } })] })
  for (const path of [PODS, CONFIG_MAPS, THINGS, '/api/v1/nodes', '/api/v1/secrets']) await isCached(path, JSON_TYPE)
})
after(async () => {
  await gateway?.stop()
  await cluster?.stop()
})

async function create(path: string, body: object): Promise<void> {
  await waitFor(`${path} to be created`, async () => {
    const { status, text } = await cluster.request(path, { method: 'POST', body })
    assert.ok(status === 201 || status === 404, text)
    return status === 201
  })
}

interface Answer extends KubeResponse {
  /** It came from the cache. */
  readonly hit: boolean
}

async function through(path: string, accept = JSON_TYPE, options: Partial<KubeRequest> = {}): Promise<Answer> {
  const answer = await kubeRequest({
    server: `https://127.0.0.1:${gateway.port}`,
    serverName: hostOf(cluster.name),
    ca: gatewayCA().certPem,
    user: cluster.admin,
    path,
    headers: { accept },
    ...options,
  })
  const id = answer.headers['audit-id']
  const [line] = await gateway.logged(({ auditID }) => auditID === id)
  const isForwarded = line?.['endpoint'] !== undefined && line['endpoint'] !== ''
  return { ...answer, hit: answer.status === 200 && !isForwarded }
}

/** The version of a list is that of the whole store, and so of the moment. */
function withoutVersion({ bytes, headers }: KubeResponse): Buffer {
  if (String(headers['content-type']).startsWith(JSON_TYPE))
    return Buffer.from(bytes.toString().replace(/("metadata":\{.*?"resourceVersion":)"\d+"/, '$1""'))
  const splitter = new ProtobufListSplitter({ objectBytes: 1e7, objects: 1e6 }, () => undefined)
  try {
    splitter.feed(bytes)
  } catch {
    return bytes
  }
  const version = Buffer.from(splitter.end().resourceVersion)
  const at = bytes.indexOf(version)
  return Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + version.length)])
}

/** In every gateway thread: each connection may be another one's. */
async function isCached(path: string, accept: string): Promise<void> {
  let hits = 0
  await waitFor(`${path} as ${accept} in the cache`, async () => {
    hits = (await through(`${path}?resourceVersion=0`, accept)).hit ? hits + 1 : 0
    return hits >= 10
  })
}

async function sameAsDirect(path: string, accept: string, hit = true): Promise<Answer> {
  const answer = await through(path, accept)
  const direct = await cluster.request(path, { headers: { accept } })
  assert.equal(answer.status, direct.status, `${path}: ${answer.text}`)
  assert.equal(answer.headers['content-type'], direct.headers['content-type'], path)
  assert.equal(answer.hit, hit, `${path} as ${accept} is answered by the ${hit ? 'cache' : 'cluster'}`)
  const [made, told] = [withoutVersion(answer), withoutVersion(direct)]
  assert.ok(made.equals(told), `${path} as ${accept}: ${made.toString('latin1')} is not ${told.toString('latin1')}`)
  return answer
}

async function kept(): Promise<readonly { resource: string; encoding: string }[]> {
  const answer = await fetch(`http://127.0.0.1:${gateway.adminPort}/debug/config`)
  return Object(await answer.json()).readCache
}

describe('Protobuf', () => {
  test('is followed when a client asks for it, which is forwarded until the list is there', async () => {
    assert.ok((await kept()).every(({ encoding }) => encoding === 'json'))
    await sameAsDirect(`${PODS}?resourceVersion=0`, PROTOBUF, false)
    await isCached(PODS, PROTOBUF)
    assert.deepEqual(
      (await kept()).filter(({ encoding }) => encoding === 'protobuf').map(({ resource }) => resource),
      ['pods'],
    )
    for (const path of [CONFIG_MAPS, '/api/v1/nodes']) await isCached(path, PROTOBUF)
  })

  test('lists: all, of a namespace, of none, by each kind of selector, in both encodings', async () => {
    const queries = [
      '',
      ...[
        'status.phase=Pending',
        'spec.nodeName=',
        'spec.hostNetwork=true',
        'metadata.name=host',
        'spec.nodeName!=a',
      ].map((selector) => `&fieldSelector=${encodeURIComponent(selector)}`),
      ...['pick=yes', '!pick', 'pick in (yes,no)', 'none=x'].map(
        (selector) => `&labelSelector=${encodeURIComponent(selector)}`,
      ),
    ]
    for (const accept of [PROTOBUF, GO, JSON_TYPE]) {
      for (const query of queries) await sameAsDirect(`${IN_ODD}?resourceVersion=0${query}`, accept)
      for (const path of [PODS, '/api/v1/namespaces/empty/pods', CONFIG_MAPS, '/api/v1/nodes'])
        await sameAsDirect(`${path}?resourceVersion=0`, accept)
      await sameAsDirect(`${PODS}?resourceVersion=0&limit=1`, accept)
    }
  })

  test('one object; one that is not there is asked of the cluster', async () => {
    for (const name of ['host', 'plain']) await sameAsDirect(`${IN_ODD}/${name}?resourceVersion=0`, PROTOBUF)
    await sameAsDirect(`${IN_ODD}/none?resourceVersion=0`, PROTOBUF, false)
    await sameAsDirect(`${IN_ODD}/host`, PROTOBUF, false)
  })

  test('what kube-apiserver takes of Accept', async () => {
    for (const [accept, hit] of [
      [`${PROTOBUF}, */*`, true],
      [`*/*;q=0.1,${PROTOBUF}`, true],
      [`application/json;q=0.5,${PROTOBUF};q=0.6`, true],
      [`text/html,${GO}`, true],
      [`application/json;stream=other,${GO}`, true],
      ['application/*', false],
      [`application/*,${PROTOBUF};q=0.5`, true],
      ['application/yaml', false],
      ['text/html', false],
      [`application/json;as=Table;g=meta.k8s.io;v=v1,${JSON_TYPE}`, false],
    ] as const)
      await sameAsDirect(`${IN_ODD}?resourceVersion=0&labelSelector=pick%3Dyes`, accept, hit)
  })

  test('of custom resources there is none: JSON is the answer, or the refusal of the cluster', async () => {
    const { headers } = await sameAsDirect(`${THINGS}?resourceVersion=0`, GO)
    assert.equal(headers['content-type'], JSON_TYPE)
    assert.equal((await sameAsDirect(`${THINGS}?resourceVersion=0`, PROTOBUF, false)).status, 406)
    assert.ok((await kept()).every(({ resource, encoding }) => !resource.startsWith('things') || encoding === 'json'))
  })

  test('an encoding that is not kept is forwarded', async () => {
    await sameAsDirect('/api/v1/secrets?resourceVersion=0', JSON_TYPE)
    await sameAsDirect('/api/v1/secrets?resourceVersion=0', GO, false)
  })

  test('a version that was just written is waited for, and the current state has it', async () => {
    for (let round = 0; round < 10; round++) {
      const version = await annotate('plain', String(round))
      await sameAsDirect(`${IN_ODD}?resourceVersion=${version}`, PROTOBUF)
    }
    const version = await annotate('plain', 'last')
    const events = eventsOf(await through(`${IN_ODD}?${WATCH}&timeoutSeconds=2`, PROTOBUF))
    const marks = events.filter(
      ({ type, object }) => type === 'BOOKMARK' && FACTS.readBookmark(object).endsInitialEvents,
    )
    assert.equal(marks.length, 1)
    const [mark = assert.fail()] = marks
    assert.ok(Number(FACTS.readBookmark(mark.object).resourceVersion) >= Number(version))
    assert.ok(events.slice(0, events.indexOf(mark)).some(({ object }) => object.includes(version)))
  })
})

const FACTS = new ProtobufFactsReader([])
const WATCH = 'watch=1&allowWatchBookmarks=true'

async function annotate(pod: string, note: string): Promise<string> {
  return patch(`${IN_ODD}/${pod}`, { metadata: { annotations: { note } } })
}

async function patch(path: string, body: object): Promise<string> {
  const headers = { 'content-type': 'application/merge-patch+json' }
  const answer = await cluster.request(path, { method: 'PATCH', body, headers })
  assert.equal(answer.status, 200, answer.text)
  return answer.json().metadata.resourceVersion
}

function framesOf({ bytes }: Pick<KubeResponse, 'bytes'>): readonly Buffer[] {
  return new EventFrames({ take: () => true, give: () => undefined }).push(bytes)
}

function eventsOf(answer: KubeResponse): readonly EventBytes[] {
  return framesOf(answer).map(readFrame)
}

const isChange = (frame: Buffer): boolean => readFrame(frame).type !== 'BOOKMARK'

describe('watches in Protobuf', () => {
  test('changes behind a version, also of what enters and leaves a selection; bookmarks', async () => {
    const { json } = await cluster.request(IN_ODD)
    const from = json().metadata.resourceVersion
    await patch(`${IN_ODD}/plain`, { metadata: { labels: { seen: 'yes' } } })
    await annotate('plain', 'seen')
    await patch(`${IN_ODD}/plain`, { metadata: { labels: { seen: 'no' } } })
    const last = await patch(`${IN_ODD}/plain`, { metadata: { labels: { seen: null } } })
    await waitFor('the last of them', async () => (await through(`${IN_ODD}?resourceVersion=${last}`, PROTOBUF)).hit)
    for (const query of ['', '&labelSelector=seen%3Dyes', '&fieldSelector=metadata.name%3Dplain']) {
      for (const accept of [PROTOBUF, `${PROTOBUF};stream=watch`, GO]) {
        const path = `${IN_ODD}?${WATCH}&resourceVersion=${from}&timeoutSeconds=2${query}`
        const [cached, direct] = await Promise.all([
          through(path, accept),
          cluster.request(path, { headers: { accept } }),
        ])
        assert.ok(cached.hit)
        assert.equal(cached.headers['content-type'], direct.headers['content-type'])
        const [made, told] = [cached, direct].map((answer) => framesOf(answer).filter(isChange))
        assert.ok((told?.length ?? 0) >= 3)
        assert.deepEqual(made, told, path)
      }
    }
    const left = eventsOf(
      await through(`${IN_ODD}?watch=1&resourceVersion=${from}&timeoutSeconds=1&labelSelector=seen%3Dyes`, PROTOBUF),
    )
    assert.deepEqual(
      left.map(({ type }) => type),
      ['ADDED', 'MODIFIED', 'DELETED'],
    )
    assert.equal(FACTS.read(left[2]?.object ?? assert.fail()).labels['seen'], 'yes')
  })

  test('the state first', async () => {
    const path = `${IN_ODD}?${WATCH}&resourceVersion=0&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=2`
    const [cached, direct] = await Promise.all([
      through(path, PROTOBUF),
      cluster.request(path, { headers: { accept: PROTOBUF } }),
    ])
    assert.ok(cached.hit)
    const [made, told] = [cached, direct].map((answer) => framesOf(answer).filter(isChange))
    assert.deepEqual(made, told)
  })

  test('a gone history is for the cluster to tell of', async () => {
    const path = `${PODS}?watch=1&resourceVersion=1&timeoutSeconds=1`
    const [cached, direct] = await Promise.all([
      through(path, PROTOBUF),
      cluster.request(path, { headers: { accept: PROTOBUF } }),
    ])
    assert.deepEqual([cached.hit, framesOf(cached)], [false, framesOf(direct)])
  })
})

const as = (type: string, kind: string): string => `${type};as=${kind};g=meta.k8s.io;v=v1`
const ONE = 'PartialObjectMetadata'
const LIST = 'PartialObjectMetadataList'

describe('metadata alone', () => {
  test('lists and objects, in both encodings, of custom resources too', async () => {
    for (const type of [PROTOBUF, JSON_TYPE]) {
      for (const path of [IN_ODD, CONFIG_MAPS, THINGS, '/api/v1/namespaces/empty/pods', '/api/v1/nodes']) {
        await sameAsDirect(`${path}?resourceVersion=0`, as(type, LIST))
        await sameAsDirect(`${path}?resourceVersion=0&labelSelector=pick%3Dyes`, as(type, LIST))
      }
      for (const path of [`${IN_ODD}/host`, `${CONFIG_MAPS}/text`, `${THINGS}/owned`])
        await sameAsDirect(`${path}?resourceVersion=0`, as(type, ONE))
    }
  })

  test('as metadata clients ask, and what is refused or taken instead', async () => {
    const client = `${as(PROTOBUF, LIST)},${as(JSON_TYPE, LIST)},${JSON_TYPE}`
    for (const path of [IN_ODD, THINGS]) await sameAsDirect(`${path}?resourceVersion=0`, client)
    await sameAsDirect(`${IN_ODD}?resourceVersion=0`, as(JSON_TYPE, ONE), false)
    await sameAsDirect(`${IN_ODD}/host?resourceVersion=0`, as(JSON_TYPE, LIST), false)
    await sameAsDirect(`${IN_ODD}?resourceVersion=0`, `${as(PROTOBUF, 'Table')},${as(PROTOBUF, LIST)}`)
  })

  test('watches: the state first, changes, what leaves a selection', async () => {
    for (const [path, name] of [
      [IN_ODD, 'plain'],
      [THINGS, 'plain'],
    ] as const) {
      const from = (await cluster.request(path)).json().metadata.resourceVersion
      await patch(`${path}/${name}`, { metadata: { labels: { told: 'yes' } } })
      const last = await patch(`${path}/${name}`, { metadata: { labels: { told: null } } })
      for (const type of [JSON_TYPE, PROTOBUF])
        await waitFor(
          'the last of them',
          async () => (await through(`${path}?resourceVersion=${last}`, as(type, LIST))).hit,
        )
      for (const query of [
        `resourceVersion=${from}`,
        `resourceVersion=${from}&labelSelector=told%3Dyes`,
        'resourceVersion=0&sendInitialEvents=true&resourceVersionMatch=NotOlderThan',
      ]) {
        for (const type of [JSON_TYPE, PROTOBUF]) {
          const target = `${path}?watch=1&${query}&timeoutSeconds=1`
          const accept = as(type, ONE)
          const [cached, direct] = await Promise.all([
            through(target, accept),
            cluster.request(target, { headers: { accept } }),
          ])
          assert.ok(cached.hit, target)
          assert.equal(cached.headers['content-type'], direct.headers['content-type'])
          assert.ok(direct.bytes.length > 0)
          const changes = ({ bytes }: KubeResponse): readonly string[] =>
            type === PROTOBUF
              ? framesOf({ bytes })
                  .filter(isChange)
                  .map((frame) => frame.toString('latin1'))
              : String(bytes)
                  .split('\n')
                  .filter((line) => !line.startsWith('{"type":"BOOKMARK"'))
          assert.deepEqual(changes(cached), changes(direct), `${target} as ${accept}`)
        }
      }
    }
  })
})

test('long answers are compressed for clients that take gzip', async () => {
  const note = 'x'.repeat(64 * 1024)
  for (let at = 0; at < 4; at++)
    await create(CONFIG_MAPS, { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: `long-${at}` }, data: { note } })
  const from = (await cluster.request(CONFIG_MAPS)).json().metadata.resourceVersion
  const whole = `${CONFIG_MAPS}?resourceVersion=${from}`
  for (const accept of [PROTOBUF, JSON_TYPE])
    await waitFor('all of them', async () => (await through(whole, accept)).hit)
  const before = await cachedBytes('configmaps')
  for (const accept of [PROTOBUF, JSON_TYPE]) {
    for (const [path, gzip, isLong] of [
      [whole, 'gzip', true],
      [whole, 'deflate, gzip', true],
      [whole, 'gzip;q=1', false],
      [`${whole}&fieldSelector=metadata.name%3Dlong-0`, 'gzip', false],
    ] as const) {
      const headers = { accept, 'accept-encoding': gzip }
      const [cached, direct] = [await through(path, accept, { headers }), await cluster.request(path, { headers })]
      assert.ok(cached.hit)
      assert.deepEqual(
        [cached.headers['content-encoding'], direct.headers['content-encoding']],
        Array(2).fill(isLong ? 'gzip' : undefined),
      )
      assert.equal(cached.headers['vary'], direct.headers['vary'])
      const [made, told] = [cached, direct].map((answer) =>
        withoutVersion({ ...answer, bytes: isLong ? gunzipSync(answer.bytes) : answer.bytes }),
      )
      assert.deepEqual(made, told, `${path} as ${accept}`)
    }
  }
  await waitFor('room for what is compressed', async () => (await cachedBytes('configmaps')) > before)
})

test('lists that are kept compressed follow what changes', async () => {
  for (let round = 0; round < 8; round++) {
    const note = String(round).repeat(60_000 + round)
    const from = await patch(`${CONFIG_MAPS}/long-${round % 4}`, { data: { note } })
    const path = `${CONFIG_MAPS}?resourceVersion=${from}`
    for (const accept of [PROTOBUF, JSON_TYPE, PROTOBUF, JSON_TYPE]) {
      const headers = { accept, 'accept-encoding': 'gzip' }
      const [cached, direct] = [await through(path, accept, { headers }), await cluster.request(path, { headers })]
      assert.ok(cached.hit)
      const [made, told] = [cached, direct].map((answer) => ({ ...answer, bytes: gunzipSync(answer.bytes) }))
      assert.ok(made !== undefined && told !== undefined)
      assert.ok(withoutVersion(made).equals(withoutVersion(told)), `round ${round} as ${accept}`)
    }
  }
})

async function cachedBytes(resource: string): Promise<number> {
  const series = new RegExp(`^portcullis_cache_bytes\\{.*resource="${resource}"\\} (\\d+)$`, 'm')
  return Number(series.exec(await gateway.metrics())?.[1])
}

/** Open watches that the cache serves, by resource. */
async function watchers(): Promise<Readonly<Record<string, number>>> {
  const rows = (await gateway.metrics()).matchAll(/^portcullis_cache_watchers\{.*resource="([\w.]+)"\} (\d+)$/gm)
  return Object.fromEntries(Array.from(rows, ([, resource = '', count]) => [resource, Number(count)]))
}

test('the informers of a kube-scheduler are served, and it binds pods', { timeout: 240_000 }, async () => {
  for (const path of [PODS, '/api/v1/nodes']) await isCached(path, PROTOBUF)
  const kubeconfig = await kubeconfigThrough(gateway, cluster, cluster.componentUser('kube-scheduler'))
  await cluster.createNodes(1)
  // As its kubelet and the node lifecycle controller would have it.
  await patch('/api/v1/nodes/node-0', { spec: { taints: null } })
  const scheduler = await cluster.startScheduler({ kubeconfig })
  const node = await waitFor('a pod to be bound', async () => {
    return (await cluster.request(`${IN_ODD}/plain`)).json().spec.nodeName
  })
  assert.equal(node, 'node-0')
  await waitFor('its watches to be counted', async () => {
    const { pods = 0, nodes = 0 } = await watchers()
    return pods > 0 && nodes > 0
  })
  await scheduler.stop()
})
