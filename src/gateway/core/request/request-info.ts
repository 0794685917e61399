// Parses a request like kube-apiserver (apiserver/pkg/endpoints/request/requestinfo.go). Runs for every request: one pass over the target,
// no regular expression, one object.

import { isTrue, nameRequired, readListQuery, selectorProblem } from './list-options.ts'
import { hasTooManyParameters, MAX_PARAMETERS } from './query-reader.ts'
import { absoluteFormPath, decodePath } from './request-target.ts'

/** kube-apiserver's RequestInfo. All strings are decoded. */
export interface RequestInfo {
  /** false for /healthz, /version, discovery and everything else that is not a resource of an API group. */
  isResourceRequest: boolean
  /** Percent-decoded, without the query; `..` is not resolved. */
  path: string
  /** get, list, watch, create, update, patch, delete, deletecollection, proxy or ''; the method in lower case for non-resource requests. */
  verb: string
  /** `api` or `apis`. */
  apiPrefix: string
  /** '' is the core group. */
  apiGroup: string
  apiVersion: string
  /** '' for cluster-scoped requests and those across namespaces. */
  namespace: string
  resource: string
  subresource: string
  /** '' for list, create and the like. */
  name: string
  /** As sent; only for list, watch and deletecollection. */
  fieldSelector: string
  labelSelector: string
}

/** The request has no RequestInfo; `code` is kube-apiserver's answer. */
export interface RequestInfoFailure {
  failure: string
  code: 400 | 500
}

/**
 * Maximum characters of a request target; a longer one gets 414 before it is parsed. The command of exec is in the query, so this is far
 * above what lists need.
 */
export const MAX_TARGET_LENGTH: number = 256 * 1024

const SLASH = 0x2f
/** Anything but visible ASCII and space, and `%`. */
const UNUSUAL = /[^\x20-\x24\x26-\x7e]/

/**
 * @param target the raw request target: origin-form, absolute-form or `*`; one character per byte
 * @returns a failure for what Go's HTTP server refuses and a query of more than MAX_PARAMETERS (400), and for `/api/v1/watch` with nothing
 * after it (500)
 */
export function parseRequestInfo(method: string, target: string): RequestInfo | RequestInfoFailure {
  const queryAt = target.indexOf('?')
  const pathEnd = queryAt < 0 ? target.length : queryAt
  // One regular expression search nearly always suffices, and is faster than a loop over the characters.
  const plain = !UNUSUAL.test(target) || isPlain(target, pathEnd)
  if (plain === undefined) return { failure: 'control character in the request target', code: 400 }
  if (queryAt >= 0 && hasTooManyParameters(target, queryAt + 1))
    return { failure: `the query has more than ${MAX_PARAMETERS} parameters`, code: 400 }
  const pathStart = target.charCodeAt(0) === SLASH ? 0 : rootlessPathStart(method, target, pathEnd)
  if (pathStart < 0) return { failure: 'the request target is not a path', code: 400 }
  const raw = target.slice(pathStart, pathEnd)
  const path = plain ? raw : decodePath(raw)
  if (path === undefined) return { failure: 'invalid percent-encoding in the request target', code: 400 }

  let start = 0
  while (path.charCodeAt(start) === SLASH) start++
  if (!path.startsWith('api', start)) return nonResource(method, path, '')
  let end = path.length
  while (path.charCodeAt(end - 1) === SLASH) end--
  const query = queryAt < 0 ? '' : target.slice(queryAt + 1)
  return parseApiPath(method, path, start, end, query)
}

/** Whether the path contains nothing to decode; undefined if the target has a control character. */
function isPlain(target: string, pathEnd: number): boolean | undefined {
  let plain = true
  for (let at = 0; at < target.length; at++) {
    const c = target.charCodeAt(at)
    if (c < 0x20 || c === 0x7f) return undefined
    if ((c === 0x25 || c >= 0x80) && at < pathEnd) plain = false
  }
  return plain
}

/** Start of the path in a target without leading slash: `*`, absolute-form, and the authority of a CONNECT. */
function rootlessPathStart(method: string, target: string, pathEnd: number): number {
  if (method !== 'CONNECT' && (target === '' || target === '*')) return 0
  const start = method === 'CONNECT' ? authorityFormPath(target, pathEnd) : absoluteFormPath(target)
  // Go refuses an escaped host; so do we, rather than guess which cluster it names.
  const percent = target.indexOf('%')
  return percent >= 0 && percent < start ? -1 : start
}

/** `host:port` has no path; Go uses one if present. */
function authorityFormPath(target: string, pathEnd: number): number {
  const slash = target.indexOf('/')
  return slash < 0 || slash > pathEnd ? pathEnd : slash
}

function nonResource(method: string, path: string, apiPrefix: string): RequestInfo {
  return {
    isResourceRequest: false,
    path,
    verb: method.toLowerCase(),
    apiPrefix,
    apiGroup: '',
    apiVersion: '',
    namespace: '',
    resource: '',
    subresource: '',
    name: '',
    fieldSelector: '',
    labelSelector: '',
  }
}

