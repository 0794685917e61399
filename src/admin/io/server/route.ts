// Route table of the admin listener: what each path serves, and who may see it.

import type { AnyResponse, PlainRequest, PlainResponse } from '../../../gateway/io/listener/http-plain.ts'
import type { UserInfo } from '../../../kube/api/user.ts'
import type { FailureCounts } from '../../../process/api/failure-counts.ts'

/** `health`: every client that reaches the listener. `view`: activity, including user names. `admin`: also process internals, and changes to them. */
export type RouteAccess = 'health' | 'view' | 'admin'

export interface AdminRoute {
  /** The exact path; with a trailing `*`, every longer path with this prefix. */
  readonly path: string
  readonly method: 'GET' | 'PUT' | 'POST' | 'DELETE'
  readonly access: RouteAccess
  /** Whether replicas request it from each other. Default: no. */
  readonly replicas?: boolean
  /** Whether the log and the audit log record the user. Default: if `access` is `admin`. */
  readonly audited?: boolean
  /** A rejection is a bug, answered with 500. */
  answer(request: PlainRequest, user: AdminUser): AnyResponse | Promise<AnyResponse>
}

/** The requesting user; the name is '' if no authentication is needed. */
export interface AdminUser extends Pick<UserInfo, 'name' | 'groups'> {
  /** Whether the credential belongs to the replicas, which may ask on behalf of other users. Default: it does not. */
  readonly replica?: boolean
}

/** The user, or the response that refuses the request. */
type Admitted = { readonly user: AdminUser } | { readonly refused: PlainResponse }

/** Authenticates and authorizes. Never rejects. */
export type AdminAccess = (request: PlainRequest, route: AdminRoute) => Promise<Admitted>

/** Logins of browsers, which cannot send a token with each request. */
export interface BrowserLogins {
  /** Admits those that have logged in, too. */
  readonly access: AdminAccess
  readonly routes: readonly AdminRoute[]
}

export type CreateBrowserLogins = (deps: {
  /** Admits clients that send their credential with each request. */
  readonly access: AdminAccess
  /** Whether the listener has TLS. */
  readonly secure: boolean
  /** Counts failed credentials, of all ports. Default: not counted. */
  readonly failures?: Pick<FailureCounts, 'waitSeconds'>
}) => BrowserLogins

/** Why access is refused. */
export interface AdminRefusal {
  readonly code: 401 | 403 | 429 | 503
  /** One line for people. */
  readonly message: string
  /** 0 = retrying would not help. */
  readonly retryAfterSeconds: number
}

export const NO_USER: AdminUser = { name: '', groups: [] }
export const PLAIN_TEXT = 'text/plain; charset=utf-8'

/** Admits every client, without a name. */
export const OPEN_ADMIN: AdminAccess = () => Promise.resolve({ user: NO_USER })

export function jsonResponse(value: unknown): PlainResponse {
  return { code: 200, contentType: 'application/json', body: `${JSON.stringify(value)}\n` }
}

/** The response for a refusal. */
export function adminRefusalResponse({ code, message, retryAfterSeconds }: AdminRefusal): PlainResponse {
  const headers = {
    ...(code === 401 && { 'www-authenticate': 'Bearer' }),
    ...(retryAfterSeconds > 0 && { 'retry-after': String(retryAfterSeconds) }),
  }
  return { code, contentType: PLAIN_TEXT, body: `${message}\n`, headers }
}

/** Answers one request; rejects only if a route does. */
export async function answerRoute(
  request: PlainRequest,
  routes: readonly AdminRoute[],
  access: AdminAccess,
): Promise<AnyResponse> {
  const there = routesAt(routes, request.path)
  if (there.length === 0) {
    const paths = [...new Set(routes.map(({ path }) => path))].join(' ')
    return { code: 404, contentType: PLAIN_TEXT, body: `not found; paths: ${paths}\n` }
  }
  const route = there.find(({ method }) => method === request.method)
  if (route === undefined) {
    const allow = there.map(({ method }) => method)
    const body = `${request.method} is not allowed; only ${allow.join(' and ')} is\n`
    return { code: 405, contentType: PLAIN_TEXT, body, headers: { allow: allow.join(', ') } }
  }
  if (route.access === 'health') return route.answer(request, NO_USER)
  const admitted = await access(request, route)
  return 'refused' in admitted ? admitted.refused : route.answer(request, admitted.user)
}

/** An exact path takes precedence over one with `*`. */
function routesAt(routes: readonly AdminRoute[], path: string): readonly AdminRoute[] {
  const exact = routes.filter((route) => route.path === path)
  if (exact.length > 0) return exact
  return routes.filter((route) => {
    const prefix = route.path.endsWith('*') ? route.path.slice(0, -1) : undefined
    return prefix !== undefined && path.startsWith(prefix) && path.length > prefix.length
  })
}
