// Maps paths to handlers, for an authenticated and authorized caller.

import type { UserInfo } from '../api/kube/user.ts'
import { metaTime } from '../core/text/meta-time.ts'
import type { RoleBindings } from './access/authorize.ts'
import { shownTo } from './access/redaction.ts'
import { discoveryAnswer } from './discovery.ts'
import { type Answer, jsonAnswer, textAnswer } from './http/answer.ts'
import { bodyFormat, decodeSmallBody } from './http/read-body.ts'
import type { ControlRequest } from './http/read-request.ts'
import { isBuiltIn } from './objects/write-object-decode.ts'
import { openApiAnswer } from './openapi/openapi.ts'
import { decodeProtobuf, PROTOBUF } from './protobuf/objects.ts'
import type { Registry } from './registry/registry.ts'
import { type HealthCheck, healthAnswer } from './routes-health.ts'
import { matchRoute, type ResourceRoute } from './routes-match.ts'
import { answerResource, checkMethod } from './routes-resource.ts'
import { answerSelfReview } from './self-reviews.ts'
import { versionInfo } from './version-info.ts'
import type { WatchRequest } from './watch-stream.ts'

export interface RouteDeps {
  readonly registry: Registry
  readonly bindings: RoleBindings
  /** Version of the program: `0.1.0`. */
  readonly version: string
  readonly checks: readonly HealthCheck[]
}

/** A request without its body. */
export interface Routed {
  readonly request: ControlRequest
  readonly user: UserInfo | 'anonymous'
  /** undefined = not the path of a resource. */
  readonly route: ResourceRoute | undefined
}

/** Refuses what no body can make valid, before the body is read. @throws {StatusError} 405 */
export function routeRequest({ registry }: RouteDeps, request: ControlRequest, user: UserInfo | 'anonymous'): Routed {
  const route = matchRoute(registry.kinds, request.info.path)
  if (route !== undefined) checkMethod(request, route)
  return { request, user, route }
}

/**
 * @param warnings warnings for the client are added here
 * @throws {StatusError}
 */
export function answerRequest(
  deps: RouteDeps,
  { request: given, user, route }: Routed,
  bytes: Buffer,
  warnings: string[],
): Answer | WatchRequest {
  const { request, body } = readable(given, bytes, route === undefined || isBuiltIn(route.kind))
  if (route !== undefined)
    return answerResource(deps.registry, { request, route, body, warnings, show: shownTo(deps.bindings, user) })
  const reading = request.method === 'GET' || request.method === 'HEAD'
  const answer = reading ? documentAnswer(deps, request) : reviewAnswer(deps, request, user, body)
  return answer ?? textAnswer(404, '404 page not found\n')
}

/** The body as text. Protobuf, for kinds that are compiled into clients, is converted to JSON. */
function readable(request: ControlRequest, bytes: Buffer, builtIn: boolean): { request: ControlRequest; body: string } {
  const deletes = request.method === 'DELETE'
  if (request.contentType !== PROTOBUF || !(builtIn || deletes) || bytes.length === 0) {
    return { request, body: bytes.toString('utf8') }
  }
  return { request: { ...request, contentType: 'application/json' }, body: JSON.stringify(decodeProtobuf(bytes)) }
}

function documentAnswer(deps: RouteDeps, { info, accept, ifNoneMatch, query }: ControlRequest): Answer | undefined {
  const { path } = info
  if (path === '/version' || path === '/version/') return jsonAnswer(200, versionInfo(deps.version))
  return (
    healthAnswer(deps.checks, path, query) ??
    discoveryAnswer(path, accept, ifNoneMatch) ??
    openApiAnswer(path, query.raw, accept, ifNoneMatch)
  )
}

/** Self reviews. */
function reviewAnswer(
  { bindings, registry }: RouteDeps,
  { info, method, contentType }: ControlRequest,
  user: UserInfo | 'anonymous',
  text: string,
): Answer | undefined {
  if (method !== 'POST' || info.name !== '' || user === 'anonymous') return undefined
  const { apiGroup: group, resource } = info
  if (info.path !== `/apis/${group}/v1/${resource}`) return undefined
  const body = decodeSmallBody(text, bodyFormat(contentType))
  const now = metaTime(registry.now())
  const review = answerSelfReview({ group, resource, body, user, bindings, now })
  return review === undefined ? undefined : jsonAnswer(201, review)
}
