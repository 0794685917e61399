// Desired objects -> state in force: compiles what changed and hands it to the gateway threads (follow-snapshots.ts).

import type { Clock, Logger, Problem, SourceChange } from '../api/ports.ts'
import { compileCluster } from '../core/compile-cluster.ts'
import type { CompiledCluster } from '../core/compiled-cluster.ts'
import type { TlsContexts } from '../io/tls-contexts.ts'
import type { Upstreams } from '../io/upstreams.ts'
import type { ClusterTable } from '../state/clusters.ts'
import type { EndpointProbes } from './endpoint-probes.ts'

export interface ConfigEvents {
  /**
   * A change has been compiled, as `generation` of the cluster table: time to tell the gateway threads.
   * @param changed clusters that are new or differ from before
   */
  compiled(generation: number, changed: readonly string[], problems: readonly Problem[]): void
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
  return (change) => {
    const compiled: CompiledCluster[] = []
    for (const [name, resolved] of change.clusters) {
      const current = clusters.get(name)?.compiled
      if (current?.revision === resolved.revision) {
        compiled.push(current)
        continue
      }
      try {
        const next = compileCluster(resolved)
        // Certificates that OpenSSL does not take are found here, and not in the handshakes of clients.
        contexts.forCluster(next)
        compiled.push(next)
      } catch (error) {
        // What slipped through validation must not take the other clusters along: what was in force stays.
        log.error('cluster cannot be compiled', { cluster: name, error })
        if (current !== undefined) compiled.push(current)
      }
    }
    const known = new Map([...clusters.values()].map((live) => [live.compiled.name, live.compiled.revision]))
    clusters.apply(compiled, clock.monotonic())
    contexts.update(compiled)
    for (const name of known.keys()) if (clusters.get(name) === undefined) upstreams.remove(name)
    const changed = compiled.filter((cluster) => known.get(cluster.name) !== cluster.revision)
    for (const cluster of changed) {
      upstreams.update(cluster)
      log.info('cluster applied', {
        cluster: cluster.name,
        revision: cluster.revision,
        generation: clusters.generation,
      })
    }
    probes.sync()
    const names = changed.map(({ name }) => name)
    parts.events.compiled(clusters.generation, names, change.problems)
  }
}
