// The metrics of the gateway: what all threads have counted, and what only the main thread sees.

import type { Clock } from '../../api/ports/ports.ts'
import { WEBHOOK_RESULTS } from '../../io/audit-webhook/audit-webhook.ts'
import { exposeClusters } from '../../io/metrics/cluster-series.ts'
import { AUDIT_WEBHOOK_EVENTS, FLOW_INFLIGHT, LOG_LINES_DROPPED } from '../../io/metrics/descriptors.ts'
import type { ExposeMetrics } from '../../io/metrics/exposition.ts'
import type { GatewayMetrics } from '../../io/metrics/metrics.ts'
import { exposeThreads } from '../../io/metrics/thread-series.ts'
import type { ClusterTable } from '../../state/clusters.ts'
import type { ThreadPool } from '../threads/pool/pool.ts'
import type { Outputs } from './outputs.ts'

export interface ExposeGatewayDeps {
  readonly metrics: GatewayMetrics
  readonly pool: ThreadPool
  readonly clusters: ClusterTable
  readonly outputs: Pick<Outputs, 'access' | 'audit' | 'controlAudit' | 'auditWebhook'>
  readonly clock: Clock
}

export function exposeGateway(deps: ExposeGatewayDeps): ExposeMetrics {
  const { metrics, pool, clusters, outputs, clock } = deps
  const overflows: { cluster: string; schema: string; overflows: number }[] = []
  metrics.beforeScrape(async () => {
    await pool.reports()
    overflows.length = 0
    for (const { compiled, flows } of clusters.values()) {
      for (const flow of flows.describe(clock.monotonic())) {
        // Counts in shared memory: reported by one thread only.
        metrics.recorder.set(FLOW_INFLIGHT, flow.inFlight, compiled.name, flow.schema)
        if (flow.overflows > 0) overflows.push({ cluster: compiled.name, ...flow })
      }
    }
    if (outputs.access !== undefined) metrics.recorder.set(LOG_LINES_DROPPED, outputs.access.dropped(), 'access')
    if (outputs.audit !== undefined) metrics.recorder.set(LOG_LINES_DROPPED, outputs.audit.dropped(), 'audit')
    const counts = outputs.auditWebhook?.writer.counts
    if (counts !== undefined) {
      for (const result of WEBHOOK_RESULTS) metrics.recorder.set(AUDIT_WEBHOOK_EVENTS, counts[result], result)
    }
    const { controlAudit } = outputs
    if (controlAudit !== undefined && controlAudit !== outputs.audit) {
      metrics.recorder.set(LOG_LINES_DROPPED, controlAudit.dropped(), 'control-audit')
    }
  })
  return async (into) => {
    await metrics.expose(into)
    const states = pool.slots.map((slot) => {
      const { index, answers, applied, restarts, busySeconds } = slot
      return { thread: index, answers, generation: applied, restarts, busySeconds, ...pool.loadOf(slot) }
    })
    const inForce = Array.from(clusters.values(), ({ compiled }) => compiled)
    exposeThreads(into, states, overflows)
    exposeClusters(into, inForce, clock.now())
  }
}
