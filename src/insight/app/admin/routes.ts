// Admin listener routes besides health, metrics and configuration: activity and internals of this process. One line per group of routes.

import type { MetricsRecorder } from '../../../gateway/metrics/recorder.ts'
import type { ClusterTable } from '../../../gateway/state/clusters.ts'
import type { Clock, Logger } from '../../../kit/api/ports.ts'
import { type ShareReport, sumOfShares } from '../../../kit/core/shares/shares-report.ts'
import type { LineWriter } from '../../../kit/io/logs/line-writer.ts'
import type { Config } from '../../../process/config/config.ts'
import { type AdminRoute, jsonResponse, PLAIN_TEXT } from '../../admin/route.ts'
import { MAX_LIMIT, readTopQuery } from '../../core/top/query.ts'
import { sumOfReports, type TopReport } from '../../core/top/report.ts'
import { isTopAnswer } from '../../core/top/top-lines.ts'
import { tapRoute } from '../tap/tap-route.ts'
import type { InsightThreads } from '../threads/insight-threads.ts'
import { type LogLevels, logLevelRoutes } from './log-levels.ts'
import { type Profiles, profileRoutes } from './profiles.ts'
import { mergedRoute, type Replicas } from './replicas.ts'
import type { TopCounts } from './top-counts.ts'

interface InsightDeps {
  readonly config: Config
  /** The gateway threads: calls and streams. */
  readonly pool: InsightThreads
  readonly clusters: ClusterTable
  /** For mergedRoute. */
  readonly replicas: Replicas
  /** Top talkers; undefined = not counted. */
  readonly top: TopCounts | undefined
  readonly clock: Clock
  readonly log: Logger
  /** Audit log lines; undefined = disabled. */
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

// `/api/v1/shares`: the largest holders of shared resources, over all threads of this replica.

/** The response. */
export interface SharesAnswer {
  readonly limits: readonly ShareReport[]
}

/** Holders named per resource. */
const NAMED = 5

function sharesRoute(pool: InsightThreads): AdminRoute {
  return {
    path: '/api/v1/shares',
    method: 'GET',
    access: 'view',
    async answer() {
      const threads = await pool.askThreads('shares', undefined)
      const reports = threads.map(({ answer }) => answer)
      return jsonResponse({ limits: sumOfShares(reports, NAMED) } satisfies SharesAnswer)
    },
  }
}

// `/api/v1/top`: top talkers, at this replica or at all.
const PATH = '/api/v1/top'

/** @param top undefined = disabled */
function topRoute(replicas: Replicas, top: TopCounts | undefined): AdminRoute {
  return {
    path: PATH,
    method: 'GET',
    access: 'view',
    replicas: true,
    answer(request, user) {
      if (top === undefined) return { code: 404, contentType: PLAIN_TEXT, body: 'nothing is counted: --top=false\n' }
      const { query } = request
      const asked = readTopQuery((name) => query.get(name))
      if ('problem' in asked) return { code: 400, contentType: PLAIN_TEXT, body: `${asked.problem}\n` }
      const all = query.get('replicas') === 'all'
      // The top twenty of each replica are not the overall top twenty.
      const whole = new URLSearchParams(query)
      if (all) whole.set('limit', String(MAX_LIMIT))
      const route = mergedRoute<TopReport>(replicas, {
        path: PATH,
        access: 'view',
        answer: () => top.report({ ...asked, limit: all ? MAX_LIMIT : asked.limit }),
        read: readReport,
        merge: (parts) =>
          sumOfReports(
            asked,
            parts.map(({ part }) => part),
          ),
      })
      return route.answer({ ...request, query: whole }, user)
    },
  }
}

function readReport(json: unknown): TopReport {
  if (isTopAnswer(json)) return json
  throw new Error('the answer is not a report of this version')
}
