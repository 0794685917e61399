// What the request path reads: an UpstreamCluster, compiled once per change into immutable plain data that can be posted to a thread.

import type { Complete } from '../../../kit/api/json/json-schema.ts'
import type { LabelSelector } from '../../../kit/api/validation/label-selector-schema.ts'
import type { CompiledCidr } from '../../../kit/core/dial/cidr.ts'
import type { IssuerRules } from '../../../pki/core/id-tokens/issuer-rules.ts'
import type { PortForwardRecording } from '../../api/upstream-cluster/audit-schema.ts'
import type { ControllerManager } from '../../api/upstream-cluster/controller-manager.ts'
import type { DegradeMode } from '../../api/upstream-cluster/degrade-modes.ts'
import type { Strategy } from '../../api/upstream-cluster/strategies.ts'
import type { LogMode } from '../../api/upstream-cluster/upstream-cluster.ts'
import type { AutoDegradeOptions } from './compiled-auto-degrade.ts'

/** One list of a rule, with `-x` semantics resolved at compile time. */
export interface CompiledList {
  /** 'all' matches everything, 'none' nothing, 'any-of' one of the entries, 'none-of' anything but the entries. */
  readonly kind: 'all' | 'none' | 'any-of' | 'none-of'
  readonly exact: ReadonlySet<string>
  /** Prefixes of globs, without the star. */
  readonly prefixes: readonly string[]
  /** For resources: subresources of entries like `*`/`scale`. */
  readonly subresources: ReadonlySet<string>
  /** Matched in spite of 'none-of': service accounts next to inverted users. */
  readonly except?: ReadonlySet<string>
}

export interface CompiledRule {
  readonly verbs: CompiledList
  readonly apiGroups: CompiledList
  readonly resources: CompiledList
  readonly resourceNames: CompiledList
  /** users and serviceAccounts are ORed: service accounts are included by their full user names. */
  readonly users: CompiledList
  readonly userGroups: CompiledList
  readonly nonResourceURLs: CompiledList
  readonly namespaces: CompiledList
  readonly userAgents: CompiledList
}

export interface CompiledPolicy {
  readonly index: number
  readonly rules: readonly CompiledRule[]
  readonly strategy: Strategy
  /** Indexes into `endpoints`, in the order of the subset; all endpoints if the policy names none. */
  readonly endpoints: readonly number[]
  /** Index into `schemas`; -1 = exempt. */
  readonly schema: number
  readonly logMode: LogMode
  readonly deny: boolean
  readonly shadow: boolean
}

export interface CompiledEndpoint {
  /** As written in spec.servers, or with the address in place of the name; identifies the endpoint everywhere. */
  readonly url: string
  readonly scheme: 'http' | 'https'
  readonly host: string
  readonly port: number
  readonly disabled: boolean
  readonly weight: number
  /** The server it is an address of, if addresses are followed. Default: it is the server itself. */
  readonly of?: FollowedServer
  /** Other servers that currently have the same address. */
  readonly also?: readonly FollowedServer[]
  /** Takes requests only while no primary endpoint does. Default false. */
  readonly backup?: boolean
}

/** A server each of whose addresses is an endpoint. */
export interface FollowedServer {
  /** As written in spec.servers. */
  readonly url: string
  /** Its DNS name, which its certificates must carry. */
  readonly name: string
  /** The addresses come from the cluster's EndpointSlice, not from DNS. Default false. */
  readonly slice?: boolean
}

export interface CompiledSchema {
  readonly name: string
  readonly kind: 'exempt' | 'tokenBucket' | 'maxRequestsInflight'
  /** tokenBucket: requests per second and burst. */
  readonly qps: number
  readonly burst: number
  /** maxRequestsInflight: 0 refuses everything. */
  readonly max: number
  readonly perUser: boolean
  /** Lists count by their seats. */
  readonly cost: boolean
  /** 0 = no cap. */
  readonly maxWatches: number
  readonly shadow: boolean
  /** As declared: '', local, globalAllocate, globalCount. The two global ones are equivalent here. */
  readonly strategy: string
  /** The limit over all replicas, in addition to the local one; undefined = not shared. */
  readonly shared: CompiledSharedLimit | undefined
}

/** Depends on the kind of the schema: requests per second and burst, or concurrent requests. */
export interface CompiledSharedLimit {
  readonly qps: number
  readonly burst: number
  readonly max: number
}

export interface CompiledAccessRule {
  readonly name: string
  readonly users: CompiledList
  readonly userGroups: CompiledList
  readonly userAgents: CompiledList
  /** Empty = any address. */
  readonly sources: readonly CompiledCidr[]
}

export interface CompiledAccess {
  readonly allow: readonly CompiledAccessRule[]
  readonly deny: readonly CompiledAccessRule[]
  readonly shadow: boolean
}

