// `portcullis demo`: a gateway in this process in front of two clusters, with traffic and a list of things to try; and its command.

import { spawn } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join, resolve } from 'node:path'
import process from 'node:process'
import { setTimeout as sleep } from 'node:timers/promises'
import { parse } from 'yaml'
import type { UpstreamClusterStatus } from '../gateway/api/upstream-cluster/status.ts'
import { UPSTREAM_CLUSTERS } from '../gateway/api/upstream-cluster-kind.ts'
import { conditionOf } from '../gateway/core/status/cluster-status.ts'
import type { JsonObject } from '../kit/api/json/json-object.ts'
import { errorWithFix } from '../kit/api/validation/error-message.ts'
import { UserError } from '../kit/api/validation/field-errors.ts'
import { formatListenAddress, type ListenAddress } from '../kit/core/listen-address.ts'
import { type LineWriter, openLineWriter } from '../kit/io/logs/line-writer.ts'
import { PROGRAM_FILES } from '../kit/io/program/build.ts'
import { type Config, ConfigError, loadConfig } from '../process/config/config.ts'
import { SCHEME } from '../program/api/scheme.ts'
import type { RunningGateway } from '../program/lifecycle/running-gateway.ts'
import { startGateway } from '../program/lifecycle/start-gateway.ts'
import { onStopSignal } from '../program/serve-command.ts'
import type { Aggregation, PodProtector } from '../protection/api/pod-protector.ts'
import { POD_PROTECTORS } from '../protection/api/pod-protector-kind.ts'
import { type DemoBackend, type StartBackends, startInProcessClusters } from './clusters.ts'
import {
  type ControlAccess,
  createDemoPki,
  FEDERATED_CLUSTER,
  PROTECTOR,
  prepareDirectory,
  writeDemoKubeconfig,
  writeObjects,
} from './files.ts'
import { demoGuide } from './guide.ts'
import type { ProtectedService } from './guide-protection.ts'
import { findKubectl, type Kubectl } from './kubectl.ts'
import { type DemoLogin, startDemoLogin } from './login/demo-login.ts'
import { type DemoTraffic, startTraffic } from './traffic.ts'

export interface DemoOptions {
  /** `host:port` of the gateway; port 0 = any free one. */
  readonly listen: string
  readonly adminListen: string
  /** Address of the gateway's own API server. */
  readonly controlListen: string
  /** Emptied first. Default `.portcullis/demo` in the working directory. */
  readonly dir?: string
  readonly out: (text: string) => void
  /** The reader's kubectl. Default: detected. */
  readonly kubectl?: Kubectl
  /** Default: two small clusters in this process. */
  readonly clusters?: StartBackends
}

export interface RunningDemo {
  readonly dir: string
  /** `https://127.0.0.1:8443`. */
  readonly origin: string
  readonly adminPort: number
  readonly kubeconfig: string
  readonly traffic: DemoTraffic
  stop(): Promise<void>
}

/** Real pods may have to become ready first. */
const COUNTED_WITHIN_MS = 60_000
const COUNTED_LOOK_MS = 50

