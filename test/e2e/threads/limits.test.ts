// Limits, exact to one request under concurrency, and how kubectl takes them: the two-user example, 300 slow lists, watches.

import assert from 'node:assert/strict'
import { type ClientHttp2Session, type ClientHttp2Stream, constants } from 'node:http2'
import { after, afterEach, before, describe, test } from 'node:test'
import type {
  DispatchPolicy,
  FlowControlSchema,
  UpstreamClusterSpec,
} from '../../../src/gateway/api/upstream-cluster/upstream-cluster.ts'
import type { KeyPair } from '../../../src/pki/io/pki.ts'
import { h2Connect, h2Open, h2Request, type Response, valuesOf } from '../../harness/clients/h2-client.ts'
import { startCluster, type TestCluster } from '../../harness/clusters/cluster.ts'
import { hostOf, kubeconfigThrough, upstreamClusterFor } from '../../harness/clusters/upstream-cluster.ts'
import { startGateway, type TestGateway } from '../../harness/gateways/gateway.ts'
import { type RunningKubectl, startKubectl } from '../../harness/kubectl/kubectl.ts'
import { waitFor } from '../../harness/wait.ts'

const PODS = '/api/v1/pods'
const EVENTS = '/api/v1/events'
const CONFIGMAPS = '/api/v1/namespaces/default/configmaps'
const ENDPOINTS = '/api/v1/namespaces/default/endpoints'
const SECRETS = '/api/v1/namespaces/default/secrets'
const SERVICES = '/api/v1/namespaces/default/services'
const BURST = 10
const MAX_IN_FLIGHT = 20
const SLOW_LISTS = 300
const LISTS_A_SESSION = 50
const MAX_WATCHES = 5
/** client-go sends a request again this often when it is told to (rest/with_retry.go). */
const CLIENT_GO_RETRIES = 10

let cluster: TestCluster
let gateway: TestGateway
let users: Record<'alice' | 'bob' | 'controller', KeyPair>
const sessions: ClientHttp2Session[] = []

function schemas(change: Partial<FlowControlSchema> = {}): FlowControlSchema[] {
  return [
    { name: 'few-lists', tokenBucket: { qps: 1, burst: BURST } },
    { name: 'own-lists', tokenBucket: { qps: 1, burst: BURST }, perUser: true },
    { name: 'slow-lists', maxRequestsInflight: { max: MAX_IN_FLIGHT }, ...change },
    { name: 'one-at-once', maxRequestsInflight: { max: 1 } },
    { name: 'few-watches', exempt: {}, maxWatches: MAX_WATCHES },
    { name: 'unlimited', exempt: {} },
  ]
}

function policy(flowControlSchemaName: string, rule: object): DispatchPolicy {
  return { flowControlSchemaName, rules: [{ verbs: ['*'], apiGroups: ['*'], resources: ['*'], ...rule }] }
}

const POLICIES: readonly DispatchPolicy[] = [
  policy('unlimited', { users: ['system:kube-controller-manager'] }),
  policy('few-lists', { verbs: ['list'], resources: ['pods', 'events'] }),
  policy('own-lists', { verbs: ['list'], resources: ['services'] }),
  policy('slow-lists', { verbs: ['list'], resources: ['configmaps'] }),
  policy('one-at-once', { verbs: ['watch'], resources: ['secrets'] }),
  policy('few-watches', { verbs: ['watch'], resources: ['endpoints'] }),
  policy('unlimited', {}),
  { rules: [{ verbs: ['*'], nonResourceURLs: ['*'] }] },
]

function configure(
  change: Partial<FlowControlSchema> = {},
  more: Partial<UpstreamClusterSpec> = {},
): ReturnType<typeof upstreamClusterFor> {
  const spec = {
    ...more,
    flowControl: { flowControlSchemas: schemas(change) },
    dispatchPolicies: POLICIES,
  }
  return upstreamClusterFor(cluster, { spec })
}

before(async () => {
  cluster = await startCluster({ apiservers: 2 })
  gateway = await startGateway({ clusters: [configure()] })
  const masters = ['system:masters']
  users = {
    alice: cluster.clientCertificate('alice', masters),
    bob: cluster.clientCertificate('bob', masters),
    controller: cluster.clientCertificate('system:kube-controller-manager'),
  }
  // 4 MB in one list: more than all buffers on the way take, so that a client that does not read keeps its list running.
  const data = { text: 'x'.repeat(400_000) }
  for (let i = 0; i < 10; i++) {
    const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: `large-${i}` }, data }
    assert.equal((await cluster.request(CONFIGMAPS, { method: 'POST', body })).status, 201)
  }
})
afterEach(() => {
  for (const session of sessions.splice(0)) session.destroy()
})
after(async () => {
  await gateway?.stop()
  await cluster?.stop()
})

