// Dashboard data of this process, collected whether or not it is viewed: samples every ten seconds, changes every two.

import type { Replicas } from '../../../admin/app/replicas/replicas.ts'
import type { AdminRoute } from '../../../admin/io/server/route.ts'
import type { PodProtectionInForce } from '../../../gateway/api/pod-protection-in-force.ts'
import type { ResolvedCluster, SourceError } from '../../../gateway/api/resource-source.ts'
import type {
  CachedResourceInForce,
  ReadCacheInForce,
} from '../../../gateway/api/upstream-cluster/read-cache/read-cache-in-force.ts'
import type { CompiledCluster } from '../../../gateway/core/cluster/compiled-cluster.ts'
import { explainRequest } from '../../../gateway/core/explain/explain-request.ts'
import type { ClusterChanges } from '../../../gateway/metrics/metrics.ts'
import type { ClusterTable } from '../../../gateway/state/clusters.ts'
import type { JsonObject } from '../../../kit/api/json/json-object.ts'
import { recordOf, textOf } from '../../../kit/api/json/object-shape.ts'
import type { Clock, Logger } from '../../../kit/api/ports.ts'
import { BUILD } from '../../../kit/io/program/build.ts'
import { EVENTS } from '../../../kube/api/kinds/event-kind.ts'
import type { ObjectClient } from '../../../kube/api/object-client.ts'
import type { OwnCertificate } from '../../../process/certificates/own-certificates.ts'
import type { Config } from '../../../process/config/config.ts'
import { dashboardRoutes } from '../../admin/dashboard/answers.ts'
import { assetRoutes } from '../../admin/dashboard/assets.ts'
import type { CachedRow, ProtectionPane } from '../../api/cluster-page.ts'
import { type Change, STEP_SECONDS } from '../../api/overview.ts'
import { ChangeLog, clip } from '../../core/dashboard/change-log.ts'
import { dashboardFiles } from '../../io/dashboard/dashboard-files.ts'
import { AllReplicas, type ThisReplica } from './all-replicas.ts'
import { type ClusterPageDeps, clusterPart } from './cluster-page.ts'
import { overviewPart } from './overview.ts'
import { Samples } from './samples.ts'
import type { SwitchedHere } from './switched-by.ts'
import { ChangeWatch } from './watch-changes.ts'

interface DashboardDeps {
  readonly config: Pick<Config, 'replicaName'>
  readonly clusters: ClusterTable
  readonly clock: Clock
  readonly pool: { reports(): Promise<unknown> }
  readonly metrics: { changes(): Promise<ClusterChanges> }
  /** Calls the listener now and whenever UpstreamClusters have changed, until the returned function is called. */
  onApplied(listener: (changed: ReadonlySet<string> | undefined) => void): () => void
  readonly log: Logger
  /** Client for the objects; undefined = they are files. */
  readonly client: ObjectClient | undefined
  readonly replicas: Replicas
  readonly shown: ShownState
}

export interface ShownState {
  problems(): readonly SourceError[]
  object(cluster: string): ResolvedCluster | undefined
  /** The gateway's own certificates. */
  certificates(): readonly OwnCertificate[]
  /** Who has set the degrade mode of a cluster on this machine; undefined = no user has. */
  switchedHere(cluster: string): SwitchedHere | undefined
  /** undefined = pods are not protected. */
  podProtection(): PodProtectionInForce | undefined
  /** undefined = no reads are answered here. */
  readCache(): ReadCacheInForce | undefined
}

const STEP_MS = STEP_SECONDS * 1000
const LOOK_MS = 2000
const SECOND_MS = 1000

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
    const { config, client, clusters, clock, shown } = deps
    const log = new ChangeLog()
    const events = new ClusterEvents(client, clock)
    this.#watch = new ChangeWatch({
      clusters,
      clock,
      log,
      switchedHere: (cluster) => shown.switchedHere(cluster),
      object: (name) => shown.object(name),
    })
    const page: ClusterPageDeps = {
      clusters,
      clock,
      samples: this.#samples,
      changes: log,
      version: BUILD.version,
      switchOf: (name) => this.#watch.switchOf(name),
      problems: () => shown.problems(),
      certificates: () => shown.certificates(),
      protection: (cluster) => protectionPane(cluster, shown.podProtection()),
      cached: (cluster) => (shown.readCache()?.resourcesOf(cluster) ?? []).map(cachedRow),
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

  /** Call it once the first configuration is in force. */
  start(): void {
    this.#unfollow = this.#deps.onApplied((changed) => this.#watch.applied(changed))
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
      await this.#samples.take(await metrics.changes(), clock.now(), clock.monotonic())
    } catch (error) {
      this.#deps.log.error('the counts for the dashboard could not be sampled', { error })
    } finally {
      this.#sampling = false
    }
  }
}

