// Metrics of servers whose names are resolved.

import { SERVER_ADDRESSES, SERVER_LOOKUPS } from './descriptors.ts'
import type { Exposition } from './exposition.ts'

export interface ServerSeries {
  readonly cluster: string
  readonly server: string
  readonly addresses: readonly string[]
  /** Look-ups by result. */
  readonly counts: { readonly found: number; readonly empty: number; readonly error: number }
}

export function exposeServers(into: Exposition, servers: readonly ServerSeries[]): void {
  for (const { cluster, server, addresses, counts } of servers) {
    into.addMetric(SERVER_ADDRESSES, addresses.length, cluster, server)
    for (const [result, count] of Object.entries(counts)) {
      into.addMetric(SERVER_LOOKUPS, count, cluster, server, result)
    }
  }
}
