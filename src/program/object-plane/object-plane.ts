// Storage of the objects: the embedded API server, a cluster, or files, behind one interface.

import type { AdminLogin } from '../../admin/app/access/admin-access.ts'
import type { PostReview } from '../../admin/app/access/review-access.ts'
import type { RevocationCheck } from '../../apiserver/access/revoked-credentials.ts'
import type { CountLimited } from '../../apiserver/http/port-memory.ts'
import type { ResourceSource, SourceChange } from '../../gateway/api/resource-source.ts'
import type { PortAdmission } from '../../gateway/io/listener/connections.ts'
import type { ObjectClient } from '../../kube/api/object-client.ts'
import type { KubeAccess } from '../../kube/io/config-access.ts'
import type { FailureCounts } from '../../process/api/failure-counts.ts'
import type { Component } from '../../process/components/component.ts'

export interface ObjectPlane extends Component {
  readonly source: ResourceSource
  /** undefined = objects are files and have no status. */
  readonly client: ObjectClient | undefined
  /** URL of the client's API server; '' = it is in this process, or there is none. */
  readonly server: string
  /** Port of the embedded API server, or of the webhook; 0 = none, or not open. */
  readonly port: number
  /** Credentials of the embedded API server's first administrator; '' = none. */
  readonly adminKubeconfig: string
  /** Sends a review to the API server that holds the objects; undefined = it is not a cluster's. */
  readonly review: PostReview | undefined
  /** Login to the admin listener through the objects' API server; undefined = none. */
  readonly adminLogin: AdminLogin | undefined
  /** This replica's identity for others: its credential at the objects' API server; undefined = none. */
  readonly peerAccess: (() => Promise<KubeAccess>) | undefined
  /** Credentials revoked for the embedded API server; undefined = none. */
  readonly revoked: RevocationCheck | undefined
  /** Before the start: sets admission at its port, and the counters of failed credentials and limited requests there. */
  guardPort?(admission: PortAdmission, failures: FailureCounts, onLimited: CountLimited): void
  /** Who has set the degrade mode of a cluster on this machine, and when (RFC 3339); undefined = no user has. */
  switchedHere?(cluster: string): { readonly by: string; readonly at: string } | undefined
  /** What the source delivered is in force in all threads. */
  applied?(change: SourceChange): void
  /** Call it once nothing uses the source and the client any more. */
  stop(): Promise<void>
}
