// What the dashboard shows of this process, kept whether somebody looks or not: samples every ten seconds, changes every two.

import { dashboardRoutes } from '../../admin/dashboard/answers.ts'
import { assetRoutes } from '../../admin/dashboard/assets.ts'
import type { AdminRoute } from '../../admin/route.ts'
import type { ProtectionPane } from '../../api/insight/cluster-page.ts'
import { STEP_SECONDS } from '../../api/insight/overview.ts'
import type { ObjectClient } from '../../api/ports/object-client.ts'
import type { Clock, Logger, ResolvedCluster, SourceError } from '../../api/ports/ports.ts'
import type { CompiledCluster } from '../../core/cluster/compiled-cluster.ts'
import { explainRequest } from '../../core/explain/explain-request.ts'
import { ChangeLog } from '../../core/insight/change-log.ts'
import type { MetricsSnapshot } from '../../io/metrics/recorder.ts'
import { BUILD } from '../../io/program/build.ts'
import { dashboardFiles } from '../../io/program/dashboard-files.ts'
import type { ClusterTable } from '../../state/clusters.ts'
import type { OwnCertificate } from '../certificates/own-certificates.ts'
import type { Config } from '../config/config.ts'
import type { Replicas } from '../insight/replicas.ts'
import type { Protection } from '../protection/protection.ts'
import { AllReplicas, type ThisReplica } from './all-replicas.ts'
import { ClusterEvents } from './cluster-events.ts'
import { type ClusterPageDeps, clusterPart } from './cluster-page.ts'
import { overviewPart } from './overview.ts'
import { Samples } from './samples.ts'
import { ChangeWatch } from './watch-changes.ts'

export interface DashboardDeps {
  readonly config: Pick<Config, 'dataDir' | 'replicaName'>
  readonly clusters: ClusterTable
  readonly clock: Clock
  readonly pool: { reports(): Promise<unknown> }
  readonly metrics: { totals(): Promise<Pick<MetricsSnapshot, 'clusters'>> }
  readonly changes: {
    readonly inForce: { readonly problems: readonly SourceError[] }
    object(cluster: string): ResolvedCluster | undefined
    onApplied(listener: (generations: unknown, changed: ReadonlySet<string> | undefined) => void): () => void
  }
  readonly log: Logger
  /** Of the objects; undefined = they are files. */
  readonly client: ObjectClient | undefined
  readonly protection: Pick<Protection, 'stateOf' | 'protectorsIn'>
  readonly replicas: Replicas
  /** Of the gateway itself. */
  certificates(): readonly OwnCertificate[]
}

const STEP_MS = STEP_SECONDS * 1000
const LOOK_MS = 2000

export class Dashboard {
  readonly name = 'dashboard'
  readonly routes: readonly AdminRoute[]
  readonly #deps: DashboardDeps
  readonly #samples = new Samples()
  readonly #watch: ChangeWatch
  #timers: readonly NodeJS.Timeout[] = []
  #unfollow: () => void = () => undefined
  #sampling = false

  constructor(deps: DashboardDeps) {
    this.#deps = deps
    const { config, client, protection, clusters, clock, changes } = deps
    const log = new ChangeLog()
    const events = new ClusterEvents(client, clock)
    this.#watch = new ChangeWatch({
      clusters,
      clock,
      log,
      dataDir: config.dataDir,
      object: (name) => changes.object(name),
    })
    const page: ClusterPageDeps = {
      clusters,
      clock,
      samples: this.#samples,
      changes: log,
      version: BUILD.version,
      switchOf: (name) => this.#watch.switchOf(name),
      problems: () => changes.inForce.problems,
      certificates: () => deps.certificates(),
      protection: (cluster) => protectionPane(cluster, protection),
      events: (name) => events.of(name),
      recentEvents: () => events.ofAll(),
    }
    const own: ThisReplica = {
      replica: config.replicaName,
      overview: () => overviewPart(page),
      cluster: async (name) => {
        const live = clusters.get(name)
        return live === undefined ? null : await clusterPart(live, page)
      },
    }
    const all = new AllReplicas(own, deps.replicas, clock)
    this.routes = [
      ...assetRoutes(dashboardFiles),
      ...dashboardRoutes({
        overview: (choice, ofAll) => all.overview(choice, ofAll),
        overviewPart: () => own.overview(),
        cluster: (name, ofAll) => all.cluster(name, ofAll),
        clusterPart: (name) => own.cluster(name),
        explain: (input) => explainRequest(clusters.index, input, clock.now(), (name) => clusters.get(name)?.lists),
      }),
    ]
  }

  /** Call it when the first configuration is there. */
  start(): void {
    this.#unfollow = this.#deps.changes.onApplied((_, changed) => this.#watch.applied(changed))
    void this.#sample()
    this.#timers = [
      setInterval(() => void this.#sample(), STEP_MS).unref(),
      setInterval(() => this.#watch.look(), LOOK_MS).unref(),
    ]
  }

  stop(): void {
    this.#unfollow()
    for (const timer of this.#timers) clearInterval(timer)
  }

  async #sample(): Promise<void> {
    if (this.#sampling) return
    this.#sampling = true
    const { pool, metrics, clock } = this.#deps
    try {
      await pool.reports()
      await this.#samples.take(await metrics.totals(), clock.now(), clock.monotonic())
    } catch (error) {
      this.#deps.log.error('the counts for the dashboard could not be sampled', { error })
    } finally {
      this.#sampling = false
    }
  }
}

function protectionPane(
  { name, protection }: CompiledCluster,
  inForce: DashboardDeps['protection'],
): ProtectionPane | null {
  if (protection === undefined) return null
  const { cell, shadow } = protection
  const state = inForce.stateOf(name)
  const { rows, omitted } = inForce.protectorsIn(cell)
  return { cell, shadow, state: state?.state ?? 'Starting', message: state?.message ?? '', protectors: rows, omitted }
}
