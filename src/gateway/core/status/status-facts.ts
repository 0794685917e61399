// What a gateway has observed of an UpstreamCluster: the facts that its status is concluded from (cluster-status.ts).

import type { ClockSkew } from '../../../protection/core/clocks/cell-clock.ts'
import type { SourceError } from '../../api/resource-source.ts'
import type { AutoscalerReport } from '../../api/upstream-cluster/cluster-autoscaler.ts'
import type { CompiledDegrade } from '../cluster/compiled-cluster.ts'

/** An endpoint as the gateway that writes the status sees it. */
export interface EndpointState {
  readonly url: string
  readonly disabled: boolean
  readonly state: 'unknown' | 'healthy' | 'unhealthy'
  /** Takes requests now. */
  readonly available: boolean
  /** Error of the last health check; '' when it succeeded, or there was none. */
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

/** What the check of the gateway's rights in the cluster found. */
export type RightsFact =
  /** `unasked`: not checked yet. */
  | { readonly kind: 'unasked' | 'granted' }
  /** `unanswered`: repeatedly. The other kinds are among the credential faults, too. */
  | { readonly kind: 'rejected' | 'unanswered'; readonly message: string }
  | { readonly kind: 'missing'; readonly message: string }

/** The facts behind the status of one object. */
export interface StatusFacts {
  /** metadata.generation of the object as it is. */
  readonly generation: number
  /** Errors and warnings about it. */
  readonly problems: readonly SourceError[]
  /** metadata.generation of the version that all threads have in force; 0 = none. */
  readonly inForce: number
  /** Of the version in force; undefined = none is. */
  readonly degrade: CompiledDegrade | undefined
  readonly endpoints: readonly EndpointState[]
  readonly credentials: readonly CredentialFault[]
  /** Sentences about certificates in force that expire soon. */
  readonly endingSoon: readonly string[]
  /** Of the version in force. */
  readonly rights: RightsFact
  /** Of the version in force: whether it names CAs of client certificates; absent = none is in force. */
  readonly hasClientCA?: boolean | undefined
  /** Skew between the clocks of its API servers and ours; absent where nothing depends on it. */
  readonly clocks?: MeasuredClocks
  /** Of the version in force: what is in shadow mode. */
  readonly shadows: readonly string[]
  /** Of the version in force; undefined = it shares no limit. */
  readonly limits: LimitsFact | undefined
  /** Of the version in force; undefined = its pods are not protected. */
  readonly protection: ProtectionFact | undefined
  /** Servers whose names are looked up; absent = there is none. */
  readonly servers?: readonly ServerFact[] | undefined
  /** Absent = nobody follows the cluster-autoscaler. */
  readonly autoscaler?: AutoscalerFact | undefined
}

/** A server whose name is looked up. */
export interface ServerFact {
  /** As written in spec.servers. */
  readonly server: string
  /** Empty = none is known yet. */
  readonly addresses: readonly string[]
  /** How many more the name has, which are left out. */
  readonly omitted: number
  /** Why the last look-up has failed; '' = it has not, or there was none. */
  readonly message: string
}

/** What has been seen of the ConfigMap that a cluster-autoscaler writes. */
export interface AutoscalerFact {
  /** `kube-system/cluster-autoscaler-status`. */
  readonly where: string
  /**
   * `pending`: not read yet, or it is not known yet whether somebody still writes it. `stale`: nobody has written it for
   * `staleAfterMs`. `unreadable`: it holds no status.
   */
  readonly seen: 'pending' | 'current' | 'stale' | 'missing' | 'unreadable' | 'unreachable'
  /** Why it is unreadable or unreachable; '' = it is not. */
  readonly message: string
  /** `Running`, `Initializing`; '' = not told. */
  readonly state: string
  /** The last one that could be read; undefined = none, or there is no ConfigMap. */
  readonly report: AutoscalerReport | undefined
  /** When it says that it was written, milliseconds since the epoch; 0 = not told. */
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
  /** What is wrong; '' = nothing. */
  readonly message: string
}

export interface ProtectionFact {
  readonly cell: string
  /** Nothing is refused. */
  readonly shadow: boolean
  /** The gateway counts the pods, not another aggregator. */
  readonly counted: boolean
  /** The rights that it needs and lacks; '' = none. */
  readonly missingRights: string
}
