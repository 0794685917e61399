// Where the objects are: in the embedded API server, in a cluster, or in files; the three are used alike.

import type { FailureCounts } from '../../apiserver/access/failed-credentials.ts'
import type { RevocationCheck } from '../../apiserver/access/revoked-credentials.ts'
import type { CountLimited } from '../../apiserver/http/port-memory.ts'
import type { ResourceSource, SourceChange } from '../../gateway/api/resource-source.ts'
import type { PortAdmission } from '../../gateway/io/listener/connections.ts'
import type { ObjectClient } from '../../kube/api/object-client.ts'
import type { KubeAccess } from '../../kube/io/config-access.ts'
import type { AdminLogin } from '../../process/access/admin-access.ts'
import type { PostReview } from '../../process/access/review-access.ts'
import type { Component } from '../../process/components/component.ts'

export interface ObjectPlane extends Component {
  readonly source: ResourceSource
  /** undefined = objects are files and have no status. */
  readonly client: ObjectClient | undefined
  /** URL of the API server behind the client; '' = it is in this process, or there is none. */
  readonly server: string
  /** Of the embedded API server, or of the webhook; 0 = there is none, or it is not open. */
  readonly port: number
  /** Credentials of the first administrator of the embedded API server; '' = there is none. */
  readonly adminKubeconfig: string
  /** Sends a review to the API server that holds the objects; undefined = it is not a cluster's. */
  readonly review: PostReview | undefined
  /** How the API server of the objects knows who uses the admin listener; undefined = there is none. */
  readonly adminLogin: AdminLogin | undefined
  /** Who this replica is for others: its credential at the API server of the objects; undefined = it has none. */
  readonly peerAccess: (() => Promise<KubeAccess>) | undefined
  /** The credentials revoked for the embedded API server; undefined = there is none. */
  readonly revoked: RevocationCheck | undefined
  /** Before the start: how clients come in at its port, and where credentials that fail there, and requests that meet a limit, are counted. */
  guardPort?(admission: PortAdmission, failures: FailureCounts, onLimited: CountLimited): void
  /** What the source has delivered is in force in all threads. */
  applied?(change: SourceChange): void
  /** To be called when nothing uses the source and the client any more. */
  stop(): Promise<void>
}
