// A gateway's observations of an UpstreamCluster, from which its status is derived (cluster-status.ts).

import type { SourceError } from '../../api/resource-source.ts'
import type { AutoscalerReport } from '../../api/upstream-cluster/cluster-autoscaler.ts'
import type { ClockSkew } from '../clocks/cell-clock.ts'
import type { CompiledDegrade } from '../cluster/compiled-cluster.ts'
import type { MembersFact } from './members.ts'

/** An endpoint as seen by the gateway that writes the status. */
export interface EndpointState {
  readonly url: string
  readonly disabled: boolean
  readonly state: 'unknown' | 'healthy' | 'unhealthy'
  /** Takes requests now. */
  readonly available: boolean
  /** Error of the last health check; '' = it succeeded, or there was none. */
  readonly message: string
}

/** A credential in force that does not work. */
export interface CredentialFault {
  /** `spec.clientConfig.certData`. */
  readonly path: string
  readonly reason: 'Expired' | 'NotYetValid' | 'Refused' | 'Forbidden'
  readonly message: string
  /** Requests still pass: other endpoints accept it, or only pod protection needs it. Default false. */
  readonly partial?: boolean
}

/** Result of checking the gateway's rights in the cluster. */
export type RightsFact =
  /** `unasked`: not checked yet. */
  | { readonly kind: 'unasked' | 'granted' }
  /** `unanswered`: repeatedly. The other kinds are listed among the credential faults, too. */
  | { readonly kind: 'rejected' | 'unanswered'; readonly message: string }
  | { readonly kind: 'missing'; readonly message: string }

/** The facts behind the status of one object. */
export interface StatusFacts {
  /** metadata.generation of the current object. */
  readonly generation: number
  /** Its errors and warnings. */
  readonly problems: readonly SourceError[]
  /** metadata.generation that all threads have in force; 0 = none. */
  readonly inForce: number
  /** For the version in force; undefined = no version is in force. */
  readonly degrade: CompiledDegrade | undefined
  readonly endpoints: readonly EndpointState[]
  readonly credentials: readonly CredentialFault[]
  /** Sentences about certificates in force that expire soon. */
  readonly endingSoon: readonly string[]
  /** For the version in force. */
  readonly rights: RightsFact
  /** Whether the version in force names CAs of client certificates; absent = no version is in force. */
  readonly hasClientCA?: boolean | undefined
  /** Skew between the clocks of its API servers and ours; absent if nothing depends on it. */
  readonly clocks?: MeasuredClocks
  /** Features of the version in force that are in shadow mode. */
  readonly shadows: readonly string[]
  /** For the version in force; undefined = it shares no limit. */
  readonly limits: LimitsFact | undefined
  /** For the version in force; undefined = its pods are not protected. */
  readonly protection: ProtectionFact | undefined
  /** Resources of spec.cache in the version in force: `pods`, `deployments.apps`; absent = none. */
  readonly cache?: readonly string[] | undefined
  /** Clusters that are read as this one; absent = it has servers. */
  readonly members?: MembersFact | undefined
  /** Servers whose names are resolved; absent = none. */
  readonly servers?: readonly ServerFact[] | undefined
  /** Issuers of tokens; absent = none. */
  readonly issuers?: readonly IssuerFact[] | undefined
  /** Absent = the cluster-autoscaler is not watched. */
  readonly autoscaler?: AutoscalerFact | undefined
}

/** A server whose name is resolved. */
export interface ServerFact {
  /** As written in spec.servers. */
  readonly server: string
  /** Empty = none known yet. */
  readonly addresses: readonly string[]
  /** Number of further addresses left out. */
  readonly omitted: number
  /** Why the last lookup failed; '' = it did not, or there was none. */
  readonly message: string
}

/** An issuer whose tokens the gateway verifies. */
export interface IssuerFact {
  /** As written in spec.authentication.jwt. */
  readonly issuer: string
  /** Number of its keys in use. */
  readonly keys: number
  /** It has answered, or failed to, at least once. */
  readonly asked: boolean
  /** Why its keys could not be read the last time; '' = they could, or it was not asked yet. */
  readonly message: string
}

/** Observations of the ConfigMap that a cluster-autoscaler writes. */
export interface AutoscalerFact {
  /** `kube-system/cluster-autoscaler-status`. */
  readonly where: string
  /**
   * `pending`: not read yet, or it is unclear whether it is still being written. `stale`: not written for `staleAfterMs`. `unreadable`: it
   * contains no status.
   */
  readonly seen: 'pending' | 'current' | 'stale' | 'missing' | 'unreadable' | 'unreachable'
  /** Why it is unreadable or unreachable; '' = it is neither. */
  readonly message: string
  /** `Running`, `Initializing`; '' = unknown. */
  readonly state: string
  /** The last readable one; undefined = none, or there is no ConfigMap. */
  readonly report: AutoscalerReport | undefined
  /** Its own timestamp, milliseconds since the epoch; 0 = unknown. */
  readonly writtenAtMs: number
  readonly staleAfterMs: number
}

export interface MeasuredClocks {
  /** undefined = not measured yet. */
  readonly skew: ClockSkew | undefined
  /** A larger skew is reported, milliseconds. */
  readonly toleratedMs: number
}

export interface LimitsFact {
  /** A Redis is configured. */
  readonly redis: boolean
  /** The fault; '' = none. */
  readonly message: string
}

export interface ProtectionFact {
  readonly cell: string
  /** Nothing is refused. */
  readonly shadow: boolean
  /** The gateway counts the pods, not another aggregator. */
  readonly counted: boolean
  /** Required rights that are missing; '' = none. */
  readonly missingRights: string
}