/** `path` without its surrounding slashes is [start, end). */
function parseApiPath(
  method: string,
  path: string,
  start: number,
  end: number,
  query: string,
): RequestInfo | RequestInfoFailure {
  const groupless = path.charCodeAt(start + 3) === SLASH
  if (!groupless && !path.startsWith('s/', start + 3)) return nonResource(method, path, '')
  let at = start + (groupless ? 4 : 5)
  let apiGroup = ''
  if (!groupless) {
    const groupEnd = segmentEnd(path, at, end)
    // `/apis/group` has too few segments to matter; `/apis/group/version` is known to be under /apis.
    if (groupEnd >= end) return nonResource(method, path, '')
    apiGroup = path.slice(at, groupEnd)
    at = groupEnd + 1
  }
  const versionEnd = segmentEnd(path, at, end)
  if (versionEnd >= end) return nonResource(method, path, groupless ? '' : 'apis')
  const info = nonResource('', path, groupless ? 'api' : 'apis')
  info.isResourceRequest = true
  info.apiGroup = apiGroup
  info.apiVersion = path.slice(at, versionEnd)
  at = versionEnd + 1

  let prefixVerbEnd = segmentEnd(path, at, end)
  const prefixVerb = prefixVerbOf(path, at, prefixVerbEnd)
  if (prefixVerb !== '') {
    if (prefixVerbEnd >= end) return { failure: `nothing follows "${prefixVerb}" in ${path}`, code: 500 }
    at = ++prefixVerbEnd
  }
  info.verb = prefixVerb !== '' ? prefixVerb : verbOfMethod(method)
  readResource(info, path, at, end)
  const problem = prefixVerb === '' && info.name === '' ? readCollection(info, query) : ''
  return problem === '' ? info : { failure: problem, code: 400 }
}

function segmentEnd(path: string, at: number, end: number): number {
  const slash = path.indexOf('/', at)
  return slash < 0 || slash > end ? end : slash
}

/** `proxy` and `watch` as the first segment after the version: a verb, whatever the method. */
function prefixVerbOf(path: string, at: number, end: number): '' | 'proxy' | 'watch' {
  if (end - at !== 5) return ''
  if (path.startsWith('watch', at)) return 'watch'
  return path.startsWith('proxy', at) ? 'proxy' : ''
}

function verbOfMethod(method: string): string {
  switch (method) {
    case 'GET':
    case 'HEAD':
      return 'get'
    case 'POST':
      return 'create'
    case 'PUT':
      return 'update'
    case 'PATCH':
      return 'patch'
    case 'DELETE':
      return 'delete'
    default:
      return ''
  }
}

/** Parses the rest of the path after group, version and verb: the segments of [at, end), without splitting them all. */
function readResource(info: RequestInfo, path: string, at: number, end: number): void {
  let from = at
  let resourceEnd = segmentEnd(path, from, end)
  if (resourceEnd < end && resourceEnd - from === 10 && path.startsWith('namespaces', from)) {
    const namespaceEnd = segmentEnd(path, resourceEnd + 1, end)
    info.namespace = path.slice(resourceEnd + 1, namespaceEnd)
    // `status` and `finalize` are subresources of the namespace itself; anything else is a resource inside it.
    if (namespaceEnd < end && !isOfNamespace(path, namespaceEnd + 1, end)) {
      from = namespaceEnd + 1
      resourceEnd = segmentEnd(path, from, end)
    }
  }
  info.resource = path.slice(from, resourceEnd)
  if (resourceEnd >= end) return
  const nameEnd = segmentEnd(path, resourceEnd + 1, end)
  info.name = path.slice(resourceEnd + 1, nameEnd)
  // After /proxy/ the rest of the path belongs to the proxied server.
  if (nameEnd < end && info.verb !== 'proxy')
    info.subresource = path.slice(nameEnd + 1, segmentEnd(path, nameEnd + 1, end))
}

function isOfNamespace(path: string, at: number, end: number): boolean {
  const length = segmentEnd(path, at, end) - at
  return (length === 6 && path.startsWith('status', at)) || (length === 8 && path.startsWith('finalize', at))
}

/** A request without a name: applies the query. @returns why it can't be parsed; '' = it can */
function readCollection(info: RequestInfo, query: string): string {
  if (info.verb === 'delete') info.verb = 'deletecollection'
  else if (info.verb === 'get') info.verb = 'list'
  else return ''
  if (query === '') return ''
  const options = readListQuery(query)
  const problem = selectorProblem(options)
  if (problem !== '') return problem
  info.fieldSelector = options.fieldSelector ?? ''
  info.labelSelector = options.labelSelector ?? ''
  if (info.verb === 'deletecollection') return ''
  if (isTrue(options.watch)) info.verb = 'watch'
  if (info.fieldSelector !== '') info.name = nameRequired(options)
  return ''
}
