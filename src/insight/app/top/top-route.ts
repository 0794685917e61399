// `/api/v1/top`: top talkers, at this replica or at all.

import { mergedRoute, type Replicas } from '../../../admin/app/replicas/replicas.ts'
import { type AdminRoute, PLAIN_TEXT } from '../../../admin/io/server/route.ts'
import type { CachedResourceInForce } from '../../../gateway/api/upstream-cluster/read-cache/read-cache-in-force.ts'
import { answeredReads, mostAnswered } from '../../core/top/answered-reads.ts'
import { MAX_LIMIT, readTopQuery } from '../../core/top/query.ts'
import { sumOfReports, type TopReport } from '../../core/top/report.ts'
import { isTopAnswer } from '../../core/top/top-lines.ts'
import { type ClustersHere, chosenNames, clusterNames } from '../choice/chosen-names.ts'
import type { TopCounts } from './top-counts.ts'

interface TopDeps {
  readonly clusters: ClustersHere
  readonly replicas: Replicas
  /** undefined = not counted. */
  readonly top: TopCounts | undefined
  /** Resources of a cluster whose reads are answered here. */
  cached(cluster: string): readonly CachedResourceInForce[]
}

const PATH = '/api/v1/top'

export function topRoute({ replicas, top, clusters, cached }: TopDeps): AdminRoute {
  const answeredOf = (names: Iterable<string>): Pick<TopReport, 'answered'> => {
    const all = [...names].flatMap((name) => answeredReads(name, cached(name)) ?? [])
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
