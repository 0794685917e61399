// The table of routes of the admin listener: what is answered at a path, and who may ask.

import type { AnyResponse, PlainRequest, PlainResponse } from '../../gateway/io/listener/http-plain.ts'
import type { UserInfo } from '../../kube/api/user.ts'

/**
 * Who may ask. `health`: everybody who reaches the listener. `view`: what happens, names of users among it. `admin`: also what shows the
 * inside of the process, or changes it.
 */
export type RouteAccess = 'health' | 'view' | 'admin'

export interface AdminRoute {
  /** As it is requested; with `*` at its end, every path that begins with what is before it, and is longer. */
  readonly path: string
  readonly method: 'GET' | 'PUT' | 'POST' | 'DELETE'
  readonly access: RouteAccess
  /** Whether replicas ask each other for it. Default: no. */
  readonly replicas?: boolean
  /** Whether the log and the audit log name who asks. Default: where `access` is `admin`. */
  readonly audited?: boolean
  /** A rejection is a bug, and answered with 500. */
  answer(request: PlainRequest, user: AdminUser): AnyResponse | Promise<AnyResponse>
}

/** Who asks; the name is '' where nobody has to say. */
export interface AdminUser extends Pick<UserInfo, 'name' | 'groups'> {
  /** Whether the credential is that of the replicas, which may ask on behalf of somebody else. Default: it is not. */
  readonly replica?: boolean
}

/** Who it is, or what to answer instead: the request is refused. */
export type Admitted = { readonly user: AdminUser } | { readonly refused: PlainResponse }

/** Who may ask. Never rejects. */
export type AdminAccess = (request: PlainRequest, route: AdminRoute) => Promise<Admitted>

/** Why somebody may not ask. */
export interface AccessRefusal {
  readonly code: 401 | 403 | 429 | 503
  /** One line for people. */
  readonly message: string
  /** 0 = another attempt would not help. */
  readonly retryAfterSeconds: number
}

export const NOBODY: AdminUser = { name: '', groups: [] }
export const TEXT = 'text/plain; charset=utf-8'

/** Everybody, without a name. */
export const OPEN_ADMIN: AdminAccess = () => Promise.resolve({ user: NOBODY })

export function jsonResponse(value: unknown): PlainResponse {
  return { code: 200, contentType: 'application/json', body: `${JSON.stringify(value)}\n` }
}

/** The answer that says so. */
export function refusalResponse({ code, message, retryAfterSeconds }: AccessRefusal): PlainResponse {
  const headers = {
    ...(code === 401 && { 'www-authenticate': 'Bearer' }),
    ...(retryAfterSeconds > 0 && { 'retry-after': String(retryAfterSeconds) }),
  }
  return { code, contentType: TEXT, body: `${message}\n`, headers }
}

/** The answer to one request; rejects only when a route does. */
export async function answerRoute(
  request: PlainRequest,
  routes: readonly AdminRoute[],
  access: AdminAccess,
): Promise<AnyResponse> {
  const there = routesAt(routes, request.path)
  if (there.length === 0) {
    const paths = [...new Set(routes.map(({ path }) => path))].join(' ')
    return { code: 404, contentType: TEXT, body: `not found; paths: ${paths}\n` }
  }
  const route = there.find(({ method }) => method === request.method)
  if (route === undefined) {
    const allow = there.map(({ method }) => method)
    const body = `${request.method} is not allowed; only ${allow.join(' and ')} is\n`
    return { code: 405, contentType: TEXT, body, headers: { allow: allow.join(', ') } }
  }
  if (route.access === 'health') return route.answer(request, NOBODY)
  const admitted = await access(request, route)
  return 'refused' in admitted ? admitted.refused : route.answer(request, admitted.user)
}

/** Of an exact path and of one with `*`, the exact one. */
function routesAt(routes: readonly AdminRoute[], path: string): readonly AdminRoute[] {
  const exact = routes.filter((route) => route.path === path)
  if (exact.length > 0) return exact
  return routes.filter((route) => {
    const prefix = route.path.endsWith('*') ? route.path.slice(0, -1) : undefined
    return prefix !== undefined && path.startsWith(prefix) && path.length > prefix.length
  })
}
