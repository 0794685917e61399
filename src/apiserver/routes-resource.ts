// Requests for objects: maps route and body to an operation of the registry, and its result to a response
// (apiserver/pkg/endpoints/installer.go; handlers/response.go).

import type { JsonObject } from '../kit/api/json/json-object.ts'
import type { ConnectSubresource, KindSubresource, ObjectWriter } from '../kube/api/resource-kind.ts'
import { statusError } from '../kube/api/status.ts'
import { decodeObject } from '../kube/core/objects/strict-decode.ts'
import { type IncludeObject, includeObjectOf } from '../kube/core/tables/include-object.ts'
import type { Shown } from './access/redaction.ts'
import type { FollowRequest } from './follow-stream.ts'
import { type Negotiated, negotiate, notAcceptable, wantsPretty } from './http/accept.ts'
import { type HttpAnswer, objectAnswer, textAnswer } from './http/answer.ts'
import { readWriteOptions } from './http/query-options.ts'
import { bodyFormat, decodeSmallBody, unsupportedMediaType } from './http/read-body.ts'
import type { ControlRequest } from './http/read-request.ts'
import { type ListResult, listDocument, tooLargeRevision } from './list/list.ts'
import { readListOptions, readWatchOptions, revisionOf } from './list/options.ts'
import { partialListOf, partialOf, tableOf } from './list/tables.ts'
import { metaOf, metaText } from './objects/object-metadata.ts'
import { methodNotAllowed, objectForbidden, unclassified } from './objects/registry-errors.ts'
import { decodeBody, type Incoming, takesTooLong, tooLarge } from './objects/write-object-decode.ts'
import type { WriteCall, Written } from './registry/context.ts'
import { deletedStatus } from './registry/deletion.ts'
import { readDeleteOptions } from './registry/deletion-options.ts'
import { isNamespace } from './registry/namespaces.ts'
import { APPLY, patchTypesOf, type RegistryPatchType } from './registry/patch.ts'
import type { Registry } from './registry/registry.ts'
import type { ResourceRoute } from './routes-match.ts'
import type { WatchRequest } from './watch-stream.ts'

interface ResourceCall {
  readonly request: ControlRequest
  readonly route: ResourceRoute
  readonly body: string
  /** Warnings for the client are added here. */
  readonly warnings: string[]
  /** The object as the caller may see it. */
  readonly show: Shown
  /** undefined = without a credential. */
  readonly by: ObjectWriter | undefined
}

/** @throws {StatusError} */
export function answerResource(registry: Registry, call: ResourceCall): HttpAnswer | WatchRequest | FollowRequest {
  const { request, route } = call
  const wanted = negotiated(request)
  if (route.own !== undefined) return answerSubresource(registry, call, route.own, wanted)
  switch (request.info.verb) {
    case 'get':
      checkSeen(registry, request)
      return objectOf(registry, call, wanted, registry.get(route.kind, route))
    case 'list':
      return listOf(
        registry,
        call,
        wanted,
        registry.list(route.kind, route.namespace, readListOptions(request.query, route.kind)),
      )
    case 'watch':
      return watchOf(call, wanted)
    case 'create':
      return create(registry, call, wanted)
    case 'update':
      return update(registry, call, wanted)
    case 'patch':
      return patch(registry, call, wanted)
    case 'delete':
      return remove(registry, call, wanted)
    case 'deletecollection':
      return removeAll(registry, call, wanted)
    default:
      throw methodNotAllowed(route.kind, request.info.verb)
  }
}

/** A get may require a minimum revision. @throws {StatusError} 504 if it is in the future */
function checkSeen({ store }: Registry, { query }: ControlRequest): void {
  const version = query.text('resourceVersion')
  const wanted = version === '' ? 0 : revisionOf(version, unclassified)
  if (wanted > store.revision) throw tooLargeRevision(wanted, store.revision)
}

/** Checks whether the route supports the method. @throws {StatusError} 405 */
export function checkMethod({ method, info }: ControlRequest, route: ResourceRoute): void {
  if (methodsOf(route).includes(method)) return
  throw methodNotAllowed(route.kind, info.verb === '' ? method.toLowerCase() : info.verb)
}

