// Clusters that are read as one, and those who read them.

import type { UpstreamCluster } from '../../../src/gateway/api/upstream-cluster/upstream-cluster.ts'
import { createCA, type KeyPair } from '../../../src/pki/io/pki.ts'
import { WatchLines } from '../clients/watch-lines.ts'
import type { TestCluster } from '../clusters/cluster.ts'
import { type KubeRequest, type KubeResponse, kubeRequest } from '../clusters/kube-request.ts'
import { base64, type Credentials } from '../clusters/kubeconfig.ts'
import { type CachedResources, grantCacheUser } from '../clusters/read-cache.ts'
import { hostOf, upstreamClusterFor } from '../clusters/upstream-cluster.ts'
import { clientCertificate, gatewayCA } from '../pki.ts'

const PODS: CachedResources = [{ version: 'v1', resource: 'pods' }]
export const ALL_PODS = '/api/v1/pods'
const DEFAULT_PODS = '/api/v1/namespaces/default/pods'

/** Signs the users of the federated cluster, and of its members. */
export const federatedUsersCA: KeyPair = createCA({ commonName: 'users of all' })
/** May read pods in all members that name her. */
export const alice: Credentials = userNamed('alice')

export function userNamed(commonName: string, organizations: readonly string[] = []): Credentials {
  return { cert: clientCertificate(federatedUsersCA, { commonName, organizations }) }
}

/** Lets the read cache and these users read pods, and makes two. */
export async function prepareMember(cluster: TestCluster, readers: readonly string[]): Promise<void> {
  await grantReads(cluster, readers, PODS)
  const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'default' } }
  await cluster.apply(`---\n${JSON.stringify(account)}\n`)
  for (const name of ['web', `only-${cluster.name}`]) await createPod(cluster, name)
}

/** Lets the read cache and these users read `resources`. */
export async function grantReads(
  cluster: TestCluster,
  readers: readonly string[],
  resources: CachedResources,
): Promise<void> {
  await grantCacheUser(cluster, resources)
  const role = { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole', metadata: { name: 'pod-reader' } }
  const subjects = readers.map((name) => ({ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name }))
  const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'pod-reader' }
  const rules = resources.map(({ group = '', resource }) => {
    return { apiGroups: [group], resources: [resource], verbs: ['get', 'list', 'watch'] }
  })
  const objects = [
    { ...role, rules },
    { ...role, kind: 'ClusterRoleBinding', roleRef, subjects },
  ]
  await cluster.apply(objects.map((object) => `---\n${JSON.stringify(object)}\n`).join(''))
}

/** The members, and `all`, which is read from them. `federation.resources`: default pods. */
export function federatedClusters(
  members: readonly TestCluster[],
  { resources = PODS, ...federation }: { readonly resources?: CachedResources; readonly [field: string]: unknown } = {},
): UpstreamCluster[] {
  const [first] = members
  if (first === undefined) throw new Error('a federated cluster has members')
  const { secureServing, dispatchPolicies } = upstreamClusterFor(first, { name: 'all' }).spec
  const all = upstreamClusterFor(first, { name: 'all' })
  const spec = {
    secureServing: { ...secureServing, clientCAData: base64(federatedUsersCA.certPem) },
    dispatchPolicies,
    members: members.map(({ name }) => ({ name, trustUsers: true })),
    federation: { resources, ...federation },
  }
  const cached = {
    cache: resources,
    healthCheck: { intervalSeconds: 1, timeoutSeconds: 1 },
  }
  return [
    ...members.map((cluster) => upstreamClusterFor(cluster, { spec: cached })),
    { ...all, spec } as unknown as UpstreamCluster,
  ]
}

export async function createPod(cluster: TestCluster, name: string): Promise<string> {
  const body = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, labels: { of: cluster.name } },
    spec: { containers: [{ name: 'c', image: 'c' }] },
  }
  return versionOf(await cluster.request(DEFAULT_PODS, { method: 'POST', body }))
}

export async function labelPod(cluster: TestCluster, name: string, value: string): Promise<string> {
  return versionOf(
    await cluster.request(`${DEFAULT_PODS}/${name}`, {
      method: 'PATCH',
      body: { metadata: { labels: { value } } },
      headers: { 'content-type': 'application/merge-patch+json' },
    }),
  )
}

export async function deletePod(cluster: TestCluster, name: string): Promise<void> {
  await cluster.request(`${DEFAULT_PODS}/${name}?gracePeriodSeconds=0`, { method: 'DELETE' })
}

function versionOf({ status, text, json }: KubeResponse): string {
  if (status >= 300) throw new Error(text)
  return json().metadata.resourceVersion
}

interface Asking extends Partial<KubeRequest> {
  /** metadata.name of the UpstreamCluster. Default: all. */
  readonly cluster?: string
}

/** As alice, unless told otherwise. */
export function readThrough(
  gateway: { readonly port: number },
  path: string,
  { cluster = 'all', ...more }: Asking = {},
): Promise<KubeResponse> {
  return kubeRequest({
    server: `https://127.0.0.1:${gateway.port}`,
    serverName: hostOf(cluster),
    ca: gatewayCA().certPem,
    user: alice,
    path,
    ...more,
  })
}

export function watchThrough(gateway: { readonly port: number }, path: string, user: Credentials = alice): WatchLines {
  return new WatchLines({ server: `https://127.0.0.1:${gateway.port}`, serverName: hostOf('all'), path, user })
}

export interface ShownItem {
  readonly metadata: {
    readonly namespace: string
    readonly name: string
    readonly resourceVersion: string
    readonly annotations: Readonly<Record<string, string>>
  }
}

export function shownNames(items: readonly ShownItem[]): string[] {
  return items.map(({ metadata }) => `${metadata.namespace}/${metadata.name}`)
}

interface SeenEvent {
  readonly type: string
  /** '' = it has none, as bookmarks. */
  readonly name: string
  readonly version: string
}

export function seenEvents(watch: WatchLines): readonly SeenEvent[] {
  return watch.events.map(({ type, object: { metadata } }) => ({
    type,
    name: metadata.name === undefined ? '' : `${metadata.namespace}/${metadata.name}`,
    version: metadata.resourceVersion,
  }))
}
