// Which values request metrics may carry as labels: closed sets and well-formed names, whatever a client sends.
// Names are those of kube-apiserver (apiserver/pkg/endpoints/metrics/metrics.go).

import type { RequestRecord } from '../api/request-record.ts'

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

const RESOURCE_VERBS = new Map([
  ['get', VERB_GET],
  ['list', VERB_LIST],
  ['watch', VERB_WATCH],
  ['create', 3],
  ['update', 4],
  ['patch', 5],
  ['delete', 6],
  ['deletecollection', 7],
  ['proxy', VERB_CONNECT],
])

const PATH_VERBS = new Map([
  ['get', VERB_GET],
  ['post', 3],
  ['put', 4],
  ['patch', 5],
  ['delete', 6],
  ['head', 9],
  ['options', 10],
])

const CONNECT_SUBRESOURCES = new Set(['exec', 'attach', 'portforward', 'proxy'])

/** Index into METRIC_VERBS: the verb as kube-apiserver's metrics spell it. */
export function metricVerb(record: RequestRecord): number {
  if (!record.isResourceRequest) return PATH_VERBS.get(record.verb) ?? VERB_OTHER
  if (CONNECT_SUBRESOURCES.has(record.subresource)) return VERB_CONNECT
  return RESOURCE_VERBS.get(record.verb) ?? VERB_OTHER
}

/** Index into METRIC_SCOPES, as CleanScope: what the request spans. */
export function metricScope(record: RequestRecord): number {
  if (!record.isResourceRequest) return 0
  if (record.name !== '' || record.verb === 'create') return 3
  return record.namespace === '' ? 1 : 2
}

/** Whether the request changes state, as kube-apiserver's max-in-flight filter divides them. */
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
