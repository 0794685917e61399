// `/api/v1/shares`: the largest holders of shared resources, over all threads of this replica.

import { type ShareReport, sumOfShares } from '../../../kit/core/shares/shares-report.ts'
import { type AdminRoute, jsonResponse } from '../../io/server/route.ts'
import type { AdminThreads } from './admin-threads.ts'

/** The response. */
export interface SharesAnswer {
  readonly limits: readonly ShareReport[]
}

/** Holders named per resource. */
const NAMED = 5

export function sharesRoute(pool: Pick<AdminThreads, 'askThreads'>): AdminRoute {
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
