// Which reads may be answered from what is kept: the options of a GET, LIST or WATCH as kube-apiserver reads them. Whatever is not understood in
// full is forwarded, and the cluster words its own errors.

import type { RequestInfo } from '../../../gateway/core/request/request-info.ts'
import { decodeQueryPart } from '../../../gateway/core/request/request-target.ts'

/** Why a read is forwarded. Label of a metric. */
export type PassReason =
  /** A GET without a version has to see the last write. */
  | 'consistent'
  /** Pages, or a version that must match exactly. */
  | 'pages'
  | 'exact'
  /** A table, an encoding that is not kept, or JSON for people. */
  | 'encoding'
  /** Parameters that are unknown, doubled or malformed. */
  | 'parameters'
  /** A selector that does not parse, or a field that the resource does not have. */
  | 'selector'
  /** The caller may not, or the cluster did not say. */
  | 'rights'
  /** The version that is asked for has not arrived. */
  | 'version'
  /** The history does not go back so far. */
  | 'history'
  /** That the answer is current could not be proved. */
  | 'unproved'
  /** A GET of what is not there. */
  | 'missing'
  /** The caller's share of the memory for answers is in use. */
  | 'memory'
  /** The cluster cannot be followed for too long. */
  | 'stale'
  /** The resource is not kept at the moment. */
  | 'unavailable'

export type CacheResult = 'hit' | PassReason

/** How new the answer has to be. `consistent`: at least as new as the request. */
export type Freshness = 'any' | 'consistent' | { readonly notOlderThan: string }

interface Selected {
  /** As sent; '' = everything. */
  readonly labelSelector: string
  readonly fieldSelector: string
}

export interface GetRead {
  readonly kind: 'get'
  readonly freshness: Freshness
}

export interface ListRead extends Selected {
  readonly kind: 'list'
  readonly freshness: Freshness
}

export interface WatchRead extends Selected {
  readonly kind: 'watch'
  /** undefined = it begins behind `after`. */
  readonly initial: Freshness | undefined
  readonly after: string
  readonly bookmarks: boolean
  /** 0 = not said. */
  readonly timeoutSeconds: number
}

export type ReadRequest = GetRead | ListRead | WatchRead

const GET_OPTIONS: ReadonlySet<string> = new Set(['resourceVersion', 'timeout'])
const LIST_OPTIONS: ReadonlySet<string> = new Set([
  ...['resourceVersion', 'resourceVersionMatch', 'labelSelector', 'fieldSelector', 'limit', 'timeoutSeconds', 'watch'],
  ...['allowWatchBookmarks', 'timeout'],
])
const WATCH_OPTIONS: ReadonlySet<string> = new Set([
  ...['resourceVersion', 'resourceVersionMatch', 'labelSelector', 'fieldSelector', 'timeoutSeconds', 'watch'],
  ...['allowWatchBookmarks', 'sendInitialEvents', 'timeout'],
])
/** kube-apiserver reads versions as uint64; more digits are left to it. */
const VERSION = /^[1-9][0-9]{0,17}$/
const COUNT = /^[0-9]{1,9}$/
/** As Go writes whole seconds. */
const DURATION = /^(?:([0-9]{1,4})h)?(?:([0-9]{1,4})m)?(?:([0-9]{1,4})s)?$/
/** An answer may be waited for: up to three seconds. */
const LEAST_TIMEOUT_SECONDS = 5

/** @param target raw, without a prefix for the cluster */
export function readRequestOf(info: RequestInfo, method: string, target: string): ReadRequest | PassReason {
  const queryAt = target.indexOf('?')
  const path = queryAt < 0 ? target : target.slice(0, queryAt)
  // The core group has no other path than /api: `/apis//v1/pods` is none that kube-apiserver knows.
  if ((info.apiPrefix === 'api') !== (info.apiGroup === '')) return 'parameters'
  if (method !== 'GET' || info.subresource !== '' || path !== pathOf(info)) return 'parameters'
  // No key in etcd: the lists of these namespaces fail.
  if (info.namespace === '.' || info.namespace === '..') return 'parameters'
  const options = queryOptionsOf(queryAt < 0 ? '' : target.slice(queryAt + 1))
  if (options === undefined) return 'parameters'
  switch (info.verb) {
    case 'get':
      return getRequest(options)
    case 'list':
      return listRequest(options)
    case 'watch':
      return watchRequest(options)
    default:
      return 'parameters'
  }
}

function getRequest(options: ReadonlyMap<string, string>): GetRead | PassReason {
  if (hasOthers(options, GET_OPTIONS) || !leavesTime(options)) return 'parameters'
  const freshness = freshnessOf(options)
  if (freshness === undefined) return 'parameters'
  return freshness === 'consistent' ? 'consistent' : { kind: 'get', freshness }
}

