// ObjectClient (src/kube/api/object-client.ts) of a Kubernetes cluster.

import { type JsonObject, nameOf, namespaceOf } from '../../kit/api/json/json-object.ts'
import { recordOf, textOf } from '../../kit/api/json/object-shape.ts'
import type { Logger } from '../../kit/api/ports.ts'
import type {
  FollowChoice,
  FollowEvents,
  Following,
  ObjectClient,
  ObjectName,
  PatchOptions,
  PatchType,
} from '../api/object-client.ts'
import { type ResourceKind, resourceName } from '../api/resource-kind.ts'
import { statusError } from '../api/status.ts'
import { REVIEW } from '../core/answers/answer-limits.ts'
import type { KubeCallEvents } from './client-events.ts'
import { type KubeAccessSource, KubeHttp } from './client-http.ts'
import { FollowedKubeconfig } from './config-follow.ts'
import { listAll, type ResourcePages } from './list.ts'
import { type FollowTiming, followResource } from './watch.ts'

export interface KubeClientOptions {
  /** '' = like kubectl: $KUBECONFIG, ~/.kube/config, or the pod's service account. */
  readonly kubeconfigFile: string
  /** Default: the kubeconfig's current one. */
  readonly context?: string
  readonly log: Logger
  /** For tests. */
  readonly timing?: Partial<FollowTiming>
  /** Timeout in milliseconds of calls other than watches. Default 30 s. */
  readonly timeoutMs?: number
  readonly calls?: KubeCallEvents
}

export interface KubeClient extends ObjectClient {
  /** undefined = the credentials come from elsewhere. */
  readonly kubeconfig: FollowedKubeconfig | undefined
  /** URL of the API server, for messages. */
  readonly server: string
  /** POSTs a review (TokenReview and the like), whose response is not a stored object. Rejects like `create`. */
  review(path: string, body: string): Promise<{ readonly status: number; readonly body: string }>
  /** Single requests of what `follow` does. @param namespace '' = all */
  pages(kind: ResourceKind, namespace: string): ResourcePages
  /** Closes all connections; stop followers first. */
  close(): Promise<void>
}

/** Like kube-apiserver's webhook authenticator: a slower review has failed. */
const REVIEW_TIMEOUT_MS = 10_000
const FIELD_MANAGER = 'portcullis'

/** Sends nothing yet. @throws {UserError} if the kubeconfig is unusable */
export function createKubeClient({ kubeconfigFile, context, ...options }: KubeClientOptions): KubeClient {
  const chosen = { kubeconfigFile, ...(context !== undefined && { context }) }
  const kubeconfig = new FollowedKubeconfig(chosen, options.log)
  return { ...clientOf(kubeconfig, options), kubeconfig }
}

