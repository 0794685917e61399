// Which requests a member serves itself, though they come to the federated cluster, and how the member gets them. A path that is not written exactly as
// clients write it is none of them: two readings of one path would let a request through that another reading refuses.

import { isNamespaces } from '../../cache/core/requests/read-request.ts'
import type { RequestInfo } from '../../gateway/core/request/request-info.ts'
import { isDnsLabel, isObjectName } from '../../kit/api/validation/name-syntax.ts'

interface HandedOver {
  readonly methods: readonly string[]
  /** As discovery has them. */
  readonly verbs: readonly string[]
}

/** kubectl exec and its kind are GET over WebSocket, POST over SPDY. */
const SESSION: HandedOver = { methods: ['GET', 'POST'], verbs: ['create', 'get'] }

const POD_SUBRESOURCES: ReadonlyMap<string, HandedOver> = new Map([
  ['log', { methods: ['GET'], verbs: ['get'] }],
  ['exec', SESSION],
  ['attach', SESSION],
  ['portforward', SESSION],
])

/** What a path of an object or a collection says. */
export type ObjectRequest = Pick<
  RequestInfo,
  'path' | 'apiGroup' | 'apiVersion' | 'namespace' | 'resource' | 'name' | 'subresource'
>

/** Whether a member serves it, if pods are federated. */
export function isHandedOver(method: string, info: ObjectRequest): boolean {
  const { path, apiGroup, apiVersion, namespace, resource, name, subresource } = info
  if (resource !== 'pods' || apiGroup !== '' || apiVersion !== 'v1') return false
  if (POD_SUBRESOURCES.get(subresource)?.methods.includes(method) !== true) return false
  return path === objectPath(info) && isDnsLabel(namespace) && isObjectName(name)
}

/** OpenAPI, which kubectl reads before it applies or explains anything. There is no name in it. */
const API_DESCRIPTION = /^\/openapi\/(?:v2|v3(?:\/[A-Za-z0-9][A-Za-z0-9._-]*)*)$/

/** @param target as it came @param path of it, decoded */
export function isApiDescription(method: string, target: string, path: string): boolean {
  return method === 'GET' && target.split('?', 1)[0] === path && API_DESCRIPTION.test(path)
}

/**
 * @param target as it came, of a request that is handed over
 * @param namespace as the member has it
 * @returns undefined = no namespace can have this name
 */
export function targetInMember(target: string, info: ObjectRequest, namespace: string): string | undefined {
  if (!isDnsLabel(namespace)) return undefined
  const queryAt = target.indexOf('?')
  // Nothing in it is the name of a namespace.
  return objectPath({ ...info, namespace }) + (queryAt < 0 ? '' : target.slice(queryAt))
}

/** The verbs of a subresource that is handed over, `pods/log`; undefined = it is not. */
export function handedOverVerbs(groupVersion: string, resource: string): readonly string[] | undefined {
  const [parent, subresource = '', ...more] = resource.split('/')
  if (groupVersion !== 'v1' || parent !== 'pods' || more.length > 0) return undefined
  return POD_SUBRESOURCES.get(subresource)?.verbs
}

/** As clients write it. No character of these names has to be encoded. */
export function objectPath(info: Omit<ObjectRequest, 'path'>): string {
  const { apiGroup, apiVersion, namespace, resource, name, subresource } = info
  const root = apiGroup === '' ? `/api/${apiVersion}` : `/apis/${apiGroup}/${apiVersion}`
  const isInNamespace = namespace !== '' && !isNamespaces(apiGroup, resource)
  const steps = [...(isInNamespace ? ['namespaces', namespace] : []), resource, name, subresource]
  return [root, ...steps.filter((step) => step !== '')].join('/')
}