function cachedRow(kept: CachedResourceInForce): CachedRow {
  const { resource, version, state, message, objects, bytes, ageMs, hits } = kept
  const passes = Object.entries(kept.passes).map(([reason, count]) => ({ reason, count }))
  passes.sort((a, b) => b.count - a.count)
  const ageSeconds = ageMs === undefined ? null : Math.round(ageMs / SECOND_MS)
  return { resource, version, state, message: clip(message), objects, bytes, ageSeconds, hits, passes }
}

function protectionPane(
  { name, protection }: CompiledCluster,
  inForce: PodProtectionInForce | undefined,
): ProtectionPane | null {
  if (protection === undefined || inForce === undefined) return null
  const { cell, shadow } = protection
  const state = inForce.stateOf(name)
  const { rows, omitted } = inForce.protectorsIn(cell)
  return { cell, shadow, state: state?.state ?? 'Starting', message: state?.message ?? '', protectors: rows, omitted }
}

// Events about UpstreamClusters from the objects' API server: read when a page is viewed, at most once in ten seconds.

/** Namespace of Events of cluster-scoped objects. */
const NAMESPACE = 'default'
const KEPT_MS = 10_000
const PATIENCE_MS = 2_000
const RECENT_MS = 30 * 60 * 1000

class ClusterEvents {
  readonly #client: ObjectClient | undefined
  readonly #clock: { now(): number; monotonic(): number }
  #known: readonly Change[] = []
  #readAtMs = Number.NEGATIVE_INFINITY
  #reading: Promise<void> | undefined

  constructor(client: ObjectClient | undefined, clock: { now(): number; monotonic(): number }) {
    this.#client = client
    this.#clock = clock
  }

  /** Events of the last half hour; the previous ones if the API server does not respond. */
  async of(cluster: string): Promise<readonly Change[]> {
    const reading = this.#refresh()
    if (reading !== undefined) {
      let timer: NodeJS.Timeout | undefined
      const patience = new Promise<void>((resolve) => {
        timer = setTimeout(resolve, PATIENCE_MS)
      })
      await Promise.race([reading, patience])
      clearTimeout(timer)
    }
    return this.#recent().filter((event) => event.cluster === cluster)
  }

  /** Known events of the last half hour, of all clusters: does not wait for the API server, the next view has newer ones. */
  ofAll(): readonly Change[] {
    void this.#refresh()
    return this.#recent()
  }

  #recent(): readonly Change[] {
    const since = this.#clock.now() - RECENT_MS
    return this.#known.filter(({ at }) => at >= since)
  }

  /** undefined = still fresh. */
  #refresh(): Promise<void> | undefined {
    if (this.#clock.monotonic() - this.#readAtMs <= KEPT_MS) return undefined
    this.#reading ??= this.#read().finally(() => {
      this.#reading = undefined
    })
    return this.#reading
  }

  async #read(): Promise<void> {
    try {
      const { items = [] } = (await this.#client?.list(EVENTS, NAMESPACE)) ?? {}
      this.#known = items.flatMap(changeOf)
    } catch {
      // Events are optional: the gateway may lack permission to read them.
    }
    this.#readAtMs = this.#clock.monotonic()
  }
}

function changeOf(event: JsonObject): Change[] {
  const about = recordOf(event['involvedObject'])
  if (about['kind'] !== 'UpstreamCluster') return []
  const at = Date.parse(textOf(event['lastTimestamp']))
  if (Number.isNaN(at)) return []
  const count = typeof event['count'] === 'number' && event['count'] > 1 ? ` (${event['count']} times)` : ''
  const text = clip(`${textOf(event['reason'])}: ${textOf(event['message'])}${count}`)
  const severity = event['type'] === 'Warning' ? 'bad' : 'neutral'
  return [{ at, kind: 'event', cluster: textOf(about['name']), severity, text, by: '' }]
}
