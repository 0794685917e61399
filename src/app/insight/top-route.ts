// `/api/v1/top`: who asks most, at this replica or at all.

import { type AdminRoute, TEXT } from '../../admin/route.ts'
import { MAX_LIMIT, readTopQuery } from '../../core/top/query.ts'
import { sumOfReports, type TopReport } from '../../core/top/report.ts'
import { isTopAnswer } from '../../core/top/top-lines.ts'
import { mergedRoute, type Replicas } from './replicas.ts'
import type { TopCounts } from './top-counts.ts'

const PATH = '/api/v1/top'

/** @param top undefined = switched off */
export function topRoute(replicas: Replicas, top: TopCounts | undefined): AdminRoute {
  return {
    path: PATH,
    method: 'GET',
    access: 'view',
    replicas: true,
    answer(request, user) {
      if (top === undefined) return { code: 404, contentType: TEXT, body: 'nothing is counted: --top=false\n' }
      const { query } = request
      const asked = readTopQuery((name) => query.get(name))
      if ('problem' in asked) return { code: 400, contentType: TEXT, body: `${asked.problem}\n` }
      const all = query.get('replicas') === 'all'
      // The first twenty of each are not the first twenty of all.
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
