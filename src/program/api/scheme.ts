// Every kind that Portcullis serves or reads, one row each.

import { ENDED_SESSIONS } from '../../gateway/api/ended-session-kind.ts'
import { REVOKED_CREDENTIALS } from '../../gateway/api/revoked-credential-kind.ts'
import { UPSTREAM_CLUSTERS } from '../../gateway/api/upstream-cluster-kind.ts'
import { EVENTS } from '../../kube/api/kinds/event-kind.ts'
import { LEASES } from '../../kube/api/kinds/lease-kind.ts'
import { NAMESPACES } from '../../kube/api/kinds/namespace-kind.ts'
import { SECRETS } from '../../kube/api/kinds/secret-kind.ts'
import type { ResourceKind } from '../../kube/api/resource-kind.ts'
import { SUBJECTS } from '../subjects/subjects.ts'

/** The kinds of subjects that can be left out. */
const SUBJECT_KINDS: readonly ResourceKind[] = SUBJECTS.flatMap(({ kinds }) => kinds)

/** Those that several controllers follow, which keep what they need. */
export const SHARED_KINDS: readonly ResourceKind[] = SUBJECTS.flatMap(({ shared }) => shared ?? [])
/** Those whose objects are kept on disk as they are. */
export const KEPT_KINDS: readonly ResourceKind[] = SUBJECT_KINDS.filter((kind) => !SHARED_KINDS.includes(kind))

export const SCHEME: readonly ResourceKind[] = [
  UPSTREAM_CLUSTERS,
  REVOKED_CREDENTIALS,
  ENDED_SESSIONS,
  ...SUBJECT_KINDS,
  ...SUBJECTS.flatMap(({ embeddedKinds }) => embeddedKinds ?? []),
  NAMESPACES,
  SECRETS,
  EVENTS,
  LEASES,
]

/** Kinds that a Kubernetes cluster does not have by itself. */
export const CUSTOM_KINDS: readonly ResourceKind[] = [UPSTREAM_CLUSTERS, ENDED_SESSIONS, ...SUBJECT_KINDS]

/** Those of them that users write. EndedSessions are written by gateways. */
export const USER_WRITTEN_KINDS: readonly ResourceKind[] = [UPSTREAM_CLUSTERS, ...SUBJECT_KINDS]
