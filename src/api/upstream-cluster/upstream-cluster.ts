// UpstreamCluster (proxy.kubegateway.io/v1alpha1, cluster-scoped): one upstream Kubernetes cluster and how it is served.
// KubeGateway's manifests apply unchanged; fields marked "added" are Portcullis'.
// Byte fields (`...Data`, `bearerToken`) hold base64, as []byte does in Kubernetes JSON.

import type { KubeObject } from '../kube/meta.ts'
import type { AutoDegrade } from './auto-degrade.ts'
import type { Autoscaler } from './cluster-autoscaler.ts'
import type { PodProtection } from './cluster-protection.ts'
import type { ControllerManager } from './controller-manager.ts'
import type { DegradeMode } from './degrade-modes.ts'
import type { ScaleProtection } from './scale-protection.ts'
import type { Strategy } from './strategies.ts'

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

export interface UpstreamClusterSpec {
  /** The kube-apiservers. At least one; all http or all https. */
  readonly servers: readonly UpstreamServer[]
  /** Added: the API servers are those of the cluster's `kubernetes` EndpointSlice; `servers` serve while none of them can. Default false. */
  readonly followEndpointSlice?: boolean
  readonly clientConfig?: ClientConfig
  readonly secureServing?: SecureServing
  readonly flowControl?: { readonly flowControlSchemas?: readonly FlowControlSchema[] }
  /** In order; the first whose rule matches decides. At least one. */
  readonly dispatchPolicies: readonly DispatchPolicy[]
  readonly logging?: { readonly mode?: LogMode }
  /** Added: addresses by which clients choose this cluster when they name no host. */
  readonly addresses?: Addresses
  /** Added: serves every request that no other cluster claims. At most one cluster. */
  readonly default?: boolean
  /** Added. */
  readonly healthCheck?: HealthCheck
  /** Added. */
  readonly accessControl?: AccessControl
  /** Added: the degrade switch. */
  readonly degrade?: Degrade
  /** Added: how tokens are verified. */
  readonly authentication?: Authentication
  /** Added: what happens to lists without a limit of what is large. Default: nothing. */
  readonly listGuard?: ListGuard
  /** Added: how much users have beside others of what the gateway divides. */
  readonly shares?: ClusterShares
  /** Added: whether deletions of pods are checked against PodProtectors. Default: they are not. */
  readonly podProtection?: PodProtection
  /** Added: whether the status of its cluster-autoscaler is followed. Default: it is not. */
  readonly autoscaler?: Autoscaler
  /** Added: whether lowered replicas of workloads are checked against PodProtectors. Default: they are not. */
  readonly scaleProtection?: ScaleProtection
  /** Added: how its kube-controller-manager orders the pods of a scale-down. Default: as Kubernetes 1.31 and later. */
  readonly controllerManager?: ControllerManager
}

export interface UpstreamServer {
  /** `https://host:port` or `http://host:port`; no path. */
  readonly endpoint: string
  /** Takes no new requests; running ones finish. */
  readonly disabled?: boolean
  /** Added: share of requests relative to the other servers, 0 to 1000; with `resolve` of each address. */
  readonly weight?: number
  /** Added: each address that the name in `endpoint` has is an endpoint of its own, and they are followed. */
  readonly resolve?: boolean
}

/** How the gateway connects to the cluster, and its credentials there. */
export interface ClientConfig {
  /** Do not verify the servers' certificates. */
  readonly insecure?: boolean
  readonly bearerToken?: string
  readonly keyData?: string
  readonly certData?: string
  readonly caData?: string
  /** Added: references instead of the inline bytes; at most one of the two for each. */
  readonly bearerTokenRef?: SecretReference
  readonly keyRef?: SecretReference
  readonly certRef?: SecretReference
  readonly caRef?: SecretReference
  /** Limit of the gateway's own calls per second, for each kind apart: token reviews, access reviews, reads of pods; 0 = none. */
  readonly qps?: number
  readonly burst?: number
  readonly qpsDivisor?: number
  /** Name to verify in the servers' certificates. Default: the host of the endpoint. */
  readonly serverName?: string
}

