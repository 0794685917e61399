// The responses of the admin listener: health in kube-apiserver's format (apiserver/pkg/server/healthz), metrics, and the
// configuration in force without secrets.

import { redact } from '../core/identity/redact.ts'
import type { PlainRequest, PlainResponse } from '../io/listener/http-plain.ts'

/** One condition of health. */
export interface Check {
  /** Lower-case words with dashes; clients exclude it by this name. */
  readonly name: string
  readonly ok: boolean
  /** Why the check fails. */
  readonly message: string
  /** What is unusual although it does not fail. Default: nothing. */
  readonly note?: string
}

/** The state of the process, read at each request. */
export interface AdminState {
  /** If one fails, the process should be restarted. */
  live(): readonly Check[]
  /** If one fails, the process should get no traffic. */
  ready(): readonly Check[]
  /** Configuration in force: clusters, problems, endpoints with health, flow tables, threads. Secrets are removed here. */
  describe(): object | Promise<object>
}

/** The text of /metrics. */
export interface MetricsText {
  text(): Promise<string>
  readonly contentType: string
}

const TEXT = 'text/plain; charset=utf-8'
const PATHS = ['/livez', '/readyz', '/healthz', '/metrics', '/debug/config']

/** The answer to one request; rejects only when the metrics or the description do. */
export async function adminResponse(
  request: PlainRequest,
  state: AdminState,
  metrics: MetricsText,
): Promise<PlainResponse> {
  if (!PATHS.includes(request.path)) return notFound(request.path)
  if (request.method !== 'GET') {
    const body = `${request.method} is not allowed; only GET is\n`
    return { code: 405, contentType: TEXT, body, headers: { allow: 'GET' } }
  }
  switch (request.path) {
    case '/readyz':
      return health('readyz', state.ready(), request.query)
    case '/metrics':
      return { code: 200, contentType: metrics.contentType, body: await metrics.text() }
    case '/debug/config': {
      const body = `${JSON.stringify(redact(await state.describe()), null, 2)}\n`
      return { code: 200, contentType: 'application/json', body }
    }
    default:
      return health(request.path.slice(1), state.live(), request.query)
  }
}

/** `?verbose` lists every check; `?exclude=name` (repeatable) leaves one out. A failure is always listed. */
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
  if (failed) return { code: 500, contentType: TEXT, body: `${lines}${name} check failed\n` }
  return { code: 200, contentType: TEXT, body: query.has('verbose') ? `${lines}${name} check passed\n` : 'ok' }
}

function notFound(path: string): PlainResponse {
  return { code: 404, contentType: TEXT, body: `${path} not found; paths: ${PATHS.join(' ')}\n` }
}