/** A client that asks `source` for server and credentials before each request. */
export function clientOf(
  source: KubeAccessSource,
  { log, timing, timeoutMs, calls }: Omit<KubeClientOptions, 'kubeconfigFile' | 'context'>,
): KubeClient {
  const http = new KubeHttp(source, timeoutMs, calls)
  return {
    server: http.server,
    kubeconfig: undefined,
    close: () => http.close(),
    review: async (path, body) => {
      const answer = await http.call(
        { method: 'POST', path, body: JSON.parse(body), limits: REVIEW },
        AbortSignal.timeout(REVIEW_TIMEOUT_MS),
      )
      return { status: 201, body: JSON.stringify(answer) }
    },
    get: async (kind, at) => http.call({ method: 'GET', path: objectPath(kind, at) }),
    read: async (path) => http.call({ method: 'GET', path }),
    list: (kind, namespace, labelSelector = '') => listAll(pagesOf(http, kind, namespace, labelSelector)),
    create: async (kind, object) => {
      const { namespace } = objectName(object)
      const path = `${collectionPath(kind, namespace, true)}?fieldManager=${FIELD_MANAGER}`
      return http.call({ method: 'POST', path, body: object })
    },
    post: async (kind, at, subresource, body) => {
      return http.call({ method: 'POST', path: objectPath(kind, at, subresource), body })
    },
    update: async (kind, object, subresource) => {
      const path = `${objectPath(kind, objectName(object), subresource)}?fieldManager=${FIELD_MANAGER}`
      return http.call({ method: 'PUT', path, body: object })
    },
    patch: async (kind, at, type, body, options) => {
      const path = `${objectPath(kind, at, options.subresource)}?${patchQuery(type, options)}`
      return http.call({ method: 'PATCH', path, body, contentType: type })
    },
    delete: async (kind, at) => {
      await http.call({ method: 'DELETE', path: objectPath(kind, at) })
    },
    follow: (kind, namespace, events: FollowEvents, choice: FollowChoice = {}): Following => {
      const { labelSelector = '', name = '', ...chosen } = choice
      const options = { log, resource: resourceName(kind), ...timing, ...chosen }
      return followResource(pagesOf(http, kind, namespace, labelSelector, name), events, options)
    },
    pages: (kind, namespace) => pagesOf(http, kind, namespace, ''),
    currentVersion: async (kind) => {
      // Without a resourceVersion the read is consistent.
      const list = await http.call({ method: 'GET', path: `${collectionPath(kind, '', false)}?limit=1` })
      const { resourceVersion } = recordOf(list['metadata'])
      return textOf(resourceVersion)
    },
  }
}

/** @param name of a single object; '' = all */
function pagesOf(
  http: KubeHttp,
  kind: ResourceKind,
  namespace: string,
  labelSelector: string,
  name = '',
): ResourcePages {
  const path = collectionPath(kind, namespace, false)
  const selector: Record<string, string> = {
    ...(labelSelector !== '' && { labelSelector }),
    ...(name !== '' && { fieldSelector: `metadata.name=${name}` }),
  }
  const pathOf = (query: Readonly<Record<string, string>>): string =>
    `${path}?${new URLSearchParams({ ...selector, ...query })}`
  return {
    charge: http.charge,
    page: (query, limits, signal) => http.call({ method: 'GET', path: pathOf(query), limits }, signal),
    bytes: (query, limits, encoding, signal) =>
      http.bytes({ method: 'GET', path: pathOf(query), limits, encoding }, signal),
    watch: (query, silenceMs, signal, encoding) => http.open(pathOf(query), silenceMs, signal, encoding),
  }
}

/** @param needed whether a namespaced kind must have a namespace */
function collectionPath(kind: ResourceKind, namespace: string, needed: boolean): string {
  const { group, version, plural, namespaced } = kind
  const root = group === '' ? `/api/${version}` : `/apis/${group}/${version}`
  const one = namespace === '' && needed ? 'default' : namespace
  return namespaced && one !== '' ? `${root}/namespaces/${segment(kind, one)}/${plural}` : `${root}/${plural}`
}

function objectPath(kind: ResourceKind, { namespace, name }: ObjectName, subresource?: string): string {
  const path = `${collectionPath(kind, namespace, true)}/${segment(kind, name)}`
  return subresource === undefined ? path : `${path}/${subresource}`
}

/** A path segment; a name that would change the path is not found. */
function segment(kind: ResourceKind, name: string): string {
  if (name === '' || name === '.' || name === '..') {
    throw statusError('NotFound', `${resourceName(kind)} ${JSON.stringify(name)} not found`)
  }
  return encodeURIComponent(name)
}

function patchQuery(type: PatchType, { fieldManager, force = false }: PatchOptions): URLSearchParams {
  const query = new URLSearchParams({ fieldManager })
  // Only valid with apply: otherwise 422.
  if (force && type === 'application/apply-patch+yaml') query.set('force', 'true')
  return query
}

function objectName(object: JsonObject): ObjectName {
  return { name: nameOf(object), namespace: namespaceOf(object) }
}
