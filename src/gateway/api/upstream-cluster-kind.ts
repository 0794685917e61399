// UpstreamCluster's row of the scheme.

import type { FieldError } from '../../kit/api/json/field-error.ts'
import type { JsonObject } from '../../kit/api/json/json-object.ts'
import { kubeObject } from '../../kit/api/json/json-schema.ts'
import { isRecord } from '../../kit/api/json/object-shape.ts'
import { FieldErrors } from '../../kit/api/validation/field-errors.ts'
import type { PemChecks } from '../../kit/api/validation/pem-checks.ts'
import type { PrinterColumn, ResourceKind } from '../../kube/api/resource-kind.ts'
import { type ClusterCheckOptions, checkUpstreamCluster } from './upstream-cluster/checks.ts'
import { claimKeysOf, conflictsWith } from './upstream-cluster/cluster-conflicts.ts'
import { UPSTREAM_CLUSTER_SPEC_SCHEMA } from './upstream-cluster/schema.ts'
import { UPSTREAM_CLUSTER_STATUS_SCHEMA } from './upstream-cluster/status-schema.ts'
import { UPSTREAM_CLUSTER_API_VERSION, UPSTREAM_CLUSTER_KIND } from './upstream-cluster/upstream-cluster.ts'

const COLUMNS: readonly PrinterColumn[] = [
  condition('Ready', 'Whether the cluster is served.', 'status'),
  { name: 'Endpoints', type: 'integer', description: 'Ready endpoints.', jsonPath: '.status.endpoints.ready' },
  { name: 'Total', type: 'integer', description: 'All endpoints.', jsonPath: '.status.endpoints.total' },
  // Not spec.degrade.mode: that still stands there when the mode has expired.
  condition('Degrade', 'The degrade mode in force: Off, ReadOnly ..., or Expired or Shadow.', 'reason', 'Degraded'),
  { name: 'Age', type: 'date', description: 'When it was created.', jsonPath: '.metadata.creationTimestamp' },
  {
    ...condition('Autoscaler', 'The cluster-autoscaler: Healthy, Backoff, Stale ...', 'reason', 'AutoscalerHealthy'),
    priority: 1,
  },
  { ...condition('Reason', 'Why it is ready or not.', 'message', 'Ready'), priority: 1 },
]

function condition(name: string, description: string, field: string, type: string = name): PrinterColumn {
  return { name, type: 'string', description, jsonPath: `.status.conditions[?(@.type=="${type}")].${field}` }
}

/** What following the references of an object to Secrets has found. */
export interface ResolvedReferences {
  /** The object with the bytes in the places of the references that could be followed. */
  readonly object: unknown
  readonly problems: readonly FieldError[]
  /** Paths of inline fields that came from references, and the paths of those. */
  readonly origins: ReadonlyMap<string, string>
}

interface ClusterKindOptions extends Pick<ClusterCheckOptions, 'globalLimits' | 'serverRefusal'> {
  /** Follows references. Default: they are not followed. */
  resolve?(object: JsonObject): ResolvedReferences
}

/** The row, where objects are checked for gateways that can do what `options` say. */
export function upstreamClusterKind(options: ClusterKindOptions = {}): ResourceKind {
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
    check: (object, before, pem) => checkWritten(object, before, pem, options),
    claims: claimKeysOf,
    conflicts: conflictsWith,
  }
}

function checkWritten(
  object: JsonObject,
  before: JsonObject | undefined,
  pem: PemChecks,
  { globalLimits = true, serverRefusal, resolve }: ClusterKindOptions,
): readonly FieldError[] {
  const options = { globalLimits, fileReferences: false, ...(serverRefusal !== undefined && { serverRefusal }) }
  const shown = certificateShown(object, before)
  if (resolve === undefined) return [...checkUpstreamCluster(object, pem, options), ...shown]
  const { object: resolved, problems, origins } = resolve(object)
  // The content of a Secret does not fail a write that leaves the references unchanged: the degrade switch keeps working.
  const isSame = before !== undefined && credentialsOf(before) === credentialsOf(object)
  const softened = (problem: FieldError): FieldError => (isSame ? { ...problem, severity: 'warning' } : problem)
  const checked = checkUpstreamCluster(resolved, pem, options)
  const isError = ({ path, severity }: FieldError): boolean => origins.has(path) && severity === 'error'
  // But what this write causes with the same Secrets is its error: servers to which the token would be sent in clear.
  const known = isSame && checked.some(isError) ? checkUpstreamCluster(resolve(before).object, pem, options) : []
  const wasThere = ({ path, message }: FieldError): boolean =>
    known.some((one) => one.path === path && one.message === message)
  const moved = checked.map((problem) => {
    const path = origins.get(problem.path)
    if (path === undefined) return problem
    return wasThere(problem) ? softened({ ...problem, path }) : { ...problem, path }
  })
  return [...problems.map(softened), ...moved, ...shown]
}

/**
 * A client that connects to a bare address says no name, so that the address alone decides which certificate it is shown, before
 * there is a path to look at. Told once, to whoever claims the address or gives the cluster a certificate.
 */
function certificateShown(object: JsonObject, before: JsonObject | undefined): readonly FieldError[] {
  const out = new FieldErrors()
  if (!hasCertificate(object)) return out.found
  const known = new Set(before === undefined || !hasCertificate(before) ? [] : addressesOf(before))
  for (const [index, ip] of addressesOf(object).entries()) {
    if (known.has(ip)) continue
    const message =
      "is shown with this cluster's certificate from now on, to clients of https://IP/clusters/NAME as well"
    const fix = 'give those the CA of that certificate, or another address of the gateway'
    out.warning(`spec.addresses.ips[${index}]`, message, fix)
  }
  return out.found
}

function hasCertificate({ spec }: JsonObject): boolean {
  const { secureServing } = isRecord(spec) ? spec : {}
  if (!isRecord(secureServing)) return false
  return (secureServing['certData'] ?? '') !== '' || isRecord(secureServing['certRef'])
}

function addressesOf({ spec }: JsonObject): readonly string[] {
  const { addresses } = isRecord(spec) ? spec : {}
  const ips = isRecord(addresses) ? addresses['ips'] : undefined
  return Array.isArray(ips) ? ips.map(String) : []
}

function credentialsOf({ spec }: JsonObject): string {
  const { clientConfig, secureServing } = isRecord(spec) ? spec : {}
  return JSON.stringify([clientConfig, secureServing])
}

export const UPSTREAM_CLUSTERS: ResourceKind = upstreamClusterKind()