/** A rate that grows over time. */
export interface Ramp {
  /** Requests per second at `sinceMs`, growing ... */
  readonly startQps: number
  /** ... to this, `overMs` later. */
  readonly endQps: number
  readonly overMs: number
  /** Milliseconds since the epoch; 0 = unknown: the rate stays at `startQps`. */
  readonly sinceMs: number
}

export interface CompiledDegrade {
  readonly mode: DegradeMode
  readonly reason: string
  /** Milliseconds since the epoch; 0 = never. */
  readonly expiresAtMs: number
  /** As written, for messages. */
  readonly expiresAt: string
  readonly exempt: readonly CompiledRule[]
  readonly shadow: boolean
  /** Mode NoDisruption or Limited: disruptive requests are refused or throttled. */
  readonly guardsDisruption: boolean
  /** spec.degrade.limited. */
  readonly limited: Ramp
  /** The ramp of mode Limited: the same, except that a recovery by the leader sets its duration. */
  readonly ramp: Ramp
  /** undefined = the mode changes only by hand. */
  readonly recovery: CompiledRecovery | undefined
  /** undefined = the mode is set only by hand. */
  readonly auto: AutoDegradeOptions | undefined
  /** Automatic degrade or recovery is on: upstream answers are counted, and the leader watches the nodes. */
  readonly observed: boolean
}

export interface CompiledRecovery {
  readonly holdMs: number
  readonly rampMs: number
}

export interface CompiledCluster {
  readonly name: string
  /** metadata.labels, for choosing and grouping clusters. */
  readonly labels: Readonly<Record<string, string>>
  readonly revision: string
  /** Lower-case: metadata.name and serverNames, wildcards as `*.example.com`. */
  readonly hosts: readonly string[]
  readonly ips: readonly string[]
  readonly ports: readonly number[]
  readonly isDefault: boolean
  readonly endpoints: readonly CompiledEndpoint[]
  /** Its API servers are found through its own EndpointSlice. */
  readonly followsSlice: boolean
  readonly client: CompiledClient
  /** PEM; '' when absent. */
  readonly serving: { readonly key: string; readonly cert: string; readonly clientCA: string }
  readonly schemas: readonly CompiledSchema[]
  readonly policies: readonly CompiledPolicy[]
  readonly logMode: LogMode
  readonly healthCheck: CompiledHealthCheck
  readonly access: CompiledAccess | undefined
  readonly degrade: CompiledDegrade
  readonly authentication: CompiledAuthentication
  /** undefined = no list is refused for its size. */
  readonly listGuard: CompiledListGuard | undefined
  /** List sizes matter: for the guard, or for a limit with `cost`. */
  readonly learnsLists: boolean
  /** In order; the first match decides. */
  readonly weights: readonly CompiledWeight[]
  /** undefined = deletions of its pods are not evaluated. */
  readonly protection: CompiledProtection | undefined
  /** undefined = its cluster-autoscaler's status is not followed. */
  readonly autoscaler: CompiledAutoscaler | undefined
  /** undefined = lowered replicas are not checked. */
  readonly scaleProtection: CompiledScaleProtection | undefined
  /** Resources that the read cache answers; undefined = none. */
  readonly cache: readonly CompiledCachedResource[] | undefined
  /** Clusters that are read as this one, which has no endpoints then; undefined = it is one itself. */
  readonly federation: CompiledFederation | undefined
  /** undefined = sessions are not recorded. */
  readonly sessionRecording: CompiledSessionRecording | undefined
  /** How its kube-controller-manager orders the pods of a scale-down. */
  readonly controllerManager: Complete<ControllerManager>
  /** Feature gate CloseConnectionWhenIdle. */
  readonly closeWhenIdle: boolean
}

/** An entry of spec.shares.weights. */
export interface CompiledWeight {
  readonly weight: number
  readonly users: CompiledList
  readonly userGroups: CompiledList
}

/** PEM and token, decoded; '' when absent. */
export interface CompiledClient {
  readonly insecure: boolean
  readonly bearerToken: string
  readonly key: string
  readonly cert: string
  readonly ca: string
  readonly serverName: string
  /** For the gateway's own calls, divisor applied; 0 = no limit. */
  readonly qps: number
  readonly burst: number
}

export interface CompiledHealthCheck {
  readonly path: string
  readonly intervalMs: number
  readonly timeoutMs: number
  readonly healthyThreshold: number
  readonly unhealthyThreshold: number
}

export interface CompiledAuthentication {
  readonly audiences: readonly string[]
  readonly successTtlMs: number
  readonly failureTtlMs: number
  readonly anonymous: boolean
  /** Issuers whose tokens the gateway verifies itself. */
  readonly issuers: readonly CompiledIssuer[]
  /** undefined = no revocations. */
  readonly revoked: CompiledRevocation | undefined
}