function connect(user: KeyPair, streamWindow?: number): ClientHttp2Session {
  const window = streamWindow === undefined ? {} : { streamWindow }
  const serverName = hostOf(cluster.name)
  const session = h2Connect({ port: gateway.port, serverName, certificate: user, ...window })
  sessions.push(session)
  return session
}

function target(path: string): string[] {
  return [':path', path, ':authority', hostOf(cluster.name)]
}

function count(answers: readonly { status: number }[], status: number): number {
  return answers.filter((answer) => answer.status === status).length
}

/** Sends `total` requests at once and waits for all answers. */
function burst(user: KeyPair, path: string, total: number): Promise<Response[]> {
  const session = connect(user)
  return Promise.all(Array.from({ length: total }, () => h2Request(session, target(path))))
}

/** The status of a request whose body is not read. */
function opened(stream: ClientHttp2Stream): Promise<number> {
  return new Promise((resolve) => {
    stream.once('response', (headers) => resolve(Number(headers[':status'])))
    stream.once('close', () => resolve(0))
  })
}

interface SlowList {
  readonly stream: ClientHttp2Stream
  readonly status: number
}

/** Lists at once whose answers are not read. */
async function slowLists(total: number): Promise<SlowList[]> {
  const lists: Promise<SlowList>[] = []
  for (let i = 0; i < total; i += LISTS_A_SESSION) {
    const session = connect(users.alice, 65_535)
    for (let j = 0; j < Math.min(LISTS_A_SESSION, total - i); j++) {
      const stream = h2Open(session, target(CONFIGMAPS))
      lists.push(opened(stream).then((status) => ({ stream, status })))
    }
  }
  return Promise.all(lists)
}

/** What the gateway itself counts. */
async function inFlight(schema: string): Promise<number> {
  const lines = (await gateway.metrics()).split('\n')
  const line = lines.find((one) => one.startsWith('portcullis_flow_control_inflight') && one.includes(`"${schema}"`))
  return line === undefined ? 0 : Number(line.slice(line.lastIndexOf(' ') + 1))
}

