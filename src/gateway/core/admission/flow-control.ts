// The policy's flow control schema: token bucket, requests in flight, open watches. What it takes is released at the end of the request
// (held.ts).

import { type Refusal, type RefusalCause, type RefusalReason, refuse } from '../../../kit/core/refusal/refusal.ts'
import type { ListRequest } from '../../api/list-request.ts'
import type { CompiledSchema } from '../cluster/compiled-cluster.ts'
import { refund, retryAfterSeconds, seatsTaken } from '../limits/flow-control.ts'
import { refusedByAll } from '../limits/global-fill.ts'
import { isExempt, isNodeHeartbeat } from '../policy/degrade.ts'
import {
  comeBackText,
  tooManyInFlightMessage,
  tooManyRequestsMessage,
  tooManyWatchesMessage,
} from '../policy/traffic-messages.ts'
import type { Admission, Filter } from './filter.ts'

const WATCH_RETRY_SECONDS = 1
const SHARED_RETRY_SECONDS = 1

export const flowControl: Filter<Admission> = {
  shadow: ({ cluster, policy }) => cluster.schemas[policy.schema]?.shadow ?? false,
  check,
}

function check(admission: Admission): Refusal | undefined {
  const { cluster, limits, policy, user, isWatch, list, held } = admission
  // Run again because an earlier filter was rerun: it already holds its slot or token.
  if (held !== undefined) return undefined
  const { monotonicMs } = admission.moment
  const schema = cluster.schemas[policy.schema]
  if (schema === undefined || (schema.kind === 'exempt' && schema.maxWatches === 0)) return undefined
  const seats = list === undefined || !schema.cost ? 1 : seatsOfList(admission, schema, list)
  const counter = limits.tryAcquire(schema, user.name, monotonicMs, seats)
  if (counter === undefined) return isReserved(admission, schema) ? undefined : refuseOver(admission, schema, seats)
  const inFlight = schema.kind === 'maxRequestsInflight'
  const watch = isWatch && schema.maxWatches > 0
  const counted = watch ? limits.tryOpenWatch(schema, counter, user.name, monotonicMs) : counter
  if (counted === undefined) {
    refund(schema, counter, seats)
    if (isReserved(admission, schema)) return undefined
    const message = tooManyWatchesMessage(cluster.name, schema)
    return refuseFor('too-many-watches', message, admission, schema, WATCH_RETRY_SECONDS)
  }
  const token = schema.kind === 'tokenBucket'
  if (inFlight || token || watch) admission.held = { schema, counter: counted, seats, inFlight, token, watch }
  return undefined
}

function seatsOfList({ limits, user, moment }: Admission, schema: CompiledSchema, list: ListRequest): number {
  list.charged = true
  return list.seats === 1 ? 1 : seatsTaken(schema, limits.counterFor(schema, user.name, moment.monotonicMs), list.seats)
}

/**
 * Whether the request passes although the limit is reached, so that operators and what keeps a cluster alive never wait. Called only then.
 * A limit of 0 refuses everyone permanently.
 */
function isReserved(admission: Admission, schema: CompiledSchema): boolean {
  const { cluster, limits, info, user, userAgent, moment } = admission
  if (schema.kind === 'maxRequestsInflight' && schema.max === 0) return false
  admission.reserved =
    isExempt(cluster.degrade, info, user, userAgent) ||
    (isNodeHeartbeat(info, user) && limits.tryHeartbeat(user.name, moment.monotonicMs))
  return admission.reserved
}

function refuseOver(admission: Admission, schema: CompiledSchema, seats: number): Refusal {
  const { cluster, limits, user } = admission
  const { monotonicMs } = admission.moment
  const counter = limits.counterFor(schema, user.name, monotonicMs)
  const byAll = refusedByAll(schema, counter, seats)
  // It is unknown here when the replicas leave the next token or slot to this one.
  const seconds = byAll ? SHARED_RETRY_SECONDS : retryAfterSeconds(schema, counter, monotonicMs, seats)
  if (schema.kind === 'tokenBucket')
    return refuseFor(
      'rate-limited',
      tooManyRequestsMessage(cluster.name, schema, byAll, seats),
      admission,
      schema,
      seconds,
    )
  const message = tooManyInFlightMessage(cluster.name, schema, byAll, seats)
  return refuseFor('too-many-in-flight', message, admission, schema, seconds)
}

function refuseFor(
  reason: RefusalReason,
  message: string,
  { policy, info }: Admission,
  schema: CompiledSchema,
  seconds: number,
): Refusal {
  // Events are dropped rather than retried, and a limit of 0 refuses permanently.
  const refusesAlways = schema.kind === 'maxRequestsInflight' && schema.max === 0
  const whole = info.resource === 'events' || refusesAlways ? message : `${message}${comeBackText(seconds)}`
  const causes = causesOf(schema, policy.schema)
  return refuse(reason, whole, { rule: schema.name, causes, retryAfterSeconds: seconds })
}

/** Which limit it was, for programs; the message tells people. */
function causesOf(schema: CompiledSchema, index: number): readonly RefusalCause[] {
  const field = `spec.flowControl.flowControlSchemas[${index}]`
  return [{ reason: 'FlowControlSchema', message: schema.name, field }]
}
