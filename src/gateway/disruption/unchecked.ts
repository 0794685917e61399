// What a request disrupts could not be found out: it passes, is counted, and the log says why.

import type { Decision } from '../exchange/decision.ts'

export function countUnchecked({ exchange }: Decision, reason: string): undefined {
  const { gw, record } = exchange
  gw.events.disruptionUnchecked(record.cluster)
  gw.log.warn('what a request disrupts could not be found out', {
    cluster: record.cluster,
    reason,
    auditId: record.auditId,
  })
}
