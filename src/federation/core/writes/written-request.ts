// Which writes a member gets, though they come to the federated cluster: by path and method, and what their bodies are.

import { isNamespaces } from '../../../cache/core/requests/read-request.ts'
import type { RequestInfo } from '../../../gateway/core/request/request-info.ts'
import { isDnsLabel } from '../../../kit/api/validation/name-syntax.ts'
import { objectPath } from '../handed-over.ts'
import type { BodyShape } from './written-fields.ts'

/** A read of a subresource has no body. */
export interface WrittenRequest {
  readonly body: BodyShape | 'patch' | 'none'
  readonly isCollection: boolean
}

type Bodies = Readonly<Partial<Record<string, WrittenRequest['body']>>>

const WRITES: Bodies = { PUT: 'object', PATCH: 'patch' }
/** kubectl scale reads what it writes. */
const SUBRESOURCE: Bodies = { ...WRITES, GET: 'none' }
const ANY: ReadonlyMap<string, Bodies> = new Map([
  ['status', SUBRESOURCE],
  ['scale', SUBRESOURCE],
])
const OF_PODS: ReadonlyMap<string, Bodies> = new Map<string, Bodies>([
  ['eviction', { POST: 'eviction' }],
  ['ephemeralcontainers', SUBRESOURCE],
  ['resize', SUBRESOURCE],
])

/** `/` and `%` have another meaning, and two dots are a step back. Roles have colons in their names. */
const PATH_NAME = /^[A-Za-z0-9][-A-Za-z0-9._:]{0,252}$/

/** Whether it may stand in a path as it is: with and without the member in front of it. */
export function isPathName(name: string): boolean {
  return PATH_NAME.test(name)
}

/** @returns undefined = no member gets it. The path is exactly the one that clients write. */
export function writtenRequest(method: string, info: RequestInfo): WrittenRequest | undefined {
  const { path, namespace, name, subresource, apiGroup, resource } = info
  if (path !== objectPath(info) || (namespace !== '' && !isDnsLabel(namespace))) return undefined
  const inNamespace = namespace !== '' && !isNamespaces(apiGroup, resource)
  if (name === '') {
    if (subresource !== '') return undefined
    if (method === 'POST') return { body: 'object', isCollection: false }
    // Without a namespace it would be one of all members at once.
    return method === 'DELETE' && inNamespace ? { body: 'options', isCollection: true } : undefined
  }
  if (!isPathName(name)) return undefined
  const bodies =
    subresource === '' ? { ...WRITES, DELETE: 'options' as const } : bodiesOf(apiGroup, resource, subresource)
  const body = bodies !== undefined && Object.hasOwn(bodies, method) ? bodies[method] : undefined
  return body === undefined ? undefined : { body, isCollection: false }
}

function bodiesOf(group: string, resource: string, subresource: string): Bodies | undefined {
  return ANY.get(subresource) ?? (group === '' && resource === 'pods' ? OF_PODS.get(subresource) : undefined)
}

const VERBS: Readonly<Record<string, string>> = { GET: 'get', POST: 'create', PUT: 'update', PATCH: 'patch' }
const OBJECT_VERBS = ['create', 'delete', 'patch', 'update']

/**
 * As discovery has them.
 * @param name of the resource, or of its subresource: `pods/status`
 */
export function writtenVerbs(groupVersion: string, name: string, isNamespaced: boolean): readonly string[] {
  const [resource = '', subresource, ...more] = name.split('/')
  if (more.length > 0) return []
  if (subresource === undefined) return isNamespaced ? [...OBJECT_VERBS, 'deletecollection'] : OBJECT_VERBS
  const bodies = bodiesOf(groupVersion === 'v1' ? '' : groupVersion, resource, subresource)
  return Object.keys(bodies ?? {}).flatMap((method) => VERBS[method] ?? [])
}
