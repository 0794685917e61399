// Queries and commands of a running gateway, and replaceable parts of a starting one.

import type { ResourceSource } from '../../gateway/api/resource-source.ts'
import type { Logger } from '../../kit/api/ports.ts'
import type { LineWriter } from '../../kit/io/logs/line-writer.ts'
import type { LineSink } from '../../kit/io/logs/recent-lines.ts'
import type { ObjectClient } from '../../kube/api/object-client.ts'
import type { WiredOverrides } from '../wiring/wire.ts'

export interface RunningGateway {
  readonly ports: readonly number[]
  readonly adminPort: number
  /** 0 = not open. */
  readonly healthPort: number
  /** Port of the embedded API server, or of the webhook; 0 = none. */
  readonly controlPort: number
  /** Port of the protection webhook; 0 = not open. */
  readonly webhookPort: number
  /** Credentials of the embedded API server's first administrator; '' = none. */
  readonly adminKubeconfig: string
  /** The client that writes statuses; undefined if objects are files. */
  readonly objects: ObjectClient | undefined
  /**
   * Readyz fails; after --shutdown-delay the drain: GOAWAY, running requests finish, watches end one by one. Each further call skips to the next
   * step: from the delay to the drain, and then to aborting what is running.
   */
  stop(): Promise<void>
  /** Resolves when every gateway thread has put in force what the source has delivered. */
  applied(): Promise<void>
  /** Resolves when this many UpstreamClusters are in force in every thread, and their endpoints have been probed once. */
  inForce(clusters: number): Promise<void>
  /** Kills a gateway thread, like a crash: for tests of the others. */
  crashThread(thread: number): Promise<void>
}

/** Replacements for the usual parts. */
export interface GatewayOverrides extends WiredOverrides {
  /** Destination of the access log instead of stdout; enables it. */
  readonly access: LineWriter
  /** Destination of the process log instead of stderr. */
  readonly logLines: LineSink
  /** Replaces the process log: it is then missing from support bundles, and its level is fixed. */
  readonly log: Logger
  readonly source: ResourceSource
  /** A single gateway thread, inside this one, regardless of the configuration: for tests. */
  readonly inline: boolean
}
