// The kinds of calls that the gateway makes of itself to a cluster or an OpenID provider, and a client's request that is forwarded: how each is
// brought about, and which of the requests that an endpoint gets are it. Each kind has an endpoint, and a cluster if it is one, of its own.

import type { UpstreamClusterSpec } from '../../../src/gateway/api/upstream-cluster/upstream-cluster.ts'

/** What an endpoint was asked. */
export interface Asked {
  readonly method: string
  /** Without query. */
  readonly path: string
  readonly query: string
}

/** A client's request, again and again. */
export interface Provocation {
  readonly method: string
  readonly path: string
  readonly body?: object
  readonly contentType?: string
  /** Further header fields. NUMBER in them is another number each time, and TOKEN an ID token of the endpoint that is valid but for its key. */
  readonly fields?: Readonly<Record<string, string>>
  /** Default: a client certificate. */
  readonly anonymous?: boolean
  /** Asks for a WebSocket, over HTTP/1.1. */
  readonly upgrade?: true
}

export interface CallKind {
  readonly name: string
  /** The rest of its cluster's spec, without servers and credentials. */
  readonly spec?: Partial<UpstreamClusterSpec>
  /** The endpoint is also the OpenID provider of its cluster's users. */
  readonly issuer?: true
  /** An object that makes the gateway ask, by the path of its collection. */
  object?(cluster: string): readonly [collection: string, object: object]
  /** Not to a cluster, but to the OpenID provider of the control plane: in these kinds of answers only, since it is asked every five seconds. */
  readonly provider?: readonly string[]
  is(asked: Asked): boolean
  /** What makes the gateway ask. Default: its own controllers do. */
  readonly provocation?: Provocation
}

const PODS = '/api/v1/namespaces/default/pods'
const SERVICES = '/api/v1/services'
/** Clients ask for none of them: the gateway follows them of itself. */
const CACHE = { cache: [{ version: 'v1', resource: 'services' }] }
const EXEC = `${PODS}/web-1/exec`
const WEB = '/apis/apps/v1/namespaces/default/deployments/web'
const MERGE_PATCH = 'application/merge-patch+json'
/** Waits for the keys of the token's issuer. */
const WITH_ID_TOKEN: Provocation = {
  method: 'GET',
  path: PODS,
  anonymous: true,
  fields: { authorization: 'Bearer TOKEN' },
}
const NO_DISRUPTION = { degrade: { mode: 'NoDisruption', reason: 'a test' } } as const
const TAINT: Provocation = {
  method: 'PATCH',
  path: '/api/v1/nodes/node-1',
  contentType: MERGE_PATCH,
  body: { spec: { taints: [{ key: 'a', value: 'b', effect: 'NoExecute' }] } },
}
const SCALE: Provocation = {
  method: 'PATCH',
  path: `${WEB}/scale`,
  contentType: MERGE_PATCH,
  body: { spec: { replicas: 1 } },
}

const SCALE_GROUP = 'scale.portcullis.io/v1alpha1'
const SCALE_GUARD = (cluster: string): readonly [string, object] => [
  `/apis/${SCALE_GROUP}/scaleupguards`,
  {
    apiVersion: SCALE_GROUP,
    kind: 'ScaleUpGuard',
    metadata: { name: cluster },
    spec: { clusterRef: { management: cluster } },
  },
]
const SCALE_DOWN_POLICY = (cluster: string): readonly [string, object] => [
  `/apis/${SCALE_GROUP}/namespaces/default/scaledownpolicies`,
  {
    apiVersion: SCALE_GROUP,
    kind: 'ScaleDownPolicy',
    metadata: { name: cluster, namespace: 'default' },
    spec: { clusters: [cluster], selector: { matchLabels: { app: 'web' } }, prefer: [{ by: 'EmptiestNode' }] },
  },
]

export const ISSUER_AUDIENCE = 'kubernetes'
export const DISCOVERY = '/.well-known/openid-configuration'
export const KEYS = '/keys'

/** Those that are answered so. */
export function callsIn(answer: string): readonly CallKind[] {
  return CALLS.filter(({ provider }) => provider === undefined || provider.includes(answer))
}

