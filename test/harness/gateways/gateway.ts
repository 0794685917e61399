// The real gateway, as a child process, with its configuration in a folder of its own.

import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Agent, fetch as fetchBy } from 'undici'
import { stringify } from 'yaml'
import type { UpstreamCluster } from '../../../src/gateway/api/upstream-cluster/upstream-cluster.ts'
import { gatewayCA, LOOPBACK_ADDRESSES, serverCertificate, writeKeyPair } from '../pki.ts'
import { PortTaken, withFreePorts } from '../ports.ts'
import { startProcess } from '../process.ts'
import { MAIN } from '../program.ts'
import { waitFor } from '../wait.ts'
import { activated, type HeldSocket } from './inherited-sockets.ts'
import { LOCAL_SERVERS_FLAG } from './local-servers.ts'

export interface GatewayOptions {
  /** Written to the configuration folder before the gateway starts. */
  readonly clusters: readonly UpstreamCluster[]
  /** Default: a new folder. */
  readonly configDir?: string
  /** Flags that say where objects live. Default: the configuration folder. `CONTROL` and `WEBHOOK` in them are replaced by free ports. */
  readonly source?: readonly string[]
  /** Kept when the gateway ends. Default: a new folder, which is not. */
  readonly dataDir?: string
  /** Further `--listen` addresses. `PORT` in them is replaced by the first listener's port. */
  readonly listen?: readonly string[]
  /** Further flags of `serve`. */
  readonly args?: readonly string[]
  /** Default: Node with the sources, or with a bundle of them (`MAIN`). */
  readonly program?: readonly [string, ...string[]]
  /** What it listens on instead of a free port. Default: that port, or the `sockets`. */
  readonly own?: string
  /** Sockets by their name in LISTEN_FDNAMES. The gateway listens on `systemd:NAME` of them, by `flag` (default `--listen`; '' = by none). */
  readonly sockets?: readonly { readonly name: string; readonly socket: HeldSocket; readonly flag?: string }[]
  /** Flags of Node itself for the sources, e.g. `--max-old-space-size=256`. */
  readonly nodeArgs?: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  /** Default `5s`. */
  readonly drainTimeout?: string
  readonly readyTimeoutMs?: number
  /**
   * Files of a certificate by `gatewayCA` for 127.0.0.1: the admin listener is open on every address with it, and tells other replicas of
   * 127.0.0.1. Default: open on 127.0.0.1 without TLS. `admin()` and `metrics()` have no credential then.
   */
  readonly adminPair?: { readonly cert: string; readonly key: string }
}

export interface TestGateway {
  /** The port of the listener on 127.0.0.1. */
  readonly port: number
  readonly adminPort: number
  /** What `CONTROL` in the source's flags became. */
  readonly controlPort: number
  /** What `WEBHOOK` in the source's flags became. */
  readonly webhookPort: number
  readonly dataDir: string
  readonly pid: number
  readonly running: boolean
  readonly configDir: string
  /** Writes each object to NAME.yaml of the configuration folder, each at once. */
  write(...clusters: readonly UpstreamCluster[]): void
  /** Writes any text to a file of the configuration folder, at once. */
  writeFile(name: string, text: string): void
  removeFile(name: string): void
  /** stderr: JSON lines. */
  logs(): string
  /** The access log so far, parsed. */
  accessLog(): AccessLogLine[]
  /** The first access-log lines that satisfy `matches`, once there are `count` (default 1) of them. */
  logged(matches: (line: AccessLogLine) => boolean, count?: number): Promise<AccessLogLine[]>
  /** GET of the admin listener. */
  admin(path: string): Promise<{ status: number; text: string }>
  metrics(): Promise<string>
  signal(signal: NodeJS.Signals): void
  readonly exited: Promise<number | NodeJS.Signals>
  /** Ends it (SIGTERM; SIGKILL after 60 s) and removes its folder. Resolves with the exit code. */
  stop(signal?: NodeJS.Signals): Promise<number | NodeJS.Signals>
}

// biome-ignore lint/suspicious/noExplicitAny: JSON as the gateway printed it
export type AccessLogLine = Record<string, any>

/** Gateway threads of each gateway under test. */
const THREADS = process.env['PORTCULLIS_TEST_THREADS'] ?? '2'

/** Starts `serve`, with files unless `source` says otherwise, and waits until it is ready. */
export function startGateway(options: GatewayOptions): Promise<TestGateway> {
  const dir = mkdtempSync(join(tmpdir(), 'portcullis-gateway-'))
  const configDir = options.configDir ?? join(dir, 'config')
  mkdirSync(configDir, { recursive: true })
  for (const cluster of options.clusters) writeCluster(configDir, cluster)
  return withFreePorts(4, async ([port = 0, adminPort = 0, controlPort = 0, webhookPort = 0]) => {
    try {
      return await start(options, dir, configDir, { port, adminPort, controlPort, webhookPort })
    } catch (error) {
      if (!(error instanceof PortTaken)) rmSync(dir, { recursive: true, force: true })
      throw error
    }
  })
}

interface Ports {
  readonly port: number
  readonly adminPort: number
  readonly controlPort: number
  readonly webhookPort: number
}

