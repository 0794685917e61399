// UpstreamCluster (proxy.kubegateway.io/v1alpha1, cluster-scoped): one upstream Kubernetes cluster and how it is served. KubeGateway's manifests
// apply unchanged. Types derive from schema.ts, which describes the fields. Byte fields (`...Data`, `bearerToken`) hold base64, as []byte does in
// Kubernetes JSON.

import type { ValueOf } from '../../../kit/api/json/json-schema.ts'
import type { KubeObject } from '../../../kube/api/meta.ts'
import type { UPSTREAM_CLUSTER_SPEC_SCHEMA } from './schema.ts'

export const UPSTREAM_CLUSTER_API_VERSION = 'proxy.kubegateway.io/v1alpha1'
export const UPSTREAM_CLUSTER_KIND = 'UpstreamCluster'
/** KubeGateway's annotation: `DenyAllRequests=true,CloseConnectionWhenIdle=true`. */
export const FEATURE_GATES_ANNOTATION = 'proxy.kubegateway.io/feature-gates'

/** Gates that the annotation may name; those without an effect here are merely accepted. */
export const FEATURE_GATES = [
  'DenyAllRequests',
  'CloseConnectionWhenIdle',
  'GlobalRateLimiter',
  'Tracing',
  'AllAlpha',
  'AllBeta',
] as const

export interface UpstreamCluster extends KubeObject {
  readonly spec: UpstreamClusterSpec
}

/** The schema describes the fields. */
export type UpstreamClusterSpec = ValueOf<typeof UPSTREAM_CLUSTER_SPEC_SCHEMA>

type Given<K extends keyof UpstreamClusterSpec> = NonNullable<UpstreamClusterSpec[K]>

export type UpstreamServer = Given<'servers'>[number]
/** How the gateway connects and authenticates to the cluster. */
export type ClientConfig = Given<'clientConfig'>
export type SecureServing = Given<'secureServing'>
/** Added: where the secret bytes are stored. Exactly one of `file` and `name`. */
export type SecretReference = NonNullable<ClientConfig['caRef']>
export type FlowControlSchema = NonNullable<Given<'flowControl'>['flowControlSchemas']>[number]
export type TokenBucket = NonNullable<FlowControlSchema['tokenBucket']>
/** Added. If present, even empty, list sizes are learned, and lists that would be too large are refused. */
export type ListGuard = Given<'listGuard'>
export type LogMode = NonNullable<Given<'logging'>['mode']>
export type DispatchPolicy = Given<'dispatchPolicies'>[number]
/**
 * All fields must match. `-x` inverts an entry; a list of inverted entries means "none of these"; in a mixed list the
 * inverted entries are ignored. `*` matches all. Empty verbs, apiGroups, resources, nonResourceURLs match nothing;
 * every other empty field matches all. `namespaces` and `userAgents` are added.
 */
export type DispatchRule = DispatchPolicy['rules'][number]
export type HealthCheck = Given<'healthCheck'>
/** Who may use the cluster at all. `deny` is checked first; a non-empty `allow` refuses every user it does not match. */
export type AccessControl = Given<'accessControl'>
/** All given fields must match; within a field one entry is enough. */
export type AccessRule = NonNullable<AccessControl['allow']>[number]
/** What the gateway divides among users under contention. */
type ClusterShares = Given<'shares'>
/** All given fields must match; within a field one entry is enough. */
export type ShareWeight = NonNullable<ClusterShares['weights']>[number]
export type Degrade = Given<'degrade'>
/** Per replica; threads share it. */
export type DegradeLimit = NonNullable<Degrade['limited']>
/** Durations in Go's format: `60s`, `1m30s`. */
export type DegradeRecovery = NonNullable<Degrade['recovery']>
/** Where a recovery ends, if not at Off. */
export type DegradeBefore = NonNullable<Degrade['before']>
export type Authentication = Given<'authentication'>
export type JwtAuthenticator = NonNullable<Authentication['jwt']>[number]
/** Exactly one of `user`, `certificateFingerprint` and `tokenHash`. */
export type Revocation = NonNullable<Authentication['revoked']>[number]
