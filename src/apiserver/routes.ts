// Maps paths to handlers, for an authenticated and authorized caller.

import type { JsonObject } from '../kit/api/json/json-object.ts'
import { metaTime } from '../kit/core/text/meta-time.ts'
import { apiVersionOf, type ObjectWriter } from '../kube/api/resource-kind.ts'
import type { UserInfo } from '../kube/api/user.ts'
import type { Shown } from './access/redaction.ts'
import { Discovery } from './discovery.ts'
import type { FollowRequest } from './follow-stream.ts'
import { type HttpAnswer, jsonAnswer, textAnswer } from './http/answer.ts'
import type { Query } from './http/query.ts'
import { bodyFormat, decodeSmallBody } from './http/read-body.ts'
import type { ControlRequest } from './http/read-request.ts'
import type { ReviewKind } from './objects/api-resource.ts'
import { apiGroups, apiResources } from './objects/api-resources.ts'
import { isBuiltIn } from './objects/write-object-decode.ts'
import { OpenApi } from './openapi/openapi.ts'
import type { Messages } from './protobuf/kinds.ts'
import { decodeProtobuf, PROTOBUF } from './protobuf/objects.ts'
import type { Registry } from './registry/registry.ts'
import { matchRoute, type ResourceRoute } from './routes-match.ts'
import { answerResource, checkMethod } from './routes-resource.ts'
import type { WatchRequest } from './watch-stream.ts'

export interface RouteDeps {
  readonly registry: Registry
  /** Kinds that are answered without storing anything. */
  readonly reviews: readonly ReviewKind[]
  /** How objects are shown to a caller. */
  shownTo(user: UserInfo | 'anonymous'): Shown
  /** Protobuf messages of the kinds. Default: those of the gateway's kinds. */
  readonly messages?: Messages
  /** Version of the program: `0.1.0`. */
  readonly version: string
  readonly checks: readonly HealthEndpoint[]
}

/** A request without its body. */
export interface Routed {
  readonly request: ControlRequest
  readonly user: UserInfo | 'anonymous'
  /** Its sender; undefined = without a credential. */
  readonly by: ObjectWriter | undefined
  /** undefined = not the path of a resource. */
  readonly route: ResourceRoute | undefined
}

export class Routes {
  readonly #deps: RouteDeps
  readonly #discovery: Discovery
  readonly #openApi: OpenApi

  constructor(deps: RouteDeps) {
    this.#deps = deps
    const resources = apiResources(deps.registry.kinds, deps.reviews)
    this.#discovery = new Discovery(apiGroups(resources))
    this.#openApi = new OpenApi(resources)
  }

  /** Refuses requests that no body could make valid, before the body is read. @throws {StatusError} 405 */
  route(request: ControlRequest, user: UserInfo | 'anonymous', by: ObjectWriter | undefined): Routed {
    const route = matchRoute(this.#deps.registry.kinds, request.info.path)
    if (route !== undefined) checkMethod(request, route)
    return { request, user, by, route }
  }

  /**
   * @param warnings warnings for the client are added here
   * @throws {StatusError}
   */
  answer(
    { request, user, by, route }: Routed,
    bytes: Buffer,
    warnings: string[],
  ): HttpAnswer | WatchRequest | FollowRequest {
    const { registry } = this.#deps
    if (route !== undefined) {
      const readable = this.#readable(request, bytes, isBuiltIn(route.kind))
      return answerResource(registry, { ...readable, route, by, warnings, show: this.#deps.shownTo(user) })
    }
    const reading = request.method === 'GET' || request.method === 'HEAD'
    const answer = reading ? this.#documentAnswer(request) : this.#reviewAnswer(request, user, bytes)
    return answer ?? textAnswer(404, '404 page not found\n')
  }

  /** The body as text. Protobuf, for kinds compiled into clients, is converted to JSON. */
  #readable(request: ControlRequest, bytes: Buffer, builtIn: boolean): { request: ControlRequest; body: string } {
    const deletes = request.method === 'DELETE'
    if (request.contentType !== PROTOBUF || !(builtIn || deletes) || bytes.length === 0) {
      return { request, body: bytes.toString('utf8') }
    }
    const object = decodeProtobuf(bytes, this.#deps.messages)
    return { request: { ...request, contentType: 'application/json' }, body: JSON.stringify(object) }
  }

  #documentAnswer({ info, accept, ifNoneMatch, query }: ControlRequest): HttpAnswer | undefined {
    const { path } = info
    if (path === '/version' || path === '/version/') return jsonAnswer(200, versionInfo(this.#deps.version))
    return (
      healthAnswer(this.#deps.checks, path, query) ??
      this.#discovery.answer(path, accept, ifNoneMatch) ??
      this.#openApi.answer(path, query.raw, accept, ifNoneMatch)
    )
  }

  #reviewAnswer(given: ControlRequest, user: UserInfo | 'anonymous', bytes: Buffer): HttpAnswer | undefined {
    const { info, method } = given
    if (method !== 'POST' || info.name !== '' || user === 'anonymous') return undefined
    const review = this.#deps.reviews.find((one) => info.path === `/apis/${apiVersionOf(one)}/${one.plural}`)
    if (review === undefined) return undefined
    const { request, body: text } = this.#readable(given, bytes, true)
    const body = decodeSmallBody(text, bodyFormat(request.contentType))
    const metadata = { creationTimestamp: metaTime(this.#deps.registry.now()) }
    const type = { kind: review.kind, apiVersion: apiVersionOf(review), metadata }
    return jsonAnswer(201, { ...type, ...review.answer(body, user) })
  }
}

// /healthz, /livez and /readyz (apiserver/pkg/server/healthz/healthz.go).
interface HealthEndpoint {
  readonly name: string
  /** Affects readiness only: a restart would not help. */
  readonly readinessOnly?: boolean
  isHealthy(): boolean
}

const ENDPOINTS: readonly string[] = ['/healthz', '/livez', '/readyz']
const PING: HealthEndpoint = { name: 'ping', isHealthy: () => true }

/** undefined = another path. */
function healthAnswer(own: readonly HealthEndpoint[], path: string, query: Query): HttpAnswer | undefined {
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

function outcome(check: HealthEndpoint): string {
  return check.isHealthy() ? 'ok' : 'failed: reason withheld'
}

// `GET /version` (apimachinery/pkg/version/types.go).

/** The Kubernetes release whose API conventions apply. */
const MAJOR = '1'
const MINOR = '36'

/**
 * kubectl parses gitVersion as a semantic version and warns if it is more than one minor version away from its own.
 * @param portcullis version of the program: `0.1.0`
 */
function versionInfo(portcullis: string): JsonObject {
  return {
    major: MAJOR,
    minor: MINOR,
    gitVersion: `v${MAJOR}.${MINOR}.0+portcullis.${portcullis}`,
    gitCommit: '',
    gitTreeState: '',
    buildDate: '1970-01-01T00:00:00Z',
    goVersion: '',
    compiler: '',
    platform: '',
  }
}
