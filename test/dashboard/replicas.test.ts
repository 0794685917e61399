// The dashboard of two replicas: real processes, one of which knows the other by --admin-peers.

import assert from 'node:assert/strict'
import type { ClientHttp2Session } from 'node:http2'
import { after, before, test } from 'node:test'
import type { Browser } from 'playwright-core'
import type { ClusterPage } from '../../src/insight/api/cluster-page.ts'
import type { Overview } from '../../src/insight/api/overview.ts'
import { createCA } from '../../src/pki/io/pki.ts'
import { h2Connect, h2Request } from '../harness/clients/h2-client.ts'
import { startGateway, type TestGateway } from '../harness/gateways/gateway.ts'
import { clientPair, clusterObject } from '../harness/objects/objects.ts'
import { type StubUpstream, startStub } from '../harness/upstreams/stub-upstream.ts'
import { waitFor } from '../harness/wait.ts'
import { launchChromium, openPage } from './browser.ts'

const NAME = 'prod.example.com'
const OVERVIEW = '/api/v1/overview?replicas=all'
const CLUSTER = `/api/v1/clusters/${NAME}?replicas=all`
const clientCA = createCA({ commonName: 'clients of prod' })
const alice = clientPair(clientCA, 'alice')
const sessions: ClientHttp2Session[] = []
let stub: StubUpstream
let first: TestGateway
let second: TestGateway
let browser: Browser

before(async () => {
  stub = await startStub()
  const clusters = [prod()]
  const name = (replica: string): string => `--replica-name=${replica}`
  ;[first, browser] = await Promise.all([startGateway({ clusters, args: [name('gw-0')] }), launchChromium()])
  second = await startGateway({ clusters, args: [name('gw-1'), `--admin-peers=127.0.0.1:${first.adminPort}`] })
  for (const { port } of [first, second]) {
    sessions.push(h2Connect({ port, serverName: NAME, certificate: alice }))
  }
})
after(async () => {
  for (const session of sessions) session.destroy()
  await browser?.close()
  await second?.stop()
  await first?.stop()
  await stub?.stop()
})

function prod() {
  const object = clusterObject([stub], { clientCA })
  const ALL = { verbs: ['*'], apiGroups: ['*'], resources: ['*'], nonResourceURLs: ['*'] }
  return {
    ...object,
    spec: {
      ...object.spec,
      flowControl: { flowControlSchemas: [{ name: 'all', maxRequestsInflight: { max: 100 } }] },
      dispatchPolicies: [
        { rules: [{ ...ALL, resources: ['secrets'] }], action: 'Deny' as const },
        { rules: [ALL], flowControlSchemaName: 'all' },
      ],
    },
  }
}

async function ask(replica: 0 | 1, path: string, count: number): Promise<void> {
  const session = sessions[replica]
  assert.ok(session)
  await Promise.all(Array.from({ length: count }, () => h2Request(session, [':path', path])))
}

async function json<T>(path: string, of: TestGateway = second): Promise<T> {
  const { status, text } = await of.admin(path)
  assert.equal(status, 200, text)
  return JSON.parse(text) as T
}

test('requests, refusals, limits of both replicas are added; one alone shows its own', async () => {
  await ask(0, '/api/v1/pods', 30)
  await ask(1, '/api/v1/pods', 12)
  await ask(0, '/api/v1/secrets', 5)
  await ask(1, '/api/v1/secrets', 3)
  const hits = async (path: string): Promise<string> =>
    (await json<ClusterPage>(path)).policies.map((policy) => policy.hits).join()
  await waitFor('a sample of both', async () => (await hits(CLUSTER)) === '8,42', { timeoutMs: 60_000 })
  assert.equal(await hits(`/api/v1/clusters/${NAME}`), '3,12')
  const page = await json<ClusterPage>(CLUSTER)
  assert.deepEqual([page.replicas.length, page.replicas[0], page.missing], [2, 'gw-1', []])
  assert.deepEqual(
    page.limits.map(({ name, size }) => [name, size]),
    [['all', '100 at once (each of 2 replicas)']],
  )
  assert.equal(page.endpoints.length, 1)
  await waitFor('refusals of both', async () => {
    const { refusals } = await json<Overview>(OVERVIEW)
    return refusals.length === 1 && refusals[0]?.count === 8
  })
  const { totals, clusters, matching } = await json<Overview>(OVERVIEW)
  assert.deepEqual([totals.clusters, matching, clusters.length], [1, 1, 1])
  assert.deepEqual(clusters[0]?.endpoints, { up: 1, all: 1 })
})

test('what both replicas notice is told once, with what only one is in named', async () => {
  const changed = prod()
  const degraded = { ...changed, spec: { ...changed.spec, degrade: { mode: 'ReadOnly' as const, reason: 'test' } } }
  first.write(degraded)
  await waitFor('the switch at one replica', async () => {
    const { switches } = await json<Overview>(OVERVIEW)
    return switches.length === 1 && switches[0]?.replicas?.join() === `127.0.0.1:${first.adminPort}`
  })
  second.write(degraded)
  await waitFor('the switch at both', async () => {
    const { switches, changes } = await json<Overview>(OVERVIEW)
    const told = changes.filter(({ text }) => text.startsWith('degrade mode Off → ReadOnly'))
    return switches[0]?.replicas === undefined && told.length === 1 && told[0]?.replicas === undefined
  })
})

test('the answer has a tag, and a replica that does not know a cluster is not missing', async () => {
  const url = `http://127.0.0.1:${second.adminPort}`
  await waitFor('two answers out of one sample', async () => {
    const etag = (await fetch(url + OVERVIEW)).headers.get('etag') ?? ''
    return (await fetch(url + OVERVIEW, { headers: { 'if-none-match': etag } })).status === 304
  })
  const other = { ...prod(), metadata: { name: 'only-here.example.com' } }
  first.write(other)
  await waitFor('a cluster of the other replica', async () => {
    const { status, text } = await second.admin('/api/v1/clusters/only-here.example.com?replicas=all')
    return status === 200 && (JSON.parse(text) as ClusterPage).missing.length === 0
  })
  assert.equal((await second.admin('/api/v1/clusters/only-here.example.com')).status, 404)
  assert.equal((await second.admin('/api/v1/clusters/nowhere?replicas=all')).status, 404)
})

test('a replica that is away is named on the page, and the others are shown', async () => {
  const { page, complaints, close } = await openPage(browser)
  await page.goto(`http://127.0.0.1:${second.adminPort}/`)
  await page.getByText('numbers of 2 replicas').waitFor()
  await first.stop('SIGKILL')
  const missing = `127.0.0.1:${first.adminPort}`
  await page.getByText(`No answer from ${missing}: its numbers are missing below.`).waitFor()
  await page.getByText('numbers of 1 replica').waitFor()
  await page.locator('.tile a').first().click()
  await page.getByText(`No answer from ${missing}`).waitFor()
  assert.deepEqual(complaints, [])
  await close()
  assert.deepEqual((await json<Overview>(OVERVIEW)).missing, [missing])
})