export const CALLS: readonly CallKind[] = [
  { name: 'probe', is: ({ path }) => path === '/readyz' },
  { name: 'rights', is: ({ path }) => /\/selfsubject(access|rules)?reviews$/.test(path) },
  { name: 'nodes', spec: { degrade: { auto: { nodes: {} } } }, is: ({ path }) => path === '/api/v1/nodes' },
  { name: 'cell-pods', spec: { podProtection: {} }, is: ({ path }) => path === '/api/v1/pods' },
  { name: 'autoscaler', spec: { autoscaler: {} }, is: ({ path }) => path.includes('/configmaps') },
  { name: 'slices', spec: { followEndpointSlice: true }, is: ({ path }) => path.includes('/endpointslices') },
  {
    name: 'cluster-api-version',
    object: SCALE_GUARD,
    is: ({ path, query }) => path.endsWith('/machinedeployments') && query === 'limit=1',
  },
  { name: 'machines', object: SCALE_GUARD, is: ({ path }) => path.endsWith('/machines') },
  { name: 'pods-with-costs', object: SCALE_DOWN_POLICY, is: ({ path }) => path === PODS },
  { name: 'cached-list', spec: CACHE, is: ({ path, query }) => path === SERVICES && !query.includes('watch') },
  { name: 'cached-watch', spec: CACHE, is: ({ path, query }) => path === SERVICES && query.includes('watch') },
  {
    name: 'oidc-discovery',
    provider: ['endless-body', 'http1-interim-heads-without-end'],
    is: ({ path }) => path === DISCOVERY,
  },
  {
    name: 'oidc-keys',
    provider: ['deep', '2-mib-of-empty-objects', 'http1-head-without-end'],
    is: ({ path }) => path === KEYS,
  },
  { name: 'issuer-discovery', issuer: true, is: ({ path }) => path === DISCOVERY, provocation: WITH_ID_TOKEN },
  { name: 'issuer-keys', issuer: true, is: ({ path }) => path === KEYS, provocation: WITH_ID_TOKEN },
  {
    name: 'token-review',
    is: ({ path }) => path.endsWith('/tokenreviews'),
    provocation: { method: 'GET', path: PODS, anonymous: true, fields: { authorization: 'Bearer NUMBER.of.nobody' } },
  },
  {
    name: 'access-review',
    is: ({ path }) => path.endsWith('/subjectaccessreviews'),
    provocation: { method: 'GET', path: PODS, fields: { 'impersonate-user': 'user-NUMBER' } },
  },
  {
    name: 'deleted-pod',
    spec: { podProtection: {} },
    is: ({ method, path }) => method === 'GET' && path === `${PODS}/web-1`,
    provocation: { method: 'DELETE', path: `${PODS}/web-1` },
  },
  {
    name: 'deleted-pods',
    spec: { podProtection: {} },
    is: ({ method, path }) => method === 'GET' && path === PODS,
    provocation: { method: 'DELETE', path: PODS },
  },
  {
    name: 'scaled-workload',
    spec: { scaleProtection: {} },
    is: ({ method, path }) => method === 'GET' && path === WEB,
    provocation: SCALE,
  },
  {
    name: 'scaled-pods',
    spec: { scaleProtection: {} },
    is: ({ method, path }) => method === 'GET' && path === PODS,
    provocation: SCALE,
  },
  {
    name: 'scale-dry-run',
    spec: { scaleProtection: {} },
    is: ({ query }) => query.includes('dryRun'),
    // What becomes of it depends on what is there: only upstream can say.
    provocation: {
      ...SCALE,
      contentType: 'application/json-patch+json',
      body: [{ op: 'copy', from: '/status/replicas', path: '/spec/replicas' }],
    },
  },
  {
    name: 'node',
    spec: NO_DISRUPTION,
    is: ({ method, path }) => method === 'GET' && path === TAINT.path,
    provocation: TAINT,
  },
  { name: 'node-dry-run', spec: NO_DISRUPTION, is: ({ query }) => query.includes('dryRun'), provocation: TAINT },
  {
    name: 'forwarded',
    is: ({ path }) => path === '/api/v1/namespaces/default/configmaps',
    provocation: { method: 'GET', path: '/api/v1/namespaces/default/configmaps' },
  },
  {
    name: 'upgrade',
    is: ({ path }) => path === EXEC,
    provocation: { method: 'GET', path: `${EXEC}?command=sh`, upgrade: true },
  },
  {
    name: 'forwarded-watch',
    is: ({ query }) => query.includes('watch'),
    provocation: { method: 'GET', path: '/api/v1/namespaces/default/secrets?watch=true' },
  },
]
