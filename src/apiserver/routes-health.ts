// /healthz, /livez and /readyz (apiserver/pkg/server/healthz/healthz.go).

import { type Answer, textAnswer } from './http/answer.ts'
import type { Query } from './http/query.ts'

export interface HealthCheck {
  readonly name: string
  /** Only readiness depends on it: a restart would not help. */
  readonly readinessOnly?: boolean
  isHealthy(): boolean
}

const ENDPOINTS: readonly string[] = ['/healthz', '/livez', '/readyz']
const PING: HealthCheck = { name: 'ping', isHealthy: () => true }

/** undefined = another path. */
export function healthAnswer(own: readonly HealthCheck[], path: string, query: Query): Answer | undefined {
  const endpoint = ENDPOINTS.find((root) => path === root || path.startsWith(`${root}/`))
  if (endpoint === undefined) return undefined
  const checks = [PING, ...own.filter(({ readinessOnly = false }) => !readinessOnly || endpoint !== '/livez')]
  const name = path.slice(endpoint.length + 1)
  if (name !== '') {
    const check = checks.find((known) => known.name === name)
    if (check === undefined) return textAnswer(404, '404 page not found\n')
    return check.isHealthy() ? textAnswer(200, 'ok') : textAnswer(500, 'internal server error: not healthy\n')
  }
  const excluded = new Set(query.all('exclude'))
  const wanted = checks.filter((check) => !excluded.has(check.name))
  const lines = wanted.map((check) => `[${check.isHealthy() ? '+' : '-'}]${check.name} ${outcome(check)}`)
  const healthy = wanted.every((check) => check.isHealthy())
  const summary = `${endpoint.slice(1)} check ${healthy ? 'passed' : 'failed'}\n`
  if (healthy && !query.has('verbose')) return textAnswer(200, 'ok')
  return textAnswer(healthy ? 200 : 500, `${lines.join('\n')}\n${summary}`)
}

function outcome(check: HealthCheck): string {
  return check.isHealthy() ? 'ok' : 'failed: reason withheld'
}