export interface SecureServing {
  readonly keyData?: string
  readonly certData?: string
  readonly clientCAData?: string
  readonly keyRef?: SecretReference
  readonly certRef?: SecretReference
  readonly clientCARef?: SecretReference
  /** Host names besides metadata.name; `*.example.com` covers one label. */
  readonly serverNames?: readonly string[]
}

/** Added: where secret bytes are kept. Exactly one of `file` and `name`. */
export interface SecretReference {
  /** Path of a file; relative to the configuration directory. Only with `--source files`. */
  readonly file?: string
  /** Name of a Secret. */
  readonly name?: string
  readonly namespace?: string
  /** Key in the Secret's data. */
  readonly key?: string
}

export interface FlowControlSchema {
  readonly name: string
  /** Where the limit is kept: '' and local = this gateway; global* = shared by replicas. */
  readonly strategy?: '' | 'local' | 'globalAllocate' | 'globalCount'
  readonly exempt?: Readonly<Record<string, never>>
  readonly maxRequestsInflight?: { readonly max: number }
  readonly tokenBucket?: TokenBucket
  readonly globalMaxRequestsInflight?: { readonly max: number }
  readonly globalTokenBucket?: TokenBucket
  /** Added: each user has a limit of its own. */
  readonly perUser?: boolean
  /** Added: lists count as many times as kube-apiserver would take seats for them. */
  readonly cost?: boolean
  /** Added: watches open at once; 0 or absent = no cap. Allowed with each of the others. */
  readonly maxWatches?: number
  /** Added: count and warn, but let pass. */
  readonly shadow?: boolean
}

export interface TokenBucket {
  /** Requests per second, integer > 0. */
  readonly qps: number
  /** Largest burst, >= qps. */
  readonly burst: number
}

/** Added. Present, even when empty: the size of lists is learned, and those that would be too large are refused. */
export interface ListGuard {
  /** Count and warn, but let pass. */
  readonly shadow?: boolean
  /** Bytes, without compression, of the largest list that is answered to who sets no limit; of all namespaces, or one. */
  readonly maxBytesUnlimited?: number
  /** Lists that pass, whatever they cost. */
  readonly exempt?: readonly DispatchRule[]
}

export type LogMode = 'on' | 'off' | ''

export interface DispatchPolicy {
  readonly strategy?: Strategy
  /** Endpoints (as in spec.servers) that may serve; empty = all. */
  readonly upstreamSubset?: readonly string[]
  /** ORed. At least one. */
  readonly rules: readonly DispatchRule[]
  readonly flowControlSchemaName?: string
  readonly logMode?: LogMode
  /** Added: Deny is 403. */
  readonly action?: 'Forward' | 'Deny'
  /** Added: with action Deny: count and warn, but forward. */
  readonly shadow?: boolean
}

/**
 * All fields must match. `-x` inverts an entry; a list of inverted entries means "none of these"; in a mixed list the
 * inverted entries are ignored. `*` matches all. Empty verbs, apiGroups, resources, nonResourceURLs match nothing;
 * every other empty field matches all.
 */
export interface DispatchRule {
  readonly verbs?: readonly string[]
  readonly apiGroups?: readonly string[]
  /** `pods`, `pods/exec`, `*`/`scale`. */
  readonly resources?: readonly string[]
  readonly resourceNames?: readonly string[]
  /** Trailing `*` is a prefix glob. */
  readonly users?: readonly string[]
  readonly serviceAccounts?: readonly { readonly namespace?: string; readonly name?: string }[]
  readonly userGroups?: readonly string[]
  /** Trailing `*` is a prefix glob. */
  readonly nonResourceURLs?: readonly string[]
  /** Added. Trailing `*` is a prefix glob. '' is a cluster-scoped request. */
  readonly namespaces?: readonly string[]
  /** Added. Trailing `*` is a prefix glob. */
  readonly userAgents?: readonly string[]
}

export interface Addresses {
  /** Destination IPs of the client's connection (VIPs). */
  readonly ips?: readonly string[]
  /** Listener ports. */
  readonly ports?: readonly number[]
}

