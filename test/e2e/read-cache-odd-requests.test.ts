// Reads in every odd way that a client can write them, direct and through a gateway that has everything in its cache: the answers are the same, whichever
// of the two gives them.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { startCluster, type TestCluster } from '../harness/clusters/cluster.ts'
import type { KubeResponse } from '../harness/clusters/kube-request.ts'
import { cacheResults, grantCacheUser, through } from '../harness/clusters/read-cache.ts'
import { upstreamClusterFor } from '../harness/clusters/upstream-cluster.ts'
import { startGateway, type TestGateway } from '../harness/gateways/gateway.ts'
import { PATIENT } from '../harness/patience.ts'
import { waitFor } from '../harness/wait.ts'

const PODS = '/api/v1/pods'
const IN_A = '/api/v1/namespaces/a/pods'
const JSON_TYPE = 'application/json'
const PROTOBUF = 'application/vnd.kubernetes.protobuf'
const CACHED = [
  { version: 'v1', resource: 'pods' },
  { version: 'v1', resource: 'namespaces' },
  { version: 'v1', resource: 'nodes' },
]
const AT_ONCE = 8
/** Headers that say what the answer is. */
const HEADERS = ['content-type', 'content-encoding', 'cache-control', 'warning', 'vary', 'allow']

/** In a list in Protobuf: the first number in digits. */
const LIST_VERSION = /[^ -~]\d+[^ -~]/

interface Asked {
  readonly path: string
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
}

let cluster: TestCluster
let gateway: TestGateway
/** resourceVersion of the last write. */
let version = ''
/** resourceVersion of an earlier write. */
let older = ''

before(async () => {
  cluster = await startCluster()
  await grantCacheUser(cluster, CACHED)
  for (const name of ['a', 'b']) {
    await create('/api/v1/namespaces', { kind: 'Namespace', metadata: { name } })
    const account = { kind: 'ServiceAccount', metadata: { name: 'default', namespace: name } }
    await create(`/api/v1/namespaces/${name}/serviceaccounts`, account)
  }
  await create('/api/v1/nodes', { kind: 'Node', metadata: { name: 'n1', labels: { zone: '1' } } })
  const labels = { one: { app: 'one', count: '5' }, two: { app: 'two', 'example.com/x': '' }, in: { in: 'in' } }
  for (const [name, own] of Object.entries(labels)) older = version = await createPod('a', name, own)
  version = await createPod('b', 'one', { app: 'one', note: 'x'.repeat(60) })
  gateway = await startGateway({ clusters: [upstreamClusterFor(cluster, { spec: { cache: CACHED } })] })
  for (const accept of [JSON_TYPE, PROTOBUF]) {
    await waitFor(`all threads to have ${accept}`, async () => {
      const before = (await cacheResults(gateway, 'pods'))['hit'] ?? 0
      const asked = Array.from({ length: 12 }, () =>
        through(gateway, cluster, `${PODS}?resourceVersion=0`, { headers: { accept } }),
      )
      await Promise.all(asked)
      return ((await cacheResults(gateway, 'pods'))['hit'] ?? 0) - before === asked.length
    })
  }
}, PATIENT)
after(async () => {
  await gateway?.stop()
  await cluster?.stop()
})

async function create(path: string, object: object): Promise<string> {
  const { status, text, json } = await cluster.request(path, { method: 'POST', body: { apiVersion: 'v1', ...object } })
  assert.equal(status, 201, text)
  return json().metadata.resourceVersion
}

function createPod(namespace: string, name: string, labels: object): Promise<string> {
  const spec = { nodeName: namespace === 'a' ? 'n1' : 'n2', containers: [{ name: 'c', image: 'c' }] }
  const annotations = { note: 'n'.repeat(50_000) }
  return create(`/api/v1/namespaces/${namespace}/pods`, {
    kind: 'Pod',
    metadata: { name, namespace, labels, annotations },
    spec,
  })
}

