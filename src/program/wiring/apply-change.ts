// The path of an object change through the main thread, in one straight line: compile, publish to the gateway threads, wait, in force, notify. A
// change may arrive while threads still process the previous one: they come into force in order.

import type { ResolvedCluster, SourceChange, SourceError } from '../../gateway/api/resource-source.ts'
import type { GlobalLimits } from '../../gateway/controllers/limits/global-limits.ts'
import type { UpstreamRights } from '../../gateway/controllers/rights/upstream-rights.ts'
import type { CompiledChange, UpstreamClustersController } from '../../gateway/controllers/upstream-clusters.ts'
import type { GatewayMetrics } from '../../gateway/metrics/metrics.ts'
import { clusterLabels } from '../../gateway/metrics/recorder.ts'
import type { ClusterTable } from '../../gateway/state/clusters.ts'
import type { Clock } from '../../kit/api/ports.ts'
import { inStep } from '../../kit/io/stalls/steps.ts'
import type { ThreadPool } from '../threads/pool/pool.ts'

interface ConfigChangesDeps {
  readonly clusters: Pick<ClusterTable, 'generation' | 'size'>
  readonly controller: UpstreamClustersController
  readonly rights: Pick<UpstreamRights, 'change'>
  /** Limits shared by replicas; undefined = none. */
  readonly limits: Pick<GlobalLimits, 'changed'> | undefined
  readonly pool: Pick<ThreadPool, 'publish' | 'credentialFault'>
  readonly metrics: Pick<GatewayMetrics, 'clustersChanged' | 'configApplied'>
  readonly clock: Pick<Clock, 'now'>
}

/** The last change in force in all threads. */
interface ConfigInForce {
  readonly problems: readonly SourceError[]
  /** Milliseconds since the epoch; 0 = no change is in force yet. */
  readonly appliedAtMs: number
}

/**
 * @param generations metadata.generation in force of each cluster: one map that is kept current
 * @param changed clusters that may differ from the last call; absent = any
 */
type AppliedListener = (generations: ReadonlyMap<string, number>, changed: ReadonlySet<string> | undefined) => void

export class ConfigChanges {
  readonly #deps: ConfigChangesDeps
  readonly #generations = new Map<string, number>()
  readonly #listeners = new Set<AppliedListener>()
  /** The source's last delivery. */
  #latest: SourceChange | undefined
  #inForce: ConfigInForce = { problems: [], appliedAtMs: 0 }

  constructor(deps: ConfigChangesDeps) {
    this.#deps = deps
  }

  /** A cluster's object as last delivered by the source. */
  object(cluster: string): ResolvedCluster | undefined {
    return this.#latest?.clusters.get(cluster)
  }

  get inForce(): ConfigInForce {
    return this.#inForce
  }

  /** Calls `listener` now, and whenever all threads have put a change in force, until the returned function is called. */
  onApplied(listener: AppliedListener): () => void {
    this.#listeners.add(listener)
    listener(this.#generations, undefined)
    return () => void this.#listeners.delete(listener)
  }

  /** Inputs of a cluster's compilation other than its object have changed. */
  async compileAgain(cluster: string): Promise<void> {
    if (this.#latest !== undefined) await this.applyChange({ ...this.#latest, changed: new Set([cluster]) })
  }

  /** Resolves when the change is in force in all threads and all listeners were notified. */
  async applyChange(source: SourceChange): Promise<void> {
    const { controller, pool, clusters } = this.#deps
    this.#latest = source
    const change = inStep('snapshot', () => {
      const compiled = controller.compile(source)
      controller.follow(compiled)
      this.#followHere(compiled)
      return compiled
    })
    // Generation of this change: another one may arrive before this one is in force.
    const { generation } = clusters
    await pool.publish(namesOf(change), change.removed)
    this.#putInForce(change, generation)
    for (const listener of this.#listeners) listener(this.#generations, source.changed)
  }

  /** Listeners that must know before the gateway threads do, or that only serve the main thread. */
  #followHere(change: CompiledChange): void {
    const { metrics, rights, pool, limits } = this.#deps
    const { changed, removed } = change
    metrics.clustersChanged(changed.map(clusterLabels), removed)
    rights.change(changed, removed)
    for (const name of removed) pool.credentialFault(name, '')
    limits?.changed([...namesOf(change), ...removed])
  }

  #putInForce({ source, failures }: CompiledChange, generation: number): void {
    const { metrics, clusters, clock } = this.#deps
    const problems = [...source.problems, ...failures.values()]
    const appliedAtMs = clock.now()
    this.#inForce = { problems, appliedAtMs }
    const errors = problems.filter(({ severity }) => severity === 'error').length
    const warnings = problems.length - errors
    metrics.configApplied({ generation, nowMs: appliedAtMs, clusters: clusters.size, errors, warnings })
    this.#recordGenerations(source, failures)
  }

  /** Updates the generation in force of each cluster. Files have none: 0. */
  #recordGenerations({ clusters, changed }: SourceChange, failures: ReadonlyMap<string, SourceError>): void {
    const generations = this.#generations
    for (const name of changed ?? new Set([...clusters.keys(), ...generations.keys()])) {
      const resolved = clusters.get(name)
      if (resolved === undefined) generations.delete(name)
      else if (!failures.has(name)) generations.set(name, resolved.object.metadata.generation ?? 0)
    }
  }
}

function namesOf({ changed }: CompiledChange): readonly string[] {
  return changed.map(({ name }) => name)
}
