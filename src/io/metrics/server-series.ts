// Metrics of servers whose names are looked up.

import { SERVER_ADDRESSES, SERVER_LOOKUPS } from './descriptors.ts'
import { Exposition } from './exposition.ts'

export interface ServerSeries {
  readonly cluster: string
  readonly server: string
  readonly addresses: readonly string[]
  /** Look-ups, by what came of them. */
  readonly counts: { readonly found: number; readonly empty: number; readonly error: number }
}

/** In the Prometheus text format; '' when there is none. */
export function serverSeriesText(servers: readonly ServerSeries[]): string {
  const exposition = new Exposition()
  for (const { cluster, server, addresses, counts } of servers) {
    exposition.addMetric(SERVER_ADDRESSES, addresses.length, cluster, server)
    for (const [result, count] of Object.entries(counts)) {
      exposition.addMetric(SERVER_LOOKUPS, count, cluster, server, result)
    }
  }
  return exposition.text()
}
