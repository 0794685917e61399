// spec.listGuard and `cost: true` through a whole gateway: what its own answers have shown decides about the next list.

import assert from 'node:assert/strict'
import type { ClientHttp2Session } from 'node:http2'
import { afterEach, describe, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import type { UpstreamCluster, UpstreamClusterSpec } from '../../src/gateway/api/upstream-cluster/upstream-cluster.ts'
import { createCA, type KeyPair } from '../../src/pki/io/pki.ts'
import { h2Connect, h2Open, h2Request, h2Response, type Response, valuesOf } from '../harness/clients/h2-client.ts'
import { type InProcessGateway, startInProcess } from '../harness/gateways/in-process.ts'
import { ALLOW_ALL, clientPair, clusterObject } from '../harness/objects/objects.ts'
import { reply, type SeenRequest, type StubUpstream, startStub } from '../harness/upstreams/stub-upstream.ts'
import { waitFor } from '../harness/wait.ts'

const clientCA = createCA({ commonName: 'clients of prod' })
const agent = clientPair(clientCA, 'node-agent')
const nodeA = clientPair(clientCA, 'system:node:a', ['system:nodes'])
const AGENT = ['user-agent', 'telemetry/2.1']
const PODS = '/api/v1/pods'
const ONE_MB = 1_000_000

const cleanups: (() => Promise<void> | void)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

interface Scene {
  readonly stub: StubUpstream
  readonly gateway: InProcessGateway
  readonly session: ClientHttp2Session
  apply(spec: Partial<UpstreamClusterSpec>): void
  as(pair: KeyPair): ClientHttp2Session
}

async function setUp(spec: Partial<UpstreamClusterSpec>, threads?: number): Promise<Scene> {
  const stub = await startStub()
  stub.answer = answerLists
  const object = (given: Partial<UpstreamClusterSpec>): UpstreamCluster =>
    clusterObject([stub], { clientCA, spec: given })
  const gateway = await startInProcess([object(spec)], threads === undefined ? {} : { threads })
  const sessions: ClientHttp2Session[] = []
  const as = (certificate: KeyPair): ClientHttp2Session => {
    const session = h2Connect({ port: gateway.port, serverName: 'prod.example.com', certificate })
    sessions.push(session)
    return session
  }
  cleanups.push(stub.stop, gateway.stop, () => {
    for (const session of sessions) session.destroy()
  })
  return { stub, gateway, session: as(agent), apply: (given) => gateway.apply([object(given)]), as }
}

/** `bytes` of JSON; a page says how many items are behind it. */
function podList(bytes: number, behind = 0): string {
  const more = behind === 0 ? '' : `,"continue":"abc","remainingItemCount":${behind}`
  const head = `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7"${more}},"items":[`
  return `${head}"${'x'.repeat(Math.max(0, bytes - head.length - 4))}"]}`
}

/** Two megabytes of pods, 20,000 bytes in namespace "small", pages of a hundredth; everything else is small. */
function answerLists(request: SeenRequest): void {
  const { path } = request
  const isPods = /\/pods(?:\?|$)/.test(path)
  if (!isPods || path.includes('watch=')) reply(request, 200, '{"kind":"Status"}')
  else if (path.includes('/small/')) reply(request, 200, podList(20_000))
  else if (path.includes('limit=')) reply(request, 200, podList(20_000, 990))
  else reply(request, 200, podList(2 * ONE_MB))
}

function get(session: ClientHttp2Session, path: string, fields: string[] = AGENT): Promise<Response> {
  return h2Request(session, [':path', path, ...fields])
}

async function statuses(session: ClientHttp2Session, paths: readonly string[]): Promise<number[]> {
  const found: number[] = []
  for (const path of paths) found.push((await get(session, path)).status)
  return found
}

interface Status {
  readonly message: string
  readonly reason: string
  readonly details?: { readonly causes?: readonly { readonly reason: string; readonly message: string }[] }
}

function statusIn(response: Response): Status {
  return JSON.parse(response.body.toString()) as Status
}

const GUARD: Partial<UpstreamClusterSpec> = { listGuard: { maxBytesUnlimited: ONE_MB } }

describe('spec.listGuard', () => {
  test('the first list passes, the second is refused with who, what, how large, and what to do instead', async () => {
    const { session, stub, gateway } = await setUp(GUARD)
    assert.equal((await get(session, PODS)).status, 200)
    const upstream = stub.seen.length
    const refused = await get(session, PODS)
    assert.equal(refused.status, 429)
    assert.equal(stub.seen.length, upstream, 'upstream has not seen it')
    assert.deepEqual(valuesOf(refused.head, 'retry-after'), [], 'client-go would send it ten times')
    const { message, reason, details } = statusIn(refused)
    assert.equal(reason, 'TooManyRequests')
    assert.match(message, /^User "node-agent" \(telemetry\/2\.1\) lists all "pods" of cluster "prod\.example\.com"/)
    assert.match(message, /2\.0 MB, as of \d+ s ago, and spec\.listGuard allows 1\.0 MB/)
    assert.match(message, /list with limit \(500\) and continue, watch, or set resourceVersion=0$/)
    assert.deepEqual(details?.causes, [
      { reason: 'ListGuard', message: `${2 * ONE_MB} bytes`, field: 'spec.listGuard.maxBytesUnlimited' },
    ])
    const metrics = await gateway.metrics()
    assert.match(metrics, /portcullis_list_guard_total\{cluster="prod\.example\.com",result="refused"\} 1/)
    assert.match(metrics, /portcullis_list_guard_total\{cluster="prod\.example\.com",result="unknown"\} 1/)
  })

  test('pages, watches, lists from the cache, of one object, of what is small, and of unknown size pass', async () => {
    const { session } = await setUp(GUARD)
    await get(session, PODS)
    const passing = [
      `${PODS}?limit=500`,
      `${PODS}?limit=500&continue=abc`,
      `${PODS}?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true`,
      `${PODS}?watch=1`,
      `${PODS}?resourceVersion=0`,
      `${PODS}?limit=500&resourceVersion=0`,
      `${PODS}?fieldSelector=metadata.name%3Da`,
      `${PODS}?fieldSelector=spec.nodeName%3Da`,
      `${PODS}?labelSelector=app%3Da`,
      '/api/v1/namespaces/small/pods',
      '/api/v1/namespaces/big/pods',
      '/api/v1/nodes',
    ]
    assert.deepEqual(
      await statuses(session, passing),
      passing.map(() => 200),
    )
    const refused = [
      PODS,
      `${PODS}?limit=0`,
      `${PODS}?limit=1000000`,
      `${PODS}?limit=0&limit=500`,
      `${PODS}?%6cimit=0&limit=500`,
      `${PODS}?labelSelector=limit%3D5`.replace('labelSelector', 'xlimit'),
      `${PODS}?resourceVersion=7`,
      '/api/v1/namespaces/big/pods',
    ]
    assert.deepEqual(
      await statuses(session, refused),
      refused.map(() => 429),
    )
  })

  test('a page with remainingItemCount shows how large the whole is', async () => {
    const { session, gateway } = await setUp(GUARD)
    assert.equal((await get(session, `${PODS}?limit=10`)).status, 200)
    const refused = await get(session, PODS)
    assert.equal(refused.status, 429)
    assert.match(statusIn(refused).message, /2\.0 MB, 1000 items/)
    const admin = `http://127.0.0.1:${gateway.adminPort}`
    const explained = await fetch(`${admin}/api/v1/explain?host=prod.example.com&user=bob&target=${PODS}`)
    const { code, message } = (await explained.json()) as { code: number; message: string }
    assert.equal(code, 429)
    assert.match(message, /^User "bob" lists all "pods" of cluster .*2\.0 MB, 1000 items/)
    const config = await (await fetch(`${admin}/debug/config`)).json()
    const [cluster] = (config as { clusters: { largestLists: { ageSeconds: number }[] }[] }).clusters
    const [first] = cluster?.largestLists ?? []
    const { ageSeconds, ...list } = first ?? { ageSeconds: -1 }
    assert.ok(ageSeconds >= 0)
    assert.deepEqual(list, { resource: 'pods', namespace: '', selector: '', bytes: 2e6, items: 1000, seats: 20 })
  })

  test('what is compressed counts as what it is', async () => {
    const { session, stub } = await setUp(GUARD)
    stub.answer = (request) => {
      const body = gzipSync(podList(2 * ONE_MB))
      request.stream.respond([':status', '200', 'content-type', 'application/json', 'content-encoding', 'gzip'])
      // The end of it in pieces that cut the length in two.
      request.stream.write(body.subarray(0, -3))
      setImmediate(() => request.stream.end(body.subarray(-3)))
    }
    assert.equal((await get(session, PODS, [...AGENT, 'accept-encoding', 'gzip'])).status, 200)
    const refused = await get(session, PODS)
    assert.equal(refused.status, 429)
    assert.match(statusIn(refused).message, /2\.0 MB/)
  })

  test('nodes, controllers, its own exempt and that of degrade pass', async () => {
    const rules = (user: string): [{ verbs: string[]; apiGroups: string[]; resources: string[]; users: string[] }] => [
      { verbs: ['list'], apiGroups: ['*'], resources: ['*'], users: [user] },
    ]
    const { as, session, gateway } = await setUp({
      listGuard: { maxBytesUnlimited: ONE_MB, exempt: rules('backup') },
      degrade: { exempt: rules('operator') },
    })
    await get(session, PODS)
    assert.equal((await get(session, PODS)).status, 429)
    const manager = as(clientPair(clientCA, 'system:kube-controller-manager'))
    for (const one of [as(nodeA), manager, as(clientPair(clientCA, 'backup')), as(clientPair(clientCA, 'operator'))])
      assert.equal((await get(one, PODS)).status, 200)
    const account = 'system:serviceaccount:kube-system:namespace-controller'
    const controller = as(clientPair(clientCA, account))
    assert.equal((await get(controller, PODS, ['user-agent', 'kube-controller-manager/v1.36'])).status, 200)
    assert.equal((await get(controller, PODS)).status, 429, 'any other program in kube-system')
    assert.match(await gateway.metrics(), /portcullis_list_guard_total\{[^}]*result="exempt"\} 5/)
  })

  test('in shadow mode it warns and counts', async () => {
    const { session, gateway, stub } = await setUp({ listGuard: { maxBytesUnlimited: ONE_MB, shadow: true } })
    await get(session, PODS)
    const passed = await get(session, PODS)
    assert.equal(passed.status, 200)
    assert.equal(stub.seen.length, 2)
    assert.match(valuesOf(passed.head, 'warning').join(), /list-guard in shadow mode would refuse: User/)
    assert.match(await gateway.metrics(), /portcullis_list_guard_total\{[^}]*result="shadow"\} 1/)
  })

  test('what one thread has learned all know, and a thread that starts later', async () => {
    const { as, gateway, stub } = await setUp(GUARD, 2)
    await get(as(agent), PODS)
    await waitFor('the main thread to know', async () => {
      const text = await (await fetch(`http://127.0.0.1:${gateway.adminPort}/debug/config`)).text()
      return text.includes('"resource":"pods"') || text.includes('"resource": "pods"')
    })
    // Each thread answers what it is asked in order: it has been told by now.
    await fetch(`http://127.0.0.1:${gateway.adminPort}/debug/config`)
    const refused = async (): Promise<boolean> => {
      const sessions = Array.from({ length: 8 }, () => as(agent))
      const codes = await Promise.all(sessions.map(async (one) => (await get(one, PODS)).status))
      return codes.every((code) => code === 429)
    }
    assert.ok(await refused())
    await gateway.crashThread(0)
    await gateway.crashThread(1)
    await waitFor('their successors to refuse', async () => {
      try {
        return await refused()
      } catch {
        return false
      }
    })
    assert.equal(stub.seen.length, 1, 'no thread had to find out by itself')
  })
})

