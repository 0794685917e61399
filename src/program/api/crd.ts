// CustomResourceDefinitions of Portcullis' own kinds, generated from their rows in the scheme. deploy/crds/ holds them as YAML.

import { withEntryPattern } from '../../gateway/api/upstream-cluster/schema.ts'
import type { JsonObject } from '../../kit/api/json/json-object.ts'
import { VERSION_LABEL } from '../../kube/api/own-names.ts'
import { type ResourceKind, resourceName } from '../../kube/api/resource-kind.ts'

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
