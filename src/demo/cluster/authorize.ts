// DEMO ONLY. Who may do what on the demo's clusters: a handful of rules in place of RBAC.

import { GROUP_AUTHENTICATED, type UserInfo } from '../../api/kube/user.ts'
import type { RequestInfo } from '../../core/request/request-info.ts'
import { forbidden, qualified } from './api-error.ts'
import type { ClusterState } from './call.ts'

export interface Attributes {
  readonly verb: string
  readonly group: string
  readonly resource: string
  readonly subresource: string
  readonly namespace: string
  readonly name: string
  /** Of a non-resource request; '' otherwise. */
  readonly path: string
}

/** Throws a 403 in kube-apiserver's words. */
export function authorize(state: ClusterState, user: UserInfo, info: RequestInfo): void {
  const attributes: Attributes = {
    verb: info.verb,
    group: info.apiGroup,
    resource: info.resource,
    subresource: info.subresource,
    namespace: info.namespace,
    name: info.name,
    path: info.isResourceRequest ? '' : info.path,
  }
  if (isAllowed(state, user, attributes)) return
  throw forbidden(
    info.isResourceRequest
      ? resourceMessage(user, info)
      : `forbidden: User "${user.name}" cannot ${info.verb} path "${info.path}"`,
  )
}

export function isAllowed(state: ClusterState, user: UserInfo, asked: Attributes): boolean {
  if (user.groups.includes('system:masters')) return true
  if (asked.path !== '') return isPathAllowed(user, asked)
  if (user.name === state.gatewayUser && isGatewayWork(asked)) return true
  if (asked.verb === 'impersonate' || !user.groups.includes(GROUP_AUTHENTICATED)) return false
  if (asked.verb === 'create' && asked.resource.startsWith('selfsubject')) return true
  if (CONTROLLERS.has(user.name)) return true
  if (user.groups.includes('system:nodes') && isNodeWork(asked)) return true
  if (user.groups.includes(DEVELOPERS) && DEVELOPER_NAMESPACES.has(asked.namespace)) return true
  // Everybody who signed in may look around.
  return READS.has(asked.verb) && asked.resource !== 'secrets'
}

/** May write in the namespaces of applications. */
export const DEVELOPERS = 'developers'
const DEVELOPER_NAMESPACES: ReadonlySet<string> = new Set(['shop', 'default'])
const CONTROLLERS: ReadonlySet<string> = new Set(['system:kube-controller-manager', 'system:kube-scheduler'])
const READS: ReadonlySet<string> = new Set(['get', 'list', 'watch'])
const PUBLIC_PATHS: ReadonlySet<string> = new Set(['healthz', 'livez', 'readyz', 'version'])

/** As system:public-info-viewer and system:discovery. */
function isPathAllowed(user: UserInfo, { path, verb }: Attributes): boolean {
  if (verb !== 'get' && verb !== 'head') return false
  return PUBLIC_PATHS.has(path.split('/')[1] ?? '') || user.groups.includes(GROUP_AUTHENTICATED)
}

/** As deploy/rbac/upstream-gateway-user.yaml and protection-worker.yaml; it reads pods as everybody does. */
function isGatewayWork(asked: Attributes): boolean {
  if (asked.resource === 'events') return asked.verb === 'create' || asked.verb === 'patch'
  return asked.verb === 'impersonate' || isReview(asked)
}

function isReview({ verb, resource }: Attributes): boolean {
  return verb === 'create' && (resource === 'tokenreviews' || resource === 'subjectaccessreviews')
}

function isNodeWork({ resource, subresource, namespace, verb }: Attributes): boolean {
  if (resource === 'leases') return namespace === 'kube-node-lease'
  if (resource === 'events') return verb === 'create'
  return (resource === 'nodes' || resource === 'pods') && (subresource === 'status' || READS.has(verb))
}

function resourceMessage(user: UserInfo, info: RequestInfo): string {
  const { verb, apiGroup: group, resource, subresource, namespace, name } = info
  const path = subresource === '' ? resource : `${resource}/${subresource}`
  const scope = namespace === '' ? 'at the cluster scope' : `in the namespace "${namespace}"`
  const subject = qualified({ group, resource }) + (name === '' ? '' : ` "${name}"`)
  return `${subject} is forbidden: User "${user.name}" cannot ${verb} resource "${path}" in API group "${group}" ${scope}`
}
