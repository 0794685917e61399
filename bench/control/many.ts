// `node bench/control/many.ts [CLUSTERS] [WAVE-SIZE]`: what a switch of all clusters costs, 500 in waves of 25% unless told otherwise. The command
// `degrade --all` sets a mode in a gateway process with its own API server, and takes it away again, twice; the upstream clusters answer as ones without
// nodes. Some clusters, the first and the last among them, are asked every 20 ms whether they refuse a write. Two commits are compared by one run of each,
// one after the other, on a machine that has nothing else to do.

import type { UpstreamCluster } from '../../src/gateway/api/upstream-cluster/upstream-cluster.ts'
import { degradeMany } from '../../src/incidents/cli/many.ts'
import { createCA } from '../../src/pki/io/pki.ts'
import { h2Connect, h2Request } from '../../test/harness/clients/h2-client.ts'
import { startEmbedded, UC_PATH } from '../../test/harness/gateways/embedded.ts'
import { clusterObject } from '../../test/harness/objects/objects.ts'
import { clientCertificate } from '../../test/harness/pki.ts'
import { answerWithoutNodes } from '../../test/harness/upstreams/no-nodes.ts'
import { startHttp1Stub } from '../../test/harness/upstreams/stub-http1.ts'
import { cpuSeconds } from '../load/processes.ts'

const count = Number(process.argv[2] ?? 500)
const waveSize = process.argv[3] ?? '25%'
const AT_ONCE = 20
const QUIET_SHARE = 0.25
const ASKED = 10
const ASKING_MS = 20

const stub = await startHttp1Stub({ plain: true })
answerWithoutNodes(stub)
const clientCA = createCA({ commonName: 'clients of the bench' })
const embedded = await startEmbedded()
const { pid, port } = embedded.gateway
const certificate = clientCertificate(clientCA, { commonName: 'alice' })
const asked = Array.from({ length: ASKED }, (_, at) => nameOf(Math.round((at * (count - 1)) / (ASKED - 1))))

function nameOf(at: number): string {
  return `c${String(at).padStart(4, '0')}.example.com`
}

function named(at: number): UpstreamCluster {
  const spec = { servers: [{ endpoint: stub.url }], clientConfig: {}, healthCheck: { intervalSeconds: 300 } }
  return clusterObject([], { name: nameOf(at), clientCA, spec })
}

async function create(): Promise<void> {
  for (let first = 0; first < count; first += AT_ONCE) {
    const some = Array.from({ length: Math.min(AT_ONCE, count - first) }, (_, at) => named(first + at))
    for (const { code, text } of await Promise.all(some.map((one) => embedded.admin.post(UC_PATH, one)))) {
      if (code !== 201) throw new Error(text)
    }
  }
}

/** Statuses and Events of what was before are no part of it. */
async function untilQuiet(): Promise<void> {
  for (let before = cpuSeconds(pid), share = 1; share > QUIET_SHARE; ) {
    await new Promise((resolve) => setTimeout(resolve, 1_000))
    const now = cpuSeconds(pid)
    share = now - before
    before = now
  }
}

async function revision(): Promise<number> {
  const { json } = await embedded.admin.get(UC_PATH)
  return Number(json.metadata.resourceVersion)
}

/** Resolves when all clusters that are asked refuse writes, or none does. */
async function untilAsked(refuses: boolean): Promise<void> {
  const sessions = asked.map((serverName) => ({ serverName, session: h2Connect({ port, serverName, certificate }) }))
  for (const { serverName, session } of sessions) {
    const head = [':method', 'DELETE', ':path', '/api/v1/namespaces/default/pods/p', ':authority', serverName]
    for (;;) {
      const { status } = await h2Request(session, head)
      if ((status !== 200) === refuses) break
      await new Promise((resolve) => setTimeout(resolve, ASKING_MS))
    }
    session.destroy()
  }
}

async function measure(name: string, change: { mode: string; reason?: string }): Promise<void> {
  await untilQuiet()
  const before = { revision: await revision(), cpu: cpuSeconds(pid), own: process.cpuUsage(), ms: performance.now() }
  const told: string[] = []
  const tell = (text: string): void => void told.push(text)
  const common = { clusters: [], all: true, status: false, yes: true, timeout: '10m', waveSize }
  let refusedSeconds = 0
  const watched = untilAsked(change.mode !== 'Off').then(() => {
    refusedSeconds = (performance.now() - before.ms) / 1000
  })
  const code = await degradeMany({
    ...common,
    ...change,
    kubeconfig: embedded.kubeconfig,
    now: Date.now,
    out: tell,
    err: tell,
  })
  const seconds = (performance.now() - before.ms) / 1000
  const cpu = ((cpuSeconds(pid) - before.cpu) * 1000) / count
  const { user, system } = process.cpuUsage(before.own)
  if (code !== 0) throw new Error(told.join(''))
  await watched
  console.log(
    `${name}: requests to all ${count} meet it after ${refusedSeconds.toFixed(1)} s, statuses say so after ${seconds.toFixed(1)} s; for each, CPU of the gateway ${cpu.toFixed(2)} ms, of the command ` +
      `${((user + system) / 1000 / count).toFixed(2)} ms, writes ${(((await revision()) - before.revision) / count).toFixed(1)}`,
  )
}

await create()
for (const round of ['first', 'second']) {
  await measure(`${round} ReadOnly`, { mode: 'ReadOnly', reason: 'bench' })
  await measure(`${round} Off`, { mode: 'Off' })
}
await embedded.stop()
await stub.stop()
