// `portcullis protect dry-run`: makes protection evaluate and count but refuse nothing, or refuse again, and waits until that is in force
// everywhere.

import {
  type ControlPlaneOptions,
  getCluster,
  metadataOf,
  readPositiveDuration,
  withControlPlane,
} from '../../cli/client/control-plane.ts'
import { type ClusterFederation, federationOf } from '../../cli/client/federated-members.ts'
import { waitApplied } from '../../cli/client/wait-applied.ts'
import type { UpstreamClusterStatus } from '../../gateway/api/upstream-cluster/status.ts'
import { UPSTREAM_CLUSTERS } from '../../gateway/api/upstream-cluster-kind.ts'
import { conditionOf } from '../../gateway/core/status/cluster-status.ts'
import { UserError } from '../../kit/api/validation/field-errors.ts'
import { parseDuration } from '../../kit/core/text/duration.ts'
import type { ObjectClient } from '../../kube/api/object-client.ts'
import { StatusError } from '../../kube/api/status.ts'
import { listProtectedClusters, podProtectionOf } from './objects.ts'

export interface ProtectDryRunOptions extends ControlPlaneOptions {
  /** `on`: nothing is refused. `off`: protection refuses. */
  readonly mode: string
  /** Default: all with spec.podProtection. */
  readonly clusters: readonly string[]
  /** Timeout for each. Default 30s. */
  readonly timeout?: string
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

const MANAGER = 'portcullis-protect'
/** Attempts if other writes conflict. */
const MAX_ATTEMPTS = 5

/** Resolves with the exit code: 1 after an error, or if a replica doesn't have it in force in time. */
export function protectDryRun(options: ProtectDryRunOptions): Promise<number> {
  return withControlPlane(options, async (client) => {
    const { mode, now, out, err } = options
    if (mode !== 'on' && mode !== 'off') {
      throw new UserError(`${JSON.stringify(mode)} is neither on nor off`, 'write on or off, then names of clusters')
    }
    const shadow = mode === 'on'
    const timeoutMs = readPositiveDuration('--timeout', options.timeout ?? '30s', parseDuration)
    const clusters = await chosenClusters(client, options.clusters)
    // Switch all before waiting for any: it may be urgent.
    for (const cluster of clusters) {
      const { changed, generation } = await setShadow(client, cluster, shadow)
      const what = shadow ? 'protection refuses nothing' : 'protection refuses'
      out(`${cluster}: dry run ${changed ? 'is' : 'was already'} ${mode}, ${what} (generation ${generation})\n`)
    }
    let code = 0
    for (const cluster of clusters) {
      if ((await waitApplied({ client, timeoutMs, now, out, err }, cluster)) !== 0) code = 1
      const fault = shadow ? '' : await faultOf(client, cluster)
      if (fault !== '') {
        err(`error: the pods of ${cluster} are still not protected: ${fault}\n`)
        code = 1
      }
    }
    return code
  })
}

/** Protection being on doesn't mean that pods are protected: they must also be counted. */
async function faultOf(client: ObjectClient, name: string): Promise<string> {
  const object = await client.get(UPSTREAM_CLUSTERS, { namespace: '', name })
  const condition = conditionOf((object['status'] ?? {}) as UpstreamClusterStatus, 'PodsProtected')
  const broken = condition?.status === 'False' && (condition.reason === 'Broken' || condition.reason === 'Forbidden')
  return broken ? condition.message : ''
}

/** Checks all names before anything is written. A federated cluster stands for those of its members whose pods are protected. */
async function chosenClusters(client: ObjectClient, names: readonly string[]): Promise<readonly string[]> {
  const chosen = new Set<string>()
  for (const name of names) {
    const object = await getCluster(client, name)
    const federation = federationOf(object)
    if (federation === undefined && podProtectionOf(object) === undefined) throw unprotected(name)
    if (federation === undefined) chosen.add(name)
    else for (const member of await protectedMembers(client, federation)) chosen.add(member)
  }
  if (names.length > 0) return [...chosen]
  const all = (await listProtectedClusters(client)).filter(({ protection }) => protection !== undefined)
  if (all.length > 0) return all.map(({ name }) => name).sort()
  throw new UserError('no UpstreamCluster has spec.podProtection', 'is --kubeconfig the right one?')
}

async function protectedMembers(client: ObjectClient, federation: ClusterFederation): Promise<readonly string[]> {
  const found: string[] = []
  for (const { cluster } of federation.members) {
    if (podProtectionOf(await getCluster(client, cluster)) !== undefined) found.push(cluster)
  }
  if (found.length > 0) return found
  const members = federation.members.map(({ cluster }) => cluster).join(', ')
  throw new UserError(
    `no member of ${federation.name} has spec.podProtection`,
    `nothing is refused there; to protect their pods, add podProtection to ${members}`,
  )
}

/** Patching such a cluster would enable protection. */
function unprotected(name: string): UserError {
  return new UserError(
    `${name} has no spec.podProtection`,
    'nothing is refused there; to protect it, add podProtection',
  )
}

async function setShadow(
  client: ObjectClient,
  name: string,
  shadow: boolean,
): Promise<{ changed: boolean; generation: number }> {
  const at = { namespace: '', name }
  for (let attempt = 1; ; attempt++) {
    const object = await client.get(UPSTREAM_CLUSTERS, at)
    const { resourceVersion, generation = 1 } = metadataOf(object)
    const protection = podProtectionOf(object)
    if (protection === undefined) throw unprotected(name)
    if ((protection.shadow ?? false) === shadow) return { changed: false, generation }
    const patch = { metadata: { resourceVersion }, spec: { podProtection: { shadow } } }
    try {
      const options = { fieldManager: MANAGER }
      const after = await client.patch(UPSTREAM_CLUSTERS, at, 'application/merge-patch+json', patch, options)
      return { changed: true, generation: metadataOf(after).generation ?? 1 }
    } catch (error) {
      if (!(error instanceof StatusError) || error.code !== 409 || attempt === MAX_ATTEMPTS) throw error
    }
  }
}
