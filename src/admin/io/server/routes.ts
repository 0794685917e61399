// The admin listener's built-in routes: health in kube-apiserver's format (apiserver/pkg/server/healthz), metrics, and the configuration in force
// without secrets.

import type { PlainRequest, PlainResponse } from '../../../gateway/io/listener/http-plain.ts'
import { redact } from '../../../kit/core/text/redact.ts'
import type { Check } from '../../../process/api/check.ts'
import { type AdminRoute, PLAIN_TEXT } from './route.ts'

/** The state of the process, read at each request. */
export interface AdminState {
  /** If one fails, the process should be restarted (liveness). */
  live(): readonly Check[]
  /** If one fails, the process should receive no traffic (readiness). */
  ready(): readonly Check[]
  /** Configuration in force: clusters, problems, endpoints with health, flow tables, threads. Callers get it without secrets. */
  describe(): object | Promise<object>
}

/** The text of /metrics. */
export interface MetricsText {
  text(): Promise<string>
  readonly contentType: string
}

/** For probes. */
export function healthRoutes({ live, ready }: Pick<AdminState, 'live' | 'ready'>): readonly AdminRoute[] {
  const route = (path: string, checks: () => readonly Check[]): AdminRoute => {
    const answer = ({ query }: PlainRequest): PlainResponse => health(path.slice(1), checks(), query)
    return { path, method: 'GET', access: 'health', answer }
  }
  return [route('/livez', live), route('/readyz', ready), route('/healthz', live)]
}

export function metricsRoute({ text, contentType }: MetricsText): AdminRoute {
  const answer = async (): Promise<PlainResponse> => ({ code: 200, contentType, body: await text() })
  return { path: '/metrics', method: 'GET', access: 'view', answer }
}

export function configRoute({ describe }: Pick<AdminState, 'describe'>): AdminRoute {
  const answer = async (): Promise<PlainResponse> => {
    const body = `${JSON.stringify(redact(await describe()), null, 2)}\n`
    return { code: 200, contentType: 'application/json', body }
  }
  return { path: '/debug/config', method: 'GET', access: 'admin', answer }
}

/** `?verbose` lists every check; `?exclude=name` (repeatable) skips one. Failures are always listed. */
function health(name: string, checks: readonly Check[], query: URLSearchParams): PlainResponse {
  const unmatched = new Set(query.getAll('exclude'))
  let lines = ''
  let failed = false
  for (const check of [{ name: 'ping', ok: true, message: '' }, ...checks]) {
    if (query.getAll('exclude').includes(check.name)) {
      unmatched.delete(check.name)
      lines += `[+]${check.name} excluded: ok\n`
    } else if (check.ok) {
      lines += `[+]${check.name} ok${check.note ? `: ${check.note}` : ''}\n`
    } else {
      failed = true
      lines += `[-]${check.name} failed: ${check.message}\n`
    }
  }
  if (unmatched.size > 0) {
    const names = [...unmatched].map((excluded) => JSON.stringify(excluded)).join(',')
    lines += `warn: some health checks cannot be excluded: no matches for ${names}\n`
  }
  if (failed) return { code: 500, contentType: PLAIN_TEXT, body: `${lines}${name} check failed\n` }
  return { code: 200, contentType: PLAIN_TEXT, body: query.has('verbose') ? `${lines}${name} check passed\n` : 'ok' }
}
