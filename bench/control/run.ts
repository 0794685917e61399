// `node bench/control/run.ts`: what the control plane costs. UpstreamClusters are created over HTTP in a gateway of its own
// process; then: how long a start with all of them takes, how long after the answer to a write it is in force on connections
// to every thread, and what CPU a change costs among few and among many.

import { mkdtempSync, rmSync } from 'node:fs'
import type { ClientHttp2Session } from 'node:http2'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import type { UpstreamCluster } from '../../src/gateway/api/upstream-cluster/upstream-cluster.ts'
import { createCA } from '../../src/pki/io/pki.ts'
import { h2Connect, h2Request } from '../../test/harness/clients/h2-client.ts'
import { startGateway, type TestGateway } from '../../test/harness/gateways/gateway.ts'
import { clientPair, clusterObject } from '../../test/harness/objects/objects.ts'
import { reply, startStub } from '../../test/harness/upstreams/stub-upstream.ts'
import { connectControl, createObjects, patchObject } from '../load/control.ts'
import { cpuSeconds } from '../load/processes.ts'

const FEW = 10
/** `--clusters n`. */
const MANY = Number(parseArgs({ options: { clusters: { type: 'string', default: '2000' } } }).values.clusters)
const CHANGES = 100
const ROUNDS = 5
/** Some of what an idle gateway does comes every five seconds. */
const IDLE_SECONDS = 5
/** Enough for the kernel to give every thread some. */
const CONNECTIONS = 8
const EMBEDDED = ['--source=embedded', '--control-listen=127.0.0.1:CONTROL']
const HOST = 'c0.example.com'

const stub = await startStub()
stub.answer = (request) => {
  stub.seen.length = 0
  reply(request, 200, '{}')
}
const clientCA = createCA({ commonName: 'clients of the bench' })
const user = clientPair(clientCA, 'alice')

interface Running {
  readonly gateway: TestGateway
  readonly control: ClientHttp2Session
}

async function start(dataDir: string): Promise<Running> {
  const options = { clusters: [], source: EMBEDDED, readyTimeoutMs: 60_000, dataDir }
  const gateway = await startGateway(options)
  return { gateway, control: connectControl({ control: gateway.controlPort, dataDir: gateway.dataDir }) }
}

function objects(count: number): UpstreamCluster[] {
  const healthCheck = { intervalSeconds: 300 }
  return Array.from({ length: count }, (_, i) =>
    clusterObject([stub], { name: `c${i}.example.com`, clientCA, spec: { healthCheck } }),
  )
}

const patch = ({ control }: Running, spec: object): Promise<void> => patchObject(control, HOST, { spec })

/** Milliseconds from the answer to the write until every connection sees it. */
async function untilInForce(
  running: Running,
  sessions: readonly ClientHttp2Session[],
  freeze: boolean,
): Promise<number> {
  await patch(running, { degrade: freeze ? { mode: 'Freeze', reason: 'bench' } : { mode: 'Off' } })
  const answeredMs = performance.now()
  for (const session of sessions) {
    for (;;) {
      const { status } = await h2Request(session, [':authority', HOST, ':path', '/api/v1/pods'])
      if ((status === 503) === freeze) break
    }
  }
  return performance.now() - answeredMs
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] ?? 0
}

interface Sample {
  readonly cpuMs: number
  /** What the gateway would have used in that time without a change. */
  readonly idleMs: number
  readonly latenciesMs: readonly number[]
}

async function measure(running: Running): Promise<Sample> {
  const sessions = Array.from({ length: CONNECTIONS }, () =>
    h2Connect({ port: running.gateway.port, serverName: HOST, certificate: user }),
  )
  // Handshakes are no part of it.
  for (const session of sessions) await h2Request(session, [':authority', HOST, ':path', '/api/v1/pods'])
  const latenciesMs: number[] = []
  for (let i = 0; i < 20; i++) latenciesMs.push(await untilInForce(running, sessions, i % 2 === 0))
  const { pid } = running.gateway
  const before = cpuSeconds(pid)
  const startMs = performance.now()
  for (let i = 0; i < CHANGES; i++) await patch(running, { degrade: { mode: 'Off', reason: `change ${i}` } })
  const cpuMs = ((cpuSeconds(pid) - before) * 1000) / CHANGES
  const seconds = (performance.now() - startMs) / 1000
  for (const session of sessions) session.destroy()
  // What the changes have left to be done is no part of it.
  await sleep(1_000)
  const idleBefore = cpuSeconds(pid)
  await sleep(IDLE_SECONDS * 1_000)
  const idleMs = (((cpuSeconds(pid) - idleBefore) * 1000) / IDLE_SECONDS) * (seconds / CHANGES)
  return { cpuMs, idleMs, latenciesMs }
}

const folder = mkdtempSync(join(tmpdir(), 'portcullis-bench-'))
const few = await start(join(folder, 'few'))
await createObjects(few.control, objects(FEW))
const first = await start(join(folder, 'many'))
const createStart = performance.now()
await createObjects(first.control, objects(MANY))
console.log(`${MANY} UpstreamClusters created over HTTP: ${((performance.now() - createStart) / 1000).toFixed(1)} s`)
first.control.destroy()
await first.gateway.stop('SIGKILL')
const loadStart = performance.now()
const many = await start(join(folder, 'many'))
console.log(`a start with all of them, until it serves: ${((performance.now() - loadStart) / 1000).toFixed(1)} s`)

const samples: Record<'few' | 'many', Sample[]> = { few: [], many: [] }
for (let round = 0; round < ROUNDS; round++) {
  samples.few.push(await measure(few))
  samples.many.push(await measure(many))
}
for (const [name, count] of [
  ['few', FEW],
  ['many', MANY],
] as const) {
  const latencies = samples[name].flatMap(({ latenciesMs }) => latenciesMs)
  console.log(
    `among ${count}: CPU of a change ${median(samples[name].map(({ cpuMs }) => cpuMs)).toFixed(2)} ms, of which an idle gateway uses ` +
      `${median(samples[name].map(({ idleMs }) => idleMs)).toFixed(2)} ms in that time; in force on all connections ` +
      `${median(latencies).toFixed(1)} ms after the answer (median), ${Math.max(...latencies).toFixed(1)} ms at most (goal: 1000)`,
  )
}
const ofChange = (name: 'few' | 'many'): number => median(samples[name].map(({ cpuMs, idleMs }) => cpuMs - idleMs))
console.log(
  `a change among ${MANY} costs ${(ofChange('many') / ofChange('few')).toFixed(2)} x one among ${FEW}, without what an idle gateway uses`,
)
for (const { gateway, control } of [few, many]) {
  control.destroy()
  await gateway.stop()
}
rmSync(folder, { recursive: true })
await stub.stop()
