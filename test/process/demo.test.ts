// The demo as a whole: what its printed guide promises, driven through the gateway.

import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { parse } from 'yaml'
import { type RunningDemo, startDemo } from '../../src/demo/demo.ts'
import { DEMO_TOKENS } from '../../src/demo/traffic.ts'
import type { ClusterPage } from '../../src/insight/api/cluster-page.ts'
import type { Overview } from '../../src/insight/api/overview.ts'
import { UserError } from '../../src/kit/api/validation/field-errors.ts'
import { type KubeRequest, type KubeResponse, kubeRequest } from '../harness/clusters/kube-request.ts'
import type { Credentials } from '../harness/clusters/kubeconfig.ts'
import {
  followDegradeGuide,
  followFederationGuide,
  followProtectionGuide,
  followScaleGuide,
  followWhoAsksGuide,
  setMinReadySeconds,
} from '../harness/docs/demo-guide.ts'
import { PATIENT } from '../harness/patience.ts'
import { GiveUp, waitFor } from '../harness/wait.ts'

const ANY_PORTS = { listen: '127.0.0.1:0', adminListen: '127.0.0.1:0', controlListen: '127.0.0.1:0' }
const ALICE: Credentials = { token: DEMO_TOKENS.alice }
let folder: string
let demo: RunningDemo
const printed: string[] = []
let admin: Credentials

before(async () => {
  folder = mkdtempSync(join(tmpdir(), 'portcullis-demo-'))
  const out = (text: string): void => void printed.push(text)
  demo = await startDemo({ ...ANY_PORTS, dir: join(folder, 'demo'), out })
  admin = { cert: { certPem: file('pki/admin.crt'), keyPem: file('pki/admin.key') } }
}, PATIENT)

after(async () => {
  await demo.stop()
  rmSync(folder, { recursive: true, force: true })
})

function file(name: string): string {
  return readFileSync(join(demo.dir, name), 'utf8')
}

function ask(path: string, options: Partial<KubeRequest> = {}): Promise<KubeResponse> {
  return kubeRequest({ server: demo.origin, ca: file('pki/ca.crt'), user: ALICE, path, ...options })
}

/** The gateway's own API server, as its administrator. */
function control(path: string, options: Partial<KubeRequest> = {}): Promise<KubeResponse> {
  const { clusters, users } = parse(readFileSync(demo.kubeconfig, 'utf8'))
  const { cluster } = clusters.find(({ name }: { name: string }) => name === 'portcullis')
  const { user } = users.find(({ name }: { name: string }) => name === 'portcullis-admin')
  const pem = (data: string): string => Buffer.from(data, 'base64').toString()
  const cert = { certPem: pem(user['client-certificate-data']), keyPem: pem(user['client-key-data']) }
  return kubeRequest({
    server: cluster.server,
    ca: pem(cluster['certificate-authority-data']),
    user: { cert },
    path,
    ...options,
  })
}

const WHOAMI = '/apis/authentication.k8s.io/v1/selfsubjectreviews'
const SHOP_PODS = '/clusters/prod/api/v1/namespaces/shop/pods'

test('every context of the kubeconfig reaches its cluster as its user', PATIENT, async () => {
  const { contexts, clusters, users } = parse(readFileSync(demo.kubeconfig, 'utf8'))
  const named = (list: { name: string }[], name: string): unknown => list.find((one) => one.name === name)
  const seen: Record<string, string> = {}
  for (const { name, context } of contexts) {
    // The gateway's own, one that is only read, and those at which demo-login.test.ts logs in.
    if (name === 'portcullis' || name === 'all' || context.user === 'login') continue
    const { cluster } = named(clusters, context.cluster) as { cluster: Record<string, string> }
    const { user } = named(users, context.user) as { user: Record<string, string> }
    const pem = (key: string): string => Buffer.from(user[key] ?? '', 'base64').toString()
    const credentials: Credentials =
      user['token'] === undefined
        ? { cert: { certPem: pem('client-certificate-data'), keyPem: pem('client-key-data') } }
        : { token: user['token'] }
    const common = {
      server: cluster['server'] ?? '',
      ca: Buffer.from(cluster['certificate-authority-data'] ?? '', 'base64').toString(),
      user: credentials,
    }
    const whoami = await ask(WHOAMI, { ...common, method: 'POST', body: {} })
    seen[name] = `${whoami.json().status.userInfo.username}@${whoami.headers['x-demo-apiserver']}`.replace(/-\d$/, '')
  }
  assert.deepEqual(seen, {
    'prod-admin': 'admin@prod',
    'prod-alice': 'alice@prod',
    'staging-admin': 'admin@staging',
    'staging-alice': 'alice@staging',
    // It names no cluster at all: prod is the default.
    'default-alice': 'alice@prod',
  })
})

test('nothing in it is on its way out: neither statuses nor the log warn of releases of Secrets', PATIENT, async () => {
  const { items } = (await control('/apis/proxy.kubegateway.io/v1alpha1/upstreamclusters')).json()
  const conditions = JSON.stringify(items.map(({ status }: { status: unknown }) => status))
  assert.match(conditions, /CredentialsValid/)
  assert.doesNotMatch(conditions, /usable-by|next minor version/)
  assert.doesNotMatch(file('gateway.log'), /usable-by|next minor version/)
})

