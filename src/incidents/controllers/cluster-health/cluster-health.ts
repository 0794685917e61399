// Observed health of clusters, for those whose spec makes decisions depend on it (CompiledDegrade.observed). Only the leader
// watches the nodes, so that a cluster has one watch and not one per replica; upstream answers are those that this replica
// got, counted by all its threads in shared memory.

import type { NodeTrigger } from '../../../gateway/core/cluster/compiled-auto-degrade.ts'
import type { CompiledCluster } from '../../../gateway/core/cluster/compiled-cluster.ts'
import type { LiveCluster } from '../../../gateway/state/clusters.ts'
import type { Clock, Logger } from '../../../kit/api/ports.ts'
import { sameJson } from '../../../kit/core/text/same-json.ts'
import type { ClosableClient } from '../../../kube/api/object-client.ts'
import type { Leading, Tenant } from '../../../kube/controllers/kernel/leadership.ts'
import type { ClusterHealth, NodesSeen, UpstreamSeen } from '../../api/cluster-health.ts'
import { AnswerWindow } from '../../core/answer-window.ts'
import { READINESS_DEFAULTS } from '../../core/readiness.ts'
import { NodeWatch } from './node-watch.ts'

interface ClusterHealthDeps {
  readonly clusters: { get(name: string): LiveCluster | undefined; names(): Iterable<string> }
  /** The leader watches the nodes. */
  readonly leadership: Leading
  /** A new client of the cluster itself, with the gateway's own credential. */
  client(cluster: string): ClosableClient
  /** Distinct disruptive requests that were refused in the last minute. Default: not counted, 0. */
  refusedDisruptive?(cluster: string): number
  readonly clock: Clock
  readonly log: Logger
  /** Milliseconds between two samples. Default 1 s. */
  readonly sampleMs?: number
}

const SAMPLE_MS = 1_000
/** Default of spec.degrade.auto.upstream. */
const WINDOW_MS = 30_000
const PROOF_MS = 20_000
/** A proof has to arrive in time, and may fail once. */
const PROOFS = 4
/**
 * Node watches begun between two samples for clusters in which nothing decides by nodes yet. After a switch of many clusters all of them have a watch to
 * begin, which costs a connection and a list each, while the switch itself is still coming into force.
 */
export const EARLY_WATCHES = 5

export function startClusterHealth(deps: ClusterHealthDeps): ClusterHealthObserver {
  return new ClusterHealthObserver(deps)
}

/** One observed cluster. */
interface Observed {
  window: AnswerWindow | undefined
  windowMs: number
  watch: NodeWatch | undefined
  /** Settings that the watch was started with. */
  nodes: WatchedNodes | undefined
}

type WatchedNodes = Pick<NodeTrigger, 'selector' | 'startupMs'> & { readonly proofMs: number }

export class ClusterHealthObserver implements ClusterHealth {
  readonly #deps: ClusterHealthDeps
  readonly #observed = new Map<string, Observed>()
  readonly #ending = new Set<Promise<void>>()
  readonly #tenant: Tenant
  #timer: NodeJS.Timeout | undefined
  /** Early watches that may still begin before the next sample. */
  #early = EARLY_WATCHES

  constructor(deps: ClusterHealthDeps) {
    this.#deps = deps
    const ended = (): Promise<unknown> => Promise.all(this.#ending)
    this.#tenant = deps.leadership.settle('the node watches', () => this.#step(), ended)
  }

  nodes(cluster: string): NodesSeen | undefined {
    return this.#observed.get(cluster)?.watch?.seen()
  }

  upstream(cluster: string): UpstreamSeen | undefined {
    return this.#observed.get(cluster)?.window?.seen()
  }

  refusedDisruptive(cluster: string): number {
    return this.#deps.refusedDisruptive?.(cluster) ?? 0
  }

  /** Clusters may have changed; default: any. */
  update(changed?: ReadonlySet<string>): void {
    const { clusters, sampleMs = SAMPLE_MS } = this.#deps
    for (const name of changed ?? new Set([...clusters.names(), ...this.#observed.keys()])) {
      const isObserved = clusters.get(name)?.compiled.degrade.observed === true
      const known = this.#observed.get(name)
      if (isObserved && known === undefined) {
        this.#observed.set(name, { window: undefined, windowMs: 0, watch: undefined, nodes: undefined })
      } else if (!isObserved && known !== undefined) {
        this.#observed.delete(name)
        this.#endWatch(known)
      }
    }
    if (this.#observed.size === 0) {
      clearInterval(this.#timer)
      this.#timer = undefined
      return
    }
    this.#timer ??= setInterval(() => {
      this.#early = EARLY_WATCHES
      this.#step()
    }, sampleMs)
    this.#timer.unref()
    // Only these: a switch of many clusters is as many updates.
    this.#step(changed)
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer)
    for (const observed of this.#observed.values()) this.#endWatch(observed)
    this.#observed.clear()
    await Promise.all([this.#tenant.leave(), ...this.#ending])
  }

  /** @param names default: all */
  #step(names: Iterable<string> = this.#observed.keys()): void {
    const leads = this.#tenant.holds()
    for (const name of names) {
      const observed = this.#observed.get(name)
      const live = this.#deps.clusters.get(name)
      if (observed === undefined || live === undefined) continue
      this.#sample(observed, live)
      // A cluster that is read from its members has no nodes of its own.
      const isWatched = leads && live.compiled.federation === undefined
      if (isWatched && observed.watch === undefined && !this.#mayBegin(live.compiled)) continue
      this.#follow(name, observed, isWatched ? watchedNodes(live.compiled) : undefined)
      observed.watch?.prove()
    }
  }

  /** At once where something decides by nodes; elsewhere soon, so that a recovery has them when it begins. */
  #mayBegin({ degrade: { auto, recovery } }: CompiledCluster): boolean {
    if (auto !== undefined || recovery !== undefined) return true
    return this.#early-- > 0
  }

  #sample(observed: Observed, { answers, compiled }: LiveCluster): void {
    const windowMs = compiled.degrade.auto?.upstream?.windowMs ?? WINDOW_MS
    if (answers === undefined) {
      observed.window = undefined
      return
    }
    if (observed.window?.memory !== answers.memory || observed.windowMs !== windowMs) {
      observed.window = new AnswerWindow(answers.memory, windowMs)
      observed.windowMs = windowMs
    }
    observed.window.sample(this.#deps.clock.monotonic())
  }

  #follow(cluster: string, observed: Observed, nodes: WatchedNodes | undefined): void {
    if (sameJson(observed.nodes, nodes)) return
    this.#endWatch(observed)
    observed.nodes = nodes
    if (nodes === undefined) return
    const { client, clock, log } = this.#deps
    observed.watch = new NodeWatch({ cluster, client: client(cluster), ...nodes, clock, log })
  }

  #endWatch(observed: Observed): void {
    const { watch } = observed
    observed.watch = undefined
    observed.nodes = undefined
    if (watch === undefined) return
    const ending = watch.stop()
    this.#ending.add(ending)
    void ending.finally(() => this.#ending.delete(ending))
  }
}

/** Nodes are watched even if auto doesn't use them: a recovery waits for them. */
function watchedNodes({ degrade: { auto } }: CompiledCluster): WatchedNodes {
  const { selector, startupMs, staleAfterMs } = auto?.nodes ?? {}
  return {
    selector,
    startupMs: startupMs ?? READINESS_DEFAULTS.maxNodeStartupMs,
    proofMs: Math.min(PROOF_MS, (staleAfterMs ?? Number.POSITIVE_INFINITY) / PROOFS),
  }
}
