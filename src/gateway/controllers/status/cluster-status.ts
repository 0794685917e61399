// Writes the statuses of UpstreamClusters. Each replica writes its own entry of status.gateways; the leader also writes conditions and
// endpoints, removes entries of dead replicas, and reports transitions as Events. Serving requests never waits for this: while the API
// server is unreachable, statuses wait.

import type { Clock, Logger } from '../../../kit/api/ports.ts'
import { errorMessage } from '../../../kit/api/validation/error-message.ts'
import { sameJson } from '../../../kit/core/text/same-json.ts'
import type { ObjectClient } from '../../../kube/api/object-client.ts'
import { EventRecorder, involvedIn } from '../../../kube/controllers/events/event-recorder.ts'
import { Informer } from '../../../kube/controllers/kernel/informer.ts'
import type { Leading, Tenant } from '../../../kube/controllers/kernel/leadership.ts'
import { afterFailedWrite } from '../../../kube/controllers/kernel/object-patch.ts'
import { type ReconcileOutcome, WorkQueue } from '../../../kube/controllers/kernel/work-queue.ts'
import type { SourceError } from '../../api/resource-source.ts'
import type { CachedResourceInForce } from '../../api/upstream-cluster/read-cache/read-cache-in-force.ts'
import type { GatewayProtection, UpstreamClusterStatus } from '../../api/upstream-cluster/status.ts'
import { UPSTREAM_CLUSTERS } from '../../api/upstream-cluster-kind.ts'
import type { CellClocks } from '../../core/clocks/cell-clock.ts'
import { shownCache } from '../../core/status/cached-resources.ts'
import { statusTransitions } from '../../core/status/events.ts'
import type { AutoscalerFact, IssuerFact, ServerFact, StatusFacts } from '../../core/status/status-facts.ts'
import { type ClusterRights, gatherFacts, type LiveClusters } from './facts.ts'
import { generationOf, type KnownCluster, keepCluster, statusOf } from './known.ts'
import { ReplicaLeases } from './replicas.ts'
import { StatusSweep, SWEEP_SLICES } from './sweep.ts'
import { clientsSeen, refusedDisruptive, wantedStatus } from './wanted.ts'

export interface ClusterStatusDeps {
  readonly client: ObjectClient
  /** Unique among the replicas. */
  readonly replica: string
  /** Where other replicas reach its admin listener; default: nowhere. */
  readonly adminAddress?: string
  readonly leadership: Leading
  /** The main thread's clusters. */
  readonly clusters: LiveClusters
  /** The gateway's rights in a cluster. */
  rights(cluster: string): ClusterRights
  /** Problems of the last delivered change; a new array for each change. */
  problems(): readonly SourceError[]
  readonly clock: Clock
  /** Clocks of the protected cells. Default: clocks are not reported. */
  readonly clocks?: CellClocks
  /** Problem of the limits that a cluster shares between replicas; '' = none. Default: none. */
  limitsMessage?(cluster: string): string
  /** How this replica protects the pods of a cluster; undefined = it doesn't. Default: undefined. */
  podProtection?(cluster: string): GatewayProtection | undefined
  /** This replica's read cache of a cluster. Default: none. */
  readCache?(cluster: string): readonly CachedResourceInForce[]
  /** The servers of a cluster whose names are looked up; undefined = none. Default: none. */
  servers?(cluster: string): readonly ServerFact[] | undefined
  /** Issuers of the tokens of a cluster; undefined = none. Default: none. */
  issuers?(cluster: string): readonly IssuerFact[] | undefined
  /** Status of a cluster's cluster-autoscaler; undefined = not followed here. Default: never followed. */
  autoscaler?(cluster: string): AutoscalerFact | undefined
  /** In [0, 1). */
  random(): number
  readonly log: Logger
  readonly pace?: Partial<StatusPace>
}

interface StatusPace {
  /** Concurrent writes. Default 8. */
  readonly writes: number
  /** Between two writes of one cluster. Default 1 s. */
  readonly spacingMs: number
  /** How often the state of all endpoints is compared. Default 1 s. */
  readonly sweepMs: number
  /** How long a new generation may take to come into force or be found invalid before its status is written. Default 500 ms. */
  readonly settleMs: number
  /** Between two renewals of this replica's Lease. Default 10 s. */
  readonly beatMs: number
}

