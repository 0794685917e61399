// What is seen of the health of a cluster: its nodes, and how its apiservers answer. Rules that change the degrade mode by themselves
// read this; what is not known decides nothing.

/** By the name of the UpstreamCluster. Every question is answered from memory. */
export interface ClusterHealth {
  /** undefined = nobody watches the nodes of this cluster here, or they have never been listed: no decision. */
  nodes(cluster: string): NodesSeen | undefined
  /** undefined = answers are not counted for this cluster: no decision. */
  upstream(cluster: string): UpstreamSeen | undefined
  /** Distinct disruptive requests (by user, verb and object) that this replica refused in the last minute. */
  refusedDisruptive(cluster: string): number
}

/** The nodes that the cluster's selector matches, by the cluster-autoscaler's formula. */
export interface NodesSeen {
  readonly ready: number
  /** Not ready, and registered for longer than a node takes to start. */
  readonly unready: number
  /** All that are registered: also those that start, are suspended, or are being deleted. */
  readonly total: number
  /** Not ready, and too young to count as unready. */
  readonly notStarted: number
  /** All nodes have been listed, and the watch has not lost its place since. */
  readonly complete: boolean
  /** Until when all that happened to nodes has been seen. Monotonic milliseconds of this process */
  readonly observedAtMs: number
  /** Why they cannot be seen; '' = they can. For people */
  readonly message: string
}

/** Answers of upstream in a sliding window that ends at `observedAtMs`; without watches and other long-running requests. */
export interface UpstreamSeen {
  /** Requests that were sent to an endpoint. */
  readonly requests: number
  /** Of these, answered with 5xx by upstream, or not answered at all: connection and TLS errors, resets, timeouts. */
  readonly failed5xx: number
  /** The 99th percentile of the time until the response head, milliseconds: upper bound of its bucket. */
  readonly p99Ms: number
  /** The median, likewise. */
  readonly medianMs: number
  /** Monotonic milliseconds of this process */
  readonly observedAtMs: number
}