function methodsOf({ kind, namespace, name, subresource, own }: ResourceRoute): readonly string[] {
  if (own !== undefined && 'connect' in own) return own.methods.includes('GET') ? [...own.methods, 'HEAD'] : own.methods
  if (own !== undefined || subresource !== '') return ['GET', 'HEAD', 'PUT', 'PATCH']
  if (name !== '') return ['GET', 'HEAD', 'PUT', 'PATCH', 'DELETE']
  // A single request must not empty the server; kube-apiserver has no such request either.
  if (isNamespace(kind)) return ['GET', 'HEAD', 'POST']
  // Across all namespaces only reads are possible.
  return kind.namespaced && namespace === '' ? ['GET', 'HEAD'] : ['GET', 'HEAD', 'POST', 'DELETE']
}

function negotiated({ accept, query, userAgent }: ControlRequest): Negotiated {
  const wanted = negotiate(accept, 'objects')
  if (wanted === undefined) throw notAcceptable()
  return wanted.pretty || !wantsPretty(query.has('pretty') ? query.text('pretty') : undefined, userAgent)
    ? wanted
    : { ...wanted, pretty: true }
}

/** Answers a kind-specific subresource. */
function answerSubresource(
  registry: Registry,
  call: ResourceCall,
  own: KindSubresource,
  wanted: Negotiated,
): HttpAnswer | FollowRequest {
  const { request, route } = call
  if ('connect' in own) return connect(registry, call, own, wanted)
  switch (request.info.verb) {
    case 'get':
      return objectAnswer(200, own.show(registry.get(route.kind, route)), wanted)
    case 'update': {
      const { incoming, options } = updateOf(call)
      return objectAnswer(200, registry.updateView(route.kind, route, own, incoming, options), wanted)
    }
    default: {
      const { type, incoming, options } = patchOf(call)
      if (type === APPLY) throw unsupportedMediaType(patchTypesOf(route.kind).filter((known) => known !== APPLY))
      return objectAnswer(200, registry.patchView(route.kind, route, own, type, incoming, options), wanted)
    }
  }
}

function connect(
  registry: Registry,
  call: ResourceCall,
  own: ConnectSubresource,
  wanted: Negotiated,
): HttpAnswer | FollowRequest {
  const { request, route, body, by } = call
  const { kind } = route
  const object = registry.get(kind, route)
  const {
    code,
    body: shown,
    follow,
  } = own.connect({
    object,
    by,
    nowMs: registry.now(),
    setStatus: (status) => setStatus(registry, call, object, status),
    query: new URLSearchParams(request.query.raw),
    body: body.trim() === '' ? {} : decodeSmallBody(body, bodyFormat(request.contentType)),
    remove: (options) => {
      registry.delete(kind, route, readDeleteOptions(request.query, JSON.stringify(options), 'json'))
    },
  })
  const answer = typeof shown === 'string' ? textAnswer(code, shown) : objectAnswer(code, shown, wanted)
  return follow === undefined ? answer : { begin: answer, follow }
}

function setStatus(registry: Registry, call: ResourceCall, object: JsonObject, status: JsonObject): JsonObject {
  const { request, route } = call
  const options = readWriteOptions(request.query, request.userAgent, 'UpdateOptions', false)
  const incoming: Incoming = { value: { ...object, status }, duplicates: [], strictErrors: [], text: '' }
  const own = { ...writeCall(call, options), isOwn: true }
  return registry.update(route.kind, route, 'status', incoming, own).object
}

/** @throws {StatusError} 403 */
function refuseOwnStatus({ kind, name, subresource }: ResourceRoute): void {
  if (subresource === '' || kind.ownStatus !== true) return
  throw objectForbidden(kind, name, 'the gateway alone writes its status')
}

function create(registry: Registry, call: ResourceCall, wanted: Negotiated): HttpAnswer {
  const { request, route, body } = call
  const format = bodyFormat(request.contentType)
  const options = readWriteOptions(request.query, request.userAgent, 'CreateOptions', false)
  const incoming = decodeBody(body, format, route.kind)
  return writtenOf(
    registry,
    call,
    wanted,
    registry.create(route.kind, route.namespace, incoming, writeCall(call, options)),
  )
}

function update(registry: Registry, call: ResourceCall, wanted: Negotiated): HttpAnswer {
  const { route } = call
  refuseOwnStatus(route)
  const { incoming, options } = updateOf(call)
  return writtenOf(registry, call, wanted, registry.update(route.kind, route, route.subresource, incoming, options))
}

interface SentUpdate {
  readonly incoming: Incoming
  readonly options: WriteCall
}

function updateOf(call: ResourceCall): SentUpdate {
  const { request, route, body } = call
  const format = bodyFormat(request.contentType)
  const options = readWriteOptions(request.query, request.userAgent, 'UpdateOptions', false)
  return { incoming: decodeBody(body, format, route.kind), options: writeCall(call, options) }
}

