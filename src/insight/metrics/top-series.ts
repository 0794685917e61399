// The top ten users, resources and so on as metrics. The only labels taken from requests: each must be enabled by name (--top-metrics), and is
// limited to ten values.

import type { Exposition } from '../../gateway/metrics/exposition.ts'
import type { TopReport } from '../core/top/report.ts'
import { TOP_BYTES, TOP_REFUSED, TOP_REQUESTS, TOP_UPSTREAM_SECONDS } from './descriptors.ts'

const MAX_NAMES = 10

/** Rates over the period of a report. */
export function exposeTop(into: Exposition, reports: readonly TopReport[]): void {
  for (const { by, rows, seconds } of reports) {
    if (seconds === 0) continue
    for (const { name, requests, refused, bytes, upstreamSeconds } of rows.slice(0, MAX_NAMES)) {
      const label = name.toWellFormed()
      into.addMetric(TOP_REQUESTS, requests / seconds, by, label)
      into.addMetric(TOP_REFUSED, refused / seconds, by, label)
      into.addMetric(TOP_BYTES, bytes / seconds, by, label)
      into.addMetric(TOP_UPSTREAM_SECONDS, upstreamSeconds / seconds, by, label)
    }
  }
}