async function start(
  options: GatewayOptions,
  dir: string,
  configDir: string,
  { port, adminPort, controlPort, webhookPort }: Ports,
): Promise<TestGateway> {
  const dataDir = options.dataDir ?? join(dir, 'data')
  const source = options.source ?? ['--source=files', `--config-dir=${configDir}`]
  const stdoutFile = join(dir, 'access.log')
  const sockets = options.sockets ?? []
  const own = sockets.length === 0 ? [options.own ?? `127.0.0.1:${port}`] : []
  const listeners = [...own, ...(options.listen ?? [])]
  const pair = writeKeyPair(dir, 'own', serverCertificate(gatewayCA(), ['localhost'], LOOPBACK_ADDRESSES))
  const { adminPair } = options
  const admin = `http${adminPair === undefined ? '' : 's'}://127.0.0.1:${adminPort}`
  const dispatcher = adminPair && new Agent({ connect: { ca: gatewayCA().certPem } })
  const fetchAdmin = (path: string) => fetchBy(`${admin}${path}`, { ...(dispatcher !== undefined && { dispatcher }) })
  const program = options.program ?? [process.execPath, ...(options.nodeArgs ?? []), MAIN]
  const names = sockets.map(({ name }) => name)
  const [command = '', ...programArgs] = sockets.length === 0 ? program : activated(names, program)
  const gateway = await startProcess({
    name: 'gateway',
    command,
    args: [
      ...programArgs,
      'serve',
      ...source.map((flag) => flag.replace('CONTROL', String(controlPort)).replace('WEBHOOK', String(webhookPort))),
      ...listeners.map((listener) => `--listen=${listener.replace('PORT', String(port))}`),
      ...sockets.flatMap(({ name, flag = '--listen' }) => (flag === '' ? [] : [`${flag}=systemd:${name}`])),
      ...(adminPair === undefined
        ? [`--admin-listen=127.0.0.1:${adminPort}`]
        : [
            `--admin-listen=0.0.0.0:${adminPort}`,
            `--admin-advertise=127.0.0.1:${adminPort}`,
            `--admin-tls-cert-file=${adminPair.cert}`,
            `--admin-tls-private-key-file=${adminPair.key}`,
          ]),
      `--data-dir=${dataDir}`,
      `--drain-timeout=${options.drainTimeout ?? '5s'}`,
      LOCAL_SERVERS_FLAG,
      // All clients of a test have one address.
      '--max-authentication-failures=0',
      `--threads=${THREADS}`,
      // Shown to clients that name no cluster before their request does: those of /clusters/NAME.
      `--tls-cert-file=${pair.cert}`,
      `--tls-private-key-file=${pair.key}`,
      ...(options.args ?? []),
    ],
    // Variables of the test runner change how Node behaves: a child that sees them believes to be a test.
    env: {
      NODE_TEST_CONTEXT: undefined,
      NODE_OPTIONS: undefined,
      NODE_V8_COVERAGE: undefined,
      PORTCULLIS_TEST_THREADS: undefined,
      ...options.env,
    },
    logFile: join(dir, 'gateway.log'),
    stdoutFile,
    fds: sockets.map(({ socket }) => socket.fd),
    ready: async () => (await fetchAdmin('/readyz')).ok,
    readyTimeoutMs: options.readyTimeoutMs ?? 120_000,
  })
  const accessLog = (): AccessLogLine[] => jsonLines(readFileSync(stdoutFile, 'utf8'))
  const get = async (path: string): Promise<{ status: number; text: string }> => {
    const response = await fetchAdmin(path)
    return { status: response.status, text: await response.text() }
  }
  return {
    port: sockets[0]?.socket.port ?? port,
    adminPort,
    controlPort,
    webhookPort,
    dataDir,
    pid: gateway.pid,
    get running() {
      return gateway.running
    },
    configDir,
    write: (...clusters) => {
      for (const cluster of clusters) writeCluster(configDir, cluster)
    },
    writeFile: (name, text) => replaceFile(configDir, name, text),
    removeFile: (name) => rmSync(join(configDir, name)),
    logs: () => gateway.log(),
    accessLog,
    logged: (matches, count = 1) =>
      waitFor('lines in the access log', () => {
        const lines = accessLog().filter(matches)
        return lines.length >= count && lines
      }),
    admin: get,
    metrics: async () => (await get('/metrics')).text,
    signal: (signal) => gateway.signal(signal),
    exited: gateway.exited,
    async stop(signal = 'SIGTERM') {
      const result = await gateway.stop(60_000, signal)
      await dispatcher?.destroy()
      rmSync(dir, { recursive: true, force: true })
      return result
    },
  }
}

function writeCluster(configDir: string, cluster: UpstreamCluster): void {
  replaceFile(configDir, `${cluster.metadata.name}.yaml`, stringify(cluster))
}

/** The gateway sees the old file or the new one, never half of one. */
function replaceFile(configDir: string, name: string, text: string): void {
  const unfinished = join(configDir, `.${name}.unfinished`)
  writeFileSync(unfinished, text)
  renameSync(unfinished, join(configDir, name))
}

/** All complete lines that are JSON; the last one may still be on its way. */
function jsonLines(text: string): AccessLogLine[] {
  const lines = text.slice(0, text.lastIndexOf('\n') + 1).split('\n')
  return lines.filter((line) => line.startsWith('{')).map((line) => JSON.parse(line) as AccessLogLine)
}