function patch(registry: Registry, call: ResourceCall, wanted: Negotiated): HttpAnswer {
  const { route } = call
  refuseOwnStatus(route)
  const { type, incoming, options } = patchOf(call)
  const written = registry.patch(route.kind, route, route.subresource, type, incoming, options)
  return writtenOf(registry, call, wanted, written)
}

interface SentPatch extends SentUpdate {
  readonly type: RegistryPatchType
}

function patchOf(call: ResourceCall): SentPatch {
  const { request, route, body } = call
  const types = patchTypesOf(route.kind)
  const type = types.find((known) => known === request.contentType)
  if (type === undefined) throw unsupportedMediaType(types)
  const options = readWriteOptions(request.query, request.userAgent, 'PatchOptions', type === APPLY)
  return { type, incoming: decodePatch(body, type === APPLY ? 'yaml' : 'json'), options: writeCall(call, options) }
}

/** @throws {StatusError} 400, 413 */
function decodePatch(text: string, format: 'json' | 'yaml'): Incoming {
  try {
    return { ...decodeObject(text, format), text }
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    if (takesTooLong(error)) throw tooLarge(error)
    const what = format === 'yaml' ? 'YAML: error converting YAML to JSON' : 'patch'
    throw statusError('BadRequest', `error decoding ${what}: ${error.message}`)
  }
}

function remove(registry: Registry, call: ResourceCall, wanted: Negotiated): HttpAnswer {
  const { route } = call
  const { waiting, last } = registry.delete(route.kind, route, deleteOptions(call))
  if (waiting !== undefined) return objectOf(registry, call, wanted, waiting)
  return objectAnswer(200, deletedStatus(route.kind, last), wanted)
}

function removeAll(registry: Registry, call: ResourceCall, wanted: Negotiated): HttpAnswer {
  const { request, route } = call
  const list = readListOptions(request.query, route.kind)
  const gone = registry.deleteCollection(route.kind, route.namespace, list, deleteOptions(call))
  return listOf(registry, call, wanted, gone)
}

function deleteOptions({ request, body }: ResourceCall): ReturnType<typeof readDeleteOptions> {
  const format = body.trim() === '' ? 'json' : bodyFormat(request.contentType)
  return readDeleteOptions(request.query, body, format)
}

function writeCall({ warnings, by }: ResourceCall, options: WriteCall['options']): WriteCall {
  return { options, warnings, by }
}

function writtenOf(
  registry: Registry,
  call: ResourceCall,
  wanted: Negotiated,
  { object, created }: Written,
): HttpAnswer {
  const answer = objectOf(registry, call, wanted, object, created ? 201 : 200)
  return created ? { ...answer, createdName: metaText(object, 'name') } : answer
}

function objectOf(
  registry: Registry,
  { request, route, show }: ResourceCall,
  wanted: Negotiated,
  whole: JsonObject,
  code = 200,
): HttpAnswer {
  const { kind } = route
  const object = show(kind, whole)
  if (wanted.as === 'partial') return objectAnswer(code, partialOf(kind, object), wanted)
  if (wanted.as !== 'table') return objectAnswer(code, object, wanted)
  const { resourceVersion } = metaOf(object)
  const table = tableOf(kind, [object], { resourceVersion }, includeObject(request), registry.now())
  return objectAnswer(code, table, wanted)
}

function listOf(registry: Registry, call: ResourceCall, wanted: Negotiated, result: ListResult): HttpAnswer {
  const { kind } = call.route
  const { metadata } = result
  const items = result.items.map((item) => call.show(kind, item))
  if (wanted.as === 'partial') return objectAnswer(200, partialListOf(kind, items, metadata), wanted)
  if (wanted.as !== 'table') return objectAnswer(200, listDocument(kind, { items, metadata }), wanted)
  return objectAnswer(200, tableOf(kind, items, metadata, includeObject(call.request), registry.now()), wanted)
}

function watchOf({ request, route, show }: ResourceCall, wanted: Negotiated): WatchRequest {
  return {
    kind: route.kind,
    namespace: route.namespace,
    options: readWatchOptions(request.query, route.kind),
    encoding: wanted,
    show,
    includeObject: wanted.as === 'table' ? includeObject(request) : 'Metadata',
  }
}

/** @throws {StatusError} 400 */
function includeObject({ query }: ControlRequest): IncludeObject {
  const include = includeObjectOf(query.text('includeObject'))
  if (typeof include === 'string') return include
  throw statusError('BadRequest', include.invalid)
}
