// The label values of request metrics: closed sets and well-formed names, whatever a client sends.
// Names are those of kube-apiserver (apiserver/pkg/endpoints/metrics/metrics.go).

import type { RequestRecord } from '../../api/request-record.ts'

/** Values of the label `verb`. */
export const METRIC_VERBS: readonly string[] = [
  'GET',
  'LIST',
  'WATCH',
  'POST',
  'PUT',
  'PATCH',
  'DELETE',
  'DELETECOLLECTION',
  'CONNECT',
  'HEAD',
  'OPTIONS',
  'other',
]

/** Values of the label `scope`. */
export const METRIC_SCOPES: readonly string[] = ['', 'cluster', 'namespace', 'resource']

/** Indexes into METRIC_VERBS. */
export const VERB_GET = 0
export const VERB_LIST = 1
export const VERB_WATCH = 2
const VERB_CONNECT = 8
const VERB_OTHER = METRIC_VERBS.length - 1

const VERB_POST = 3
const VERB_PUT = 4
const VERB_PATCH = 5
const VERB_DELETE = 6

/** Index into METRIC_VERBS: the verb as spelled in kube-apiserver's metrics. */
export function metricVerb(record: RequestRecord): number {
  if (!record.isResourceRequest) return pathVerb(record.verb)
  return record.subresource !== '' && isConnect(record.subresource) ? VERB_CONNECT : resourceVerb(record.verb)
}

// Comparing with a few constants is faster than a Map lookup: a verb sliced out of a path has no cached hash yet.
function resourceVerb(verb: string): number {
  switch (verb) {
    case 'get':
      return VERB_GET
    case 'list':
      return VERB_LIST
    case 'watch':
      return VERB_WATCH
    case 'update':
      return VERB_PUT
    case 'patch':
      return VERB_PATCH
    case 'create':
      return VERB_POST
    case 'delete':
      return VERB_DELETE
    case 'deletecollection':
      return 7
    case 'proxy':
      return VERB_CONNECT
    default:
      return VERB_OTHER
  }
}

function pathVerb(verb: string): number {
  switch (verb) {
    case 'get':
      return VERB_GET
    case 'post':
      return VERB_POST
    case 'put':
      return VERB_PUT
    case 'patch':
      return VERB_PATCH
    case 'delete':
      return VERB_DELETE
    case 'head':
      return 9
    case 'options':
      return 10
    default:
      return VERB_OTHER
  }
}

function isConnect(subresource: string): boolean {
  return subresource === 'exec' || subresource === 'attach' || subresource === 'portforward' || subresource === 'proxy'
}

/** Index into METRIC_SCOPES: what the request spans, like CleanScope. */
export function metricScope(record: RequestRecord): number {
  if (!record.isResourceRequest) return 0
  if (record.name !== '' || record.verb === 'create') return 3
  return record.namespace === '' ? 1 : 2
}

/** Whether the request changes state, by the rule of kube-apiserver's max-in-flight filter. */
export function isMutating(record: RequestRecord): boolean {
  return record.verb !== 'get' && record.verb !== 'list' && record.verb !== 'watch' && record.verb !== 'head'
}

// Group: a DNS subdomain, or '' (core). Version, resource and subresource: a DNS label.
const GROUP = /^$|^[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?$/
const LABEL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/

/** Whether the names of a resource request could be those of a real resource. */
export function isWellFormedResource(record: RequestRecord): boolean {
  return (
    GROUP.test(record.apiGroup) &&
    LABEL.test(record.apiVersion) &&
    LABEL.test(record.resource) &&
    (record.subresource === '' || LABEL.test(record.subresource))
  )
}

/** A label in the text format: `name="value"`, escaped. */
export function formatLabel(name: string, value: string): string {
  return `${name}="${value.replace(/[\\"\n]/g, (c) => (c === '\n' ? '\\n' : `\\${c}`))}"`
}
