// The CustomResourceDefinition of UpstreamCluster, made of the one schema. deploy/crds/ holds it as YAML.

import type { JsonSchema } from './json-schema.ts'
import { UPSTREAM_CLUSTER_SPEC_SCHEMA } from './upstream-cluster-schema.ts'

const GROUP = 'proxy.kubegateway.io'
const VERSION = 'v1alpha1'

/** A new plain object; stable, so that its YAML can be compared. */
export function upstreamClusterCrd(): object {
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `upstreamclusters.${GROUP}` },
    spec: {
      group: GROUP,
      scope: 'Cluster',
      names: {
        kind: 'UpstreamCluster',
        listKind: 'UpstreamClusterList',
        plural: 'upstreamclusters',
        singular: 'upstreamcluster',
        shortNames: ['uc'],
      },
      versions: [
        {
          name: VERSION,
          served: true,
          storage: true,
          subresources: { status: {} },
          additionalPrinterColumns: PRINTER_COLUMNS,
          schema: { openAPIV3Schema: OBJECT_SCHEMA },
        },
      ],
    },
  }
}

const PRINTER_COLUMNS = [
  { name: 'Ready', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].status' },
  { name: 'Endpoints', type: 'integer', jsonPath: '.status.endpoints.ready', description: 'Ready endpoints.' },
  { name: 'Total', type: 'integer', jsonPath: '.status.endpoints.total', description: 'All endpoints.' },
  { name: 'Degrade', type: 'string', jsonPath: '.spec.degrade.mode', description: 'The degrade switch.' },
  { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
]

const CONDITION: JsonSchema = {
  type: 'object',
  description: 'metav1.Condition.',
  properties: {
    type: { type: 'string', description: 'Ready, EndpointsHealthy, CredentialsValid or Degraded.' },
    status: { type: 'string', description: 'Whether it holds.', enum: ['True', 'False', 'Unknown'] },
    observedGeneration: { type: 'integer', description: 'metadata.generation that this is about.' },
    lastTransitionTime: { type: 'string', description: 'When status changed last.', format: 'date-time' },
    reason: { type: 'string', description: 'One word for programs.' },
    message: { type: 'string', description: 'A sentence for people.' },
  },
  required: ['type', 'status'],
}

const STATUS_SCHEMA: JsonSchema = {
  type: 'object',
  description: 'What the gateways report.',
  // Another replica may be of a newer version: what it reports is kept.
  'x-kubernetes-preserve-unknown-fields': true,
  properties: {
    observedGeneration: { type: 'integer', description: 'metadata.generation that was looked at last.' },
    conditions: {
      type: 'array',
      description: 'Ready, EndpointsHealthy, CredentialsValid, Degraded.',
      items: CONDITION,
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['type'],
    },
    endpoints: {
      type: 'object',
      description: 'The servers.',
      properties: {
        ready: { type: 'integer', description: 'Enabled and healthy.' },
        total: { type: 'integer', description: 'All in spec.servers.' },
      },
    },
    gateways: {
      type: 'array',
      description: 'What each thread of each replica has applied: proof that a switch is in force.',
      items: {
        type: 'object',
        description: 'A thread of a replica.',
        'x-kubernetes-preserve-unknown-fields': true,
        properties: {
          name: { type: 'string', description: 'The replica.' },
          thread: { type: 'integer', description: 'The thread.' },
          observedGeneration: { type: 'integer', description: 'metadata.generation in force there.' },
        },
      },
    },
  },
}

const OBJECT_SCHEMA: JsonSchema = {
  type: 'object',
  description: 'UpstreamCluster is one upstream Kubernetes cluster, and how the gateway serves it.',
  required: ['spec'],
  properties: {
    apiVersion: { type: 'string', description: 'proxy.kubegateway.io/v1alpha1.' },
    kind: { type: 'string', description: 'UpstreamCluster.' },
    metadata: { type: 'object' },
    spec: UPSTREAM_CLUSTER_SPEC_SCHEMA,
    status: STATUS_SCHEMA,
  },
}