describe('cost: true', () => {
  const limited = (limit: object): Partial<UpstreamClusterSpec> => ({
    flowControl: { flowControlSchemas: [{ name: 'the-limit', cost: true, ...limit }] },
    dispatchPolicies: [{ ...ALLOW_ALL, flowControlSchemaName: 'the-limit' }],
  })
  /** How many of `count` lists are upstream at once. */
  async function atOnce(
    scene: Scene,
    path: string,
    count: number,
  ): Promise<{ held: number; end: () => Promise<void> }> {
    const held: SeenRequest[] = []
    scene.stub.answer = (request) => void held.push(request)
    let refused = 0
    const responses = Array.from({ length: count }, async () => {
      const response = await h2Response(h2Open(scene.session, [':path', path]))
      if (response.status === 429) refused++
      return response
    })
    await waitFor('every list to be decided', () => held.length + refused >= count)
    return {
      held: held.length,
      end: async () => {
        for (const request of held) answerLists(request)
        await Promise.all(responses)
        scene.stub.answer = answerLists
      },
    }
  }

  test('a list takes as many slots as it has seats, and gives them back; pages and one object take theirs', async () => {
    const scene = await setUp(limited({ maxRequestsInflight: { max: 45 } }))
    // Two megabytes are 20 seats; not known before the first.
    await get(scene.session, PODS)
    await get(scene.session, `${PODS}?limit=10`)
    for (const [path, most] of [
      [PODS, 2],
      [`${PODS}?resourceVersion=0&limit=10`, 2],
      [`${PODS}?limit=500`, 4],
      [`${PODS}?limit=10`, 45],
      [`${PODS}?fieldSelector=metadata.name%3Da`, 45],
      ['/api/v1/nodes', 45],
    ] as const) {
      const { held, end } = await atOnce(scene, path, 60)
      assert.equal(held, most, path)
      await end()
    }
    const metrics = await scene.gateway.metrics()
    assert.match(metrics, /portcullis_flow_control_inflight_requests\{[^}]*\} 0/)
    assert.match(metrics, /portcullis_flow_control_list_seats_total\{[^}]*schema="the-limit"\} [1-9]/)
  })

  test('a watch that begins with a list costs as one, one that goes on from a version does not', async () => {
    const scene = await setUp(limited({ tokenBucket: { qps: 1, burst: 40 } }))
    await get(scene.session, PODS)
    const refused = async (path: string): Promise<string> => {
      const response = await get(scene.session, path)
      return response.status === 429 ? statusIn(response).message : ''
    }
    // 39 tokens and what time gives: one of 20 passes, the second may not.
    assert.equal(await refused(`${PODS}?watch=1&resourceVersion=7`), '')
    assert.equal(await refused(`${PODS}?watch=1&sendInitialEvents=true&resourceVersion=7`), '')
    const messages = [await refused(`${PODS}?watch=1`), await refused(`${PODS}?watch=1&resourceVersion=0`)]
    assert.match(messages.join(), /"the-limit" allows 1 a second .*, and this list counts as 20; retry in \d+ s/)
  })

  test('a list that costs more than the limit is large takes all of it, and is not refused for good', async () => {
    for (const limit of [{ maxRequestsInflight: { max: 5 } }, { tokenBucket: { qps: 5, burst: 5 } }]) {
      const scene = await setUp(limited(limit))
      await get(scene.session, PODS)
      await waitFor('it to pass', async () => (await get(scene.session, PODS)).status === 200)
    }
  })

  test('each user pays for their own', async () => {
    const scene = await setUp(limited({ maxRequestsInflight: { max: 20 }, perUser: true }))
    await get(scene.session, PODS)
    const { held, end } = await atOnce(scene, PODS, 3)
    assert.equal(held, 1)
    scene.stub.answer = answerLists
    assert.equal((await get(scene.as(nodeA), PODS)).status, 200)
    await end()
  })
})
