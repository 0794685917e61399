// Checks each right that the gateway needs in a cluster, as the gateway's own user (SelfSubjectAccessReview), and those of the user that its read
// cache reads as (SubjectAccessReview). SelfSubjectRulesReview would take one call, but is incomplete with a webhook authorizer.

import { isRecord, textOf } from '../../../kit/api/json/object-shape.ts'
import { errorMessage } from '../../../kit/api/validation/error-message.ts'
import { GROUP_AUTHENTICATED } from '../../../kube/api/user.ts'
import { type GatewayRight, missingRightsMessage, reviewAttributes } from '../../core/identity/gateway-rights.ts'
import type { KubeAnswer } from '../../io/upstream/kube-call.ts'

export type RightsAnswer =
  | { readonly kind: 'granted' }
  | { readonly kind: 'missing'; readonly missing: readonly GatewayRight[]; readonly message: string }
  /** The credential itself is rejected (401). */
  | { readonly kind: 'rejected'; readonly message: string }
  /** No API server answered. */
  | { readonly kind: 'unanswered'; readonly message: string }

/** POSTs a body to a path as the gateway. Rejects if there is no answer. */
type RightsCall = (path: string, body: string) => Promise<KubeAnswer>

const ACCESS_PATH = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews'
const OTHERS_ACCESS_PATH = '/apis/authorization.k8s.io/v1/subjectaccessreviews'
const IDENTITY_PATH = '/apis/authentication.k8s.io/v1/selfsubjectreviews'
const SELF_REVIEW: GatewayRight = {
  verb: 'create',
  group: 'authorization.k8s.io',
  resource: 'selfsubjectaccessreviews',
  namespace: '',
  file: '',
}

/** Never rejects. */
export async function askRights(call: RightsCall, rights: readonly GatewayRight[]): Promise<RightsAnswer> {
  try {
    const missing = (await Promise.all(rights.map((right) => missingOf(call, right)))).flat()
    if (missing.length === 0) return { kind: 'granted' }
    return { kind: 'missing', missing, message: missingRightsMessage(missing, await ownName(call)) }
  } catch (error) {
    if (error instanceof NoVerdict) return error.answer
    return { kind: 'unanswered', message: errorMessage(error) }
  }
}

/** An answer that settles all reviews at once. */
class NoVerdict extends Error {
  readonly answer: RightsAnswer

  constructor(answer: RightsAnswer) {
    super(answer.kind)
    this.answer = answer
  }
}

async function missingOf(call: RightsCall, right: GatewayRight): Promise<readonly GatewayRight[]> {
  if (await isGranted(call, right)) return []
  if (right.orElse === undefined) return [right]
  const missing = (await Promise.all(right.orElse.map((part) => missingOf(call, part)))).flat()
  // All are missing: the combined right from the file is shorter to read.
  return missing.length === right.orElse.length ? [right] : missing
}

async function isGranted(call: RightsCall, right: GatewayRight): Promise<boolean> {
  const resourceAttributes = reviewAttributes(right)
  const apiVersion = 'authorization.k8s.io/v1'
  const { user } = right
  if (user !== undefined) {
    const spec = { user, groups: [GROUP_AUTHENTICATED], resourceAttributes }
    const review = JSON.stringify({ kind: 'SubjectAccessReview', apiVersion, spec })
    const answer = await call(OTHERS_ACCESS_PATH, review)
    // The gateway may not ask, which is reported as a missing right of its own.
    return answer.status === 403 || isAllowed(answer)
  }
  const review = JSON.stringify({ kind: 'SelfSubjectAccessReview', apiVersion, spec: { resourceAttributes } })
  return isAllowed(await call(ACCESS_PATH, review))
}

/** @throws {NoVerdict} */
function isAllowed({ status, body }: KubeAnswer): boolean {
  if (status === 401) throw new NoVerdict({ kind: 'rejected', message: 'the cluster does not accept it (401)' })
  if (status === 403) {
    const message = `the cluster does not even let the gateway ask for its rights (${SELF_REVIEW.resource}: 403): is this a credential of this cluster?`
    throw new NoVerdict({ kind: 'missing', missing: [SELF_REVIEW], message })
  }
  const answer = status === 200 || status === 201 ? statusOf(body) : undefined
  if (typeof answer?.['allowed'] !== 'boolean') {
    throw new NoVerdict({ kind: 'unanswered', message: `a review of the gateway's rights was answered with ${status}` })
  }
  return answer['allowed'] && answer['denied'] !== true
}

/** The gateway's user name in the cluster; '' if the cluster can't tell (before Kubernetes 1.28). */
async function ownName(call: RightsCall): Promise<string> {
  try {
    const review = { kind: 'SelfSubjectReview', apiVersion: 'authentication.k8s.io/v1' }
    const userInfo = statusOf((await call(IDENTITY_PATH, JSON.stringify(review))).body)?.['userInfo']
    const name = isRecord(userInfo) ? userInfo['username'] : ''
    return textOf(name)
  } catch {
    return ''
  }
}

function statusOf(body: string): Readonly<Record<string, unknown>> | undefined {
  let answer: unknown
  try {
    answer = JSON.parse(body)
  } catch {
    return undefined
  }
  const status = isRecord(answer) ? answer['status'] : undefined
  return isRecord(status) ? status : undefined
}
