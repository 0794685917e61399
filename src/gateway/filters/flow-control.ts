// The flow control schema of the policy: token bucket, requests in flight, open watches. Takes what permit gives back.

import { release, retryAfterSeconds, tryAcquire, tryOpenWatch } from '../../core/flow-control.ts'
import { type Refusal, refuse } from '../../core/refusal.ts'
import { tooManyInFlightMessage, tooManyRequestsMessage, tooManyWatchesMessage } from '../../core/traffic-messages.ts'
import type { AdmissionRequest, Filter } from './filter.ts'

const WATCH_RETRY_SECONDS = 1

export const flowControl: Filter = {
  name: 'flow-control',
  shadow: ({ cluster, policy }) => cluster.schemas[policy.schema]?.shadow ?? false,
  check,
}

function check(request: AdmissionRequest): Refusal | undefined {
  const { cluster, live, policy, user, monotonicMs } = request
  const schema = cluster.schemas[policy.schema]
  if (schema === undefined || (schema.kind === 'exempt' && schema.maxWatches === 0)) return undefined
  const cell = live.flows.cellFor(schema, user.name, monotonicMs)
  const rule = schema.name
  if (!tryAcquire(schema, cell, monotonicMs)) {
    if (schema.kind === 'tokenBucket') {
      const seconds = retryAfterSeconds(schema, cell, monotonicMs)
      return refuse('rate-limited', tooManyRequestsMessage(cluster.name, schema), { rule, retryAfterSeconds: seconds })
    }
    return refuse('too-many-in-flight', tooManyInFlightMessage(cluster.name, schema), { rule, retryAfterSeconds: 1 })
  }
  const inFlight = schema.kind === 'maxRequestsInflight'
  if (request.isWatch && schema.maxWatches > 0 && !tryOpenWatch(schema, cell)) {
    if (inFlight) release(schema, cell)
    const message = tooManyWatchesMessage(cluster.name, schema)
    return refuse('too-many-watches', message, { rule, retryAfterSeconds: WATCH_RETRY_SECONDS })
  }
  const watch = request.isWatch && schema.maxWatches > 0
  if (inFlight || watch) request.held = { schema, cell, inFlight, watch }
  return undefined
}
