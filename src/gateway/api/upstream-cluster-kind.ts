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
import { membersWithMembers } from './upstream-cluster/federation/federation.ts'
import { UPSTREAM_CLUSTER_SPEC_SCHEMA } from './upstream-cluster/schema.ts'
import { UPSTREAM_CLUSTER_STATUS_SCHEMA } from './upstream-cluster/status-schema.ts'
import { UPSTREAM_CLUSTER_API_VERSION, UPSTREAM_CLUSTER_KIND } from './upstream-cluster/upstream-cluster.ts'

const COLUMNS: readonly PrinterColumn[] = [
  condition('Ready', 'Whether the cluster is served.', 'status'),
  { name: 'Endpoints', type: 'integer', description: 'Ready endpoints.', jsonPath: '.status.endpoints.ready' },
  { name: 'Total', type: 'integer', description: 'All endpoints.', jsonPath: '.status.endpoints.total' },
  // Not spec.degrade.mode: it still holds the mode after it has expired.
  condition('Degrade', 'The degrade mode in force: Off, ReadOnly ..., or Expired or Shadow.', 'reason', 'Degraded'),
  condition('Cache', 'The read cache: Serving, Loading, Refused ...', 'reason', 'ReadCacheReady'),
  { name: 'Age', type: 'date', description: 'When it was created.', jsonPath: '.metadata.creationTimestamp' },
  {
    name: 'Cache-Hits',
    type: 'integer',
    description: 'Reads answered from the read cache.',
    jsonPath: '.status.cache.hits',
    priority: 1,
  },
  {
    name: 'Cache-Bytes',
    type: 'string',
    description: 'Memory of the read cache.',
    jsonPath: '.status.cache.bytes',
    priority: 1,
  },
  {
    name: 'Cache-Age',
    type: 'string',
    description: 'Age of the cached objects.',
    jsonPath: '.status.cache.age',
    priority: 1,
  },
  {
    ...condition('Autoscaler', 'The cluster-autoscaler: Healthy, Backoff, Stale ...', 'reason', 'AutoscalerHealthy'),
    priority: 1,
  },
  { ...condition('Reason', 'Why it is ready or not.', 'message', 'Ready'), priority: 1 },
]

function condition(name: string, description: string, field: string, type: string = name): PrinterColumn {
  return { name, type: 'string', description, jsonPath: `.status.conditions[?(@.type=="${type}")].${field}` }
}

/** Result of resolving an object's Secret references. */
export interface ResolvedReferences {
  /** The object with inline bytes in place of every reference that could be resolved. */
  readonly object: unknown
  readonly problems: readonly FieldError[]
  /** Paths of inline fields that came from references, mapped to the paths of the references. */
  readonly origins: ReadonlyMap<string, string>
}

interface ClusterKindOptions extends Pick<ClusterCheckOptions, 'globalLimits' | 'withoutSubject' | 'serverRefusal'> {
  /** Resolves references. Default: they are left alone. */
  resolve?(object: JsonObject): ResolvedReferences
}

/** The row, with objects checked for gateways that have the capabilities in `options`. */
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
    // Files belong to the gateway; an object from an API server must not name them.
    check: (object, before, pem) => checkWritten(object, before, pem, options),
    claims: claimKeysOf,
    conflicts: (object, others) => [...conflictsWith(object, others), ...membersWithMembers(object, others)],
  }
}

function checkWritten(
  object: JsonObject,
  before: JsonObject | undefined,
  pem: PemChecks,
  { globalLimits = true, withoutSubject, serverRefusal, resolve }: ClusterKindOptions,
): readonly FieldError[] {
  const options = {
    globalLimits,
    fileReferences: false,
    ...(withoutSubject !== undefined && { withoutSubject }),
    ...(serverRefusal !== undefined && { serverRefusal }),
  }
  const shown = certificateShown(object, before)
  if (resolve === undefined) return [...checkUpstreamCluster(object, pem, options), ...shown]
  const { object: resolved, problems, origins } = resolve(object)
  // A Secret's content never fails a write that leaves the references unchanged, so the degrade switch keeps working.
  const isSame = before !== undefined && credentialsOf(before) === credentialsOf(object)
  const softened = (problem: FieldError): FieldError => (isSame ? { ...problem, severity: 'warning' } : problem)
  const checked = checkUpstreamCluster(resolved, pem, options)
  const isError = ({ path, severity }: FieldError): boolean => origins.has(path) && severity === 'error'
  // Errors that this write causes with the same Secrets do count: servers that would receive the token in clear text.
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
 * A client that connects to a bare address sends no SNI, so the address alone selects the certificate, before there is a path to look at. Warn once,
 * when a write claims the address or adds the certificate.
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
