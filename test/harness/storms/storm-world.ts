// A gateway in a storm: its API server, its configuration and its restarts, all on ports and in folders that stay.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { UpstreamClusterSpec } from '../../../src/gateway/api/upstream-cluster/upstream-cluster.ts'
import { createCA, type KeyPair } from '../../../src/pki/io/pki.ts'
import { type GatewayOptions, startGateway, type TestGateway } from '../gateways/gateway.ts'
import { ALLOW_ALL, base64 } from '../objects/objects.ts'
import { apiserverCertificate, clientCertificate, writeKeyPair } from '../pki.ts'
import { freePorts } from '../ports.ts'
import { waitFor } from '../wait.ts'
import {
  type Crowd,
  type CrowdOptions,
  type CrowdStats,
  type StormUpstream,
  type StormUpstreamOptions,
  startCrowd,
  startStormUpstream,
} from './storm-program.ts'

export const STORM_HOST = 'storm.example.com'
export const STORM_PATH = '/api/v1/namespaces/storm/configmaps'
/** However slow the machine is. */
const ALL_BACK_MS = 300_000

export interface StormWorldOptions {
  /** Flags of `serve`. */
  readonly args?: readonly string[]
  /** Flags of Node itself. */
  readonly nodeArgs?: readonly string[]
  readonly spec?: Partial<UpstreamClusterSpec>
  readonly upstream?: Partial<StormUpstreamOptions>
  /** The URL and CA of a real kube-apiserver, and the token of the gateway there. Default: the storm's own. */
  readonly real?: { readonly url: string; readonly caPem: string; readonly token: string }
}

export class StormWorld {
  readonly port: number
  readonly upstreamPort: number
  readonly user: KeyPair
  readonly #options: StormWorldOptions
  readonly #dir: string
  readonly #clientCA: KeyPair
  readonly #clientCAFiles: { readonly cert: string; readonly key: string }
  readonly #upstreamCA: KeyPair
  readonly #upstreamFiles: { readonly cert: string; readonly key: string }
  readonly #crowds: Crowd[] = []
  readonly #replicas: TestGateway[] = []
  #version = 1000
  #gateway: TestGateway | undefined
  #upstream: StormUpstream | undefined

  static async create(options: StormWorldOptions = {}): Promise<StormWorld> {
    const [port = 0, upstreamPort = 0] = await freePorts(2)
    return new StormWorld(options, port, upstreamPort)
  }

  private constructor(options: StormWorldOptions, port: number, upstreamPort: number) {
    this.#options = options
    this.port = port
    this.upstreamPort = upstreamPort
    this.#dir = mkdtempSync(join(tmpdir(), 'portcullis-storm-'))
    this.#clientCA = createCA({ commonName: 'clients of the storm' })
    this.#clientCAFiles = writeKeyPair(this.#dir, 'clients', this.#clientCA)
    this.#upstreamCA = createCA({ commonName: 'storm upstream' })
    this.#upstreamFiles = writeKeyPair(this.#dir, 'upstream', apiserverCertificate(this.#upstreamCA))
    this.user = clientCertificate(this.#clientCA, { commonName: 'established', organizations: ['storm'] })
  }

  get gateway(): TestGateway {
    if (this.#gateway === undefined) throw new Error('the gateway does not run')
    return this.#gateway
  }

  get upstream(): StormUpstream {
    if (this.#upstream === undefined) throw new Error('the upstream does not run')
    return this.#upstream
  }

  get upstreamURL(): string {
    return this.#options.real?.url ?? `https://127.0.0.1:${this.upstreamPort}`
  }

  /** A resourceVersion of its own each time: what was watched before has expired. */
  async startUpstream(options: Partial<StormUpstreamOptions> = {}): Promise<void> {
    this.#upstream = await startStormUpstream({
      port: this.upstreamPort,
      ...this.#upstreamFiles,
      ...this.#options.upstream,
      version: this.#version,
      ...options,
    })
    this.#version += 1000
  }

  /** Its connections break, and no server listens. */
  async killUpstream(): Promise<void> {
    await this.#upstream?.kill()
    this.#upstream = undefined
  }

  /** On the same port and with what it has written before. */
  async startGateway(): Promise<TestGateway> {
    this.#gateway = await startGateway({
      ...this.#gatewayOptions(),
      own: `127.0.0.1:${this.port}`,
      dataDir: join(this.#dir, 'data'),
    })
    return this.#gateway
  }

  #gatewayOptions(): GatewayOptions {
    const { real, spec, args = [], nodeArgs = [] } = this.#options
    const own = { url: this.upstreamURL, caPem: this.#upstreamCA.certPem, token: 'gateway-token' }
    const { url, caPem, token } = real ?? own
    return {
      args,
      nodeArgs,
      clusters: [
        {
          apiVersion: 'proxy.kubegateway.io/v1alpha1',
          kind: 'UpstreamCluster',
          metadata: { name: STORM_HOST },
          spec: {
            servers: [{ endpoint: url }],
            clientConfig: { bearerToken: base64(token), caData: base64(caPem) },
            secureServing: { clientCAData: base64(this.#clientCA.certPem) },
            dispatchPolicies: [ALLOW_ALL],
            healthCheck: { intervalSeconds: 1 },
            ...spec,
          },
        },
      ],
    }
  }

  /** Without a drain. */
  async killGateway(): Promise<void> {
    await this.#gateway?.stop('SIGKILL')
    this.#gateway = undefined
  }

  /** As a rolling update ends it: SIGTERM, and it is gone when nothing runs any more. */
  async drainGateway(): Promise<void> {
    await this.#gateway?.stop('SIGTERM')
    this.#gateway = undefined
  }

  async crowd(
    options: Omit<CrowdOptions, 'servers' | 'host' | 'ca'> & Partial<Pick<CrowdOptions, 'servers'>>,
  ): Promise<Crowd> {
    const crowd = await startCrowd({
      servers: [`127.0.0.1:${this.port}`],
      host: STORM_HOST,
      ca: this.#clientCAFiles,
      ...options,
    })
    this.#crowds.push(crowd)
    return crowd
  }

  /** A second replica, which reads the same objects. */
  async startReplica(): Promise<TestGateway> {
    const replica = await startGateway({ ...this.#gatewayOptions(), configDir: this.gateway.configDir })
    this.#replicas.push(replica)
    return replica
  }

  async stop(): Promise<void> {
    for (const crowd of this.#crowds) await crowd.kill()
    for (const gateway of [...this.#replicas, this.#gateway]) await gateway?.stop('SIGKILL')
    await this.killUpstream()
    rmSync(this.#dir, { recursive: true, force: true })
  }
}

/** When every client has a watch. */
export function allWatching(crowd: Crowd, timeoutMs: number = ALL_BACK_MS): Promise<CrowdStats> {
  return waitFor(
    'every client to have a watch',
    async () => {
      const stats = await crowd.command('stats')
      const { watching, clients, handshakes, answers } = stats
      if (watching === clients) return stats
      throw new Error(`${watching} of ${clients} after ${handshakes} handshakes: ${JSON.stringify(answers)}`)
    },
    { timeoutMs, intervalMs: 200 },
  )
}
