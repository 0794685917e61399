// The UpstreamClusters as delivered by the API server, with what has been written to each.

import type { JsonObject } from '../../../kit/api/json/json-object.ts'
import type { ClientsSeen, GatewayProtection, UpstreamClusterStatus } from '../../api/upstream-cluster/status.ts'
import type { ShownCache } from '../../core/status/cached-resources.ts'

/** Known state of one object. */
export interface KnownCluster {
  object: JsonObject
  generation: number
  /** When this generation was first seen: monotonic milliseconds. */
  seenAtMs: number
  /** The last status written, and the server's answer. */
  wanted: UpstreamClusterStatus | undefined
  answered: unknown
  /** `liveSignature` at the last sweep. */
  signature: string
  /** The shared-limits message in this replica's entry. */
  limitsMessage: string
  /** The pod protection state in this replica's entry. */
  podProtection: GatewayProtection | undefined
  /** This replica's entry about spec.cache. */
  cache: ShownCache | undefined
  /** The clients in this replica's entry. */
  lastSeen: ClientsSeen | undefined
  /** The refused disruptive requests in this replica's entry. */
  refused: number
}

/** @param nowMs monotonic milliseconds */
export function keepCluster(object: JsonObject, known: KnownCluster | undefined, nowMs: number): KnownCluster {
  const generation = generationOf(object)
  if (known === undefined) return { ...NEW, object, generation, seenAtMs: nowMs }
  const seenAtMs = known.generation === generation ? known.seenAtMs : nowMs
  return Object.assign(known, { object, generation, seenAtMs })
}

const NEW = {
  wanted: undefined,
  answered: undefined,
  signature: '',
  limitsMessage: '',
  podProtection: undefined,
  cache: undefined,
  lastSeen: undefined,
  refused: 0,
}

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