test('lists of pods are limited for alice and not for administrators', PATIENT, async () => {
  const codes = async (user: Credentials): Promise<Set<number>> => {
    const answers = await Promise.all(Array.from({ length: 40 }, () => ask(`${SHOP_PODS}?limit=1`, { user })))
    return new Set(answers.map(({ status }) => status))
  }
  assert.deepEqual(await codes(admin), new Set([200]))
  assert.deepEqual([...(await codes(ALICE))].sort(), [200, 429])
})

test('the dashboard has the overview, and a page for each cluster with its PodProtectors', PATIENT, async () => {
  const page = async (path: string): Promise<Response> => {
    const response = await fetch(`http://127.0.0.1:${demo.adminPort}${path}`)
    assert.equal(response.status, 200, path)
    return response
  }
  const overview = (await (await page('/api/v1/overview')).json()) as Overview
  assert.equal(overview.clusters.length, 3)
  for (const name of ['prod', 'staging']) {
    const { protection } = (await (await page(`/api/v1/clusters/${name}`)).json()) as ClusterPage
    assert.match(JSON.stringify(protection?.protectors), /"shop".*"web"/)
  }
})

test(
  'reads of prod are answered from memory: hits, memory and age are in the status, in columns and on the page',
  PATIENT,
  async () => {
    const { cached } = await waitFor('hits', async () => {
      const response = await fetch(`http://127.0.0.1:${demo.adminPort}/api/v1/clusters/prod`)
      const page = (await response.json()) as ClusterPage
      return page.cached.length === 2 && page.cached.every(({ hits }) => hits > 0) ? page : undefined
    })
    for (const { state, objects, bytes, ageSeconds } of cached) {
      assert.equal(state, 'Serving')
      assert.ok(objects > 0 && bytes > 0 && ageSeconds !== null)
    }
    const path = '/apis/proxy.kubegateway.io/v1alpha1/upstreamclusters/prod'
    const { cache } = (await control(path)).json().status
    assert.deepEqual(
      [cache.serving, cache.resources.map((one: { resource: string }) => one.resource)],
      ['2/2', ['pods', 'deployments.apps']],
    )
    const accept = 'application/json;as=Table;g=meta.k8s.io;v=v1'
    const { columnDefinitions, rows } = (await control(path, { headers: { accept } })).json()
    const cells = new Map(columnDefinitions.map(({ name }: { name: string }, i: number) => [name, rows[0].cells[i]]))
    assert.deepEqual([cells.get('Cache'), cells.get('Cache-Age')], ['Serving', '<2m'])
  },
)

interface DemoNode {
  readonly metadata: { readonly name: string }
  readonly status: { readonly conditions: readonly { readonly type: string; readonly status: string }[] }
}

test(
  'the degrade switch: refused with the reason, the reserved lane and the other cluster go on, then lifted in steps',
  PATIENT,
  async () => {
    const switchTo = (mode: string): Promise<KubeResponse> =>
      control('/apis/proxy.kubegateway.io/v1alpha1/upstreamclusters/prod', {
        method: 'PATCH',
        headers: { 'content-type': 'application/merge-patch+json' },
        body: { spec: { degrade: { mode, reason: 'incident 4711: etcd is being restored' } } },
      })
    const configmaps = '/api/v1/namespaces/shop/configmaps'
    const status = async (cluster: string, user: Credentials): Promise<number> =>
      (await ask(`/clusters/${cluster}${configmaps}`, { user })).status
    await switchTo('Freeze')
    await waitFor('prod to be frozen', async () => (await status('prod', ALICE)) === 503)
    const refusal = (await ask(`/clusters/prod${configmaps}`)).json()
    assert.match(refusal.message, /Freeze.*etcd is being restored/)
    assert.equal(await status('prod', admin), 200)
    assert.equal(await status('staging', ALICE), 200)
    // The way back of the guide and the runbook: what has come back stays.
    const nodes = '/clusters/prod/api/v1/nodes'
    const notReady = async (): Promise<string[]> => {
      const { items } = (await ask(nodes, { user: admin })).json() as { items: DemoNode[] }
      assert.equal(items.length, 5)
      const isReady = ({ status: { conditions } }: DemoNode): boolean =>
        conditions.some(({ type, status: value }) => type === 'Ready' && value === 'True')
      return items.filter((node) => !isReady(node)).map(({ metadata }) => metadata.name)
    }
    const patient = { timeoutMs: 120_000 }
    await waitFor('nodes without heartbeats to be NotReady', async () => (await notReady()).length === 5, patient)
    await switchTo('HeartbeatsOnly')
    await waitFor('the nodes to be back', async () => (await notReady()).length === 0, patient)
    await switchTo('ReadOnly')
    await waitFor('reads', async () => (await status('prod', ALICE)) === 200)
    const since = Date.now()
    await waitFor(
      'heartbeats of every node for longer than it takes to be NotReady',
      async () => {
        const lost = await notReady()
        if (lost.length > 0) throw new GiveUp(`NotReady again: ${lost.join(', ')}`)
        const leases = '/clusters/prod/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases'
        const { items } = (await ask(leases, { user: admin })).json() as { items: { spec: { renewTime: string } }[] }
        return items.every(({ spec }) => Date.parse(spec.renewTime) > since + 20_000)
      },
      patient,
    )
    const write = { method: 'POST', body: { metadata: { name: 'x' } } }
    assert.equal((await ask(`/clusters/prod${configmaps}`, write)).status, 503)
    await switchTo('Off')
    await waitFor('writes', async () => (await ask(`/clusters/prod${configmaps}`, write)).status === 201)
  },
)

