// Insight in the main thread: what it shows at the admin listener.

import type { Replicas } from '../../admin/app/replicas/replicas.ts'
import type { AdminRoute } from '../../admin/io/server/route.ts'
import type { ClusterChanges } from '../../gateway/metrics/metrics.ts'
import type { MetricsRecorder } from '../../gateway/metrics/recorder.ts'
import type { ClusterTable } from '../../gateway/state/clusters.ts'
import type { Clock, Logger } from '../../kit/api/ports.ts'
import type { AsksThreads } from '../../kit/core/topics/questions.ts'
import type { SubscribesToThreads } from '../../kit/core/topics/streams.ts'
import type { LineWriter } from '../../kit/io/logs/line-writer.ts'
import type { ObjectClient } from '../../kube/api/object-client.ts'
import type { Component } from '../../process/components/component.ts'
import type { Config } from '../../process/config/config.ts'
import { browserLogins } from './dashboard/browser-logins.ts'
import { Dashboard, type ShownState } from './dashboard/dashboard.ts'
import { sessionsRoute } from './sessions/sessions-route.ts'
import { tapRoute } from './tap/tap-route.ts'
import { TopCounts, topRoute } from './top/top-counts.ts'

/** What the program gives it. */
interface InsightMain {
  readonly config: Config
  readonly clusters: ClusterTable
  readonly client: ObjectClient | undefined
  readonly pool: AsksThreads & SubscribesToThreads & { reports(): Promise<unknown> }
  readonly metrics: {
    readonly recorder: MetricsRecorder
    changes(): Promise<ClusterChanges>
  }
  readonly onApplied: (listener: (changed: ReadonlySet<string> | undefined) => void) => () => void
  readonly replicas: Replicas
  readonly shown: ShownState
  readonly audit: LineWriter | undefined
  readonly clock: Clock
  readonly log: Logger
}

interface Insight extends Component {
  readonly routes: readonly AdminRoute[]
  readonly browserLogins: typeof browserLogins
}

export function createInsight(main: InsightMain): Insight {
  const { config, clusters, pool, metrics, replicas, shown, audit, clock, log } = main
  const top = config.top ? new TopCounts({ pool, clock, exposed: config.topMetrics }) : undefined
  const dashboard = new Dashboard(main)
  const cached = (cluster: string) => shown.readCache()?.resourcesOf(cluster) ?? []
  const { replicaName: replica } = config
  return {
    name: 'insight',
    routes: [
      topRoute({ clusters, replicas, top, cached }),
      sessionsRoute({ clusters, replicas, pool }),
      tapRoute({ replica, replicas, pool, clusters, clock, log, audit, metrics: metrics.recorder }),
      ...dashboard.routes,
    ],
    browserLogins,
    start() {
      top?.start()
      dashboard.start()
    },
    exposeMetrics: (into) => top?.exposeMetrics(into),
    stop() {
      dashboard.stop()
      top?.stop()
    },
  }
}
