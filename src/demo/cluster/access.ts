// Authorization of the demo's clusters: a handful of rules instead of RBAC.

import {
  type Attributes,
  type Authorizer,
  HEALTH_PATHS,
  type PathAttributes,
  READING_VERBS,
} from '../../apiserver/access/authorize.ts'
import type { AccessReviewAttributes } from '../../gateway/core/identity/impersonate.ts'
import { GROUP_AUTHENTICATED, type UserInfo } from '../../kube/api/user.ts'
import { LOGIN_PREFIX } from '../login/demo-login.ts'

/** May write in application namespaces. */
export const DEVELOPERS = 'developers'
/** They may be of the provider, too. */
const DEVELOPER_GROUPS: ReadonlySet<string> = new Set([DEVELOPERS, LOGIN_PREFIX + DEVELOPERS])
const DEVELOPER_NAMESPACES: ReadonlySet<string> = new Set(['shop', 'default'])
const CONTROLLERS: ReadonlySet<string> = new Set(['system:kube-controller-manager', 'system:kube-scheduler'])

/** @param gatewayUser the only user that may impersonate and create reviews, besides system:masters */
export function demoAuthorizer(gatewayUser: string): Authorizer {
  return (user, asked) => {
    if (user === 'anonymous') return 'path' in asked && isPublic(asked)
    if (user.groups.includes('system:masters')) return true
    return 'path' in asked ? isPublic(asked) || mayDiscover(user, asked) : mayUse(gatewayUser, user, asked)
  }
}

function mayUse(gatewayUser: string, user: UserInfo, asked: AccessReviewAttributes): boolean {
  if (user.name === gatewayUser && isGatewayWork(asked)) return true
  if (asked.verb === 'impersonate' || !user.groups.includes(GROUP_AUTHENTICATED)) return false
  if (asked.verb === 'create' && asked.resource.startsWith('selfsubject')) return true
  if (CONTROLLERS.has(user.name)) return true
  if (user.groups.includes('system:nodes') && isNodeWork(asked)) return true
  if (user.groups.some((group) => DEVELOPER_GROUPS.has(group)) && DEVELOPER_NAMESPACES.has(asked.namespace)) return true
  // All authenticated users may read.
  return READING_VERBS.includes(asked.verb) && asked.resource !== 'secrets'
}

function isReading({ verb }: Attributes): boolean {
  return verb === 'get' || verb === 'head'
}

/** Same as system:public-info-viewer. */
function isPublic(asked: PathAttributes): boolean {
  return isReading(asked) && HEALTH_PATHS.some((root) => asked.path === root || asked.path.startsWith(`${root}/`))
}

/** Same as system:discovery. */
function mayDiscover(user: UserInfo, asked: PathAttributes): boolean {
  return isReading(asked) && user.groups.includes(GROUP_AUTHENTICATED)
}

/** Same as deploy/rbac/upstream-gateway-user.yaml and protection-worker.yaml; it reads pods like any user. */
function isGatewayWork({ verb, resource }: AccessReviewAttributes): boolean {
  if (resource === 'events') return verb === 'get' || verb === 'create' || verb === 'patch'
  return verb === 'impersonate' || (verb === 'create' && REVIEWS.has(resource))
}

const REVIEWS: ReadonlySet<string> = new Set(['tokenreviews', 'subjectaccessreviews'])

function isNodeWork({ resource, subresource, namespace, verb }: AccessReviewAttributes): boolean {
  if (resource === 'leases') return namespace === 'kube-node-lease'
  if (resource === 'events') return verb === 'create'
  return (resource === 'nodes' || resource === 'pods') && (subresource === 'status' || READING_VERBS.includes(verb))
}
