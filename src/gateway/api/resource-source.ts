// Where UpstreamClusters come from, and what is wrong with them.

import type { FieldError } from '../../kit/api/json/field-error.ts'
import type { UpstreamCluster } from './upstream-cluster/upstream-cluster.ts'

/** An error in a configuration, or a warning about one, with its place. */
export interface SourceError extends FieldError {
  /** File, relative to the configuration directory; '' when the object has none. */
  readonly file: string
  /** 1-based; 0 = unknown. */
  readonly line: number
  /** metadata.name of the UpstreamCluster that it is about, where the source knows; default: none. */
  readonly cluster?: string
}

/** An UpstreamCluster whose secret references have been replaced by inline bytes. */
export interface ResolvedCluster {
  readonly object: UpstreamCluster
  /** Changes exactly when the object or a referenced secret changes. */
  readonly revision: string
  /** Secrets (`namespace/name`) whose bytes it has; absent = not known. */
  readonly secrets?: readonly string[]
}

/** Where objects come from: files, the embedded API server, or a Kubernetes cluster. */
export interface ResourceSource {
  /** Reads everything once, then keeps calling `onChange`. Resolves after the first complete delivery. */
  start(onChange: (change: SourceChange) => void): Promise<void>
  stop(): Promise<void>
}

/** The whole desired state and the errors found in it. A broken cluster appears in its last good version, or not at all. */
export interface SourceChange {
  readonly clusters: ReadonlyMap<string, ResolvedCluster>
  readonly problems: readonly SourceError[]
  /** Names of clusters that are new, differ from the delivery before, or are gone; absent = any may be. */
  readonly changed?: ReadonlySet<string>
}
