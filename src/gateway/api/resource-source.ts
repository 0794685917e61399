// A source of UpstreamClusters: delivers them, and their errors.

import type { FieldError } from '../../kit/api/json/field-error.ts'
import type { UpstreamCluster } from './upstream-cluster/upstream-cluster.ts'

/** An error or warning in a configuration, with its location. */
export interface SourceError extends FieldError {
  /** File, relative to the configuration directory; '' if the object has none. */
  readonly file: string
  /** 1-based; 0 = unknown. */
  readonly line: number
  /** metadata.name of the UpstreamCluster concerned, where the source knows it; default: none. */
  readonly cluster?: string
}

/** An UpstreamCluster with its secret references replaced by inline bytes. */
export interface ResolvedCluster {
  readonly object: UpstreamCluster
  /** Changes exactly when the object or a referenced secret changes. */
  readonly revision: string
  /** Secrets (`namespace/name`) whose bytes it contains; absent = unknown. */
  readonly secrets?: readonly string[]
}

/** Source of objects: files, the embedded API server, or a Kubernetes cluster. */
export interface ResourceSource {
  /** Reads everything once, then keeps calling `onChange`. Resolves after the first complete delivery. */
  start(onChange: (change: SourceChange) => void): Promise<void>
  stop(): Promise<void>
}

/** The complete desired state and the errors found in it. A broken cluster appears in its last good version, or not at all. */
export interface SourceChange {
  readonly clusters: ReadonlyMap<string, ResolvedCluster>
  readonly problems: readonly SourceError[]
  /** Names of clusters that are new, changed or gone since the last delivery; absent = any may be. */
  readonly changed?: ReadonlySet<string>
}
