// DEMO ONLY. The kinds that are questions: TokenReview, SubjectAccessReview and their Self forms.

import type { UserInfo } from '../../api/kube/user.ts'
import { badRequest } from './api-error.ts'
import { type Attributes, isAllowed } from './authorize.ts'
import { type Answer, type Call, type ClusterState, jsonAnswer, jsonBody } from './call.ts'
import { userOfToken } from './identity.ts'
import { isJson, type Json, listAt, objectAt, textAt } from './json.ts'

/** undefined: the resource is no review. */
export function review(state: ClusterState, call: Call): Answer | undefined {
  switch (call.info.resource) {
    case 'tokenreviews':
      return answer('authentication.k8s.io/v1', 'TokenReview', call, (spec) =>
        tokenStatus(state, textAt(spec, 'token')),
      )
    case 'selfsubjectreviews':
      return answer('authentication.k8s.io/v1', 'SelfSubjectReview', call, () => ({ userInfo: userInfo(call.user) }))
    case 'subjectaccessreviews':
      return answer('authorization.k8s.io/v1', 'SubjectAccessReview', call, (spec) =>
        accessStatus(state, subject(spec), spec),
      )
    case 'selfsubjectaccessreviews':
      return answer('authorization.k8s.io/v1', 'SelfSubjectAccessReview', call, (spec) =>
        accessStatus(state, call.user, spec),
      )
    default:
      return undefined
  }
}

function answer(apiVersion: string, kind: string, call: Call, status: (spec: Json) => Json): Answer {
  const spec = objectAt(jsonBody(call), 'spec')
  return jsonAnswer({ kind, apiVersion, metadata: { creationTimestamp: null }, spec, status: status(spec) }, 201)
}

/** An unknown token is no error: the answer is that nobody is authenticated. */
function tokenStatus(state: ClusterState, token: string): Json {
  if (token === '') throw badRequest('token is required for TokenReview in authentication')
  const user = userOfToken(state, token)
  if (user === undefined) return { user: {}, error: 'invalid bearer token' }
  return { authenticated: true, user: userInfo(user), audiences: [AUDIENCE] }
}

const AUDIENCE = 'https://kubernetes.default.svc'

function userInfo({ name, uid, groups, extra }: UserInfo): Json {
  return {
    username: name,
    ...(uid === '' ? {} : { uid }),
    ...(groups.length === 0 ? {} : { groups }),
    ...(Object.keys(extra).length === 0 ? {} : { extra }),
  }
}

function subject(spec: Json): UserInfo {
  const groups = listAt(spec, 'groups').filter((group) => typeof group === 'string')
  return { name: textAt(spec, 'user'), uid: textAt(spec, 'uid'), groups, extra: {} }
}

function accessStatus(state: ClusterState, user: UserInfo, spec: Json): Json {
  const asked = isJson(spec['resourceAttributes'])
    ? spec['resourceAttributes']
    : objectAt(spec, 'nonResourceAttributes')
  const attributes: Attributes = {
    verb: textAt(asked, 'verb'),
    group: textAt(asked, 'group'),
    resource: textAt(asked, 'resource'),
    subresource: textAt(asked, 'subresource'),
    namespace: textAt(asked, 'namespace'),
    name: textAt(asked, 'name'),
    path: textAt(asked, 'path'),
  }
  return { allowed: isAllowed(state, user, attributes) }
}
