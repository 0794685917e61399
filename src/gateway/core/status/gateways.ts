// status.gateways[]: one entry per replica, written only by that replica; and its Lease, which proves that it is alive. The leader removes
// entries of dead replicas.

import type { JsonObject } from '../../../kit/api/json/json-object.ts'
import { OWN_NAMESPACE } from '../../../kube/api/own-names.ts'
import type { GatewayStatus, UpstreamClusterStatus } from '../../api/upstream-cluster/status.ts'

/** Namespaces for the Leases of replicas; `default` if the first does not exist. */
export const REPLICA_NAMESPACES: readonly [string, string] = [OWN_NAMESPACE, 'default']
/** Lease of the replica that writes what concerns all; in a namespace that every API server has. */
export const LEADER_LEASE: { readonly namespace: string; readonly name: string } = {
  namespace: 'default',
  name: 'portcullis-leader',
}
/** A replica that has not renewed its Lease for this long is considered dead. */
export const REPLICA_LEASE_SECONDS = 30
export const REPLICA_LABEL_SELECTOR = 'app.kubernetes.io/component=portcullis-replica'
const REPLICA_LABELS = { 'app.kubernetes.io/component': 'portcullis-replica' }
const ADMIN_ADDRESS = 'portcullis.io/admin-address'
const LEASE_PREFIX = 'portcullis-replica-'
/** Names of objects are DNS subdomains of at most 253 characters. */
const MAX_NAME = 253

/** Sets this replica's entry; the others are kept, sorted by name. */
export function withGateway(status: UpstreamClusterStatus | undefined, own: GatewayStatus): UpstreamClusterStatus {
  const others = (status?.gateways ?? []).filter(({ name }) => name !== own.name)
  const gateways = [...others, own].sort((a, b) => (a.name < b.name ? -1 : 1))
  return { ...status, gateways }
}

/** Drops the entries of dead replicas. */
export function withoutGone(
  status: UpstreamClusterStatus,
  isGone: (replica: string) => boolean,
): UpstreamClusterStatus {
  const { gateways } = status
  return gateways === undefined ? status : { ...status, gateways: gateways.filter(({ name }) => !isGone(name)) }
}

/** This replica's entry: `appliedAt` stays while the generation is the same. */
export function gatewayEntry(
  before: UpstreamClusterStatus | undefined,
  own: Omit<GatewayStatus, 'appliedAt'>,
  appliedAt: string,
): GatewayStatus {
  const known = before?.gateways?.find(({ name }) => name === own.name)
  const same = known?.observedGeneration === own.observedGeneration && known.appliedAt !== undefined
  return { ...own, appliedAt: same ? known.appliedAt : appliedAt }
}

/** Name of a replica's Lease. */
export function replicaLeaseName(replica: string): string {
  const labels = replica
    .toLowerCase()
    .slice(0, MAX_NAME - LEASE_PREFIX.length)
    .split('.')
  const plain = labels.map((label) => label.replace(/[^a-z0-9]+/g, '-').replace(/^-|-$/g, ''))
  return `${LEASE_PREFIX}${plain.filter((label) => label !== '').join('.')}`
}

/**
 * @param now RFC 3339 with microseconds, as metav1.MicroTime
 * @param adminAddress where other replicas reach its admin listener; '' = nowhere
 */
export function replicaLease(replica: string, namespace: string, now: string, adminAddress = ''): JsonObject {
  const annotations = adminAddress === '' ? {} : { annotations: { [ADMIN_ADDRESS]: adminAddress } }
  return {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { name: replicaLeaseName(replica), namespace, labels: REPLICA_LABELS, ...annotations },
    spec: {
      holderIdentity: replica,
      leaseDurationSeconds: REPLICA_LEASE_SECONDS,
      acquireTime: now,
      renewTime: now,
    },
  }
}

/** A replica, as described by its Lease. */
interface ReplicaLease {
  readonly replica: string
  readonly renewTime: string
  readonly durationMs: number
  /** Where other replicas reach its admin listener; '' = nowhere. */
  readonly adminAddress: string
}

/** undefined = not a Lease of a replica. */
export function readReplicaLease(object: JsonObject): ReplicaLease | undefined {
  const { spec, metadata } = object
  const name = field(metadata, 'name')
  const replica = field(spec, 'holderIdentity')
  if (typeof name !== 'string' || !name.startsWith(LEASE_PREFIX)) return undefined
  if (typeof replica !== 'string' || replica === '') return undefined
  const renewTime = field(spec, 'renewTime')
  const seconds = field(spec, 'leaseDurationSeconds')
  const adminAddress = field(field(metadata, 'annotations'), ADMIN_ADDRESS)
  return {
    replica,
    adminAddress: typeof adminAddress === 'string' ? adminAddress : '',
    renewTime: typeof renewTime === 'string' ? renewTime : '',
    durationMs: (typeof seconds === 'number' ? seconds : REPLICA_LEASE_SECONDS) * 1000,
  }
}

function field(value: unknown, key: string): unknown {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, key) ? Reflect.get(value, key) : undefined
}
