// Observed health of a cluster: its nodes, and how its API servers respond. Input to the rules that change the degrade mode automatically; missing
// data never triggers a decision.

/** Keyed by UpstreamCluster name. All answers come from memory. */
export interface ClusterHealth {
  /** undefined = this cluster's nodes are not watched here or were never listed: no decision. */
  nodes(cluster: string): NodesSeen | undefined
  /** undefined = responses of this cluster are not counted: no decision. */
  upstream(cluster: string): UpstreamSeen | undefined
  /** Distinct disruptive requests (by user, verb and object) that this replica refused in the last minute. */
  refusedDisruptive(cluster: string): number
}

/** Nodes that match the cluster's selector, counted by the cluster-autoscaler's formula. */
export interface NodesSeen {
  readonly ready: number
  /** Not ready, and registered longer ago than a node takes to start. */
  readonly unready: number
  /** All registered nodes, including those that are starting, suspended or being deleted. */
  readonly total: number
  /** Not ready, and too young to count as unready. */
  readonly notStarted: number
  /** All nodes have been listed, and the watch has not lost its position since. */
  readonly complete: boolean
  /** Node events are complete up to this time. Monotonic milliseconds of this process */
  readonly observedAtMs: number
  /** Why nodes cannot be observed; '' = they can. For people */
  readonly message: string
}

/** Upstream responses in a sliding window that ends at `observedAtMs`, excluding watches and other long-running requests. */
export interface UpstreamSeen {
  /** Requests that were sent to an endpoint. */
  readonly requests: number
  /** Requests that failed: 5xx from upstream, or no response (connection and TLS errors, resets, timeouts). */
  readonly failed5xx: number
  /** 99th percentile of the time to the response head, milliseconds: upper bound of its bucket. */
  readonly p99Ms: number
  /** The median, likewise. */
  readonly medianMs: number
  /** Monotonic milliseconds of this process */
  readonly observedAtMs: number
}