/** An entry of spec.authentication.jwt. */
export interface CompiledIssuer {
  readonly rules: IssuerRules
  /** Where its keys come from: those of equal sources are read once for all clusters. */
  readonly keys: string
  /** '' = where the issuer's URL says. */
  readonly discoveryUrl: string
  /** PEM; '' = the CAs that the machine trusts. */
  readonly ca: string
  /** It tells the gateway of logouts. Default false. */
  readonly endsSessions?: boolean
}

/** spec.listGuard. */
export interface CompiledListGuard {
  readonly shadow: boolean
  readonly maxBytesUnlimited: number
  readonly exempt: readonly CompiledRule[]
}

/** The revoked users and credentials. Hashes are SHA-256, lower-case hex. */
export interface CompiledRevocation {
  readonly users: ReadonlySet<string>
  readonly certificates: ReadonlySet<string>
  readonly tokens: ReadonlySet<string>
}

/** spec.podProtection: plain data without secrets, posted to threads. */
export interface CompiledProtection {
  /** Name of the cluster in the status of PodProtectors. Never ''. */
  readonly cell: string
  /** Deletions are evaluated, counted and recorded, but never refused. */
  readonly shadow: boolean
  /** What happens to a deletion that could not be evaluated. */
  readonly failurePolicy: 'Fail' | 'Ignore'
  /** How long a deletion waits for its verdict. */
  readonly timeoutMs: number
  /** Pods in these namespaces are not protected. */
  readonly excludedNamespaces: ReadonlySet<string>
  /** Only pods with these labels are guarded; undefined = all. */
  readonly objectSelector: LabelSelector | undefined
  readonly aggregation: CompiledAggregation
}

/** spec.autoscaler. */
export interface CompiledAutoscaler {
  /** The namespace of the status ConfigMap. */
  readonly namespace: string
  readonly name: string
  readonly staleAfterMs: number
}

/** spec.scaleProtection: plain data, posted to threads. */
export interface CompiledScaleProtection {
  /** Lowered replicas are evaluated and counted, but never refused. */
  readonly shadow: boolean
  /** What happens to a lowered replica count that could not be evaluated. */
  readonly failurePolicy: 'Fail' | 'Ignore'
  /** Workloads in these namespaces are not checked. */
  readonly excludedNamespaces: ReadonlySet<string>
  /** Only workloads with these labels are checked; undefined = all. */
  readonly objectSelector: LabelSelector | undefined
}

/** spec.audit.sessions. */
export interface CompiledSessionRecording {
  /** Whether what users type is recorded, too. */
  readonly input: boolean
  readonly portForwards: PortForwardRecording
  /** Whether there is no session without its recording. */
  readonly isRequired: boolean
}

/** An entry of spec.cache: plain data, posted to threads. */
export interface CompiledCachedResource {
  /** '' = the core group. */
  readonly group: string
  readonly version: string
  readonly resource: string
  /** '' = all, by one watch; else one watch for each. Never empty. */
  readonly namespaces: readonly string[]
  /** Never empty. */
  readonly encodings: readonly ('json' | 'protobuf')[]
  readonly maxBytes: number
  readonly maxStalenessMs: number
}

/** spec.members and spec.federation: plain data, posted to threads. */
export interface CompiledFederation {
  /** In the order of the object. Never empty. */
  readonly members: readonly CompiledMember[]
  readonly mode: 'prefixed' | 'merged'
  readonly resources: readonly CompiledFederatedResource[]
  /** While a member has not been read, the others are answered; otherwise 503. */
  readonly omitsUnread: boolean
  /** Where the user may not read in a member, the others are answered; otherwise 403. */
  readonly omitsDenied: boolean
}

export interface CompiledMember {
  readonly name: string
  /** The UpstreamCluster that it is. */
  readonly cluster: string
  readonly trustsUsers: boolean
}

export interface CompiledFederatedResource {
  /** '' = the core group. */
  readonly group: string
  readonly version: string
  readonly resource: string
  /** Two members have no object of one name, so that it may be watched with mode merged. */
  readonly uniqueNames: boolean
}

export interface CompiledAggregation {
  /** Whether this process counts the pods of the cell. */
  readonly enabled: boolean
  /** How the sync time (up to which all pods have been seen) is determined. */
  readonly syncTime: 'ResourceVersion' | 'Clock' | 'Status' | 'Annotation'
  /** Annotation on pods, RFC 3339; '' unless syncTime is Annotation. */
  readonly syncTimeAnnotation: string
  /** Only these pods are listed and counted; undefined = all. */
  readonly podSelector: LabelSelector | undefined
  /** A pod updated every `intervalMs`, so that an idle cell still sends events; undefined = none. */
  readonly updateTrigger: { readonly namespace: string; readonly name: string; readonly intervalMs: number } | undefined
}

/**
 * Whether a cluster with members still hands requests of its users over to one of them.
 * @param cluster as it is now; undefined = it is gone
 * @param member the UpstreamCluster
 */
export function handsOver(cluster: CompiledCluster | undefined, member: string): boolean {
  return cluster?.federation?.members.some((one) => one.cluster === member && one.trustsUsers) === true
}
