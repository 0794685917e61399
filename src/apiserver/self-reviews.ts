// Self reviews: callers ask who they are and what they may do
// (kubernetes/pkg/registry/authentication and .../authorization).

import type { JsonObject } from '../kit/api/json/json-object.ts'
import { recordOf, textOf } from '../kit/api/json/object-shape.ts'
import type { ResourceKind } from '../kube/api/resource-kind.ts'
import { invalid } from '../kube/api/status.ts'
import type { UserInfo } from '../kube/api/user.ts'
import { invalidValue } from '../kube/core/objects/field-error.ts'
import {
  type Attributes,
  type Authorizer,
  createAuthorizer,
  DISCOVERY_PATHS,
  HEALTH_PATHS,
  kindRolesOf,
  READING_VERBS,
  type RoleBindings,
  roleOf,
  SELF_REVIEWS,
} from './access/authorize.ts'
import type { ApiResource, ReviewKind } from './objects/api-resource.ts'
import { apiResources } from './objects/api-resources.ts'
import {
  SELF_ACCESS_REVIEW,
  SELF_REVIEW_KINDS,
  SELF_RULES_REVIEW,
  SELF_SUBJECT_REVIEW,
} from './objects/self-review-kinds.ts'

/** The reviews of the gateway's own API server. @param kinds that it stores */
export function selfReviews(bindings: RoleBindings, kinds: readonly ResourceKind[]): readonly ReviewKind[] {
  const authorize = createAuthorizer(bindings)
  const resources = apiResources(kinds, SELF_REVIEW_KINDS)
  return [
    WHO_AM_I,
    { ...SELF_ACCESS_REVIEW, answer: (body, user) => accessOf(body, user, bindings, authorize) },
    { ...SELF_RULES_REVIEW, answer: (body, user) => rulesOf(body, user, bindings, resources) },
  ]
}

export const WHO_AM_I: ReviewKind = {
  ...SELF_SUBJECT_REVIEW,
  answer: (_body, user) => ({ status: { userInfo: userInfoOf(user) } }),
}

/** `userInfo` in the form of authentication.k8s.io/v1. */
export function userInfoOf({ name, uid, groups, extra }: UserInfo): JsonObject {
  return {
    username: name,
    ...(uid !== '' && { uid }),
    ...(groups.length > 0 && { groups }),
    ...(Object.keys(extra).length > 0 && { extra }),
  }
}

function accessOf(body: JsonObject, user: UserInfo, bindings: RoleBindings, authorize: Authorizer): JsonObject {
  const allowed = authorize(user, accessAsked(SELF_ACCESS_REVIEW, body))
  const role = roleOf(bindings, user)
  const roles = [...(role === undefined ? [] : [role]), ...kindRolesOf(bindings, user).map(({ name }) => name)]
  const reason = allowed ? (roles.length === 0 ? 'authenticated' : `role ${roles.join(', ')}`) : ''
  return { spec: recordOf(body['spec']), status: { allowed, ...(reason !== '' && { reason }) } }
}

/**
 * The attributes that an access review asks about.
 * @throws {StatusError} 422 if it asks about nothing, or about two things
 */
export function accessAsked({ group, kind }: ReviewKindName, body: JsonObject): Attributes {
  const spec = recordOf(body['spec'])
  const resource = spec['resourceAttributes'] ?? undefined
  const path = spec['nonResourceAttributes'] ?? undefined
  if ((resource === undefined) === (path === undefined)) {
    const detail = 'exactly one of nonResourceAttributes or resourceAttributes must be specified'
    throw invalid(group, kind, '', [invalidValue('spec.resourceAttributes', resource ?? null, detail)])
  }
  return path === undefined ? resourceQuestion(resource) : pathQuestion(path)
}

type ReviewKindName = Pick<ApiResource, 'group' | 'kind'>

function resourceQuestion(value: unknown): Attributes {
  const asked = recordOf(value)
  return {
    verb: textOf(asked['verb']),
    group: textOf(asked['group']),
    resource: textOf(asked['resource']),
    subresource: textOf(asked['subresource']),
    namespace: textOf(asked['namespace']),
    name: textOf(asked['name']),
  }
}

function pathQuestion(value: unknown): Attributes {
  const asked = recordOf(value)
  return { verb: textOf(asked['verb']), path: textOf(asked['path']) }
}

/** The roles as RBAC rules; complete. */
function rulesOf(
  body: JsonObject,
  user: UserInfo,
  bindings: RoleBindings,
  resources: readonly ApiResource[],
): JsonObject {
  const role = roleOf(bindings, user)
  const resourceRules: JsonObject[] = SELF_REVIEWS.map(([group, resource]) => {
    return { verbs: ['create'], apiGroups: [group], resources: [resource] }
  })
  if (role === 'admin') resourceRules.push({ verbs: ['*'], apiGroups: ['*'], resources: ['*'] })
  if (role === 'view') resourceRules.push(...viewRules(resources))
  for (const { rules } of kindRolesOf(bindings, user)) {
    for (const { verbs, group, resources: names } of rules) {
      resourceRules.push({ verbs, apiGroups: [group], resources: names })
    }
  }
  const paths = [...HEALTH_PATHS, ...DISCOVERY_PATHS].flatMap((path) => [path, `${path}/*`])
  const nonResourceRules: JsonObject[] = [{ verbs: ['get'], nonResourceURLs: paths }]
  if (role === 'admin') nonResourceRules.push({ verbs: ['*'], nonResourceURLs: ['*'] })
  return { spec: recordOf(body['spec']), status: { resourceRules, nonResourceRules, incomplete: false } }
}

function viewRules(resources: readonly ApiResource[]): JsonObject[] {
  const rules: JsonObject[] = []
  for (const { group, plural, verbs, subresources } of resources) {
    if (!verbs.includes('get') || (group === '' && plural === 'secrets')) continue
    const names = [plural, ...subresources.map(({ name }) => `${plural}/${name}`)]
    rules.push({ verbs: READING_VERBS, apiGroups: [group], resources: names })
  }
  return rules
}
