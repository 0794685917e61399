// Observers of a gateway thread's requests: metrics, logs, and whatever else is enabled. Disabled ones are not in the list, and cost a request
// nothing.

import { createAuditLog } from '../../../audit/io/events/audit-log.ts'
import type { PolicyAudit } from '../../../audit/io/events/policy-audit.ts'
import type { RequestObserver } from '../../../gateway/api/request-observer.ts'
import type { RequestRecord } from '../../../gateway/api/request-record.ts'
import { createAccessLog } from '../../../gateway/io/logs/access-log.ts'
import { DISRUPTION_UNCHECKED, LIMITED, RETRIES } from '../../../gateway/metrics/descriptors.ts'
import type { MetricsRecorder } from '../../../gateway/metrics/recorder.ts'
import type { GatewayEvents } from '../../../gateway/request/exchange/gateway.ts'
import type { ThreadData } from '../messages.ts'
import type { ThreadOutbox } from './outbox.ts'

interface ObserverDeps {
  readonly metrics: MetricsRecorder
  readonly outbox: ThreadOutbox
  readonly data: Pick<ThreadData, 'accessLog' | 'auditLog'>
  /** The audit log under a policy; undefined = every request. */
  readonly policyAudit?: PolicyAudit | undefined
}

/** The request path's events, for all observers. @param others besides metrics and logs, in order */
export function gatewayEvents(deps: ObserverDeps, others: readonly RequestObserver[]): GatewayEvents {
  const { metrics, outbox } = deps
  return {
    ...composeObservers([...ownObservers(deps), ...others]),
    retried: (cluster, cause) => metrics.add(RETRIES, 1, cluster, cause),
    disruptionUnchecked: (cluster) => metrics.add(DISRUPTION_UNCHECKED, 1, cluster),
    limited: (limit, known) => metrics.add(LIMITED, 1, limit, known ? 'true' : 'false'),
    gatewayRefused: (cluster) => outbox.refused(cluster),
    awaitsCheck: (cluster) => outbox.awaitsCheck(cluster),
  }
}

function ownObservers({ metrics, outbox, data, policyAudit }: ObserverDeps): readonly RequestObserver[] {
  const observers: RequestObserver[] = [
    {
      requestStarted: (record) => metrics.requestStarted(record),
      requestEnded: (record) => metrics.observe(record),
    },
  ]
  if (data.accessLog) observers.push({ requestEnded: createAccessLog((line) => outbox.access(line)) })
  if (policyAudit !== undefined) observers.push(policyAudit)
  else if (data.auditLog) {
    const audit = createAuditLog((line) => outbox.audit(line))
    observers.push({
      responseStarted: (record) => audit.responseStarted(record),
      requestEnded: (record) => audit.responseComplete(record),
    })
  }
  return observers
}

/** Combines several observers into one that calls them in order. */
export function composeObservers(observers: readonly RequestObserver[]): Required<RequestObserver> {
  return {
    requestStarted: callAll(observers.flatMap((one) => one.requestStarted?.bind(one) ?? [])),
    requestIdentified: callAll(observers.flatMap((one) => one.requestIdentified?.bind(one) ?? [])),
    responseStarted: callAll(observers.flatMap((one) => one.responseStarted?.bind(one) ?? [])),
    requestEnded: callAll(observers.flatMap((one) => one.requestEnded?.bind(one) ?? [])),
  }
}

type Listener = (record: RequestRecord) => void

/** Unrolled: each call site sees a single function and can be inlined; a loop's call site would see all of them. */
function callAll(listeners: readonly Listener[]): Listener {
  const [a, b, c, d, ...rest] = listeners
  if (a === undefined) return () => undefined
  if (b === undefined) return a
  if (c === undefined) {
    return (record) => {
      a(record)
      b(record)
    }
  }
  if (d === undefined) {
    return (record) => {
      a(record)
      b(record)
      c(record)
    }
  }
  const others = callAll(rest)
  return (record) => {
    a(record)
    b(record)
    c(record)
    d(record)
    others(record)
  }
}
