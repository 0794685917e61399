// What the admin listener answers beside health, metrics and configuration: what happens in this process, and its inside. One line for each
// group of routes.

import type { AdminRoute } from '../../admin/route.ts'
import type { Clock, Logger } from '../../api/ports/ports.ts'
import type { LineWriter } from '../../io/logs/line-writer.ts'
import type { MetricsRecorder } from '../../io/metrics/recorder.ts'
import type { ClusterTable } from '../../state/clusters.ts'
import type { Config } from '../config/config.ts'
import { tapRoute } from '../tap/tap-route.ts'
import type { ThreadPool } from '../threads/pool/pool.ts'
import { type LogLevels, logLevelRoutes } from './log-levels.ts'
import { type Profiles, profileRoutes } from './profiles.ts'
import type { Replicas } from './replicas.ts'
import { sharesRoute } from './shares-route.ts'
import type { TopCounts } from './top-counts.ts'
import { topRoute } from './top-route.ts'

export interface InsightDeps {
  readonly config: Config
  /** Of the gateway threads: what they are asked, and what they stream. */
  readonly pool: ThreadPool
  readonly clusters: ClusterTable
  /** For mergedRoute. */
  readonly replicas: Replicas
  /** Who asks most; undefined = nobody counts. */
  readonly top: TopCounts | undefined
  readonly clock: Clock
  readonly log: Logger
  /** Lines of the audit log; undefined = switched off. */
  readonly audit: LineWriter | undefined
  readonly logLevels: LogLevels
  readonly profiles: Profiles
  /** Counts of the main thread. */
  readonly recorder: MetricsRecorder
}

export function insightRoutes(deps: InsightDeps): readonly AdminRoute[] {
  const { config, pool, clock, log, audit, recorder, replicas, top, logLevels, profiles } = deps
  return [
    topRoute(replicas, top),
    sharesRoute(pool),
    ...logLevelRoutes(logLevels, replicas),
    ...profileRoutes(profiles),
    tapRoute({ replica: config.replicaName, replicas, pool, clock, log, audit, metrics: recorder }),
  ]
}
