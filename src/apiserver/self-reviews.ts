// Self reviews: callers ask who they are and what they may do. Nothing is stored; the response to the POST is the
// object with its status, 201 (kubernetes/pkg/registry/authentication and .../authorization).

import type { JsonObject } from '../api/kube/json-object.ts'
import { recordOf, textOf } from '../api/kube/object-shape.ts'
import { invalid } from '../api/kube/status.ts'
import type { UserInfo } from '../api/kube/user.ts'
import { apiVersionOf } from '../api/ports/resource-kind.ts'
import { invalidValue } from '../core/objects/field-error.ts'
import {
  type Attributes,
  createAuthorizer,
  DISCOVERY_PATHS,
  HEALTH_PATHS,
  READING_VERBS,
  type RoleBindings,
  roleOf,
  SELF_REVIEWS,
} from './access/authorize.ts'
import { API_RESOURCES } from './objects/api-resources.ts'

export interface SelfReviewRequest {
  readonly group: string
  /** The plural. */
  readonly resource: string
  /** The object that was sent, of the right apiVersion and kind. */
  readonly body: JsonObject
  readonly user: UserInfo
  readonly bindings: RoleBindings
  /** RFC 3339. */
  readonly now: string
}

/**
 * The response; undefined when the resource is not a self review.
 * @throws {StatusError} 422 when it has neither or both attributes
 */
export function answerSelfReview(request: SelfReviewRequest): JsonObject | undefined {
  switch (`${request.resource}.${request.group}`) {
    case 'selfsubjectreviews.authentication.k8s.io':
      return answer(request, 'SelfSubjectReview', { status: { userInfo: userInfoOf(request.user) } })
    case 'selfsubjectaccessreviews.authorization.k8s.io':
      return answer(request, 'SelfSubjectAccessReview', accessOf(request))
    case 'selfsubjectrulesreviews.authorization.k8s.io':
      return answer(request, 'SelfSubjectRulesReview', rulesOf(request))
    default:
      return undefined
  }
}

function answer({ group, now }: SelfReviewRequest, kind: string, fields: JsonObject): JsonObject {
  return { kind, apiVersion: apiVersionOf({ group, version: 'v1' }), metadata: { creationTimestamp: now }, ...fields }
}

function userInfoOf({ name, uid, groups, extra }: UserInfo): JsonObject {
  return {
    username: name,
    ...(uid !== '' && { uid }),
    ...(groups.length > 0 && { groups }),
    ...(Object.keys(extra).length > 0 && { extra }),
  }
}

function accessOf({ body, user, bindings }: SelfReviewRequest): JsonObject {
  const spec = recordOf(body['spec'])
  const resource = spec['resourceAttributes'] ?? undefined
  const path = spec['nonResourceAttributes'] ?? undefined
  if ((resource === undefined) === (path === undefined)) {
    throw invalid('authorization.k8s.io', 'SelfSubjectAccessReview', '', [
      invalidValue(
        'spec.resourceAttributes',
        resource ?? null,
        'exactly one of nonResourceAttributes or resourceAttributes must be specified',
      ),
    ])
  }
  const allowed = createAuthorizer(bindings)(user, path === undefined ? resourceQuestion(resource) : pathQuestion(path))
  const role = roleOf(bindings, user)
  const reason = allowed ? (role === undefined ? 'authenticated' : `role ${role}`) : ''
  return { spec, status: { allowed, ...(reason !== '' && { reason }) } }
}

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
function rulesOf({ body, user, bindings }: SelfReviewRequest): JsonObject {
  const role = roleOf(bindings, user)
  const resourceRules: JsonObject[] = SELF_REVIEWS.map(([group, resource]) => {
    return { verbs: ['create'], apiGroups: [group], resources: [resource] }
  })
  if (role === 'admin') resourceRules.push({ verbs: ['*'], apiGroups: ['*'], resources: ['*'] })
  if (role === 'view') resourceRules.push(...viewRules())
  const paths = [...HEALTH_PATHS, ...DISCOVERY_PATHS].flatMap((path) => [path, `${path}/*`])
  const nonResourceRules: JsonObject[] = [{ verbs: ['get'], nonResourceURLs: paths }]
  if (role === 'admin') nonResourceRules.push({ verbs: ['*'], nonResourceURLs: ['*'] })
  return { spec: recordOf(body['spec']), status: { resourceRules, nonResourceRules, incomplete: false } }
}

function viewRules(): JsonObject[] {
  const rules: JsonObject[] = []
  for (const { group, plural, verbs, subresources } of API_RESOURCES) {
    if (!verbs.includes('get') || (group === '' && plural === 'secrets')) continue
    const resources = [plural, ...subresources.map(({ name }) => `${plural}/${name}`)]
    rules.push({ verbs: READING_VERBS, apiGroups: [group], resources })
  }
  return rules
}
