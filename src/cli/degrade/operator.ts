// Who the API server takes the caller for.

import { LEASES } from '../../api/kinds/scheme.ts'
import { recordOf, textOf } from '../../api/kube/object-shape.ts'
import type { UserInfo } from '../../api/kube/user.ts'
import type { ObjectClient } from '../../api/ports/object-client.ts'
import type { ResourceKind } from '../../api/ports/resource-kind.ts'

/** Only where it is created counts here: nothing is stored. */
const SELF_REVIEWS: ResourceKind = {
  ...LEASES,
  group: 'authentication.k8s.io',
  version: 'v1',
  kind: 'SelfSubjectReview',
  plural: 'selfsubjectreviews',
  namespaced: false,
}

/** undefined = it does not say; before Kubernetes 1.28 none does. */
export async function whoAmI(client: ObjectClient): Promise<UserInfo | undefined> {
  const asked = { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview', metadata: {} }
  const answer = await client.create(SELF_REVIEWS, asked).catch(() => undefined)
  const user = recordOf(recordOf(answer?.['status'])['userInfo'])
  const name = textOf(user['username'])
  if (name === '') return undefined
  const groups = Array.isArray(user['groups']) ? user['groups'].map(String) : []
  return { name, uid: '', groups, extra: {} }
}
