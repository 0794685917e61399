// Fields that controllers read from UpstreamCluster objects.

import type { JsonObject } from '../../../kit/api/json/json-object.ts'
import type { UpstreamClusterStatus } from '../../api/upstream-cluster/status.ts'

interface ServedMetadata {
  readonly generation?: number
}

/** 1 for an object without a generation. */
export function generationOf(object: JsonObject): number {
  return metadataOf(object).generation ?? 1
}

function metadataOf(object: JsonObject): ServedMetadata {
  return (object['metadata'] ?? {}) as ServedMetadata
}

export function statusOf(object: JsonObject): UpstreamClusterStatus | undefined {
  const status = object['status']
  return typeof status === 'object' && status !== null ? (status as UpstreamClusterStatus) : undefined
}
