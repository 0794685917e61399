// UpstreamCluster's row of the scheme.

import { kubeObject } from './json-schema.ts'
import type { PrinterColumn, ResourceKind } from './resource-kind.ts'
import { UPSTREAM_CLUSTER_API_VERSION, UPSTREAM_CLUSTER_KIND } from './upstream-cluster.ts'
import { type ClusterCheckOptions, checkUpstreamCluster } from './upstream-cluster-checks.ts'
import { claimKeysOf, conflictsWith } from './upstream-cluster-conflicts.ts'
import { UPSTREAM_CLUSTER_SPEC_SCHEMA } from './upstream-cluster-schema.ts'
import { UPSTREAM_CLUSTER_STATUS_SCHEMA } from './upstream-cluster-status-schema.ts'

const COLUMNS: readonly PrinterColumn[] = [
  condition('Ready', 'Whether the cluster is served.', 'status'),
  { name: 'Endpoints', type: 'integer', description: 'Ready endpoints.', jsonPath: '.status.endpoints.ready' },
  { name: 'Total', type: 'integer', description: 'All endpoints.', jsonPath: '.status.endpoints.total' },
  // Not spec.degrade.mode: that still stands there when the mode has expired.
  condition('Degrade', 'The degrade mode in force: Off, ReadOnly ..., or Expired or Shadow.', 'reason', 'Degraded'),
  { name: 'Age', type: 'date', description: 'When it was created.', jsonPath: '.metadata.creationTimestamp' },
  { ...condition('Reason', 'Why it is ready or not.', 'message', 'Ready'), priority: 1 },
]

function condition(name: string, description: string, field: string, type: string = name): PrinterColumn {
  return { name, type: 'string', description, jsonPath: `.status.conditions[?(@.type=="${type}")].${field}` }
}

/** The row, where objects are checked for gateways that can do what `options` say. */
export function upstreamClusterKind(options: Pick<ClusterCheckOptions, 'globalLimits'> = {}): ResourceKind {
  return {
    group: 'proxy.kubegateway.io',
    version: 'v1alpha1',
    kind: UPSTREAM_CLUSTER_KIND,
    listKind: 'UpstreamClusterList',
    plural: 'upstreamclusters',
    singular: 'upstreamcluster',
    shortNames: ['uc'],
    categories: [],
    namespaced: false,
    hasStatus: true,
    hasGeneration: true,
    schema: kubeObject(
      'UpstreamCluster is one upstream Kubernetes cluster, and how the gateway serves it.',
      UPSTREAM_CLUSTER_API_VERSION,
      UPSTREAM_CLUSTER_KIND,
      { spec: UPSTREAM_CLUSTER_SPEC_SCHEMA, status: UPSTREAM_CLUSTER_STATUS_SCHEMA },
      ['spec'],
    ),
    columns: COLUMNS,
    selectableFields: [],
    inlineSecrets: [
      ['spec', 'clientConfig', 'bearerToken'],
      ['spec', 'clientConfig', 'keyData'],
      ['spec', 'secureServing', 'keyData'],
    ],
    certificateFields: [
      ['spec', 'clientConfig', 'caData'],
      ['spec', 'clientConfig', 'certData'],
      ['spec', 'secureServing', 'certData'],
      ['spec', 'secureServing', 'clientCAData'],
    ],
    // Files are the gateway's, and an object of an API server is not to name them.
    check: (object, _before, pem) => checkUpstreamCluster(object, pem, { ...options, fileReferences: false }),
    claims: claimKeysOf,
    conflicts: conflictsWith,
  }
}

export const UPSTREAM_CLUSTERS: ResourceKind = upstreamClusterKind()