export interface ClusterStatusController {
  /**
   * All threads have applied a change, or a change had no effect.
   * @param generations metadata.generation in force of every cluster. It is also read later: it may be a live map of what is in
   * force.
   * @param threads number of gateway threads
   * @param changed clusters that may have changed; default: all
   */
  applied(generations: ReadonlyMap<string, number>, threads: number, changed?: ReadonlySet<string>): void
  /** No writes afterwards. */
  stop(): Promise<void>
}

const DEFAULT_PACE: StatusPace = { writes: 8, spacingMs: 1_000, sweepMs: 1_000, settleMs: 500, beatMs: 10_000 }

const NONE: ReadonlyMap<string, KnownCluster> = new Map()

/** Starts writing statuses. */
export function startClusterStatus(deps: ClusterStatusDeps): ClusterStatusController {
  const statuses = new ClusterStatuses(deps)
  statuses.start()
  return statuses
}

class ClusterStatuses implements ClusterStatusController {
  readonly #deps: ClusterStatusDeps
  readonly #pace: StatusPace
  readonly #queue: WorkQueue
  readonly #events: EventRecorder
  readonly #replicas: ReplicaLeases
  readonly #sweep: StatusSweep
  #generations: ReadonlyMap<string, number> = new Map()
  #threads = 0
  readonly #problems = new ProblemIndex()
  /** undefined = not followed yet. */
  #informer: Informer<KnownCluster> | undefined
  readonly #tenant: Tenant
  #sweeping: NodeJS.Timeout | undefined
  #stopped = false

