// How `portcullis protect why` reads a pod by default: through the gateway if a context points there, to its cluster or to a federated one, else as the
// gateway does, with the credential of the UpstreamCluster, else as kubectl would.

import { type ControlPlaneOptions, withControlPlane } from '../../cli/client/control-plane.ts'
import type { UpstreamCluster } from '../../gateway/api/upstream-cluster/upstream-cluster.ts'
import { UPSTREAM_CLUSTERS } from '../../gateway/api/upstream-cluster-kind.ts'
import { compileCluster } from '../../gateway/core/cluster/compile-cluster.ts'
import type { CompiledCluster } from '../../gateway/core/cluster/compiled-cluster.ts'
import { prefixedNamespace } from '../../gateway/core/federation/names.ts'
import { readNamedSecrets } from '../../gateway/io/secrets/references-at-write.ts'
import { createUpstreamKubeClient } from '../../gateway/io/upstream/kube-client.ts'
import type { JsonObject } from '../../kit/api/json/json-object.ts'
import { recordOf } from '../../kit/api/json/object-shape.ts'
import { SILENT } from '../../kit/api/ports.ts'
import { errorMessage } from '../../kit/api/validation/error-message.ts'
import { UserError } from '../../kit/api/validation/field-errors.ts'
import { PODS } from '../../kube/api/kinds/foreign-kinds.ts'
import { SECRETS } from '../../kube/api/kinds/secret-kind.ts'
import type { ObjectClient } from '../../kube/api/object-client.ts'
import { OWN_NAMESPACE } from '../../kube/api/own-names.ts'
import { StatusError } from '../../kube/api/status.ts'
import { createKubeClient, type KubeClient } from '../../kube/io/client.ts'
import { otherContexts } from '../../kube/io/contexts.ts'
import type { PodFacts } from '../api/protection.ts'
import { podFacts } from '../core/quota/pod-facts.ts'

/** What commands read of the cluster that has the pods. */
export type ObjectReads = Pick<ObjectClient, 'get' | 'list' | 'read'>

/** A federated cluster that shows the cluster as one of its members, under other names of namespaces. */
export interface FederatedWay {
  /** Its UpstreamCluster. */
  readonly object: JsonObject
  /** The name of the member in it. */
  readonly member: string
}

interface WorkerReading {
  /** Human-readable: `pod shop/web-1`. */
  readonly what: string
  /** The UpstreamCluster that has it; '' = unknown. */
  readonly upstream: string
  readonly through: readonly FederatedWay[]
  /** Kubeconfig of the API server that holds the objects; '' = as kubectl finds it. */
  readonly kubeconfig: string
  readonly context?: string
}

/**
 * Kubeconfig and context of the cluster that has the pod, or of the gateway in front of it. Default: a context that leads through
 * the gateway, else the credential of the UpstreamCluster, else as kubectl.
 */
export interface GivenWorker {
  readonly podKubeconfig?: string
  readonly podContext?: string
  /** Instead of one by kubeconfig: for tests. */
  readonly podClient?: ObjectClient
}

export function isGiven({ podKubeconfig, podContext, podClient }: GivenWorker): boolean {
  return podKubeconfig !== undefined || podContext !== undefined || podClient !== undefined
}

/** One way to read the pod, tried if the previous ones have failed. */
interface Way {
  readonly by: string
  /** As which member of a federated cluster; undefined = under its own names. */
  readonly member?: string
  open(): KubeClient | Promise<KubeClient>
}

/** The default of --secret-namespace in every cluster. The gateways' setting is unknown here: elsewhere a Secret needs its annotation. */
const SECRET_NAMESPACES = [OWN_NAMESPACE]
/** Timeout per way. */
const TIMEOUT_MS = 5_000

/**
 * Reads from the cluster given by --pod-kubeconfig and --pod-context, or through a federated cluster that they lead to.
 * @param asked rights and kind, for the message if they are missing
 * @param read throws a UserError if there is no such object
 */
export async function readGivenWorker<T>(
  { podKubeconfig, podContext, podClient }: GivenWorker,
  { through = [], ...asked }: Pick<ControlPlaneOptions, 'needs' | 'kind'> & Partial<Pick<WorkerReading, 'through'>>,
  read: (client: ObjectReads) => Promise<T>,
): Promise<T> {
  let found: { readonly value: T } | undefined
  let failure = ''
  const access: ControlPlaneOptions = {
    ...(podKubeconfig !== undefined && { kubeconfig: podKubeconfig }),
    ...(podContext !== undefined && { context: podContext }),
    ...(podClient !== undefined && { client: podClient }),
    out: () => undefined,
    err: (text) => {
      failure = text.replace(/^error: |\n$/g, '').replace('--kubeconfig', '--pod-kubeconfig')
    },
    owner: 'the cluster',
    ...asked,
  }
  await withControlPlane(access, async (client, server) => {
    const federated = through.find(({ object }) => leadsTo(server, object))
    found = { value: await read(federated === undefined ? client : asMember(client, federated.member)) }
    return 0
  })
  if (found === undefined) throw new UserError(failure, 'see --pod-kubeconfig and --pod-context')
  return found.value
}