describe('limits', () => {
  test('pods listed by ordinary users are limited; the controller manager is exempt', async () => {
    const started = performance.now()
    const [alice, bob, controller] = await Promise.all([
      burst(users.alice, PODS, 60),
      burst(users.bob, PODS, 60),
      burst(users.controller, PODS, 200),
    ])
    const refilled = Math.ceil((performance.now() - started) / 1000)
    assert.equal(count(controller, 200), 200)
    const ordinary = [...alice, ...bob]
    const admitted = count(ordinary, 200)
    assert.equal(count(ordinary, 429), ordinary.length - admitted)
    assert.ok(admitted >= BURST && admitted <= BURST + refilled, `${admitted} admitted, ${refilled} s`)
    const refused = ordinary.find(({ status }) => status === 429)
    assert.ok(refused)
    assert.match(valuesOf(refused.head, 'retry-after')[0] ?? '', /^[1-9]\d*$/)
    const status = JSON.parse(refused.body.toString())
    assert.deepEqual([status.kind, status.reason, status.code], ['Status', 'TooManyRequests', 429])
    assert.match(status.message, /few-lists/)
    assert.equal(
      count(await burst(users.alice, `${CONFIGMAPS}/large-1`, 30), 200),
      30,
      'other requests are not limited',
    )
    const [events] = await burst(users.alice, EVENTS, 1)
    if (events?.status === 429) assert.deepEqual(valuesOf(events.head, 'retry-after'), [])
  })

  test('perUser: everybody has a limit of their own', async () => {
    const started = performance.now()
    const answers = await Promise.all([burst(users.alice, SERVICES, 50), burst(users.bob, SERVICES, 50)])
    const refilled = Math.ceil((performance.now() - started) / 1000)
    for (const own of answers) {
      const admitted = count(own, 200)
      assert.ok(admitted >= BURST && admitted <= BURST + refilled, `${admitted} admitted, ${refilled} s`)
    }
  })

  test(`of ${SLOW_LISTS} slow lists exactly ${MAX_IN_FLIGHT} run at once, and every slot comes back`, async () => {
    const lists = await slowLists(SLOW_LISTS)
    const running = lists.filter(({ status }) => status === 200)
    assert.deepEqual([running.length, count(lists, 429)], [MAX_IN_FLIGHT, SLOW_LISTS - MAX_IN_FLIGHT])
    assert.equal(await inFlight('slow-lists'), MAX_IN_FLIGHT)
    assert.equal(count(await slowLists(30), 429), 30, 'no slot is free')

    // Half of them are read to their end, half of them are broken off.
    const ends = running.map(({ stream }, i) => {
      const closed = new Promise((resolve) => stream.once('close', resolve))
      if (i % 2 === 0) stream.resume()
      else stream.destroy()
      return closed
    })
    await Promise.all(ends)
    await waitFor('the slots', async () => (await inFlight('slow-lists')) === 0)
    assert.equal(count(await slowLists(SLOW_LISTS), 200), MAX_IN_FLIGHT)
  })

  test('a raised limit counts those that run already', async () => {
    await waitFor('the slots', async () => (await inFlight('slow-lists')) === 0)
    assert.equal(count(await slowLists(100), 200), MAX_IN_FLIGHT)
    gateway.write(configure({ maxRequestsInflight: { max: MAX_IN_FLIGHT + 7 } }))
    const more: SlowList[] = []
    await waitFor('the new limit', async () => {
      more.push(...(await slowLists(1)))
      return count(more, 200) > 0
    })
    more.push(...(await slowLists(50)))
    assert.equal(count(more, 200), 7)
    gateway.write(configure())
  })

  test('a watch holds its slot only until it has begun; maxWatches holds for as long as it runs', async () => {
    const session = connect(users.alice)
    for (let i = 0; i < 10; i++) {
      assert.equal(await opened(h2Open(session, target(`${SECRETS}?watch=1`))), 200)
    }
    const streams = Array.from({ length: 12 }, () => h2Open(session, target(`${ENDPOINTS}?watch=1`)))
    const statuses = await Promise.all(streams.map(opened))
    assert.equal(statuses.filter((status) => status === 200).length, MAX_WATCHES)
    assert.equal(statuses.filter((status) => status === 429).length, 12 - MAX_WATCHES)
    const place = (): Promise<true> =>
      waitFor('a watch to open in its place', async () => {
        const stream = h2Open(session, target(`${ENDPOINTS}?watch=1`))
        return (await opened(stream)) === 200
      })
    const running = streams.filter((_, i) => statuses[i] === 200)
    for (const code of [constants.NGHTTP2_CANCEL, constants.NGHTTP2_NO_ERROR, constants.NGHTTP2_INTERNAL_ERROR]) {
      running.pop()?.close(code)
      await place()
    }
    // Nothing is kept of a client that is gone.
    session.destroy()
    const again = connect(users.alice)
    await waitFor('all watches to be forgotten', async () => {
      const tried = Array.from({ length: MAX_WATCHES }, () => h2Open(again, target(`${ENDPOINTS}?watch=1`)))
      const opens = await Promise.all(tried.map(opened))
      for (const stream of tried) stream.close(constants.NGHTTP2_CANCEL)
      return opens.every((status) => status === 200)
    })
  })

  test('kubectl waits as long as it is told, and then gets its answer', async () => {
    const kubeconfig = await kubeconfigThrough(gateway, cluster, { cert: users.alice })
    const session = connect(users.alice)
    const start = (): Promise<RunningKubectl> => startKubectl(['get', 'pods', '-A'], { kubeconfig })
    let running = await start()
    let hasEnded = false
    const isRefused = (line: Record<string, unknown>): boolean =>
      line['code'] === 429 && line['resource'] === 'pods' && String(line['userAgent']).startsWith('kubectl/')
    // Takes every token, so that there is none when kubectl comes.
    await waitFor(
      'kubectl to be refused once',
      async () => {
        // It may come between two bursts.
        if (hasEnded) running = await start()
        hasEnded = false
        void running.done.then(() => {
          hasEnded = true
        })
        await Promise.all(Array.from({ length: BURST }, () => h2Request(session, target(PODS))))
        return gateway.accessLog().some(isRefused)
      },
      { intervalMs: 10 },
    )
    const { code, stderr } = await running.done
    assert.deepEqual([code, stderr], [0, 'No resources found\n'])
  })

  test('kubectl gives up after ten attempts, and says which limit it was', async () => {
    const held = (await slowLists(100)).filter(({ status }) => status === 200)
    assert.equal(held.length, MAX_IN_FLIGHT)
    const kubeconfig = await kubeconfigThrough(gateway, cluster, { cert: users.bob })
    const { code, stderr } = await cluster.kubectl(['get', 'configmaps'], { kubeconfig })
    assert.equal(code, 1)
    assert.match(stderr, /^Error from server \(TooManyRequests\): .*"slow-lists" allows 20 at once/m)
    const attempts = await gateway.logged(
      (line) => line['user'] === 'bob' && line['resource'] === 'configmaps' && line['code'] === 429,
      CLIENT_GO_RETRIES + 1,
    )
    assert.equal(attempts.length, CLIENT_GO_RETRIES + 1)
  })
})

interface LargeList {
  readonly resource: string
  readonly namespace: string
  readonly bytes: number
  readonly seats: number
}