  constructor(deps: ClusterStatusDeps) {
    const { client, replica, clock, log } = deps
    this.#deps = deps
    this.#pace = { ...DEFAULT_PACE, ...deps.pace }
    this.#replicas = new ReplicaLeases(client, replica, clock, log, this.#pace.beatMs, deps.adminAddress)
    this.#events = new EventRecorder({ replica, clock, log })
    this.#queue = new WorkQueue({
      reconcile: (cluster) => this.#reconcile(cluster),
      clock,
      random: () => deps.random(),
      limit: this.#pace.writes,
      pace: { spacingMs: this.#pace.spacingMs },
      onError: (cluster, error) => log.error('a status could not be computed', { cluster, error }),
    })
    this.#sweep = new StatusSweep({
      live: deps,
      known: () => this.#known,
      roundMs: this.#pace.sweepMs,
      isGone: (replica) => this.#replicas.isGone(replica),
      onChanged: (cluster) => this.#queue.add(cluster),
    })
    this.#tenant = deps.leadership.run('the statuses of UpstreamClusters', () => {
      for (const name of this.#known.keys()) this.#queue.add(name)
      return undefined
    })
  }

  start(): void {
    // Its own Lease first: a leader would remove the entries of a replica without one.
    void this.#replicas.start().then(() => {
      if (this.#stopped) return
      this.#informer = this.#follow()
    })
    this.#sweeping = setInterval(() => {
      this.#readProblems()
      this.#sweep.step()
    }, this.#pace.sweepMs / SWEEP_SLICES)
    this.#sweeping.unref()
  }

  async stop(): Promise<void> {
    this.#stopped = true
    clearInterval(this.#sweeping)
    await this.#tenant.leave()
    await this.#informer?.stop()
    await this.#queue.stop()
    await this.#events.stop()
    await this.#replicas.stop()
  }

  applied(generations: ReadonlyMap<string, number>, threads: number, changed?: ReadonlySet<string>): void {
    this.#generations = generations
    this.#threads = threads
    this.#readProblems()
    for (const name of changed ?? this.#known.keys()) if (this.#known.has(name)) this.#queue.add(name)
  }

  get #known(): ReadonlyMap<string, KnownCluster> {
    return this.#informer?.objects ?? NONE
  }

  #follow(): Informer<KnownCluster> {
    return new Informer<KnownCluster>({
      client: this.#deps.client,
      kind: UPSTREAM_CLUSTERS,
      keep: (object, known, name) => {
        this.#queue.add(name)
        return keepCluster(object, known, this.#deps.clock.monotonic())
      },
      onGone: (_, name) => this.#queue.forget(name),
      onState: (current) => {
        if (current) this.#queue.retry()
      },
    })
  }

  /** Queues the clusters whose problems have changed since the last delivery. */
  #readProblems(): void {
    for (const name of this.#problems.read(this.#deps.problems())) if (this.#known.has(name)) this.#queue.add(name)
  }

  // === one cluster's turn ===

  async #reconcile(name: string): Promise<ReconcileOutcome> {
    const known = this.#known.get(name)
    if (known === undefined || this.#stopped) return 'done'
    const { clock } = this.#deps
    const facts = this.#factsOf(name, known)
    const settledMs = known.seenAtMs + this.#pace.settleMs - clock.monotonic()
    if (facts.inForce < facts.generation && settledMs > 0) {
      this.#queue.add(name, settledMs)
      return 'done'
    }
    const before = statusOf(known.object)
    known.limitsMessage = this.#deps.limitsMessage?.(name) ?? ''
    known.podProtection = this.#deps.podProtection?.(name)
    known.cache = shownCache(this.#deps.readCache?.(name) ?? [], known.cache, clock.monotonic())
    known.lastSeen = clientsSeen(this.#deps.clusters, name)
    known.refused = refusedDisruptive(this.#deps.clusters, name, clock.now())
    const wanted = this.#statusOf(known, facts, before)
    if (sameJson(wanted, before)) return 'done'
    // A server that drops a part of each write must not be written to forever.
    if (sameJson(wanted, known.wanted) && sameJson(before, known.answered)) return 'done'
    return await this.#write(name, known, before, wanted)
  }

  #factsOf(name: string, { object, generation }: KnownCluster): StatusFacts {
    const inForce = this.#generations.get(name) ?? 0
    return gatherFacts(this.#deps, name, generation || generationOf(object), inForce, this.#problems.of(name))
  }

  #statusOf(
    { limitsMessage, podProtection, cache, lastSeen, refused }: KnownCluster,
    facts: StatusFacts,
    before: UpstreamClusterStatus | undefined,
  ): UpstreamClusterStatus {
    const { clock, replica } = this.#deps
    const author = {
      replica,
      threads: this.#threads,
      leads: this.#deps.leadership.isLeader(),
      limitsMessage,
      podProtection,
      cache: cache?.resources,
      lastSeen,
      refused,
      isGone: (name: string) => this.#replicas.isGone(name),
    }
    return wantedStatus(facts, before, author, clock.now())
  }

  async #write(
    name: string,
    known: KnownCluster,
    before: UpstreamClusterStatus | undefined,
    wanted: UpstreamClusterStatus,
  ): Promise<ReconcileOutcome> {
    const { client, log } = this.#deps
    try {
      const answer = await client.update(UPSTREAM_CLUSTERS, { ...known.object, status: wanted }, 'status')
      known.wanted = wanted
      known.answered = statusOf(answer)
      if (this.#known.get(name) === known && generationOf(answer) >= known.generation) known.object = answer
      if (this.#deps.leadership.isLeader())
        this.#events.record(client, involvedIn(answer), ...statusTransitions(before, wanted))
      return 'written'
    } catch (error) {
      const { outcome, current } = await afterFailedWrite({ client, kind: UPSTREAM_CLUSTERS }, known.object, error)
      if (current !== undefined) this.#informer?.learn(current)
      if (outcome === 'failed') log.debug('status cannot be written', { cluster: name, reason: errorMessage(error) })
      return outcome
    }
  }
}

const NO_PROBLEMS: readonly SourceError[] = []

/** The problems of a delivery, by cluster. */
class ProblemIndex {
  #read: readonly SourceError[] = NO_PROBLEMS
  #byCluster: ReadonlyMap<string, readonly SourceError[]> = new Map()

  of(cluster: string): readonly SourceError[] {
    return this.#byCluster.get(cluster) ?? NO_PROBLEMS
  }

  /** Reads a delivery, unless it is the same array as before. Returns the clusters whose problems have changed. */
  read(problems: readonly SourceError[]): readonly string[] {
    if (problems === this.#read) return []
    const before = this.#byCluster
    const after = new Map<string, SourceError[]>()
    for (const problem of problems) {
      if (problem.cluster === undefined || problem.cluster === '') continue
      const those = after.get(problem.cluster)
      if (those === undefined) after.set(problem.cluster, [problem])
      else those.push(problem)
    }
    this.#read = problems
    this.#byCluster = after
    return [...new Set([...before.keys(), ...after.keys()])].filter(
      (name) => !sameJson(before.get(name), after.get(name)),
    )
  }
}
