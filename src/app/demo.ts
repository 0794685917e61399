// `portcullis demo`: a gateway in this process in front of two clusters, with traffic on it and a list of things to try.

import { createServer } from 'node:net'
import { join, resolve } from 'node:path'
import { UserError } from '../api/field-errors.ts'
import type { Logger } from '../api/ports.ts'
import { formatListenAddress, type ListenAddress } from '../core/listen-address.ts'
import { type LineWriter, openLineWriter } from '../io/line-writer.ts'
import { createLogger } from '../io/log.ts'
import { type Config, loadConfig } from './config.ts'
import { type DemoBackend, type StartBackends, startInProcessClusters } from './demo-clusters.ts'
import { createDemoPki, prepareDirectory, writeConfiguration, writeDemoKubeconfig } from './demo-files.ts'
import { demoGuide } from './demo-guide.ts'
import { startTraffic, type Traffic } from './demo-traffic.ts'
import { type RunningGateway, startGateway } from './lifecycle.ts'

export interface DemoOptions {
  /** `host:port` of the gateway; port 0 = any free one. */
  readonly listen: string
  readonly adminListen: string
  /** Made anew. Default `.portcullis/demo` below the working directory. */
  readonly dir?: string
  readonly out: (text: string) => void
  /** Default: two small clusters in this process. */
  readonly clusters?: StartBackends
}

export interface RunningDemo {
  readonly dir: string
  /** `https://127.0.0.1:8443`. */
  readonly origin: string
  readonly adminPort: number
  readonly kubeconfig: string
  readonly traffic: Traffic
  stop(): Promise<void>
}

/** @throws {UserError} with one clear line, such as for a port in use */
export async function startDemo(options: DemoOptions): Promise<RunningDemo> {
  const dir = options.dir ?? join('.portcullis', 'demo')
  const config = demoConfig(options, dir)
  // Before anything is removed: the demo that has the port may be using the directory.
  for (const address of [...config.listen, adminAddress(config)]) await requireFree(address)
  prepareDirectory(dir)
  const pki = createDemoPki()
  const backends = await (options.clusters ?? startInProcessClusters)(pki.ca)
  const logs = openLogs(dir)
  let gateway: RunningGateway | undefined
  try {
    writeConfiguration(dir, pki, backends)
    gateway = await startGateway(config, logs.given)
    const host = config.listen[0]?.host ?? '127.0.0.1'
    const port = gateway.ports[0] ?? 0
    const origin = `https://${formatListenAddress({ host: host === '0.0.0.0' ? '127.0.0.1' : host, port })}`
    const names = backends.map(({ name }) => name)
    const kubeconfig = writeDemoKubeconfig(dir, origin, pki, names)
    const traffic = startTraffic({ origin, ca: pki.ca.certPem, clusters: backends })
    const { adminPort } = gateway
    options.out(demoGuide({ dir, kubeconfig: resolve(kubeconfig), origin, adminPort, backends }))
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
        await stopBackends(backends)
        await logs.close()
      },
    }
  } catch (error) {
    await gateway?.stop()
    await stopBackends(backends)
    await logs.close()
    throw error
  }
}

async function stopBackends(backends: readonly DemoBackend[]): Promise<void> {
  await Promise.all(backends.map((backend) => backend.stop()))
}

function demoConfig({ listen, adminListen }: DemoOptions, dir: string): Config {
  const pki = join(dir, 'config', 'pki')
  const flags = {
    listen: [listen],
    adminListen,
    configDir: join(dir, 'config'),
    dataDir: join(dir, 'data'),
    tlsCertFile: join(pki, 'tls.crt'),
    tlsPrivateKeyFile: join(pki, 'tls.key'),
    drainTimeout: '2s',
    // Both logs go to files of the demo: its output is for the reader.
    accessLog: 'false',
  }
  const readFile = (): string => ''
  return loadConfig({ flags, env: {}, readFile })
}

interface Logs {
  /** What takes the place of the gateway's usual outputs. */
  readonly given: { readonly log: Logger; readonly access: LineWriter }
  close(): Promise<void>
}

function openLogs(dir: string): Logs {
  const destination = openLineWriter(join(dir, 'gateway.log'))
  const access = openLineWriter(join(dir, 'access.log'))
  return {
    given: { log: createLogger({ level: 'info', destination }), access },
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
      const fix = `end what uses it, or choose others: --listen 127.0.0.1:9443 --admin-listen 127.0.0.1:9091`
      reject(new UserError(`cannot listen on ${text}: ${why}`, fix))
    })
    server.listen({ host, port }, () => server.close(() => resolve()))
  })
}