test('the traffic flows, and its heartbeats reach the nodes', PATIENT, async () => {
  await waitFor('requests of the traffic', () => (demo.traffic.answers.get(200) ?? 0) > 20)
  assert.equal(demo.traffic.answers.get(401), undefined)
  assert.equal(demo.traffic.answers.get(403), undefined)
  assert.equal(demo.traffic.answers.get(404), undefined)
  const lease = '/clusters/prod/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/prod-node-1'
  const renewed = async (): Promise<string> => (await ask(lease)).json().spec.renewTime
  const last = await renewed()
  await waitFor('a heartbeat', async () => (await renewed()) !== last)
})

test('the guide names the files and addresses that are there', PATIENT, async () => {
  const guide = printed.join('')
  assert.ok(guide.includes(demo.origin))
  assert.ok(guide.includes(demo.kubeconfig))
  for (const [, path = ''] of guide.matchAll(/(?:--cacert|--ca-file|tail -f|--config-dir) (\S+)/g)) {
    assert.ok(existsSync(path), `${path} is missing`)
  }
  for (const [, url = ''] of guide.matchAll(/curl -s '?(http:[^\s']+)/g))
    assert.equal((await fetch(url)).status, 200, url)
})

test(
  'the switch set and lifted by hand, and by steps: every line of the guide does what it says',
  PATIENT,
  async () => {
    await followDegradeGuide({ guide: printed.join(''), kubeconfig: demo.kubeconfig, home: folder })
  },
)

test('top talkers: every line of the guide leads to the client that asks too much', PATIENT, async () => {
  await waitFor('ci-bot to meet its limit', () => (demo.traffic.answers.get(429) ?? 0) > 5)
  await followWhoAsksGuide({ guide: printed.join(''), kubeconfig: demo.kubeconfig, home: folder })
})

test('protection of one service over both clusters: every line of the guide does what it says', PATIENT, async () => {
  await followProtectionGuide({
    guide: printed.join(''),
    kubeconfig: demo.kubeconfig,
    home: folder,
    // The pods that are there are old.
    holdNewPods: (run, hold) => setMinReadySeconds(run, hold ? 600 : 1),
  })
})

test('clusters read as one: every line of the guide does what it says, also while one is away', PATIENT, async () => {
  await followFederationGuide({ guide: printed.join(''), kubeconfig: demo.kubeconfig, home: folder })
})

test('which pods a scale-down deletes: every line of the guide does what it says', PATIENT, async () => {
  await followScaleGuide({ guide: printed.join(''), kubeconfig: demo.kubeconfig, home: folder })
  const cart = '/clusters/prod/api/v1/namespaces/shop/pods?labelSelector=app%3Dcart'
  const costs = await waitFor('three pods of cart to be left', async () => {
    const { items } = (await ask(cart, { user: admin })).json() as { items: DemoPod[] }
    const living = items.filter(({ metadata }) => metadata.deletionTimestamp === undefined)
    return living.length === 3 ? living.map(({ metadata }) => metadata.annotations?.[COST]) : undefined
  })
  assert.deepEqual(costs, [undefined, undefined, undefined], 'the cheap one has gone')
})

const COST = 'controller.kubernetes.io/pod-deletion-cost'

interface DemoPod {
  readonly metadata: { readonly deletionTimestamp?: string; readonly annotations?: Readonly<Record<string, string>> }
}

test('a directory that is not the demo’s is left alone; a port in use is one clear line', PATIENT, async () => {
  const options = { ...ANY_PORTS, out: () => undefined }
  await assert.rejects(startDemo({ ...options, dir: folder }), (error) => {
    assert.ok(error instanceof UserError)
    assert.match(error.message, /is not empty/)
    return true
  })
  assert.ok(existsSync(demo.kubeconfig))
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const taken = `127.0.0.1:${(server.address() as AddressInfo).port}`
  // Even with its own directory: nothing is removed before the ports are known to be free.
  await assert.rejects(startDemo({ ...options, dir: demo.dir, listen: taken }), (error) => {
    assert.ok(error instanceof UserError)
    assert.match(error.message, new RegExp(`${taken}.*in use`))
    assert.doesNotMatch(error.message, /\n/)
    return true
  })
  server.close()
  assert.ok(existsSync(demo.kubeconfig))
})
