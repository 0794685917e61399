// What an API server answers that has one of everything: just enough for the gateway to go on to the call that is attacked.

import { type Asked, DISCOVERY, KEYS } from './calls.ts'

export interface HonestAnswer {
  readonly status: number
  readonly text: string
  /** A watch: more may come. */
  readonly open: boolean
}

const META = { name: 'web', namespace: 'default', uid: 'uid-web', resourceVersion: '5', labels: { app: 'web' } }
const POD = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { ...META, name: 'web-1', uid: 'uid-web-1', creationTimestamp: '2026-01-01T00:00:00Z' },
  spec: { nodeName: 'node-1', containers: [] },
  status: { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] },
}
const WORKLOAD = {
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: META,
  spec: { replicas: 3, selector: { matchLabels: { app: 'web' } } },
  status: { replicas: 3 },
}
const NODE = {
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name: 'node-1', resourceVersion: '5' },
  spec: {},
  status: {},
}

/** @param provider what the endpoint is as an OpenID provider, and where its keys are */
export function honest(
  { method, path, query }: Asked,
  body: string,
  provider: { readonly issuer: string; readonly keys: string },
): HonestAnswer {
  if (path === DISCOVERY) return json(200, { issuer: provider.issuer, jwks_uri: `${provider.keys}${KEYS}` })
  // Without any, the gateway asks again soon.
  if (path === KEYS) return json(200, { keys: [] })
  if (path === '/readyz') return { status: 200, text: 'ok', open: false }
  if (query.includes('watch')) {
    const object = { kind: 'Pod', apiVersion: 'v1', metadata: { resourceVersion: '6' } }
    return { status: 200, text: `${JSON.stringify({ type: 'BOOKMARK', object })}\n`, open: true }
  }
  const review = reviewOf(path)
  if (review !== undefined) return json(201, { ...(JSON.parse(body) as object), status: review })
  const object = objectOf(path)
  if (object !== undefined) return json(200, object)
  if (method === 'DELETE') return json(200, { kind: 'Status', apiVersion: 'v1', status: 'Success' })
  const items = path.endsWith('/pods') ? [POD] : path.endsWith('/replicasets') ? [replicaSet()] : []
  return json(200, { kind: 'List', apiVersion: 'v1', metadata: { resourceVersion: '5' }, items })
}

function reviewOf(path: string): object | undefined {
  if (path.endsWith('/tokenreviews')) return { authenticated: true, user: { username: 'eve' } }
  if (/subjectaccessreviews$/.test(path)) return { allowed: true }
  if (path.endsWith('/selfsubjectreviews')) return { userInfo: { username: 'gateway' } }
  return undefined
}

function objectOf(path: string): object | undefined {
  if (path.endsWith('/scale')) {
    return {
      apiVersion: 'autoscaling/v1',
      kind: 'Scale',
      metadata: META,
      spec: { replicas: 3 },
      status: { replicas: 3 },
    }
  }
  if (path.endsWith('/deployments/web')) return WORKLOAD
  if (path.endsWith('/pods/web-1')) return POD
  if (path.endsWith('/nodes/node-1')) return NODE
  return undefined
}

function replicaSet(): object {
  const owner = { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web', uid: META.uid, controller: true }
  return { ...WORKLOAD, kind: 'ReplicaSet', metadata: { ...META, name: 'web-a', ownerReferences: [owner] } }
}

function json(status: number, value: object): HonestAnswer {
  return { status, text: JSON.stringify(value), open: false }
}
