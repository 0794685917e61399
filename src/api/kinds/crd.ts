// CustomResourceDefinitions of the kinds that are Portcullis' own, made of their rows of the scheme. deploy/crds/ holds them
// as YAML.

import { POD_PROTECTORS } from '../../protection/api/pod-protector-kind.ts'
import { SCALE_UP_GUARDS } from '../../scale-up-guard/api/scale-up-guard-kind.ts'
import { SCALE_DOWN_POLICIES } from '../../scaling/api/scale-down-policy-kind.ts'
import type { JsonObject } from '../kube/json-object.ts'
import { type ResourceKind, resourceName } from '../ports/resource-kind.ts'
import { withEntryPattern } from '../upstream-cluster/schema.ts'
import { UPSTREAM_CLUSTERS } from './upstream-cluster-kind.ts'

/** Kinds that a Kubernetes cluster does not have by itself. */
export const CUSTOM_KINDS: readonly ResourceKind[] = [
  UPSTREAM_CLUSTERS,
  POD_PROTECTORS,
  SCALE_UP_GUARDS,
  SCALE_DOWN_POLICIES,
]

/** Label of a CRD: the version of Portcullis that wrote it. An older one leaves it alone. */
export const VERSION_LABEL = 'portcullis.io/version'

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
