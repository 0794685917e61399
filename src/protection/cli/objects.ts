// What `portcullis protect` reads: PodProtectors, and the clusters whose pods they protect.

import { UPSTREAM_CLUSTERS } from '../../api/kinds/scheme.ts'
import type { JsonObject } from '../../api/kube/json-object.ts'
import { isRecord } from '../../api/kube/object-shape.ts'
import { StatusError } from '../../api/kube/status.ts'
import type { ObjectClient } from '../../api/ports/object-client.ts'
import type { PodProtection } from '../../api/upstream-cluster/cluster-protection.ts'
import { metadataOf } from '../../cli/client/control-plane.ts'
import { compileProtection } from '../../core/cluster/compile-protection.ts'
import type { CompiledProtection } from '../../core/cluster/compiled-cluster.ts'
import { formatDuration } from '../../core/text/duration.ts'
import { POD_PROTECTORS } from '../api/pod-protector-kind.ts'
import { ProtectorTable } from '../state/protectors.ts'

/** @param namespace '' = all */
export async function listProtectors(client: ObjectClient, namespace: string): Promise<ProtectorTable> {
  const table = new ProtectorTable()
  table.replace((await client.list(POD_PROTECTORS, namespace)).items)
  return table
}

interface ProtectedCluster {
  readonly name: string
  /** undefined = its pods are not protected. */
  readonly protection: CompiledProtection | undefined
}

/** Empty if the API server has no UpstreamClusters or does not show them: PodProtectors may be in another API server. */
export async function listProtectedClusters(client: ObjectClient): Promise<readonly ProtectedCluster[]> {
  try {
    return (await client.list(UPSTREAM_CLUSTERS, '')).items.map(protectedCluster)
  } catch (error) {
    if (error instanceof StatusError && (error.code === 403 || error.code === 404)) return []
    throw error
  }
}

function protectedCluster(object: JsonObject): ProtectedCluster {
  const { name } = metadataOf(object)
  const protection = podProtectionOf(object)
  return { name, protection: protection === undefined ? undefined : compileProtection(protection, name) }
}

export function podProtectionOf(object: JsonObject): PodProtection | undefined {
  const spec = object['spec']
  const protection = isRecord(spec) ? spec['podProtection'] : undefined
  return isRecord(protection) ? (protection as PodProtection) : undefined
}

/** Whole seconds: `1m30s`; '?' when it is not a time. */
export function ageText(time: string | undefined, nowMs: number): string {
  const ms = nowMs - Date.parse(time ?? '')
  return Number.isNaN(ms) ? '?' : formatDuration(Math.max(0, Math.floor(ms / 1000) * 1000))
}
