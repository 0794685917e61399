// How this replica protects pods, as statuses and the dashboard show it.

import type { GatewayProtection } from './upstream-cluster/status.ts'

export interface PodProtectionInForce {
  /** How it protects the pods of a cluster; undefined = the cluster does not require it. */
  stateOf(cluster: string): GatewayProtection | undefined
  /** PodProtectors with pods in a cell; none until they are known. */
  protectorsIn(cell: string): ProtectorRows
}

export interface ProtectorRows {
  readonly rows: readonly ProtectorRow[]
  /** Number of omitted rows. */
  readonly omitted: number
}

/** A PodProtector in a cell at a glance. */
export interface ProtectorRow {
  readonly namespace: string
  readonly name: string
  readonly minAvailable: number
  readonly available: number
  /** Deletions that were admitted but not counted yet. */
  readonly pending: number
  /** Pods that may be deleted now. */
  readonly mayGo: number
  /** Names of pods that cannot be deleted, if this replica counts them. */
  readonly stuck: readonly string[]
  /** Number of pods that cannot be deleted. */
  readonly stuckCount: number
  readonly fault: string
}