/** @throws {UserError} with one clear line, such as for a port in use */
export async function startDemo(options: DemoOptions): Promise<RunningDemo> {
  const dir = options.dir ?? join('.portcullis', 'demo')
  const config = demoConfig(options, dir)
  // Before removing anything: the demo that owns the port may be using the directory.
  for (const address of [...config.listen, adminAddress(config), config.controlListen]) await requireFree(address)
  prepareDirectory(dir)
  const pki = createDemoPki()
  const backends = await (options.clusters ?? startInProcessClusters)(pki.ca)
  const logs = openLogs(dir)
  let gateway: RunningGateway | undefined
  let login: DemoLogin | undefined
  try {
    login = await startDemoLogin(pki.ca, dir)
    const objects = writeObjects(dir, pki, backends, login)
    const names = backends.map(({ name }) => name)
    gateway = await startGateway(config, logs.given)
    await createObjects(gateway, objects)
    const service = await protectedService(gateway, names)
    await membersRead(gateway)
    const host = config.listen[0]?.host ?? '127.0.0.1'
    const port = gateway.ports[0] ?? 0
    const origin = `https://${formatListenAddress({ host: host === '0.0.0.0' ? '127.0.0.1' : host, port })}`
    const kubeconfig = writeDemoKubeconfig(dir, origin, pki, names, controlAccess(gateway), login)
    const traffic = startTraffic({ origin, ca: pki.ca.certPem, clusters: backends })
    const { adminPort } = gateway
    const kubectl = options.kubectl ?? findKubectl(process.env)
    options.out(
      demoGuide({ dir, kubeconfig: resolve(kubeconfig), origin, adminPort, backends, service, login, kubectl }),
    )
    const running = gateway
    return {
      dir,
      origin,
      adminPort,
      kubeconfig,
      traffic,
      async stop() {
        traffic.stop()
        await running.stop()
        login?.stop()
        await stopBackends(backends)
        await logs.close()
      },
    }
  } catch (error) {
    await gateway?.stop()
    login?.stop()
    await stopBackends(backends)
    await logs.close()
    throw error
  }
}

/** Resolves when all of them are in force: everything printed afterwards must work at once. */
async function createObjects(gateway: RunningGateway, objects: readonly JsonObject[]): Promise<void> {
  for (const object of objects) {
    const kind = SCHEME.find((one) => one.kind === object['kind'])
    if (kind !== undefined) await gateway.objects?.create(kind, object)
  }
  const clusters = objects.filter(({ kind }) => kind === UPSTREAM_CLUSTERS.kind).length
  await gateway.inForce(clusters)
}

/** Waits until its pods are known in all clusters and counted, so that what is printed about them is true. */
async function protectedService({ objects }: RunningGateway, cells: readonly string[]): Promise<ProtectedService> {
  const deadlineMs = performance.now() + COUNTED_WITHIN_MS
  for (;;) {
    const { spec, status } = (await objects?.get(POD_PROTECTORS, PROTECTOR)) as unknown as PodProtector
    const counted = (status?.cells ?? []).filter(({ cellID, aggregation }) => {
      return cells.includes(cellID) && aggregation !== undefined && isComplete(aggregation)
    })
    const available = status?.summary.estimatedAvailableReplicas ?? 0
    if (counted.length === cells.length || performance.now() > deadlineMs) return { ...spec, available }
    await sleep(COUNTED_LOOK_MS)
  }
}

/** Waits until the clusters that are read as one are. */
async function membersRead({ objects }: RunningGateway): Promise<void> {
  const deadlineMs = performance.now() + COUNTED_WITHIN_MS
  while (performance.now() < deadlineMs) {
    const { status } = (await objects?.get(UPSTREAM_CLUSTERS, { namespace: '', name: FEDERATED_CLUSTER })) ?? {}
    if (conditionOf(status as UpstreamClusterStatus | undefined, 'Ready')?.status === 'True') return
    await sleep(COUNTED_LOOK_MS)
  }
}

function isComplete({ totalReplicas, availableReplicas }: Aggregation): boolean {
  return totalReplicas > 0 && availableReplicas === totalReplicas
}

/** Access to the gateway's own API server, from the administrator's kubeconfig that it wrote. */
function controlAccess({ adminKubeconfig }: RunningGateway): ControlAccess {
  const { clusters, users } = parse(readFileSync(adminKubeconfig, 'utf8'))
  const [{ cluster }] = clusters
  const [{ user }] = users
  return {
    server: cluster.server,
    ca: cluster['certificate-authority-data'],
    cert: user['client-certificate-data'],
    key: user['client-key-data'],
  }
}

async function stopBackends(backends: readonly DemoBackend[]): Promise<void> {
  await Promise.all(backends.map((backend) => backend.stop()))
}