function listRequest(options: ReadonlyMap<string, string>): ListRead | PassReason {
  if (options.has('continue')) return 'pages'
  if (hasOthers(options, LIST_OPTIONS) || !leavesTime(options)) return 'parameters'
  const freshness = freshnessOf(options)
  if (freshness === undefined) return 'parameters'
  const match = options.get('resourceVersionMatch') ?? ''
  if (match !== '' && match !== 'NotOlderThan') return 'exact'
  // Refused: https://kubernetes.io/docs/reference/using-api/api-concepts/#semantics-for-get-and-list
  if (match !== '' && freshness === 'consistent') return 'parameters'
  const limit = options.get('limit') ?? '0'
  if (!COUNT.test(limit) || !COUNT.test(options.get('timeoutSeconds') ?? '0')) return 'parameters'
  // A list of any age comes whole, from the cache of kube-apiserver, too.
  if (Number(limit) > 0 && freshness !== 'any') return 'pages'
  return { kind: 'list', freshness, ...selectorsOf(options) }
}

function watchRequest(options: ReadonlyMap<string, string>): WatchRead | PassReason {
  if (hasOthers(options, WATCH_OPTIONS)) return 'parameters'
  const freshness = freshnessOf(options)
  const match = options.get('resourceVersionMatch')
  const sends = options.get('sendInitialEvents')
  const timeout = options.get('timeoutSeconds') ?? '0'
  const bookmarks = flagOf(options.get('allowWatchBookmarks'))
  if (freshness === undefined || bookmarks === undefined || !COUNT.test(timeout)) return 'parameters'
  const common = { kind: 'watch', bookmarks, timeoutSeconds: Number(timeout), ...selectorsOf(options) } as const
  if (sends === undefined && match === undefined) {
    // Without a version kube-apiserver 1.34 and later takes it for one that wants the state first
    // (apimachinery/pkg/apis/meta/internalversion/defaults.go).
    if (typeof freshness === 'string') return { ...common, initial: freshness, after: '' }
    return { ...common, initial: undefined, after: freshness.notOlderThan }
  }
  if (sends === undefined || match !== 'NotOlderThan' || flagOf(sends) !== true) return 'parameters'
  return { ...common, initial: freshness, after: '' }
}

/**
 * Typed clients of client-go say in `timeout`, too, how long a list or watch may take. kube-apiserver ends a list then, and does not look at it for a
 * watch (apiserver/pkg/endpoints/filters/request_deadline.go).
 */
function leavesTime(options: ReadonlyMap<string, string>): boolean {
  const [matched, hours = '0', minutes = '0', seconds = '0'] = DURATION.exec(options.get('timeout') ?? '') ?? []
  if (matched === undefined) return false
  return matched === '' || Number(hours) * 3600 + Number(minutes) * 60 + Number(seconds) >= LEAST_TIMEOUT_SECONDS
}

/** undefined = malformed. */
function freshnessOf(options: ReadonlyMap<string, string>): Freshness | undefined {
  const version = options.get('resourceVersion') ?? ''
  if (version === '') return 'consistent'
  if (version === '0') return 'any'
  return VERSION.test(version) ? { notOlderThan: version } : undefined
}

function selectorsOf(options: ReadonlyMap<string, string>): Selected {
  return { labelSelector: options.get('labelSelector') ?? '', fieldSelector: options.get('fieldSelector') ?? '' }
}

function hasOthers(options: ReadonlyMap<string, string>, known: ReadonlySet<string>): boolean {
  for (const name of options.keys()) if (!known.has(name)) return true
  return false
}

/** undefined = malformed, or written in a way that is best left to kube-apiserver. */
function flagOf(value: string | undefined): boolean | undefined {
  switch (value) {
    case 'true':
    case '1':
      return true
    case undefined:
    case 'false':
    case '0':
      return false
    default:
      return undefined
  }
}

/** undefined = doubled, or not decodable: Go drops such pairs, or takes the first. */
export function queryOptionsOf(query: string): ReadonlyMap<string, string> | undefined {
  const options = new Map<string, string>()
  if (query === '') return options
  if (query.includes(';')) return undefined
  for (const pair of query.split('&')) {
    if (pair === '') continue
    const equals = pair.indexOf('=')
    const name = decodeQueryPart(equals < 0 ? pair : pair.slice(0, equals))
    const value = equals < 0 ? '' : decodeQueryPart(pair.slice(equals + 1))
    if (name === undefined || value === undefined || options.has(name)) return undefined
    options.set(name, value)
  }
  return options
}

/** The path by which clients ask: others, such as `/api/v1/watch/pods`, are rare. */
function pathOf({ apiPrefix, apiGroup, apiVersion, namespace, resource, name, verb }: RequestInfo): string {
  const root = apiPrefix === 'api' ? `/api/${apiVersion}` : `/apis/${apiGroup}/${apiVersion}`
  const scope = namespace === '' || isNamespaces(apiGroup, resource) ? root : `${root}/namespaces/${namespace}`
  // A list by fieldSelector=metadata.name has a name, too.
  return verb === 'get' ? `${scope}/${resource}/${name}` : `${scope}/${resource}`
}

/** Their own requests have their name for a namespace. */
export function isNamespaces(group: string, resource: string): boolean {
  return group === '' && resource === 'namespaces'
}
