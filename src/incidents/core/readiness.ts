// Counts the nodes of a cluster by state, like the cluster-autoscaler, with its settings (cluster-autoscaler/clusterstate/clusterstate.go,
// updateReadinessStats).

const MINUTE_MS = 60_000

/** Settings of the cluster-autoscaler; `READINESS_DEFAULTS` has its defaults. */
export interface ReadinessOptions {
  /** `--max-node-provision-time`: from ordering a node to its registration. Milliseconds */
  readonly maxNodeProvisionMs: number
  /** `--max-node-startup-time`: from its registration until it must be ready. Milliseconds */
  readonly maxNodeStartupMs: number
  /** `--ok-total-unready-count`: up to this many unready nodes are healthy in any cluster. */
  readonly okTotalUnreadyCount: number
  /** `--max-total-unready-percentage`: so is up to this percentage of all nodes. */
  readonly maxTotalUnreadyPercentage: number
}

export const READINESS_DEFAULTS: ReadinessOptions = {
  maxNodeProvisionMs: 15 * MINUTE_MS,
  maxNodeStartupMs: 15 * MINUTE_MS,
  okTotalUnreadyCount: 3,
  maxTotalUnreadyPercentage: 45,
}

/** The parts of a Node that the autoscaler considers. */
export interface NodeState {
  readonly name: string
  /** '' = in no node group. */
  readonly group: string
  readonly providerID: string
  readonly createdMs: number
  /** Has the taint ToBeDeletedByClusterAutoscaler, or its instance is gone. */
  readonly deleted: boolean
  /** Condition Suspended. */
  readonly suspended: boolean
  /** Its conditions and taints allow pods. */
  readonly ready: boolean
}

/** A cloud instance without a Node, and when it was first seen. */
export interface UnregisteredNode {
  readonly group: string
  readonly providerID: string
  readonly sinceMs: number
}

/** Node counts. */
export interface Readiness {
  /** Nodes in the API server, in whatever state. */
  registered: number
  ready: number
  /** Not ready, and registered for too long. */
  unready: number
  /** Not ready, and registered for less than maxNodeStartupMs. */
  notStarted: number
  suspended: number
  deleted: number
  /** Instances without a Node. */
  unregistered: number
  /** Instances without a Node that are older than maxNodeProvisionMs. They are not counted in `unregistered`. */
  longUnregistered: number
}

export interface ClusterReadiness {
  readonly total: Readiness
  /** Groups without any node or instance have no entry. */
  readonly groups: ReadonlyMap<string, Readiness>
}

export function readiness(counts: Partial<Readiness> = {}): Readiness {
  const none = { registered: 0, ready: 0, unready: 0, notStarted: 0, suspended: 0, deleted: 0, unregistered: 0 }
  return { ...none, longUnregistered: 0, ...counts }
}

export function countNodes(
  nodes: readonly NodeState[],
  unregistered: readonly UnregisteredNode[],
  { maxNodeStartupMs, maxNodeProvisionMs }: Pick<ReadinessOptions, 'maxNodeStartupMs' | 'maxNodeProvisionMs'>,
  nowMs: number,
): ClusterReadiness {
  const total = readiness()
  const groups = new Map<string, Readiness>()
  const count = (group: string, key: keyof Readiness): void => {
    total[key]++
    if (group === '') return
    const own = groups.get(group) ?? readiness()
    own[key]++
    groups.set(group, own)
  }
  for (const node of nodes) {
    count(node.group, 'registered')
    count(node.group, stateOf(node, maxNodeStartupMs, nowMs))
  }
  for (const { group, sinceMs } of unregistered) {
    count(group, sinceMs + maxNodeProvisionMs < nowMs ? 'longUnregistered' : 'unregistered')
  }
  return { total, groups }
}

function stateOf(node: NodeState, maxNodeStartupMs: number, nowMs: number): keyof Readiness {
  if (node.deleted) return 'deleted'
  if (node.suspended) return 'suspended'
  if (node.ready) return 'ready'
  return node.createdMs + maxNodeStartupMs > nowMs ? 'notStarted' : 'unready'
}

type UnreadyBounds = Pick<ReadinessOptions, 'okTotalUnreadyCount' | 'maxTotalUnreadyPercentage'>

/** Strictly more than the count and strictly more than the percentage: an unhealthy cluster is not scaled. */
export function hasTooManyUnready(unready: number, all: number, bounds: UnreadyBounds): boolean {
  // In integers: 45 % of 20 is 9, whatever floating point makes of it.
  return unready > bounds.okTotalUnreadyCount && unready * 100 > bounds.maxTotalUnreadyPercentage * all
}
