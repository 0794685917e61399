// UpstreamCluster (proxy.kubegateway.io/v1alpha1, cluster-scoped): one upstream Kubernetes cluster and how it is served.
// KubeGateway's manifests apply unchanged. Types follow from schema.ts, which describes the fields.
// Byte fields (`...Data`, `bearerToken`) hold base64, as []byte does in Kubernetes JSON.

import type { ValueOf } from '../../../kit/api/json/json-schema.ts'
import type { KubeObject } from '../../../kube/api/meta.ts'
import type { UPSTREAM_CLUSTER_SPEC_SCHEMA } from './schema.ts'

export const UPSTREAM_CLUSTER_API_VERSION = 'proxy.kubegateway.io/v1alpha1'
export const UPSTREAM_CLUSTER_KIND = 'UpstreamCluster'
/** Annotation of KubeGateway: `DenyAllRequests=true,CloseConnectionWhenIdle=true`. */
export const FEATURE_GATES_ANNOTATION = 'proxy.kubegateway.io/feature-gates'

/** Gates that the annotation may name; only those with an effect here are more than accepted. */
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

/** The fields are described in the schema. */
export type UpstreamClusterSpec = ValueOf<typeof UPSTREAM_CLUSTER_SPEC_SCHEMA>

type Given<K extends keyof UpstreamClusterSpec> = NonNullable<UpstreamClusterSpec[K]>

export type UpstreamServer = Given<'servers'>[number]
/** How the gateway connects to the cluster, and its credentials there. */
export type ClientConfig = Given<'clientConfig'>
export type SecureServing = Given<'secureServing'>
/** Added: where secret bytes are kept. Exactly one of `file` and `name`. */
export type SecretReference = NonNullable<ClientConfig['caRef']>
export type FlowControlSchema = NonNullable<Given<'flowControl'>['flowControlSchemas']>[number]
export type TokenBucket = NonNullable<FlowControlSchema['tokenBucket']>
/** Added. Present, even when empty: the size of lists is learned, and those that would be too large are refused. */
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
/** Who may use the cluster at all. `deny` is checked first; a non-empty `allow` refuses everybody it does not name. */
export type AccessControl = Given<'accessControl'>
/** All fields given must match; inside a field one entry is enough. */
export type AccessRule = NonNullable<AccessControl['allow']>[number]
/** What the gateway divides among users, where there is not enough for all. */
export type ClusterShares = Given<'shares'>
/** All fields given must match; inside a field one entry is enough. */
export type ShareWeight = NonNullable<ClusterShares['weights']>[number]
export type Degrade = Given<'degrade'>
/** Of each replica; threads share it. */
export type DegradeLimit = NonNullable<Degrade['limited']>
/** Durations as Go writes them: `60s`, `1m30s`. */
export type DegradeRecovery = NonNullable<Degrade['recovery']>
export type Authentication = Given<'authentication'>
/** Exactly one of `user`, `certificateFingerprint` and `tokenHash`. */
export type Revocation = NonNullable<Authentication['revoked']>[number]