/** resourceVersions of lists, Status and bookmarks are left out: the store goes on meanwhile. */
function seenIn({ status, headers, bytes }: KubeResponse): object {
  const text = bytes.toString('latin1')
  const isBinary = /protobuf|cbor/.test(String(headers['content-type']))
  const told = isBinary
    ? text.replace(LIST_VERSION, '')
    : text
        .replace(/("metadata": ?\{\s*)"resourceVersion": ?"\d+"/, '$1')
        .replace(/"continue": ?"[\w=-]*"/, '')
        .replace(/current: \d+/g, '')
        .replace(/^\{"type":"BOOKMARK"(?:(?!initial-events-end).)*\n/gm, '')
        // One before the cluster's own first lacks the empty parts that its kind has.
        .replace(/("type":"BOOKMARK".*?),"spec":.*$/gm, '$1}}')
        .replace(/("type":"BOOKMARK".*?"resourceVersion":)"\d+"/g, '$1')
        // AGE.
        .replace(/"\d+m?\d*s"/g, '""')
  const shown = headers['content-encoding'] === undefined ? told : `${bytes.length > 0} compressed`
  return { status, shown, ...Object.fromEntries(HEADERS.map((name) => [name, headers[name]])) }
}

/** @returns what is not the same */
async function differences(all: readonly Asked[]): Promise<readonly object[]> {
  const rest = all.values()
  const found: object[] = []
  const compare = async (): Promise<void> => {
    for (const { path, ...options } of rest) {
      const [answer, direct] = await Promise.all([
        through(gateway, cluster, path, options),
        cluster.request(path, options),
      ])
      const [seen, expected] = [JSON.stringify(seenIn(answer)), JSON.stringify(seenIn(direct))]
      if (seen === expected) continue
      let at = 0
      while (seen[at] === expected[at]) at++
      const around = [seen, expected].map((text) => text.slice(Math.max(0, at - 100), at + 200))
      found.push({ path, ...options, around })
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, compare))
  return found
}

async function areSame(all: readonly Asked[], leastHits: number): Promise<void> {
  const before = (await cacheResults(gateway))['hit'] ?? 0
  assert.deepEqual(await differences(all), [])
  const hits = ((await cacheResults(gateway))['hit'] ?? 0) - before
  assert.ok(hits >= leastHits, `${hits} of ${all.length} were answered from the cache`)
}

const listed = (texts: string): readonly string[] => texts.split('|')

const queries = (...texts: readonly string[]): Asked[] => texts.map((text) => ({ path: `${PODS}?${text}` }))

function combined(...sets: readonly (readonly string[])[]): string[] {
  return sets.reduce<string[]>(
    (before, set) => before.flatMap((text) => set.map((one) => [text, one].filter(Boolean).join('&'))),
    [''],
  )
}

test('versions, how they are to match, limits and continue, in all combinations', PATIENT, async () => {
  const page = (await cluster.request(`${PODS}?limit=1`)).json().metadata.continue
  const future = `resourceVersion=${Number(version) + 100_000}`
  const texts = combined(
    ['', 'resourceVersion=', 'resourceVersion=0', `resourceVersion=${version}`, `resourceVersion=${older}`],
    ['', 'resourceVersionMatch=', 'resourceVersionMatch=NotOlderThan', 'resourceVersionMatch=Exact'],
    ['', 'limit=0', 'limit=1', 'limit=500'],
    ['', 'continue=', `continue=${encodeURIComponent(page)}`],
  )
  const odd = combined(
    ['00', '01', '-1', '%2B1', '0x1', '1e3', '%200', '0%20', 'abc', '18446744073709551615', '18446744073709551616'].map(
      (text) => `resourceVersion=${text}`,
    ),
    ['', 'resourceVersionMatch=NotOlderThan', 'limit=1'],
  )
  const others = [
    ...['limit=-1', 'limit=01', 'limit=%2B1', 'limit=abc', 'limit=1.5', 'limit=', 'limit=99999999999', 'limit=1e1'],
    ...['resourceVersionMatch=notolderthan', 'resourceVersionMatch=Other', 'continue=abc', 'continue=%00'],
    ...['timeoutSeconds=0', 'timeoutSeconds=-1', 'timeoutSeconds=abc', 'timeoutSeconds=99999999999', 'timeout=10s'],
    ...listed('timeout=|timeout=0|timeout=0s|timeout=-1s|timeout=10|timeout=abc|timeout=1h30m|timeout=5m5m'),
    ...['timeout=10.5s', 'timeout=.5h', 'timeout=9999h', 'timeout=10s&timeoutSeconds=1', 'timeout=30%20s'],
  ].map((text) => `resourceVersion=0&${text}`)
  await areSame(queries(...texts, ...odd, ...others, future, `${future}&resourceVersionMatch=NotOlderThan`), 25)
})

test('selectors with odd spaces, quotes and escapes', PATIENT, async () => {
  const labels = [
    ...listed('app=one|app==one| app = one |app=one,|,app=one|app=one,app=two|app in(one,two)|app  in ( one , two )'),
    ...listed('app in (one,,two)|app in (one,)|app in ()|app in|app notin (one)|app notin ()|!app|! app|!!app'),
    ...listed('app|app,count|app,!count|app=|app!=|app!=one|app! =one|app=!one|app>1|count>4|count<6'),
    ...['count>04', 'count>-1', 'count > 4', 'count gt 4', 'count>4.5', 'count>=4', 'count>99999999999999999999'],
    ...['in', 'in in (in)', 'in=in', 'notin', 'notin notin (notin)', "app='one'", 'app="one"', 'APP=one', 'app=ONE'],
    ...listed('example.com/x|example.com/x=|example.com/=x|/x|a/b/c|app\t=\tone|app\n=one|app\r=one|app\u00a0=one'),
    ...listed(
      `app=ü|ü=one|app=${'x'.repeat(63)}|app=${'x'.repeat(64)}|${'x'.repeat(64)}=y|app=one;count=5|app=one&count=5`,
    ),
    ...listed('app in (one two)|app in ((one))|(app)|app=(one)|app = one,two|app=-one|app=one-|*|app=*| |,'),
  ].map((text) => `labelSelector=${encodeURIComponent(text)}`)
  const fields = [
    ...listed(
      'metadata.name=one|metadata.name==one| metadata.name = one |metadata.name =one|metadata.name= one|metadata.name!=one',
    ),
    ...listed(
      'metadata.name=one,|,metadata.name=one|metadata.name=one,,spec.nodeName=n1|metadata.name=|metadata.name|=one|!=',
    ),
    ...listed(
      'metadata.name=one,metadata.name=two|metadata.name=one,metadata.name!=two|metadata.name=a/b|metadata.name=..',
    ),
    ...listed('metadata.name=%'),
    ...listed(
      'metadata.name=ONE|metadata.Name=one|metadata.namespace=a|metadata.namespace=a,metadata.name=one|metadata.namespace!=a',
    ),
    ...listed(
      'spec.nodeName=n1|spec.nodeName=n1,spec.nodeName=n2|spec.nodeName=n1\\,n2|spec.nodeName=n\\1|spec.nodeName=n1\\',
    ),
    ...listed('spec.nodeName\\=n1'),
    ...listed(
      'spec.host=n1|status.podIPs=|status.podIP=|status.phase=pending|status.phase=Pending|spec.hostNetwork=False',
    ),
    ...listed(
      'spec.hostNetwork=false|spec.hostNetwork=|spec.foo=x|metadata.labels=x|metadata.uid=x|spec.nodeName=n1=n2',
    ),
    ...listed('spec.nodeName!=n1!=n2'),
    ...['spec.nodeName===n1', ' ', ',', '*', 'spec.nodeName=*', 'spec.nodeName in (n1)'],
  ].map((text) => `fieldSelector=${encodeURIComponent(text)}`)
  const all = [...labels, ...fields].flatMap((text) =>
    [PODS, IN_A].map((path) => ({ path: `${path}?resourceVersion=0&${text}` })),
  )
  const more = [
    ...[
      'labelSelector=app+in+(one)',
      'labelSelector=app%20in%20(one)',
      'labelSelector=app in (one)'.replaceAll(' ', '%20'),
      'labelSelector=%zz',
    ],
    ...listed(
      'labelSelector|labelSelector=|fieldSelector|labelSelector=app=one|labelSelector=app%3Done&labelSelector=app%3Dtwo',
    ),
    ...listed('fieldSelector=metadata.name=one&fieldSelector=metadata.name=two|labelSelector=&labelSelector=app%3Dtwo'),
    ...listed('label%53elector=app%3Done'),
    ...['labelselector=app%3Done', 'labelSelector=app%00', 'labelSelector=app%3Done%26x', 'labelSelector=app;x=y'],
  ].map((text) => `resourceVersion=0&${text}`)
  await areSame([...all, ...queries(...more)], 60)
})

test('parameters that are doubled, encoded, unknown or malformed; odd paths and methods', PATIENT, async () => {
  const texts = [
    ...listed(
      'resourceVersion=0&resourceVersion=5|resourceVersion=5&resourceVersion=0|resourceVersion=0&&|&resourceVersion=0|=|&',
    ),
    ...listed('resourceVersion'),
    ...listed(
      'resource%56ersion=0|resourceVersion=%30|ResourceVersion=0|resourceVersion=0&pretty=1|resourceVersion=0&pretty',
    ),
    ...listed('resourceVersion=0&pretty=false'),
    ...listed('resourceVersion=0&unknown=1|resourceVersion=0&dryRun=All|resourceVersion=0&exact=true'),
    ...listed('resourceVersion=0&sendInitialEvents=true'),
    ...listed('resourceVersion=0&sendInitialEvents=false|resourceVersion=0&allowWatchBookmarks=true'),
    ...listed('resourceVersion=0&allowWatchBookmarks=x|resourceVersion=0&shardSelector=x'),
    ...listed('resourceVersion=0&watch=false|resourceVersion=0&watch=0|resourceVersion=0&includeObject=None'),
    ...listed('resourceVersion=0&kind=Pod&apiVersion=v1'),
    ...listed(
      'resourceVersion=0;limit=1|resourceVersion=0?|resourceVersion=0%26limit=1|%|resourceVersion=%|resourceVersion=0&%zz=1',
    ),
  ]
  const paths = [
    ...listed(`${PODS}/?resourceVersion=0|/api/v1//pods?resourceVersion=0|//api/v1/pods?resourceVersion=0`),
    ...listed('/api/v1/%70ods?resourceVersion=0'),
    ...listed(
      '/api/v1/Pods?resourceVersion=0|/api/v1/pod?resourceVersion=0|/api/v1/namespaces//pods?resourceVersion=0',
    ),
    ...listed(`${IN_A}/one?resourceVersion=0`),
    ...listed(`${IN_A}/one/?resourceVersion=0|${IN_A}/%6fne?resourceVersion=0|${IN_A}/one%2f?resourceVersion=0`),
    ...listed(`${IN_A}/one/status?resourceVersion=0|${IN_A}/none?resourceVersion=0`),
    ...listed(`${IN_A}/one?resourceVersion=|${IN_A}/one?resourceVersion=${version}|${IN_A}/one?resourceVersion=abc`),
    ...listed(`${IN_A}/one?resourceVersion=0&labelSelector=x`),
    ...listed(`${IN_A}/one?resourceVersion=0&resourceVersionMatch=Exact|${IN_A}/one?resourceVersion=0&limit=1`),
    ...listed(`${IN_A}/one?resourceVersion=0&timeout=1s|${IN_A}/one?resourceVersion=0&timeout=x`),
    ...listed('/api/v1/namespaces/none/pods?resourceVersion=0|/api/v1/namespaces/A/pods?resourceVersion=0'),
    ...listed('/api/v1/namespaces/a%2Fb/pods?resourceVersion=0|/api/v1/namespaces/../pods?resourceVersion=0'),
    ...listed(
      '/api/v1/namespaces?resourceVersion=0|/api/v1/namespaces/a?resourceVersion=0|/api/v1/namespaces/none?resourceVersion=0',
    ),
    ...listed('/api/v1/namespaces/a/status?resourceVersion=0'),
    ...listed('/api/v1/namespaces?resourceVersion=0&fieldSelector=metadata.name%3Da'),
    ...listed('/api/v1/namespaces?resourceVersion=0&fieldSelector=status.phase%3DActive'),
    ...listed('/api/v1/namespaces/a/namespaces?resourceVersion=0|/api/v1/namespaces/a/nodes?resourceVersion=0'),
    ...listed('/api/v1/nodes?resourceVersion=0|/api/v1/nodes/n1?resourceVersion=0'),
    ...listed('/api/v1/nodes?resourceVersion=0&fieldSelector=metadata.namespace%3Da'),
    ...listed(
      '/api/v1/nodes?resourceVersion=0&fieldSelector=metadata.namespace%3D|/api/v1/nodes/n1/status?resourceVersion=0',
    ),
    ...listed('/apis/v1/pods?resourceVersion=0|/apis//v1/pods?resourceVersion=0|/api/v1beta1/pods?resourceVersion=0'),
    ...listed('/api/v1/pods/one?resourceVersion=0'),
  ].map((path) => ({ path }))
  const methods = ['HEAD', 'OPTIONS', 'head', 'PROPFIND'].flatMap((method) =>
    [`${PODS}?resourceVersion=0`, `${IN_A}/one?resourceVersion=0`].map((path) => ({ path, method })),
  )
  await areSame([...queries(...texts), ...paths, ...methods], 15)
})

test(
  'what may be accepted: encodings, metadata, tables, weights, compression, and clients for people',
  PATIENT,
  async () => {
    const as = (kind: string, version = 'v1', group = 'meta.k8s.io'): string => `as=${kind};g=${group};v=${version}`
    const accepts = [
      ...[
        '',
        '*/*',
        '*',
        'application/*',
        JSON_TYPE,
        'application/yaml',
        PROTOBUF,
        'application/cbor',
        'text/plain',
        'APPLICATION/JSON',
        'application/json;',
      ],
      ...listed(
        `${JSON_TYPE};q=0.5,${PROTOBUF}|${JSON_TYPE};q=1,${PROTOBUF};q=0.1|${PROTOBUF};q=0.1,${JSON_TYPE};q=0.9`,
      ),
      ...listed(`${PROTOBUF};q=0,${JSON_TYPE}|${JSON_TYPE};q=0`),
      ...listed(
        `${PROTOBUF},${JSON_TYPE}|${PROTOBUF}, */*|${JSON_TYPE};q=abc|${JSON_TYPE};q=2|${JSON_TYPE} ; q=0.1 , ${PROTOBUF}`,
      ),
      ...listed(`${JSON_TYPE};charset=utf-8`),
      ...[
        as('PartialObjectMetadataList'),
        as('PartialObjectMetadata'),
        as('Table'),
        as('Table', 'v1beta1'),
        as('PartialObjectMetadataList', 'v1beta1'),
      ].flatMap((how) => [
        ...listed(`${JSON_TYPE};${how}|${PROTOBUF};${how}|${PROTOBUF};${how},${JSON_TYPE};${how},${JSON_TYPE}`),
        ...listed(`${JSON_TYPE};${how},${JSON_TYPE}`),
      ]),
      ...listed(
        `${JSON_TYPE};${as('Table', 'v1', 'other')}|${JSON_TYPE};as=Table|${JSON_TYPE};as=Other;g=meta.k8s.io;v=v1,${JSON_TYPE}`,
      ),
      ...listed(`${JSON_TYPE};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1;q=0.1,${PROTOBUF}`),
      ...listed(
        `${JSON_TYPE};stream=watch|${PROTOBUF};stream=watch|${JSON_TYPE};sv=v1|${JSON_TYPE};sv=v2|${JSON_TYPE};pretty=1`,
      ),
      ...listed(`${JSON_TYPE};pretty=0`),
    ]
    const targets = [
      ...listed(
        `${PODS}?resourceVersion=0|${IN_A}?resourceVersion=0&fieldSelector=spec.nodeName%3Dn1|${IN_A}/one?resourceVersion=0`,
      ),
      ...listed(`${PODS}?resourceVersion=0&fieldSelector=metadata.name%3Dnone`),
    ]
    const all = accepts.flatMap((accept) => targets.map((path) => ({ path, headers: { accept } })))
    const compressed = listed(
      'gzip|gzip;q=0|gzip;q=1|GZIP|*|deflate|identity|br, gzip| gzip |gzip,gzip|gzip;|x-gzip',
    ).flatMap((encoding) =>
      [JSON_TYPE, PROTOBUF, `${JSON_TYPE};${as('Table')}`, `${JSON_TYPE};${as('PartialObjectMetadataList')}`].flatMap(
        (accept) => targets.map((path) => ({ path, headers: { accept, 'accept-encoding': encoding } })),
      ),
    )
    const agents = ['curl/8', 'Wget/1', 'Mozilla/5.0 (X11)', 'mozilla', 'Go-http-client/2.0', ' curl'].flatMap(
      (agent) =>
        [JSON_TYPE, '*/*', PROTOBUF].map((accept) => ({
          path: `${PODS}?resourceVersion=0`,
          headers: { accept, 'user-agent': agent },
        })),
    )
    await areSame([...all, ...compressed, ...agents], 100)
  },
)

test('watches: versions, the state first, bookmarks and timeouts, in all combinations', PATIENT, async () => {
  const from = combined(
    ['watch=1&timeoutSeconds=1'],
    ['', 'resourceVersion=', 'resourceVersion=0', `resourceVersion=${older}`, `resourceVersion=${version}`],
    ['', 'allowWatchBookmarks=true', 'allowWatchBookmarks=false', 'allowWatchBookmarks='],
    ['', 'sendInitialEvents=true', 'sendInitialEvents=false', 'sendInitialEvents='],
    ['', 'resourceVersionMatch=NotOlderThan', 'resourceVersionMatch=Exact'],
  )
  const begun = `resourceVersion=${older}`
  const texts = [
    ...['watch=true', 'watch=', 'watch', 'watch=True', 'watch=no', 'watch=FALSE'].map(
      (text) => `${text}&timeoutSeconds=1&${begun}`,
    ),
    ...listed(
      'limit=1|continue=abc|timeout=1s|timeout=x|labelSelector=app%3Done|labelSelector=a%20b|fieldSelector=spec.nodeName%3Dn2',
    ),
    ...listed('fieldSelector=spec.x%3Dy').map((text) => `watch=1&timeoutSeconds=1&${begun}&${text}`),
    ...['timeoutSeconds=abc', 'timeoutSeconds=1&timeoutSeconds=2', 'timeoutSeconds=1.5'].map(
      (text) => `watch=1&${begun}&${text}`,
    ),
    ...['abc', '-1', '01', '1'].map((text) => `watch=1&timeoutSeconds=1&resourceVersion=${text}`),
  ]
  const paths = [
    ...listed(`${IN_A}/one?watch=1&timeoutSeconds=1&${begun}|/api/v1/watch/pods?timeoutSeconds=1&${begun}`),
    ...listed(`/api/v1/watch/namespaces/a/pods/one?timeoutSeconds=1&${begun}`),
    ...listed(`${IN_A}?watch=1&timeoutSeconds=1&${begun}&fieldSelector=metadata.name%3Dtwo`),
    ...listed('/api/v1/namespaces/none/pods?watch=1&timeoutSeconds=1&resourceVersion=0'),
  ].map((path) => ({ path }))
  const forms = [
    ...[
      PROTOBUF,
      `${PROTOBUF};stream=watch`,
      `${PROTOBUF};stream=watch,${JSON_TYPE}`,
      `${JSON_TYPE};stream=watch`,
      `${JSON_TYPE};as=PartialObjectMetadata;g=meta.k8s.io;v=v1`,
    ],
    ...listed(`${JSON_TYPE};as=Table;g=meta.k8s.io;v=v1|${PROTOBUF};as=PartialObjectMetadata;g=meta.k8s.io;v=v1`),
    ...listed(`${JSON_TYPE};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1|application/yaml|text/plain`),
  ].map((accept) => ({
    path: `${PODS}?watch=1&timeoutSeconds=1&${begun}`,
    headers: { accept, 'accept-encoding': 'gzip' },
  }))
  await areSame([...queries(...from, ...texts), ...paths, ...forms], 15)
})