/**
 * Reads by the first way that works.
 * @param objects of the API server that holds the UpstreamClusters
 * @param read throws a UserError if there is no such object
 * @returns what was read, and by which way
 * @throws {UserError} that lists the ways and why they failed
 */
export async function readByDefault<T>(
  objects: ObjectClient,
  reading: WorkerReading,
  read: (client: ObjectReads) => Promise<T>,
): Promise<{ readonly value: T; readonly by: string }> {
  const failures: string[] = []
  for (const way of await waysTo(objects, reading)) {
    let client: KubeClient | undefined
    try {
      client = await way.open()
      return { value: await read(way.member === undefined ? client : asMember(client, way.member)), by: way.by }
    } catch (error) {
      if (error instanceof UserError && client !== undefined) throw error
      failures.push(`${way.by}: ${errorMessage(error)}`)
    } finally {
      await client?.close()
    }
  }
  throw new UserError(
    `${reading.what} cannot be read (${failures.join('; ')})`,
    'give --pod-kubeconfig or --pod-context of the cluster that has it, or of the gateway in front of it',
  )
}

/** @param missing message if there is no such pod */
export async function readPodFacts(
  client: ObjectReads,
  at: { readonly namespace: string; readonly name: string },
  missing: UserError,
): Promise<PodFacts> {
  try {
    const facts = podFacts(await client.get(PODS, at))
    if (facts === undefined) throw new Error(`pod ${at.namespace}/${at.name} has no uid`)
    return facts
  } catch (error) {
    if (!(error instanceof StatusError) || error.code !== 404 || error.status.details?.name !== at.name) throw error
    throw missing
  }
}

async function waysTo(objects: ObjectClient, reading: WorkerReading): Promise<readonly Way[]> {
  const { upstream, through, kubeconfig: kubeconfigFile, context } = reading
  const asKubectl: Way = {
    by: 'as kubectl',
    open: () => createKubeClient({ kubeconfigFile: '', log: SILENT, timeoutMs: TIMEOUT_MS }),
  }
  if (upstream === '') return [asKubectl]
  const object = await objects.get(UPSTREAM_CLUSTERS, { namespace: '', name: upstream })
  // Its Secrets may still be unreadable.
  const cluster = compiledOf(object)
  const byContext = (name: string): Way => ({
    by: `through the gateway, by context ${name}`,
    open: () => createKubeClient({ kubeconfigFile, context: name, log: SILENT, timeoutMs: TIMEOUT_MS }),
  })
  const direct = gatewayContexts(object, kubeconfigFile, context).map(byContext)
  const federated = through.flatMap(({ object: of, member }) =>
    gatewayContexts(of, kubeconfigFile, context).map((name) => ({ ...byContext(name), member })),
  )
  const own: Way = {
    by: `as the gateway, at ${cluster.endpoints.map(({ url }) => url).join(', ')}`,
    open: async () => {
      const resolved = await readNamedSecrets(object, (at) => objects.get(SECRETS, at), SECRET_NAMESPACES)
      return upstreamClient(compiledOf(resolved))
    },
  }
  return [...direct, ...federated, own, asKubectl]
}

/** Served objects are valid. */
function compiledOf(object: JsonObject): CompiledCluster {
  return compileCluster({ object: object as unknown as UpstreamCluster, revision: '' })
}

/** Contexts whose server is the cluster as served by the gateway. */
function gatewayContexts(object: JsonObject, kubeconfigFile: string, context?: string): string[] {
  try {
    const { contexts } = otherContexts({ kubeconfigFile, ...(context !== undefined && { context }) })
    return contexts.flatMap(({ name, server }) => (leadsTo(server, object) ? [name] : []))
  } catch {
    return []
  }
}

/** Whether it is the gateway's `/clusters/NAME`, or one of the host names of the cluster. False for a federated cluster that cannot be read. */
function leadsTo(server: string, object: JsonObject): boolean {
  try {
    const { name, hosts } = compiledOf(object)
    const { hostname, pathname } = new URL(server)
    const byPath = pathname.replace(/\/+$/, '') === `/clusters/${name}`
    return byPath || (hosts.includes(hostname) && pathname === '/')
  } catch {
    return false
  }
}

/**
 * Reads a member through a federated cluster, which asks the member whether the user of the context may, and shows its namespaces under other names. It has
 * no `read`: what is in no namespace would be that of all members.
 */
function asMember(client: ObjectReads, member: string): ObjectReads {
  const shown = (namespace: string): string => prefixedNamespace(member, namespace)
  const asOwn = (object: JsonObject, namespace: string): JsonObject => {
    return { ...object, metadata: { ...recordOf(object['metadata']), namespace } }
  }
  return {
    get: async (kind, { namespace, name }) => {
      return asOwn(await client.get(kind, { namespace: shown(namespace), name }), namespace)
    },
    list: async (kind, namespace, labelSelector) => {
      const { items, resourceVersion } = await client.list(kind, shown(namespace), labelSelector)
      return { items: items.map((item) => asOwn(item, namespace)), resourceVersion }
    },
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
  const cluster = () => ({ compiled, endpoints })
  return createUpstreamKubeClient({ cluster, guard: undefined, log: SILENT, timeoutMs: TIMEOUT_MS })
}
