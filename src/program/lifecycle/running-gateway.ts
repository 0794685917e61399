// What a gateway that runs can be asked and told, and what may be replaced in one that starts.

import type { ResourceSource } from '../../gateway/api/resource-source.ts'
import type { Logger } from '../../kit/api/ports.ts'
import type { LineWriter } from '../../kit/io/logs/line-writer.ts'
import type { LineSink } from '../../kit/io/logs/recent-lines.ts'
import type { ObjectClient } from '../../kube/api/object-client.ts'
import type { WiredOverrides } from '../wiring/wire.ts'

export interface RunningGateway {
  readonly ports: readonly number[]
  readonly adminPort: number
  /** 0 = it is not open. */
  readonly healthPort: number
  /** Of the embedded API server, or of the webhook; 0 = there is none. */
  readonly controlPort: number
  /** Of the protection webhook; 0 = it is not open. */
  readonly webhookPort: number
  /** Credentials of the first administrator of the embedded API server; '' = there is none. */
  readonly adminKubeconfig: string
  /** The client that writes statuses; undefined where objects are files. */
  readonly objects: ObjectClient | undefined
  /**
   * Readyz fails; after --shutdown-delay the drain: GOAWAY, running requests finish, watches end one after the other.
   * Each further call goes on to the next step at once: from the delay to the drain, and from that to aborting what runs.
   */
  stop(): Promise<void>
  /** Resolves when every gateway thread has put in force what the source has delivered. */
  applied(): Promise<void>
  /** Resolves when this many UpstreamClusters are in force in every thread, and their endpoints have been probed once. */
  inForce(clusters: number): Promise<void>
  /** Ends a gateway thread at once, as a crash would: for tests of what the others do. */
  crashThread(thread: number): Promise<void>
}

/** Replacements for the usual parts. */
export interface GatewayOverrides extends WiredOverrides {
  /** Where the access log goes instead of stdout; switches it on. */
  readonly access: LineWriter
  /** Where the process log goes instead of stderr. */
  readonly logLines: LineSink
  /** Replaces the process log: nothing of it is in a support bundle, and its level does not change. */
  readonly log: Logger
  readonly source: ResourceSource
  /** One gateway thread, inside this one, regardless of the configuration: for tests. */
  readonly inline: boolean
}