export interface HealthCheck {
  readonly path?: string
  readonly intervalSeconds?: number
  readonly timeoutSeconds?: number
  /** Consecutive successes until healthy. */
  readonly healthyThreshold?: number
  /** Consecutive failures until unhealthy. */
  readonly unhealthyThreshold?: number
}

/** Who may use the cluster at all. `deny` is checked first; a non-empty `allow` refuses everybody it does not name. */
export interface AccessControl {
  readonly allow?: readonly AccessRule[]
  readonly deny?: readonly AccessRule[]
  /** Count and warn, but let pass. */
  readonly shadow?: boolean
}

/** All fields given must match; inside a field one entry is enough. */
export interface AccessRule {
  /** Shown in the refusal. */
  readonly name?: string
  readonly users?: readonly string[]
  readonly userGroups?: readonly string[]
  readonly userAgents?: readonly string[]
  /** CIDRs or addresses of the client. */
  readonly sourceIPs?: readonly string[]
}

/** What the gateway divides among users, where there is not enough for all. */
export interface ClusterShares {
  /** In order; the first that matches decides. */
  readonly weights?: readonly ShareWeight[]
}

/** All fields given must match; inside a field one entry is enough. */
export interface ShareWeight {
  /** 1 to 100; of everybody else 1. */
  readonly weight: number
  readonly users?: readonly string[]
  readonly userGroups?: readonly string[]
}

/** Of each replica; threads share it. */
export interface DegradeLimit {
  /** Disruptive requests per second when the mode is set. */
  readonly startQPS?: number
  /** And `overSeconds` later. */
  readonly endQPS?: number
  readonly overSeconds?: number
}

export interface Degrade {
  readonly mode?: DegradeMode
  /** Shown in every refusal. */
  readonly reason?: string
  /** RFC 3339. From then on the mode is Off. */
  readonly expiresAt?: string
  /** RFC 3339. When the mode was set: `limited` ramps from there. */
  readonly since?: string
  /** The rate of disruptive requests in mode Limited. */
  readonly limited?: DegradeLimit
  /** Requests that any mode lets through; the reserved lane. */
  readonly exempt?: readonly DispatchRule[]
  /** Count and warn, but let pass. */
  readonly shadow?: boolean
  /** The leader climbs back to Off from here, a mode at a time, and removes this at the end. */
  readonly recovery?: DegradeRecovery
  /** When the gateway itself sets a stricter mode; default: never. */
  readonly auto?: AutoDegrade
}

/** Durations as Go writes them: `60s`, `1m30s`. */
export interface DegradeRecovery {
  /** How long the checks of a mode have to hold until the next one is set. */
  readonly hold?: string
  /** How long Limited takes to let through as much as Off; it is held at least as long. */
  readonly ramp?: string
}

export interface Authentication {
  /** Audiences asked for in a TokenReview; empty = the cluster's own. */
  readonly audiences?: readonly string[]
  /** Seconds that a verified token is remembered; 0 = not. */
  readonly tokenSuccessTTLSeconds?: number
  /** Seconds that a rejected token is remembered; 0 = not. */
  readonly tokenFailureTTLSeconds?: number
  /** Whether requests without credentials are let through as system:anonymous. */
  readonly anonymous?: boolean
  /** Added: who is refused from now on, on connections that are open as well. */
  readonly revoked?: readonly Revocation[]
}

/** Exactly one of `user`, `certificateFingerprint` and `tokenHash`. */
export interface Revocation {
  /** A user name, whichever way the user authenticates. Not an impersonated user. */
  readonly user?: string
  /** SHA-256 of the DER of the client certificate, or of the part of it that is signed; 64 lower-case hex digits. */
  readonly certificateFingerprint?: string
  /**
   * SHA-256 of the bearer token, 64 lower-case hex digits; of a JWT also of its first two parts, `header.payload`, since
   * whoever has the token can write its signature otherwise.
   */
  readonly tokenHash?: string
  readonly reason?: string
  /** RFC 3339. For people: it is in force whatever it says. */
  readonly revokedAt?: string
}
