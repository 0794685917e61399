// What the gateway of a soak stands in front of, and how it is killed: stubs in processes of their own, or real kube-apiservers.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { UpstreamCluster } from '../../src/gateway/api/upstream-cluster/upstream-cluster.ts'
import { createCA, type KeyPair } from '../../src/pki/io/pki.ts'
import { startCluster } from '../harness/clusters/cluster.ts'
import { hostOf, upstreamClusterFor } from '../harness/clusters/upstream-cluster.ts'
import { ALLOW_ALL, base64, clientPair } from '../harness/objects/objects.ts'
import { freePorts } from '../harness/ports.ts'
import { startProcess } from '../harness/process.ts'

export interface Paths {
  /** Small answers. */
  readonly object: string
  readonly list: string
  readonly watch: string
  readonly create: string
  /** Body of a POST to `create`, different for each number. */
  body(number: number): Buffer
}

export interface SoakUpstreams {
  readonly object: UpstreamCluster
  /** SNI and :authority. */
  readonly host: string
  readonly certificate: KeyPair
  readonly paths: Paths
  readonly count: number
  /** Ends one of them as `kill -9` does. */
  kill(index: number): Promise<void>
  restart(index: number): Promise<void>
  stop(): Promise<void>
}

const STUB = join(import.meta.dirname, 'stub-process.ts')
const NAME = 'soak.example.com'

export async function startStubs(): Promise<SoakUpstreams> {
  const folder = mkdtempSync(join(tmpdir(), 'portcullis-soak-'))
  const clientCA = createCA({ commonName: 'clients of the soak' })
  const ports = await freePorts(2)
  const start = (port: number): ReturnType<typeof startProcess> =>
    startProcess({
      name: `stub ${port}`,
      command: process.execPath,
      args: [STUB, String(port)],
      logFile: join(folder, `stub-${port}.log`),
      ready: () => isListening(port),
    })
  const running = await Promise.all(ports.map(start))
  return {
    object: {
      apiVersion: 'proxy.kubegateway.io/v1alpha1',
      kind: 'UpstreamCluster',
      metadata: { name: NAME },
      spec: {
        servers: ports.map((port) => ({ endpoint: `https://127.0.0.1:${port}` })),
        clientConfig: { bearerToken: base64('gateway-token'), insecure: true },
        secureServing: { clientCAData: base64(clientCA.certPem) },
        dispatchPolicies: [ALLOW_ALL],
        healthCheck: { intervalSeconds: 1 },
      },
    },
    host: NAME,
    certificate: clientPair(clientCA, 'alice'),
    count: ports.length,
    paths: {
      object: '/api/v1/namespaces/default/pods/p',
      list: '/api/v1/pods',
      watch: '/api/v1/pods?watch=1',
      create: '/api/v1/namespaces/default/configmaps',
      body: (number) => Buffer.alloc(200 + ((number * 7_919) % 40_000), 'x'),
    },
    kill: async (index) => void (await running[index]?.stop(0)),
    restart: async (index) => {
      running[index] = await start(ports[index] ?? 0)
    },
    async stop() {
      await Promise.all(running.map((process) => process.stop(0)))
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

async function isListening(port: number): Promise<boolean> {
  const { connect } = await import('node:net')
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', () => resolve(false))
  })
}

export async function startApiservers(): Promise<SoakUpstreams> {
  const cluster = await startCluster({ apiservers: 2 })
  const configMaps = '/api/v1/namespaces/default/configmaps'
  const created = async (name: string, bytes: number): Promise<void> => {
    const body = { kind: 'ConfigMap', apiVersion: 'v1', metadata: { name }, data: { text: 'x'.repeat(bytes) } }
    await cluster.request(configMaps, { method: 'POST', body })
  }
  await Promise.all(Array.from({ length: 40 }, (_, i) => created(`large-${i}`, 50_000)))
  return {
    object: upstreamClusterFor(cluster, { spec: { healthCheck: { intervalSeconds: 1 } } }),
    host: hostOf(cluster.name),
    certificate: cluster.admin.cert,
    count: 2,
    paths: {
      object: '/api/v1/namespaces/default',
      list: configMaps,
      watch: `${configMaps}?watch=1`,
      create: configMaps,
      // A few names only: most of the writes are conflicts, and etcd does not grow.
      body: (number) =>
        Buffer.from(
          JSON.stringify({ kind: 'ConfigMap', apiVersion: 'v1', metadata: { name: `soak-${number % 50}` }, data: {} }),
        ),
    },
    kill: async (index) => void (await cluster.apiservers[index]?.kill()),
    restart: async (index) => void (await cluster.apiservers[index]?.restart()),
    stop: () => cluster.stop(),
  }
}
