// The scene of the other attacks, on a gateway with a limit of memory, and beside its cluster one of a hostile operator for each kind of call.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { UC_PATH } from '../../harness/gateways/embedded.ts'
import { ALLOW_ALL, base64 } from '../../harness/objects/objects.ts'
import { bundledCommand, type Scene, startScene } from '../scene.ts'
import { stallsOf } from '../stalls.ts'
import { type CallKind, callsIn, ISSUER_AUDIENCE } from './calls.ts'
import { HostileEndpoints } from './hostile-endpoints.ts'

export interface EndpointFacts {
  readonly running: boolean
  /** Gateway threads that were replaced. */
  readonly restarts: number
  /** The most that was resident since the attack began. */
  readonly residentBytes: number
  /** What the gateway says is the most that it takes. */
  readonly ceilingBytes: number
  readonly stalls: number
}

export interface EndpointScene {
  readonly scene: Scene
  facts(): Promise<EndpointFacts>
  /**
   * What comes while calls of every kind are answered so, each of a cluster that is made for it.
   * @returns how many answers there were, by kind of call
   */
  during(
    answer: string,
    what: (answered: () => Promise<Readonly<Record<string, number>>>) => Promise<void>,
  ): Promise<Readonly<Record<string, number>>>
  stop(): Promise<void>
}

export async function startEndpointScene(memoryLimit: string): Promise<EndpointScene> {
  const dir = mkdtempSync(join(tmpdir(), 'portcullis-endpoints-'))
  const endpoints = await HostileEndpoints.start()
  const caFile = join(dir, 'hostile-ca.pem')
  writeFileSync(caFile, endpoints.ca.certPem)
  const flags = [
    `--memory-limit=${memoryLimit}`,
    `--control-oidc-issuer-url=https://localhost:${endpoints.ports['oidc-discovery']}`,
    '--control-oidc-client-id=portcullis',
    `--control-oidc-ca-file=${caFile}`,
  ]
  const scene = await startScene({ threads: 1, program: await bundledCommand(), flags })
  const { embedded } = scene
  return {
    scene,
    async facts() {
      const text = await embedded.gateway.metrics()
      return {
        running: embedded.gateway.running,
        restarts: sample(text, 'thread_restarts_total'),
        residentBytes: residentBytes(embedded.gateway.pid),
        ceilingBytes: sample(text, 'memory_ceiling_bytes'),
        stalls: await stallsOf(embedded.gateway),
      }
    },
    async during(answer, what) {
      const calls = callsIn(answer).filter(({ provider }) => provider === undefined)
      const clusters = Object.fromEntries(calls.map(({ name }) => [name, `${name}.${answer}.example.com`]))
      const made: string[] = []
      const create = async (collection: string, object: object, name: string): Promise<void> => {
        const { code, text } = await embedded.admin.post(collection, object)
        if (code !== 201) throw new Error(`${name}: ${code} ${text}`)
        made.unshift(`${collection}/${name}`)
      }
      // The peak begins anew (proc_pid_clear_refs(5)).
      writeFileSync(`/proc/${embedded.gateway.pid}/clear_refs`, '5')
      await endpoints.attack(answer, clusters, embedded.gateway.port)
      try {
        for (const call of calls) {
          const { name, object } = call
          const cluster = clusters[name] ?? ''
          await create(UC_PATH, clusterOf(endpoints, cluster, call), cluster)
          if (object !== undefined) await create(...object(cluster), cluster)
        }
        await what(() => endpoints.answered())
        return await endpoints.answered()
      } finally {
        await endpoints.calm()
        for (const path of made) await embedded.admin.delete(path)
      }
    },
    async stop() {
      endpoints.end()
      await scene.stop()
      rmSync(dir, { recursive: true, force: true })
    },
  }
}

function clusterOf({ ports, ca }: HostileEndpoints, name: string, { name: call, spec, issuer }: CallKind): object {
  const jwt = {
    issuer: {
      url: `https://localhost:${ports[call]}`,
      certificateAuthority: ca.certPem,
      audiences: [ISSUER_AUDIENCE],
    },
    claimMappings: { username: { claim: 'sub', prefix: '' } },
  }
  return {
    apiVersion: 'proxy.kubegateway.io/v1alpha1',
    kind: 'UpstreamCluster',
    metadata: { name },
    spec: {
      servers: [{ endpoint: `https://127.0.0.1:${ports[call]}` }],
      // A cluster that follows its EndpointSlices has to name the server of its certificates.
      clientConfig: { bearerToken: base64('gateway-token'), caData: base64(ca.certPem), serverName: 'localhost' },
      secureServing: { clientCAData: base64(ca.certPem) },
      healthCheck: { intervalSeconds: 1, timeoutSeconds: 1 },
      dispatchPolicies: [ALLOW_ALL],
      ...(issuer && { authentication: { jwt: [jwt] } }),
      ...spec,
    },
  }
}

function residentBytes(pid: number): number {
  return 1024 * Number(/VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0)
}

/** The sum of all rows. */
function sample(metrics: string, name: string): number {
  const rows = metrics.matchAll(new RegExp(`^portcullis_${name}(?:\\{[^}]*\\})? ([\\d.e+]+)`, 'gm'))
  return Array.from(rows, ([, value]) => Number(value)).reduce((sum, value) => sum + value, 0)
}