function demoConfig({ listen, adminListen, controlListen }: DemoOptions, dir: string): Config {
  const pki = join(dir, 'pki')
  const flags = {
    listen: [listen],
    adminListen,
    controlListen,
    replicaName: 'demo',
    dataDir: join(dir, 'data'),
    tlsCertFile: join(pki, 'tls.crt'),
    tlsPrivateKeyFile: join(pki, 'tls.key'),
    drainTimeout: '2s',
    // The demo's clusters are on this machine.
    allowLocalServers: ['127.0.0.1'],
    // Both logs go to files of the demo: its output is for the reader.
    accessLog: 'false',
  }
  const readFile = (): string => ''
  return loadConfig({ flags, env: {}, readFile })
}

interface Logs {
  /** Replace the gateway's usual outputs. */
  readonly given: { readonly logLines: LineWriter; readonly access: LineWriter }
  close(): Promise<void>
}

function openLogs(dir: string): Logs {
  const destination = openLineWriter(join(dir, 'gateway.log'))
  const access = openLineWriter(join(dir, 'access.log'))
  return {
    given: { logLines: destination, access },
    async close() {
      await destination.close()
      await access.close()
    },
  }
}

function adminAddress({ adminListen }: Config): ListenAddress {
  const at = adminListen.lastIndexOf(':')
  return { host: adminListen.slice(0, at).replace(/^\[|\]$/g, ''), port: Number(adminListen.slice(at + 1)) }
}

async function requireFree({ host, port }: ListenAddress): Promise<void> {
  const server = createServer()
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      const text = formatListenAddress({ host, port })
      const why = error.code === 'EADDRINUSE' ? 'it is in use' : error.message
      const fix = `end what uses it, or choose others: --listen 127.0.0.1:8444 --admin-listen 127.0.0.1:9091 --control-listen 127.0.0.1:9444`
      reject(new UserError(`cannot listen on ${text}: ${why}`, fix))
    })
    server.listen({ host, port }, () => server.close(() => resolve()))
  })
}

// `portcullis demo` as a command: start, run until a signal, exit code. With --real it hands over to the test harness,
// which can build and start real clusters.
interface DemoCommandOptions {
  /** Real kube-apiservers. */
  readonly real: boolean
  readonly listen: string
  readonly adminListen: string
  readonly controlListen: string
  readonly dir: string
}

/** Only in the checkout: a deployed gateway has no use for it. */
const REAL_DEMO = join(PROGRAM_FILES.testHarness, 'real-demo.ts')

/** Resolves with the exit code when the demo has ended. */
export async function demoCommand(options: DemoCommandOptions): Promise<number> {
  return options.real ? await runRealDemo(options) : await runDemo(options)
}

/** `clusters`: what to put behind the gateway instead of the clusters inside this process. */
export async function runDemo(options: Omit<DemoCommandOptions, 'real'>, clusters?: StartBackends): Promise<number> {
  let demo: RunningDemo
  try {
    demo = await startDemo({
      ...options,
      out: (text) => void process.stdout.write(text),
      ...(clusters === undefined ? {} : { clusters }),
    })
  } catch (error) {
    if (!(error instanceof UserError || error instanceof ConfigError)) throw error
    process.stderr.write(`error: ${errorWithFix(error)}\n`)
    return 1
  }
  await onStopSignal().stopped(demo)
  return 0
}

async function runRealDemo({ listen, adminListen, controlListen, dir }: DemoCommandOptions): Promise<number> {
  if (PROGRAM_FILES.testHarness === '' || !existsSync(REAL_DEMO)) {
    process.stderr.write('error: --real needs the source checkout, with its test harness; run it there\n')
    return 1
  }
  // In its own process group: Ctrl-C reaches it once, through us, however it was sent.
  const child = spawn(process.execPath, [REAL_DEMO, listen, adminListen, controlListen, dir], {
    stdio: 'inherit',
    detached: true,
  })
  process.on('SIGINT', () => child.kill('SIGINT'))
  process.on('SIGTERM', () => child.kill('SIGTERM'))
  return await new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('close', (code) => resolve(code ?? 1))
  })
}
