// Records how a real kube-apiserver answers reads, byte by byte: `node test/cache/record-answers.ts` writes test/data/read-answers.json again.
// The tests of the read cache compare what it splices with these answers, without a cluster.

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { startCluster, type TestCluster } from '../harness/clusters/cluster.ts'
import type { KubeResponse } from '../harness/clusters/kube-request.ts'
import { BEFORE, EMPTY, NUMBERS, OBJECTS, ODD, type OddObject, THINGS } from './odd-objects.ts'
import type { ReadAnswers, RecordedAnswer, RecordedSelector } from './read-answers.ts'
import { SELECTORS } from './selectors.ts'

const FILE = join(import.meta.dirname, '../data/read-answers.json')

const JSON_TYPE = 'application/json'
const PROTOBUF_TYPE = 'application/vnd.kubernetes.protobuf'
const PARTIAL = 'as=PartialObjectMetadata;g=meta.k8s.io;v=v1'
const PARTIAL_LIST = 'as=PartialObjectMetadataList;g=meta.k8s.io;v=v1'

const LISTS: readonly string[] = [
  '/api/v1/pods',
  '/api/v1/configmaps',
  '/api/v1/secrets',
  '/api/v1/services',
  '/api/v1/nodes',
  '/api/v1/namespaces',
  '/api/v1/replicationcontrollers',
  '/api/v1/events',
  '/apis/events.k8s.io/v1/events',
  '/apis/batch/v1/jobs',
  '/apis/apps/v1/deployments',
  '/apis/resource.k8s.io/v1/resourceslices',
  '/apis/example.com/v1/things',
  `/api/v1/namespaces/${EMPTY}/pods`,
  `/api/v1/namespaces/${EMPTY}/configmaps`,
  `/apis/apps/v1/namespaces/${EMPTY}/deployments`,
  `/apis/example.com/v1/namespaces/${EMPTY}/things`,
  // From the cache of the API server, and with a selector.
  '/api/v1/pods?resourceVersion=0',
  '/api/v1/pods?labelSelector=pick%3Dyes&resourceVersion=0',
  '/api/v1/pods?labelSelector=pick%3Dnone',
  '/apis/example.com/v1/things?resourceVersion=0',
  '/apis/example.com/v1/things?labelSelector=pick%3Dyes',
  '/apis/example.com/v1/things?labelSelector=pick%3Dnone&resourceVersion=0',
  `/api/v1/namespaces/${EMPTY}/pods?resourceVersion=0`,
  `/apis/example.com/v1/namespaces/${EMPTY}/things?resourceVersion=0`,
  '/api/v1/pods?limit=1',
  '/apis/example.com/v1/things?limit=1',
]
const OBJECT_PATHS: readonly string[] = [`/api/v1/namespaces/${ODD}/pods/host`, `${THINGS}/owned`]
const WATCHED: readonly string[] = [
  '/api/v1/pods',
  `/api/v1/namespaces/${ODD}/configmaps`,
  '/apis/example.com/v1/things',
]
/** Long enough for the writes; a bookmark comes two seconds before the end. */
const WATCH_SECONDS = 8

const cluster = await startCluster({ name: 'reads' })
try {
  for (const object of BEFORE) await create(cluster, object)
  await cluster.kubectl(['wait', '--for=condition=Established', 'crd/things.example.com', '--timeout=60s'])
  await cluster.createNodes(1)
  for (const object of OBJECTS) await create(cluster, object)
  await ok(cluster.request(THINGS, { method: 'POST', raw: NUMBERS }))

  const lists: RecordedAnswer[] = []
  for (const path of LISTS) for (const accept of typesOf(path, PARTIAL_LIST)) lists.push(await read(path, accept))
  const objects: RecordedAnswer[] = []
  for (const path of OBJECT_PATHS) for (const accept of typesOf(path, PARTIAL)) objects.push(await read(path, accept))
  const selectors: RecordedSelector[] = []
  for (const [path, selector] of SELECTORS) selectors.push(await select(path, selector))

  const watches = WATCHED.flatMap((path) =>
    typesOf(path, PARTIAL).flatMap((accept) => ['', 'pick=yes'].map((selector) => watch(path, accept, selector))),
  )
  await new Promise((resolve) => setTimeout(resolve, 1500))
  await change()
  const answers: ReadAnswers = { lists, objects, selectors, watches: await Promise.all(watches) }
  writeFileSync(FILE, `${JSON.stringify(answers, undefined, 1)}\n`)
} finally {
  await cluster.stop()
}

