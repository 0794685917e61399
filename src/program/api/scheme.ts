// Every kind that Portcullis serves or reads, one row each.

import { ENDED_SESSIONS } from '../../gateway/api/ended-session-kind.ts'
import { REVOKED_CREDENTIALS } from '../../gateway/api/revoked-credential-kind.ts'
import { withEntryPattern } from '../../gateway/api/upstream-cluster/schema.ts'
import { UPSTREAM_CLUSTERS } from '../../gateway/api/upstream-cluster-kind.ts'
import type { JsonObject } from '../../kit/api/json/json-object.ts'
import { EVENTS } from '../../kube/api/kinds/event-kind.ts'
import { LEASES } from '../../kube/api/kinds/lease-kind.ts'
import { NAMESPACES } from '../../kube/api/kinds/namespace-kind.ts'
import { SECRETS } from '../../kube/api/kinds/secret-kind.ts'
import { VERSION_LABEL } from '../../kube/api/own-names.ts'
import { type ResourceKind, resourceName } from '../../kube/api/resource-kind.ts'
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

// CustomResourceDefinitions of Portcullis' own kinds, generated from their rows in the scheme. deploy/crds/ holds them as YAML.

/** apiextensions.k8s.io/v1. A new plain object; stable, so that its YAML can be compared. @param version of the program: `0.1.0` */
export function crdOf(kind: ResourceKind, version: string): JsonObject {
  const { listKind, plural, singular, shortNames, categories } = kind
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: resourceName(kind), labels: { [VERSION_LABEL]: version } },
    spec: {
      group: kind.group,
      scope: kind.namespaced ? 'Namespaced' : 'Cluster',
      names: {
        kind: kind.kind,
        listKind,
        plural,
        singular,
        shortNames: [...shortNames],
        ...(categories.length > 0 && { categories: [...categories] }),
      },
      versions: [
        {
          name: kind.version,
          served: true,
          storage: true,
          ...(kind.hasStatus && { subresources: { status: {} } }),
          additionalPrinterColumns: kind.columns.map(({ cell: _, ...column }) => column),
          schema: { openAPIV3Schema: withEntryPattern(kind.schema) },
        },
      ],
    },
  }
}
