// Authorization of the demo's clusters: a handful of rules instead of RBAC.

import {
  type Attributes,
  type Authorizer,
  HEALTH_PATHS,
  type PathAttributes,
  READING_VERBS,
} from '../../apiserver/access/authorize.ts'
import type { ReviewKind } from '../../apiserver/objects/api-resource.ts'
import { reviewKind, SELF_ACCESS_REVIEW } from '../../apiserver/objects/self-review-kinds.ts'
import { accessAsked, userInfoOf, WHO_AM_I } from '../../apiserver/self-reviews.ts'
import type { AccessReviewAttributes } from '../../gateway/core/identity/impersonate.ts'
import { statusError } from '../../kube/api/status.ts'
import { GROUP_AUTHENTICATED, type UserInfo } from '../../kube/api/user.ts'
import { withAuthenticatedGroup } from '../../pki/core/user-from-cert.ts'
import { listAt, textAt } from '../kinds/json.ts'
import { openKind, openObject } from '../kinds/rows.ts'
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

// Reviews answered by the demo's clusters: TokenReview, SubjectAccessReview, and two self reviews.

const AUTHENTICATION = 'authentication.k8s.io'
const AUTHORIZATION = 'authorization.k8s.io'
const AUDIENCE = 'https://kubernetes.default.svc'
const ACCESS_REVIEW = questionKind(AUTHORIZATION, 'SubjectAccessReview', 'whether a user may do something')

/** @param userOf the user of a token */
export function demoReviews(
  authorize: Authorizer,
  userOf: (token: string) => UserInfo | undefined,
): readonly ReviewKind[] {
  return [
    WHO_AM_I,
    {
      ...questionKind(AUTHENTICATION, 'TokenReview', 'whose a token is'),
      answer(body) {
        const token = textAt(body, 'spec.token')
        if (token === '') throw statusError('BadRequest', 'token is required for TokenReview in authentication')
        const user = userOf(token)
        // An unknown token is not an error: the answer is "not authenticated".
        const status =
          user === undefined
            ? { user: {}, error: 'invalid bearer token' }
            : { authenticated: true, user: userInfoOf(withAuthenticatedGroup(user)), audiences: [AUDIENCE] }
        return { spec: body['spec'], status }
      },
    },
    {
      ...ACCESS_REVIEW,
      answer(body) {
        const groups = listAt(body, 'spec.groups').filter((group) => typeof group === 'string')
        const user = { name: textAt(body, 'spec.user'), uid: textAt(body, 'spec.uid'), groups, extra: {} }
        const allowed = authorize(user, accessAsked(ACCESS_REVIEW, body))
        return { spec: body['spec'], status: { allowed } }
      },
    },
    {
      ...SELF_ACCESS_REVIEW,
      answer: (body, user) => ({
        spec: body['spec'],
        status: { allowed: authorize(user, accessAsked(SELF_ACCESS_REVIEW, body)) },
      }),
    },
  ]
}

function questionKind(group: string, kind: string, what: string): ReturnType<typeof reviewKind> {
  const fields = { spec: openObject('What is asked.'), status: openObject('The answer of the server.') }
  return reviewKind(group, kind, openKind(`${kind} asks ${what}.`, `${group}/v1`, kind, fields))
}
