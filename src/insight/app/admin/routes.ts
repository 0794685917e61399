// Admin listener routes that show activity. One line per group of routes.

import { mergedRoute, type Replicas } from '../../../admin/app/replicas/replicas.ts'
import { type AdminRoute, PLAIN_TEXT } from '../../../admin/io/server/route.ts'
import type { ReadCacheInForce } from '../../../gateway/api/upstream-cluster/read-cache/read-cache-in-force.ts'
import type { MetricsRecorder } from '../../../gateway/metrics/recorder.ts'
import type { ClusterTable } from '../../../gateway/state/clusters.ts'
import type { Clock, Logger } from '../../../kit/api/ports.ts'
import type { LineWriter } from '../../../kit/io/logs/line-writer.ts'
import type { Config } from '../../../process/config/config.ts'
import {
  isSessionAnswer,
  MAX_SESSIONS,
  readSessionQuery,
  type SessionsReport,
  sumOfSessions,
} from '../../core/sessions/session-report.ts'
import { answeredReads, mostAnswered } from '../../core/top/answered-reads.ts'
import { MAX_LIMIT, readTopQuery } from '../../core/top/query.ts'
import { sumOfReports, type TopReport } from '../../core/top/report.ts'
import { isTopAnswer } from '../../core/top/top-lines.ts'
import { chosenNames, clusterNames } from '../chosen-names.ts'
import { tapRoute } from '../tap/tap-route.ts'
import type { InsightThreads } from '../threads/insight-threads.ts'
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
  /** What it answers itself; undefined = nothing. */
  readonly subjects: { readonly readCache: ReadCacheInForce | undefined }
  readonly clock: Clock
  readonly log: Logger
  /** Audit log lines; undefined = disabled. */
  readonly audit: LineWriter | undefined
  /** Counts of the main thread. */
  readonly recorder: MetricsRecorder
}

export function insightRoutes(deps: InsightDeps): readonly AdminRoute[] {
  const { config, pool, clusters, clock, log, audit, recorder, replicas } = deps
  return [
    topRoute(deps),
    sessionsRoute(deps),
    tapRoute({ replica: config.replicaName, replicas, pool, clusters, clock, log, audit, metrics: recorder }),
  ]
}

// `/api/v1/sessions`: users seen lately, at this replica or at all.
const SESSIONS_PATH = '/api/v1/sessions'

function sessionsRoute({ replicas, pool, clusters }: Pick<InsightDeps, 'replicas' | 'pool' | 'clusters'>): AdminRoute {
  return {
    path: SESSIONS_PATH,
    method: 'GET',
    access: 'view',
    replicas: true,
    answer(request, caller) {
      const asked = readSessionQuery(request.query)
      if ('problem' in asked) return { code: 400, contentType: PLAIN_TEXT, body: `${asked.problem}\n` }
      const chosen = asked.choice && chosenNames(asked.choice, clusters)
      if (typeof chosen === 'string') return { code: 400, contentType: PLAIN_TEXT, body: `${chosen}\n` }
      const { user, cluster } = asked
      const names = chosen && new Set(chosen)
      const isWanted = (name: string): boolean => names?.has(name) ?? (cluster === '' || cluster === name)
      const all = request.query.get('replicas') === 'all'
      // The last hundred of each replica are not the last hundred of all.
      const limit = all ? MAX_SESSIONS : asked.limit
      const whole = new URLSearchParams(request.query)
      whole.set('limit', String(limit))
      const route = mergedRoute<SessionsReport>(replicas, {
        path: SESSIONS_PATH,
        access: 'view',
        async answer() {
          const threads = await pool.askThreads('sessions', user)
          const reports = threads.map(({ answer }) => answer)
          return sumOfSessions(reports, limit, false, isWanted)
        },
        read: readSessions,
        merge: (parts) => {
          const isMore = parts.some(({ part }) => part.more)
          const sessions = parts.map(({ part }) => part.sessions)
          return sumOfSessions(sessions, asked.limit, isMore)
        },
      })
      return route.answer({ ...request, query: whole }, caller)
    },
  }
}

function readSessions(json: unknown): SessionsReport {
  if (isSessionAnswer(json)) return json
  throw new Error('the answer is not a report of this version')
}

// `/api/v1/top`: top talkers, at this replica or at all.
const PATH = '/api/v1/top'

function topRoute({
  replicas,
  top,
  clusters,
  subjects,
}: Pick<InsightDeps, 'replicas' | 'top' | 'clusters' | 'subjects'>): AdminRoute {
  const answeredOf = (names: Iterable<string>): Pick<TopReport, 'answered'> => {
    const all = [...names].flatMap((name) => answeredReads(name, subjects.readCache?.resourcesOf(name) ?? []) ?? [])
    return all.length === 0 ? {} : { answered: mostAnswered(all) }
  }
  return {
    path: PATH,
    method: 'GET',
    access: 'view',
    replicas: true,
    answer(request, user) {
      if (top === undefined) return { code: 404, contentType: PLAIN_TEXT, body: 'nothing is counted: --top=false\n' }
      const { query } = request
      const asked = readTopQuery(query)
      if ('problem' in asked) return { code: 400, contentType: PLAIN_TEXT, body: `${asked.problem}\n` }
      const chosen = asked.choice && chosenNames(asked.choice, clusters)
      if (typeof chosen === 'string') return { code: 400, contentType: PLAIN_TEXT, body: `${chosen}\n` }
      const { cluster } = asked
      const all = query.get('replicas') === 'all'
      // The top twenty of each replica are not the overall top twenty.
      const whole = new URLSearchParams(query)
      if (all) whole.set('limit', String(MAX_LIMIT))
      const route = mergedRoute<TopReport>(replicas, {
        path: PATH,
        access: 'view',
        answer: async () => ({
          ...(await top.report({ ...asked, limit: all ? MAX_LIMIT : asked.limit }, chosen)),
          ...answeredOf(chosen ?? (cluster === '' ? clusterNames(clusters) : [cluster])),
        }),
        read: (json) => readReport(json, chosen !== undefined),
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

/** A replica of an earlier version knows no choice, and would report on all clusters. */
function readReport(json: unknown, isChosen: boolean): TopReport {
  if (isTopAnswer(json) && (json.clusters !== undefined) === isChosen) return json
  throw new Error('the answer is not a report of this version')
}
