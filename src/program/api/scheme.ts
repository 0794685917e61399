// Every kind that Portcullis serves or reads, one row each.

import { REVOKED_CREDENTIALS } from '../../gateway/api/revoked-credential-kind.ts'
import { UPSTREAM_CLUSTERS } from '../../gateway/api/upstream-cluster-kind.ts'
import { EVENTS } from '../../kube/api/kinds/event-kind.ts'
import { LEASES } from '../../kube/api/kinds/lease-kind.ts'
import { NAMESPACES } from '../../kube/api/kinds/namespace-kind.ts'
import { SECRETS } from '../../kube/api/kinds/secret-kind.ts'
import type { ResourceKind } from '../../kube/api/resource-kind.ts'
import { POD_PROTECTORS } from '../../protection/api/pod-protector-kind.ts'
import { SCALE_UP_GUARDS } from '../../scale-up-guard/api/scale-up-guard-kind.ts'
import { SCALE_DOWN_POLICIES } from '../../scaling/api/scale-down-policy-kind.ts'

export const SCHEME: readonly ResourceKind[] = [
  UPSTREAM_CLUSTERS,
  POD_PROTECTORS,
  REVOKED_CREDENTIALS,
  SCALE_UP_GUARDS,
  SCALE_DOWN_POLICIES,
  NAMESPACES,
  SECRETS,
  EVENTS,
  LEASES,
]

/** Kinds that a Kubernetes cluster does not have by itself. */
export const CUSTOM_KINDS: readonly ResourceKind[] = [
  UPSTREAM_CLUSTERS,
  POD_PROTECTORS,
  SCALE_UP_GUARDS,
  SCALE_DOWN_POLICIES,
]