async function ok(answer: Promise<KubeResponse>): Promise<KubeResponse> {
  const { status, text } = await answer
  if (status >= 300) throw new Error(`${status}: ${text}`)
  return answer
}

async function create(target: TestCluster, { path, object, status }: OddObject): Promise<void> {
  const created = await ok(target.request(path, { method: 'POST', body: object }))
  if (status !== undefined) await patch(`${path}/${created.json().metadata.name}/status`, { status })
}

async function patch(path: string, body: object): Promise<void> {
  await ok(
    cluster.request(path, { method: 'PATCH', body, headers: { 'content-type': 'application/merge-patch+json' } }),
  )
}

/** Custom resources have no Protobuf but that of their metadata. */
function typesOf(path: string, partial: string): string[] {
  const custom = path.startsWith('/apis/example.com/')
  return [JSON_TYPE, ...(custom ? [] : [PROTOBUF_TYPE]), `${JSON_TYPE};${partial}`, `${PROTOBUF_TYPE};${partial}`]
}

async function read(path: string, accept: string): Promise<RecordedAnswer> {
  return recorded(path, accept, await ok(cluster.request(path, { headers: { accept } })))
}

async function watch(path: string, accept: string, labelSelector: string): Promise<RecordedAnswer> {
  const query = new URLSearchParams({
    watch: '1',
    sendInitialEvents: 'true',
    resourceVersionMatch: 'NotOlderThan',
    allowWatchBookmarks: 'true',
    timeoutSeconds: String(WATCH_SECONDS),
    ...(labelSelector !== '' && { labelSelector }),
  })
  const target = `${path}?${query}`
  const streamed = accept.startsWith(PROTOBUF_TYPE) ? `${accept};stream=watch` : accept
  return recorded(target, streamed, await ok(cluster.request(target, { headers: { accept: streamed } })))
}

function recorded(path: string, accept: string, { headers, bytes, text }: KubeResponse): RecordedAnswer {
  const type = String(headers['content-type'])
  return accept.startsWith(JSON_TYPE)
    ? { path, accept, type, text }
    : { path, accept, type, base64: bytes.toString('base64') }
}

async function select(path: string, selector: string): Promise<RecordedSelector> {
  const answer = await cluster.request(`${path}?fieldSelector=${encodeURIComponent(selector)}`)
  if (answer.status !== 200) return { path, selector, status: answer.status, message: answer.json().message }
  const items: { metadata: { namespace?: string; name: string } }[] = answer.json().items
  const keys = items.map(({ metadata: { namespace, name } }) =>
    namespace === undefined ? name : `${namespace}/${name}`,
  )
  return { path, selector, status: 200, keys }
}

/** What the watches see. */
async function change(): Promise<void> {
  const pods = `/api/v1/namespaces/${ODD}/pods`
  const configMaps = `/api/v1/namespaces/${ODD}/configmaps`
  await patch(`${configMaps}/text`, { metadata: { labels: { pick: 'yes' } } })
  await patch(`${pods}/plain`, { metadata: { annotations: { a: '<b>' } } })
  await patch(`${pods}/plain`, { metadata: { labels: { pick: 'no' } } })
  await patch(`${THINGS}/plain`, { metadata: { labels: { pick: 'no' } } })
  await patch(`${THINGS}/owned`, { spec: { a: 1.25 } })
  await patch(`${configMaps}/text`, { metadata: { labels: { pick: null } } })
  await ok(cluster.request(`${pods}/plain`, { method: 'DELETE', body: { gracePeriodSeconds: 0 } }))
  await ok(cluster.request(`${pods}/host`, { method: 'DELETE', body: { gracePeriodSeconds: 0 } }))
  await ok(cluster.request(`${THINGS}/owned`, { method: 'DELETE' }))
  await ok(cluster.request(`${THINGS}/numbers`, { method: 'DELETE' }))
}
