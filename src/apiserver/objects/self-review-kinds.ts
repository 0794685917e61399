// Reviews by which users ask about themselves (authentication.k8s.io/v1, authorization.k8s.io/v1). Nothing is stored:
// they can only be created, and the response is the object with its status.

import { flag, type JsonSchema, kubeObject, list, map, object, text } from '../../kit/api/json/json-schema.ts'
import type { ApiResource } from './api-resource.ts'

const AUTHENTICATION = 'authentication.k8s.io'
const AUTHORIZATION = 'authorization.k8s.io'

const userInfo = object('The user.', {
  username: text('Name of the user.'),
  uid: text('Distinguishes users of the same name at different times.'),
  groups: list('Groups of the user.', text('Name of a group.')),
  extra: map('Additional information about the user.', list('The values.', text('A value.'))),
})

const selfSubjectReview = kubeObject(
  'SelfSubjectReview asks which user the server takes the caller for (kubectl auth whoami).',
  `${AUTHENTICATION}/v1`,
  'SelfSubjectReview',
  { status: object('The answer of the server.', { userInfo }) },
)

const resourceAttributes = object('A request for a resource.', {
  namespace: text('Namespace of the request. Empty: all namespaces, or none for cluster-scoped resources.'),
  verb: text('get, list, watch, create, update, patch, delete, deletecollection; * is all.'),
  group: text('API group of the resource; * is all.'),
  version: text('API version of the resource; * is all.'),
  resource: text('The resource, in the plural; * is all.'),
  subresource: text('The subresource, such as status. Empty: none.'),
  name: text('Name of the object. Empty: all.'),
})

const accessReview = kubeObject(
  'SelfSubjectAccessReview asks whether the caller may do something (kubectl auth can-i).',
  `${AUTHORIZATION}/v1`,
  'SelfSubjectAccessReview',
  {
    spec: object('What is asked. Exactly one of resourceAttributes and nonResourceAttributes.', {
      resourceAttributes,
      nonResourceAttributes: object('A request for a path.', {
        path: text('The path of the URL.'),
        verb: text('get, post, put, ...'),
      }),
    }),
    status: object('The answer of the server.', {
      allowed: flag('Whether the request is allowed.'),
      denied: flag('Whether a rule denies it explicitly.'),
      reason: text('Why.'),
      evaluationError: text('An error during the evaluation.'),
    }),
  },
  ['spec'],
)

const names = (what: string): JsonSchema => list(what, text('One of them; * is all.'))

const rulesReview = kubeObject(
  'SelfSubjectRulesReview asks what the caller may do in a namespace (kubectl auth can-i --list).',
  `${AUTHORIZATION}/v1`,
  'SelfSubjectRulesReview',
  {
    spec: object('What is asked.', { namespace: text('The namespace.') }),
    status: object('The answer of the server.', {
      resourceRules: list(
        'Requests for resources that are allowed.',
        object('A rule.', {
          verbs: names('Verbs.'),
          apiGroups: names('API groups.'),
          resources: names('Resources.'),
          resourceNames: names('Names of objects. Empty: all.'),
        }),
      ),
      nonResourceRules: list(
        'Requests for paths that are allowed.',
        object('A rule.', {
          verbs: names('Verbs.'),
          nonResourceURLs: names('Paths.'),
        }),
      ),
      incomplete: flag('Whether there may be more rules.'),
      evaluationError: text('An error during the evaluation.'),
    }),
  },
  ['spec'],
)

/** A review kind of version v1. */
export function reviewKind(group: string, kind: string, schema: JsonSchema): ApiResource {
  const singular = kind.toLowerCase()
  return {
    group,
    version: 'v1',
    kind,
    listKind: '',
    plural: `${singular}s`,
    singular,
    shortNames: [],
    categories: [],
    namespaced: false,
    verbs: ['create'],
    subresources: [],
    schema,
  }
}

export const SELF_SUBJECT_REVIEW: ApiResource = reviewKind(AUTHENTICATION, 'SelfSubjectReview', selfSubjectReview)
export const SELF_ACCESS_REVIEW: ApiResource = reviewKind(AUTHORIZATION, 'SelfSubjectAccessReview', accessReview)
export const SELF_RULES_REVIEW: ApiResource = reviewKind(AUTHORIZATION, 'SelfSubjectRulesReview', rulesReview)
export const SELF_REVIEW_KINDS: readonly ApiResource[] = [SELF_SUBJECT_REVIEW, SELF_ACCESS_REVIEW, SELF_RULES_REVIEW]
