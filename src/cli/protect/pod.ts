// How `portcullis protect why` reads a pod when it is not told: through the gateway by a context that leads there, else as the gateway
// itself does, with the credential of the UpstreamCluster, else as kubectl would.

import { PODS } from '../../api/kinds/foreign-kinds.ts'
import { SECRETS, UPSTREAM_CLUSTERS } from '../../api/kinds/scheme.ts'
import { StatusError } from '../../api/kube/status.ts'
import type { ObjectClient } from '../../api/ports/object-client.ts'
import type { PodFacts } from '../../api/ports/protection.ts'
import type { UpstreamCluster } from '../../api/upstream-cluster/upstream-cluster.ts'
import { UserError } from '../../api/validation/field-errors.ts'
import { compileCluster } from '../../core/cluster/compile-cluster.ts'
import type { CompiledCluster } from '../../core/cluster/compiled-cluster.ts'
import { podFacts } from '../../core/protection/quota/pod-facts.ts'
import { createKubeClient, type KubeClient } from '../../io/kube/client.ts'
import { otherContexts } from '../../io/kube/contexts.ts'
import { readNamedSecrets } from '../../io/secrets/read-named-secrets.ts'
import { createUpstreamKubeClient } from '../../io/upstream/kube-client.ts'
import { SILENT } from '../client/control-plane.ts'

export interface PodReading {
  readonly namespace: string
  readonly name: string
  /** The UpstreamCluster that has it; '' = none is known. */
  readonly upstream: string
  /** Of the API server that holds the objects; '' = as kubectl finds it. */
  readonly kubeconfig: string
  readonly context?: string
}

/** One way to the pod, tried when those before it lead nowhere. */
interface Way {
  readonly by: string
  open(): KubeClient | Promise<KubeClient>
}

/** Of one way; a way that takes longer is none. */
const TIMEOUT_MS = 5_000

/**
 * @param objects of the API server that holds the UpstreamClusters
 * @returns the pod, and by which way it was read
 * @throws {UserError} that names the ways and why they did not lead there
 */
export async function readPodByDefault(
  objects: ObjectClient,
  reading: PodReading,
): Promise<{ readonly pod: PodFacts; readonly by: string }> {
  const failures: string[] = []
  for (const way of await waysTo(objects, reading)) {
    const found = await attempt(way, reading)
    if (typeof found !== 'string') return { pod: found, by: way.by }
    failures.push(`${way.by}: ${found}`)
  }
  throw new UserError(
    `pod ${reading.namespace}/${reading.name} cannot be read (${failures.join('; ')})`,
    'give --pod-kubeconfig or --pod-context of the cluster that has it, or of the gateway in front of it',
  )
}

/** Why it did not lead to the pod, as a text. @throws {UserError} when it led to the cluster, and there is no such pod */
async function attempt(way: Way, { namespace, name, upstream }: PodReading): Promise<PodFacts | string> {
  let client: KubeClient | undefined
  try {
    client = await way.open()
    return podFacts(await client.get(PODS, { namespace, name })) ?? 'the pod has no uid'
  } catch (error) {
    if (error instanceof StatusError && error.code === 404 && error.status.details?.name === name) {
      throw new UserError(
        `there is no pod ${namespace}/${name} in ${upstream || 'that cluster'}`,
        'see -n and --cluster',
      )
    }
    return error instanceof Error ? error.message : String(error)
  } finally {
    await client?.close()
  }
}

async function waysTo(objects: ObjectClient, reading: PodReading): Promise<readonly Way[]> {
  const { upstream, kubeconfig: kubeconfigFile, context } = reading
  const asKubectl: Way = {
    by: 'as kubectl',
    open: () => createKubeClient({ kubeconfigFile: '', log: SILENT, timeoutMs: TIMEOUT_MS }),
  }
  if (upstream === '') return [asKubectl]
  const object = await objects.get(UPSTREAM_CLUSTERS, { namespace: '', name: upstream })
  // Served objects have the form; whether its secrets can be had is another matter.
  const cluster = compileCluster({ object: object as unknown as UpstreamCluster, revision: '' })
  const through = gatewayContexts(cluster, kubeconfigFile, context).map((name): Way => {
    return {
      by: `through the gateway, by context ${name}`,
      open: () => createKubeClient({ kubeconfigFile, context: name, log: SILENT, timeoutMs: TIMEOUT_MS }),
    }
  })
  const own: Way = {
    by: `as the gateway, at ${cluster.endpoints.map(({ url }) => url).join(', ')}`,
    open: async () => {
      const resolved = await readNamedSecrets(object, (at) => objects.get(SECRETS, at))
      return upstreamClient(compileCluster({ object: resolved as unknown as UpstreamCluster, revision: '' }))
    },
  }
  return [...through, own, asKubectl]
}

/** Contexts whose server is the cluster as the gateway serves it: `/clusters/NAME`, or one of its host names. */
function gatewayContexts({ name, hosts }: CompiledCluster, kubeconfigFile: string, context?: string): string[] {
  try {
    const { contexts } = otherContexts({ kubeconfigFile, ...(context !== undefined && { context }) })
    return contexts.flatMap(({ name: one, server }) => {
      const { hostname, pathname } = new URL(server)
      const byPath = pathname.replace(/\/+$/, '') === `/clusters/${name}`
      return byPath || (hosts.includes(hostname) && pathname === '/') ? [one] : []
    })
  } catch {
    return []
  }
}

function upstreamClient(compiled: CompiledCluster): KubeClient {
  const endpoints = {
    all: compiled.endpoints.map(({ url, disabled }) => ({
      url,
      enabled: !disabled,
      health: { state: 'unknown' as const },
    })),
    available: () => true,
  }
  return createUpstreamKubeClient({ cluster: () => ({ compiled, endpoints }), log: SILENT, timeoutMs: TIMEOUT_MS })
}