/** The lists that the gateway knows to be large. */
async function largestLists(): Promise<readonly LargeList[]> {
  const config = JSON.parse((await gateway.admin('/debug/config')).text) as {
    clusters: { largestLists: LargeList[] }[]
  }
  return config.clusters.flatMap((one) => one.largestLists)
}

// 4 MB: 40 seats, or a few more.
describe('lists of a real kube-apiserver', () => {
  const SLOTS = 100
  const watchList = `${CONFIGMAPS}?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true`

  test('with cost a list takes as many slots as it has seats; a WatchList, too, until it begins', async () => {
    gateway.write(configure({ maxRequestsInflight: { max: SLOTS }, cost: true }))
    await waitFor('the list to be known', async () => {
      await Promise.all(Array.from({ length: 4 }, () => burst(users.alice, CONFIGMAPS, 1)))
      return (await largestLists()).some(
        ({ resource, namespace }) => resource === 'configmaps' && namespace === 'default',
      )
    })
    const [known] = (await largestLists()).filter(({ resource }) => resource === 'configmaps')
    assert.ok(known && known.bytes > 4_000_000 && known.bytes < 5_000_000, JSON.stringify(known))
    await waitFor('all threads to know, and the slots', async () => {
      const lists = await slowLists(50)
      const running = count(lists, 200)
      for (const { stream } of lists) stream.destroy()
      await waitFor('the slots', async () => (await inFlight('slow-lists')) === 0)
      return running === Math.floor(SLOTS / known.seats)
    })
    // Compressed by kube-apiserver, it is as long as it is.
    const gzip = await h2Request(connect(users.alice), [...target(CONFIGMAPS), 'accept-encoding', 'gzip'])
    assert.deepEqual(valuesOf(gzip.head, 'content-encoding'), ['gzip'])
    assert.ok(gzip.body.length < 1_000_000)
    assert.equal((await largestLists()).find(({ resource }) => resource === 'configmaps')?.bytes, known.bytes)

    gateway.write(
      upstreamClusterFor(cluster, {
        spec: {
          flowControl: { flowControlSchemas: [{ name: 'tokens', cost: true, tokenBucket: { qps: 1, burst: 60 } }] },
          dispatchPolicies: [policy('tokens', {})],
        },
      }),
    )
    const session = connect(users.bob)
    await waitFor('a WatchList to be refused for its seats', async () => {
      const stream = h2Open(session, target(watchList))
      const status = await opened(stream)
      stream.close(constants.NGHTTP2_CANCEL)
      if (status !== 429) return false
      const { body } = await h2Request(session, target(watchList))
      return new RegExp(`allows 1 a second .*, and this list counts as ${known.seats};`).test(body.toString())
    })
    gateway.write(configure())
  })

  test('the guard refuses a list without a limit; pages, a WatchList and kubectl pass, and kubectl says why where it is refused', async () => {
    gateway.write(configure({}, { listGuard: { maxBytesUnlimited: 1_000_000 } }))
    const kubeconfig = await kubeconfigThrough(gateway, cluster, { cert: users.bob })
    await waitFor('the list to be refused', async () => {
      const answers = await Promise.all(Array.from({ length: 4 }, () => burst(users.alice, CONFIGMAPS, 1)))
      return answers.flat().every(({ body }) => body.toString().includes('spec.listGuard allows'))
    })
    const session = connect(users.alice)
    for (const query of ['?limit=500', '?limit=3', '?resourceVersion=0', '?limit=500&resourceVersion=0'])
      assert.equal((await h2Request(session, target(`${CONFIGMAPS}${query}`))).status, 200, query)
    const stream = h2Open(session, target(watchList))
    assert.equal(await opened(stream), 200)
    stream.close(constants.NGHTTP2_CANCEL)

    const chunks = await cluster.kubectl(['get', 'configmaps', '--chunk-size=3', '-o', 'name'], { kubeconfig })
    assert.deepEqual([chunks.code, chunks.stderr], [0, ''])
    assert.equal(chunks.stdout.match(/large-/g)?.length, 10)
    assert.equal((await cluster.kubectl(['get', 'configmaps', '-o', 'name'], { kubeconfig })).code, 0)
    const whole = await cluster.kubectl(['get', 'configmaps', '--chunk-size=0'], { kubeconfig })
    assert.equal(whole.code, 1)
    assert.match(whole.stderr, /^Error from server \(TooManyRequests\): .*User "bob" \(kubectl\/v/m)
    assert.match(whole.stderr, /lists all "configmaps" in namespace "default".*list with limit \(500\)/)
    const refused = await gateway.logged(
      (line) => line['user'] === 'bob' && line['code'] === 429 && line['reason'] === 'list-too-large',
      1,
    )
    assert.equal(refused.length, 1, 'sent once: there is no Retry-After')
    gateway.write(configure())
  })
})
