// Every kind that Portcullis serves or reads, one row each.

import type { ResourceKind } from '../ports/resource-kind.ts'
import { EVENTS } from './event-kind.ts'
import { LEASES } from './lease-kind.ts'
import { NAMESPACES } from './namespace-kind.ts'
import { POD_PROTECTORS } from './pod-protector-kind.ts'
import { REVOKED_CREDENTIALS } from './revoked-credential-kind.ts'
import { SCALE_DOWN_POLICIES } from './scale-down-policy-kind.ts'
import { SCALE_UP_GUARDS } from './scale-up-guard-kind.ts'
import { SECRETS } from './secret-kind.ts'
import { UPSTREAM_CLUSTERS } from './upstream-cluster-kind.ts'

export {
  EVENTS,
  LEASES,
  NAMESPACES,
  POD_PROTECTORS,
  REVOKED_CREDENTIALS,
  SCALE_DOWN_POLICIES,
  SCALE_UP_GUARDS,
  SECRETS,
  UPSTREAM_CLUSTERS,
}

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
