// Every kind that Portcullis serves or reads, one row each.

import { REVOKED_CREDENTIALS } from '../../gateway/api/revoked-credential-kind.ts'
import { UPSTREAM_CLUSTERS } from '../../gateway/api/upstream-cluster-kind.ts'
import { EVENTS } from '../../kube/api/kinds/event-kind.ts'
import { LEASES } from '../../kube/api/kinds/lease-kind.ts'
import { NAMESPACES } from '../../kube/api/kinds/namespace-kind.ts'
import { SECRETS } from '../../kube/api/kinds/secret-kind.ts'
import type { ResourceKind } from '../../kube/api/resource-kind.ts'
import { POD_PROTECTORS } from '../../protection/api/pod-protector-kind.ts'
import { SUBJECTS } from '../subjects/subjects.ts'

/** The kinds of subjects that can be left out. */
export const SUBJECT_KINDS: readonly ResourceKind[] = SUBJECTS.flatMap(({ kinds }) => kinds)

export const SCHEME: readonly ResourceKind[] = [
  UPSTREAM_CLUSTERS,
  POD_PROTECTORS,
  REVOKED_CREDENTIALS,
  ...SUBJECT_KINDS,
  NAMESPACES,
  SECRETS,
  EVENTS,
  LEASES,
]

/** Kinds that a Kubernetes cluster does not have by itself. */
export const CUSTOM_KINDS: readonly ResourceKind[] = [UPSTREAM_CLUSTERS, POD_PROTECTORS, ...SUBJECT_KINDS]
