// Desired objects -> state in force: compiles what changed and hands it to the gateway threads (follow-snapshots.ts).

import type { Clock, Logger, Problem, SourceChange } from '../api/ports/ports.ts'
import { compileCluster } from '../core/cluster/compile-cluster.ts'
import type { CompiledCluster } from '../core/cluster/compiled-cluster.ts'
import type { TlsContexts } from '../io/listener/tls-contexts.ts'
import type { Upstreams } from '../io/upstream/upstreams.ts'
import type { ClusterTable } from '../state/clusters.ts'
import type { EndpointProbes } from './probes/endpoint-probes.ts'

export interface ConfigEvents {
  /**
   * A change has been compiled and is in the cluster table: time to tell the gateway threads.
   * @param changed clusters that are new or differ from before
   * @param removed names of those that are gone
   */
  compiled(change: CompiledChange): void
}

export interface CompiledChange {
  readonly changed: readonly CompiledCluster[]
  readonly removed: readonly string[]
  /** What the source delivered. */
  readonly source: SourceChange
  /** Clusters whose newest version could not be compiled, and why: their last good one stays in force. */
  readonly failures: ReadonlyMap<string, Problem>
}

export interface UpstreamClustersParts {
  readonly clusters: ClusterTable
  readonly upstreams: Upstreams
  readonly contexts: TlsContexts
  readonly probes: EndpointProbes
  readonly clock: Clock
  readonly log: Logger
  readonly events: ConfigEvents
}

/** Returns what a source calls on every change. */
export function createUpstreamClustersController(parts: UpstreamClustersParts): (change: SourceChange) => void {
  const { clusters, upstreams, contexts, probes, clock, log } = parts
  const failures = new Map<string, Problem>()
  return (source) => {
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
      if (current?.revision === resolved.revision) continue
      try {
        const next = compileCluster(resolved)
        // Certificates that OpenSSL does not take are found here, and not in the handshakes of clients.
        contexts.forCluster(next)
        changed.push(next)
      } catch (error) {
        // What slipped through validation must not take the other clusters along: what was in force stays.
        log.error('cluster cannot be compiled', { cluster: name, error })
        failures.set(name, failureOf(name, error))
      }
    }
    clusters.change(changed, removed, clock.monotonic())
    contexts.change(changed, removed)
    for (const name of removed) upstreams.remove(name)
    for (const cluster of changed) {
      upstreams.update(cluster)
      const { name, revision } = cluster
      log.info('cluster applied', { cluster: name, revision, generation: clusters.generation })
    }
    probes.change(changed, removed)
    parts.events.compiled({ changed, removed, source, failures })
  }
}

function failureOf(cluster: string, error: unknown): Problem {
  const message = `cannot be put in force: ${error instanceof Error ? error.message : String(error)}`
  const fix = 'the log of the gateway says more; correct the object'
  return { file: '', line: 0, path: 'spec', message, fix, severity: 'error', cluster }
}

/** Where the source does not say what has changed: anything may have. */
function namesIn({ clusters }: SourceChange, table: ClusterTable): ReadonlySet<string> {
  return new Set([...clusters.keys(), ...table.names()])
}
