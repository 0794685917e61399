// What listens to the requests of a gateway thread: metrics and logs, and whatever else is switched on. What is off is not in the list, and
// costs a request nothing.

import type { RequestRecord } from '../../../gateway/api/request-record.ts'
import { createAccessLog } from '../../../gateway/io/logs/access-log.ts'
import {
  DISRUPTION_UNCHECKED,
  GUARDED_WRITES,
  LIMITED,
  RETRIES,
  SCALE_WRITES,
} from '../../../gateway/metrics/descriptors.ts'
import type { MetricsRecorder } from '../../../gateway/metrics/recorder.ts'
import type { GatewayEvents } from '../../../gateway/request/exchange/gateway.ts'
import { createAuditLog } from '../../../insight/io/audit/audit-log.ts'
import type { PolicyAudit } from '../../../insight/io/audit/policy-audit.ts'
import type { ThreadData } from '../messages.ts'
import type { ThreadOutbox } from './outbox.ts'

/** Hears of every request. Called on the request path: no promise, closure or timer, and it must not throw. */
export interface RequestObserver {
  /** Cluster and request info are known; the user is not. */
  requestStarted?(record: RequestRecord): void
  /** The user is known, too; nothing is decided yet. Not called for requests that nobody could be identified for. */
  requestIdentified?(record: RequestRecord): void
  /** The head of the answer goes out. */
  responseStarted?(record: RequestRecord): void
  /** Once for every request, refused or not. The record is not to be kept. */
  requestEnded?(record: RequestRecord): void
}

export interface ObserverDeps {
  readonly metrics: MetricsRecorder
  readonly outbox: ThreadOutbox
  readonly data: Pick<ThreadData, 'accessLog' | 'auditLog'>
  /** The audit log as a policy wants it; undefined = every request. */
  readonly policyAudit?: PolicyAudit | undefined
}

/** The events of a thread's request path, for all who listen. @param others beside metrics and logs, in their order */
export function gatewayEvents(deps: ObserverDeps, others: readonly RequestObserver[]): GatewayEvents {
  const { metrics, outbox } = deps
  return {
    ...composeObservers([...ownObservers(deps), ...others]),
    retried: (cluster, cause) => metrics.add(RETRIES, 1, cluster, cause),
    disruptionUnchecked: (cluster) => metrics.add(DISRUPTION_UNCHECKED, 1, cluster),
    guardedWrite: (cluster, guard, outcome) => metrics.add(GUARDED_WRITES, 1, cluster, guard, outcome),
    scaleWrite: (cluster, outcome, reason) => metrics.add(SCALE_WRITES, 1, cluster, outcome, reason),
    limited: (limit, known) => metrics.add(LIMITED, 1, limit, known ? 'true' : 'false'),
    gatewayRefused: (cluster) => outbox.refused(cluster),
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

/** One observer for several, which are called in their order. */
export function composeObservers(observers: readonly RequestObserver[]): Required<RequestObserver> {
  return {
    requestStarted: callAll(observers.flatMap((one) => one.requestStarted?.bind(one) ?? [])),
    requestIdentified: callAll(observers.flatMap((one) => one.requestIdentified?.bind(one) ?? [])),
    responseStarted: callAll(observers.flatMap((one) => one.responseStarted?.bind(one) ?? [])),
    requestEnded: callAll(observers.flatMap((one) => one.requestEnded?.bind(one) ?? [])),
  }
}

type Listener = (record: RequestRecord) => void

/** Unrolled: each call has a place of its own in the code, which sees one function and can be inlined; in a loop it would see all. */
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
