// Objects read by `portcullis protect`: PodProtectors, and the clusters whose pods they protect.

import { isNotFederated, metadataOf } from '../../cli/client/control-plane.ts'
import { type ClusterFederation, federationOf } from '../../cli/client/federated-members.ts'
import type { PodProtection } from '../../gateway/api/upstream-cluster/cluster-protection.ts'
import { UPSTREAM_CLUSTERS } from '../../gateway/api/upstream-cluster-kind.ts'
import { compileProtection } from '../../gateway/core/cluster/compile-protection.ts'
import type { CompiledProtection } from '../../gateway/core/cluster/compiled-cluster.ts'
import type { JsonObject } from '../../kit/api/json/json-object.ts'
import { isRecord } from '../../kit/api/json/object-shape.ts'
import { formatDuration } from '../../kit/core/text/duration.ts'
import type { ObjectClient } from '../../kube/api/object-client.ts'
import { StatusError } from '../../kube/api/status.ts'
import { POD_PROTECTORS } from '../api/pod-protector-kind.ts'
import { ProtectorTable } from '../state/protectors.ts'

/** @param namespace '' = all */
export async function listProtectors(client: ObjectClient, namespace: string): Promise<ProtectorTable> {
  const table = new ProtectorTable()
  table.replace((await client.list(POD_PROTECTORS, namespace)).items)
  return table
}

export interface ProtectedCluster {
  readonly name: string
  readonly object: JsonObject
  /** undefined = its pods are not protected. */
  readonly protection: CompiledProtection | undefined
  /** undefined = it has servers. */
  readonly federation: ClusterFederation | undefined
}

/**
 * Empty if the API server has no UpstreamClusters or doesn't allow reading them: PodProtectors may be in another API server.
 * @throws if it is a federated cluster
 */
export async function listProtectedClusters(client: ObjectClient): Promise<readonly ProtectedCluster[]> {
  try {
    return (await client.list(UPSTREAM_CLUSTERS, '')).items.map(protectedCluster)
  } catch (error) {
    // Names of cells and namespaces would be taken for those of the core.
    if (isNotFederated(error)) throw error
    if (error instanceof StatusError && (error.code === 403 || error.code === 404)) return []
    throw error
  }
}

function protectedCluster(object: JsonObject): ProtectedCluster {
  const { name } = metadataOf(object)
  const federation = federationOf(object)
  // It has no effect in a cluster with members.
  const protection = federation === undefined ? podProtectionOf(object) : undefined
  const compiled = protection === undefined ? undefined : compileProtection(protection, name)
  return { name, object, protection: compiled, federation }
}

export function podProtectionOf(object: JsonObject): PodProtection | undefined {
  const spec = object['spec']
  const protection = isRecord(spec) ? spec['podProtection'] : undefined
  return isRecord(protection) ? (protection as PodProtection) : undefined
}

/** Whole seconds: `1m30s`; '?' if it is not a time. */
export function ageText(time: string | undefined, nowMs: number): string {
  const ms = nowMs - Date.parse(time ?? '')
  return Number.isNaN(ms) ? '?' : formatDuration(Math.max(0, Math.floor(ms / 1000) * 1000))
}
