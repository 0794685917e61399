// `/api/v1/sessions`: users seen lately, at this replica or at all.

import { mergedRoute, type Replicas } from '../../../admin/app/replicas/replicas.ts'
import { type AdminRoute, PLAIN_TEXT } from '../../../admin/io/server/route.ts'
import type { IdentitySeen } from '../../../gateway/api/identity-seen.ts'
import { type AsksThreads, Question } from '../../../kit/core/topics/questions.ts'
import {
  isSessionAnswer,
  MAX_SESSIONS,
  readSessionQuery,
  type SessionsReport,
  sumOfSessions,
} from '../../core/sessions/session-report.ts'
import { type ClustersHere, chosenNames } from '../choice/chosen-names.ts'

/** The users that a thread has seen lately. The argument is the name of one; '' = all. */
export const USERS_SEEN = new Question<string, readonly IdentitySeen[]>('users-seen')

interface SessionsDeps {
  readonly clusters: ClustersHere
  readonly replicas: Replicas
  readonly pool: AsksThreads
}

const PATH = '/api/v1/sessions'

export function sessionsRoute({ replicas, pool, clusters }: SessionsDeps): AdminRoute {
  return {
    path: PATH,
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
        path: PATH,
        access: 'view',
        async answer() {
          const threads = await pool.ask(USERS_SEEN, user)
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
