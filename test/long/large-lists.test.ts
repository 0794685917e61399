// 40 clients that list 200 MB without a limit, on a real kube-apiserver, beside normal traffic: with the LIST guard the others notice
// little, and kube-apiserver's memory stays where it was. PORTCULLIS_UNGUARDED=1 shows what happens without.

import assert from 'node:assert/strict'
import { fork } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import type { UpstreamClusterSpec } from '../../src/gateway/api/upstream-cluster/upstream-cluster.ts'
import type { KeyPair } from '../../src/pki/io/pki.ts'
import { h2Connect, h2Request } from '../harness/clients/h2-client.ts'
import type { ListClients } from '../harness/clients/list-clients.ts'
import { startCluster, type TestCluster } from '../harness/clusters/cluster.ts'
import { hostOf, upstreamClusterFor } from '../harness/clusters/upstream-cluster.ts'
import { startGateway, type TestGateway } from '../harness/gateways/gateway.ts'
import { waitFor } from '../harness/wait.ts'

const LARGE = '/api/v1/namespaces/kube-public/configmaps'
const OBJECTS = 200
const OBJECT_BYTES = 1_000_000
const CLIENTS = 40
const READS = 2_000
const READERS = 4
const ROUNDS = 5
const UNGUARDED_READS = 80

let cluster: TestCluster
let gateway: TestGateway
let alice: KeyPair

function withGuard(spec: Partial<UpstreamClusterSpec>): ReturnType<typeof upstreamClusterFor> {
  return upstreamClusterFor(cluster, { spec })
}

before(async () => {
  cluster = await startCluster({})
  gateway = await startGateway({ clusters: [withGuard({ listGuard: {} })] })
  alice = cluster.clientCertificate('alice', ['system:masters'])
  const data = { text: 'x'.repeat(OBJECT_BYTES) }
  for (let i = 0; i < OBJECTS; i += 4) {
    const created = await Promise.all(
      [0, 1, 2, 3].map((j) => {
        const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: `large-${i + j}` }, data }
        return cluster.request(LARGE, { method: 'POST', body })
      }),
    )
    for (const { status } of created) assert.equal(status, 201)
  }
})
after(async () => {
  await gateway?.stop()
  await cluster?.stop()
})

/** Resident memory of kube-apiserver, bytes. */
function memory(): number {
  const [apiserver] = cluster.apiservers
  const status = readFileSync(`/proc/${apiserver?.pid}/status`, 'utf8')
  return Number(/^VmRSS:\s*(\d+) kB/m.exec(status)?.[1]) * 1024
}

interface Traffic {
  readonly p99Ms: number
  readonly mostMemory: number
}

/** The median of a few rounds: other programs of the machine disturb one or the other. */
async function rounds(count: number): Promise<Traffic> {
  const all: Traffic[] = []
  for (let i = 0; i < count; i++) all.push(await normalTraffic(READS))
  const p99Ms = all.map((one) => one.p99Ms).sort((a, b) => a - b)[Math.floor(count / 2)] ?? 0
  return { p99Ms, mostMemory: Math.max(...all.map((one) => one.mostMemory)) }
}

/** Reads of one small object. */
async function normalTraffic(reads: number): Promise<Traffic> {
  const serverName = hostOf(cluster.name)
  const took: number[] = []
  let mostMemory = 0
  const readers = Array.from({ length: READERS }, async () => {
    const session = h2Connect({ port: gateway.port, serverName, certificate: alice })
    for (let i = 0; i < reads / READERS; i++) {
      const startMs = performance.now()
      const { status } = await h2Request(session, [':path', '/api/v1/namespaces/default', ':authority', serverName])
      assert.equal(status, 200)
      took.push(performance.now() - startMs)
      if (i % 20 === 0) mostMemory = Math.max(mostMemory, memory())
    }
    session.destroy()
  })
  await Promise.all(readers)
  took.sort((a, b) => a - b)
  return { p99Ms: took[Math.floor(took.length * 0.99)] ?? 0, mostMemory }
}

/** While 40 clients list, of which so many were answered. @returns how many of their lists were answered how, too */
async function besideLists(
  answered: number,
  measure: () => Promise<Traffic>,
): Promise<Traffic & { readonly statuses: Readonly<Record<string, number>> }> {
  const { certPem, keyPem } = alice
  const options: ListClients = {
    port: gateway.port,
    serverName: hostOf(cluster.name),
    certPem,
    keyPem,
    path: LARGE,
    clients: CLIENTS,
    pauseMs: 250,
  }
  const program = join(import.meta.dirname, '../harness/clients/list-clients.ts')
  const child = fork(program, [JSON.stringify(options)])
  let statuses: Readonly<Record<string, number>> = {}
  child.on('message', (now) => {
    statuses = now as Record<string, number>
  })
  try {
    const sum = (): number => Object.values(statuses).reduce((total, count) => total + count, 0)
    await waitFor('the clients to list', () => sum() >= answered, { timeoutMs: 120_000 })
    const traffic = await measure()
    return { ...traffic, statuses }
  } finally {
    child.kill()
  }
}

function shown({ p99Ms, mostMemory }: Traffic): string {
  return `p99 ${p99Ms.toFixed(1)} ms, kube-apiserver at most ${Math.round(mostMemory / 1e6)} MB`
}

test('40 clients list 200 MB: the p99 of others at most doubles, and memory stays', async (t) => {
  // A page shows how large the list is, if it has 50 items; by then kube-apiserver has in its cache all that it will have.
  const session = h2Connect({ port: gateway.port, serverName: hostOf(cluster.name), certificate: alice })
  const page = await h2Request(session, [':path', `${LARGE}?limit=50`, ':authority', hostOf(cluster.name)])
  assert.equal(page.status, 200)
  session.destroy()
  await normalTraffic(READS)
  const alone = await rounds(ROUNDS)
  t.diagnostic(`alone: ${shown(alone)}`)
  const beside = await besideLists(2 * CLIENTS, () => rounds(ROUNDS))
  t.diagnostic(
    `beside ${CLIENTS} clients that list, with the guard: ${shown(beside)}; ${JSON.stringify(beside.statuses)}`,
  )
  assert.deepEqual(Object.keys(beside.statuses), ['429'], 'none of the lists has come through')
  assert.ok(beside.mostMemory < alone.mostMemory + 100e6, 'memory')
  assert.ok(beside.p99Ms <= 2 * alone.p99Ms + 1, `${beside.p99Ms} ms`)

  if (process.env['PORTCULLIS_UNGUARDED'] !== '1') return
  gateway.write(withGuard({}))
  const open = await besideLists(1, () => normalTraffic(UNGUARDED_READS))
  t.diagnostic(`without the guard: ${shown(open)}; ${JSON.stringify(open.statuses)}`)
})
