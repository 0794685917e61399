// What tests of spec.cache share: the rights of the user that the gateway reads as, requests and watches through a gateway, and what it has counted.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { UpstreamClusterSpec } from '../../../src/gateway/api/upstream-cluster/upstream-cluster.ts'
import { WatchLines } from '../clients/watch-lines.ts'
import type { TestGateway } from '../gateways/gateway.ts'
import { gatewayCA } from '../pki.ts'
import type { TestCluster } from './cluster.ts'
import { type KubeRequest, type KubeResponse, kubeRequest } from './kube-request.ts'
import { hostOf } from './upstream-cluster.ts'

const RBAC = join(import.meta.dirname, '../../../deploy/rbac/read-cache.yaml')

export type CachedResources = NonNullable<UpstreamClusterSpec['cache']>

/** As deploy/rbac/read-cache.yaml, which names pods, with all `resources`. */
export async function grantCacheUser(
  cluster: TestCluster,
  resources: CachedResources = [{ version: 'v1', resource: 'pods' }],
): Promise<void> {
  await cluster.apply(readFileSync(RBAC, 'utf8'))
  const rules = resources.map(({ group = '', resource }) => {
    return { apiGroups: [group], resources: [resource], verbs: ['list', 'watch'] }
  })
  const path = '/apis/rbac.authorization.k8s.io/v1/clusterroles/portcullis-read-cache'
  const headers = { 'content-type': 'application/merge-patch+json' }
  const { status, text } = await cluster.request(path, { method: 'PATCH', headers, body: { rules } })
  if (status !== 200) throw new Error(`the cache's rights: ${text}`)
}

export function through(
  gateway: Pick<TestGateway, 'port'>,
  cluster: TestCluster,
  path: string,
  options: Partial<KubeRequest> = {},
): Promise<KubeResponse> {
  return kubeRequest({ ...doorOf(gateway, cluster), ca: gatewayCA().certPem, user: cluster.admin, path, ...options })
}

export function watchThrough(
  gateway: Pick<TestGateway, 'port'>,
  cluster: TestCluster,
  path: string,
  user: KubeRequest['user'] = cluster.admin,
): WatchLines {
  return new WatchLines({ ...doorOf(gateway, cluster), path, user })
}

function doorOf({ port }: Pick<TestGateway, 'port'>, { name }: TestCluster): { server: string; serverName: string } {
  return { server: `https://127.0.0.1:${port}`, serverName: hostOf(name) }
}

/** portcullis_cache_requests_total by result, of one resource (`pods`, `deployments.apps`) or of all. */
export async function cacheResults(
  gateway: Pick<TestGateway, 'metrics'>,
  resource?: string,
): Promise<Readonly<Record<string, number>>> {
  const text = await gateway.metrics()
  const sums: Record<string, number> = {}
  for (const [, labels = '', count] of text.matchAll(/^portcullis_cache_requests_total\{(.*)\} (\d+)$/gm)) {
    const [, of] = /resource="([^"]*)"/.exec(labels) ?? []
    const [, result = ''] = /result="(\w+)"/.exec(labels) ?? []
    if (resource === undefined || of === resource) sums[result] = (sums[result] ?? 0) + Number(count)
  }
  return sums
}

export interface CacheState {
  readonly resource: string
  readonly objects: number
  readonly bytes: number
  /** Everything up to it is known; '' = nothing yet. */
  readonly resourceVersion: string
  /** '' = it is followed. */
  readonly message: string
}

/** What the gateway keeps, as it tells operators. */
export async function cacheStates(gateway: Pick<TestGateway, 'admin'>): Promise<readonly CacheState[]> {
  return JSON.parse((await gateway.admin('/debug/config')).text).readCache
}

/** What the cluster serves that can be listed and watched, each in the version that it prefers. */
export async function cacheableResources(cluster: TestCluster): Promise<CachedResources> {
  const groups: readonly DiscoveredGroup[] = (await cluster.request('/apis')).json().groups
  const versions = [
    { group: '', version: 'v1', path: '/api/v1' },
    ...groups.map(({ name: group, preferredVersion: { version } }) => {
      return { group, version, path: `/apis/${group}/${version}` }
    }),
  ]
  const found = await Promise.all(
    versions.map(async ({ group, version, path }) => {
      const resources: readonly DiscoveredResource[] = (await cluster.request(path)).json().resources
      return resources
        .filter(({ name, verbs }) => !name.includes('/') && verbs.includes('list') && verbs.includes('watch'))
        .map(({ name: resource }) => ({ group, version, resource }))
    }),
  )
  return found.flat()
}

interface DiscoveredGroup {
  readonly name: string
  readonly preferredVersion: { readonly version: string }
}

interface DiscoveredResource {
  readonly name: string
  readonly verbs: readonly string[]
}
