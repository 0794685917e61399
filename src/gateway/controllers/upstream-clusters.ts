// Desired objects -> cluster table of the main thread: compiles what has changed, and stores it there. The next steps are in
// program/wiring/apply-change.ts.

import type { Clock, Logger } from '../../kit/api/ports.ts'
import { errorMessage } from '../../kit/api/validation/error-message.ts'
import type { SourceChange, SourceError } from '../api/resource-source.ts'
import { UPSTREAM_CLUSTER_SPEC_SCHEMA } from '../api/upstream-cluster/schema.ts'
import { compileCluster, compiledRevision } from '../core/cluster/compile-cluster.ts'
import { NO_ADDRESSES } from '../core/cluster/compile-settings.ts'
import type { CompiledCluster } from '../core/cluster/compiled-cluster.ts'
import type { TlsContexts } from '../io/listener/tls-contexts.ts'
import type { Upstreams } from '../io/upstream/upstreams.ts'
import type { ClusterTable } from '../state/clusters.ts'
import type { FollowedIssuers } from './issuers/followed-issuers.ts'
import type { EndpointProbes } from './probes/endpoint-probes.ts'
import type { FollowedServers } from './servers/followed-servers.ts'

export interface CompiledChange {
  /** Clusters that are new or changed. */
  readonly changed: readonly CompiledCluster[]
  /** Names of removed clusters. */
  readonly removed: readonly string[]
  /** As delivered by the source. */
  readonly source: SourceChange
  /**
   * Clusters whose newest version could not be compiled, in this or an earlier change, and why. Their last good version stays in
   * force.
   */
  readonly failures: ReadonlyMap<string, SourceError>
}

interface UpstreamClustersDeps {
  readonly clusters: ClusterTable
  readonly upstreams: Upstreams
  readonly contexts: TlsContexts
  readonly probes: Pick<EndpointProbes, 'change'>
  /** Servers whose names are looked up. Default: each is an endpoint as written. */
  readonly servers?: FollowedServers
  /** Reads the keys of issuers. Default: nothing does. */
  readonly issuers?: Pick<FollowedIssuers, 'change'>
  readonly clock: Clock
  readonly log: Logger
}

export interface UpstreamClustersController {
  /** Compiles the difference between a delivery and the table. Changes nothing else. */
  compile(source: SourceChange): CompiledChange
  /** Stores the change in the cluster table of the main thread, and updates connections, certificates and probes. */
  follow(change: CompiledChange): void
}

export function createUpstreamClustersController(deps: UpstreamClustersDeps): UpstreamClustersController {
  const failures = new Map<string, SourceError>()
  return {
    compile: (source) => compileChange(source, failures, deps),
    follow: (change) => followChange(change, deps),
  }
}

/** @param failures known from earlier changes; updated */
function compileChange(
  source: SourceChange,
  failures: Map<string, SourceError>,
  { clusters, contexts, servers, log }: UpstreamClustersDeps,
): CompiledChange {
  const changed: CompiledCluster[] = []
  const removed: string[] = []
  for (const name of source.changed ?? namesIn(source, clusters)) {
    const resolved = source.clusters.get(name)
    const current = clusters.get(name)?.compiled
    failures.delete(name)
    if (resolved === undefined) {
      if (current !== undefined) removed.push(name)
      continue
    }
    const addresses = servers?.addresses(name) ?? NO_ADDRESSES
    if (current?.revision === compiledRevision(resolved, addresses)) continue
    try {
      const next = compileCluster(resolved, UPSTREAM_CLUSTER_SPEC_SCHEMA, addresses)
      // Finds certificates rejected by OpenSSL here, not in client handshakes.
      contexts.forCluster(next)
      changed.push(next)
    } catch (error) {
      // An object that slipped through validation must not affect other clusters: its last version stays in force.
      log.error('cluster cannot be compiled', { cluster: name, error })
      failures.set(name, failureOf(name, error))
    }
  }
  // A copy: the next change may be compiled before this one is in force.
  return { changed, removed, source, failures: new Map(failures) }
}

function followChange(
  { changed, removed }: CompiledChange,
  { clusters, upstreams, contexts, probes, servers, issuers, clock, log }: UpstreamClustersDeps,
): void {
  clusters.change(changed, removed, clock.monotonic())
  contexts.change(changed, removed)
  for (const name of removed) upstreams.remove(name)
  for (const cluster of changed) {
    upstreams.update(cluster)
    const { name, revision } = cluster
    log.info('cluster applied', { cluster: name, revision, generation: clusters.generation })
  }
  probes.change(changed, removed)
  servers?.change(changed, removed)
  issuers?.change(changed, removed)
}

function failureOf(cluster: string, error: unknown): SourceError {
  const message = `cannot be put in force: ${errorMessage(error)}`
  const fix = "see the gateway's log for details; correct the object"
  return { reason: 'FieldValueInvalid', file: '', line: 0, path: 'spec', message, fix, severity: 'error', cluster }
}

/** All names if the delivery doesn't say what has changed. */
function namesIn({ clusters }: SourceChange, table: ClusterTable): ReadonlySet<string> {
  return new Set([...clusters.keys(), ...table.names()])
}
