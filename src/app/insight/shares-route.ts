// `/api/v1/shares`: who holds most of what is divided among users and addresses, in all threads of this replica.

import { type AdminRoute, jsonResponse } from '../../admin/route.ts'
import { type ShareReport, sumOfShares } from '../../core/shares/shares-report.ts'
import type { ThreadPool } from '../threads/pool/pool.ts'

/** What is answered. */
export interface SharesAnswer {
  readonly limits: readonly ShareReport[]
}

/** Holders that are named of each resource. */
const NAMED = 5

export function sharesRoute(pool: ThreadPool): AdminRoute {
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
