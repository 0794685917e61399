// Reviews answered by the demo's clusters: TokenReview, SubjectAccessReview, and two self reviews.

import type { Authorizer } from '../../apiserver/access/authorize.ts'
import type { ReviewKind } from '../../apiserver/objects/api-resource.ts'
import { reviewKind, SELF_ACCESS_REVIEW } from '../../apiserver/objects/self-review-kinds.ts'
import { accessAsked, userInfoOf, WHO_AM_I } from '../../apiserver/self-reviews.ts'
import { statusError } from '../../kube/api/status.ts'
import type { UserInfo } from '../../kube/api/user.ts'
import { withAuthenticatedGroup } from '../../pki/core/user-from-cert.ts'
import { listAt, textAt } from './json.ts'
import { openKind, openObject } from './rows.ts'

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
