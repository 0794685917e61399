// The gateway's own calls to a cluster, on the same connections as the clients' requests. Tries healthy endpoints in turn until
// one answers.

import type { Charge } from '../../../kit/api/stream.ts'
import { NoRoomError } from '../../../kube/core/answers/call-errors.ts'
import { type CallOneOf, callOneOf, type KubeAnswer, type KubeCall } from '../../io/upstream/kube-call.ts'
import type { LiveCluster, OwnCall } from '../../state/clusters.ts'
import type { Endpoint } from '../../state/endpoints.ts'
import type { Gateway } from '../exchange/gateway.ts'
import { longestWaitMs, takeTurn } from './call-turn.ts'
import { firstCheckWithin } from './first-check.ts'

export interface CallAsGateway extends Omit<KubeCall, 'authority' | 'token' | 'payer'> {
  readonly kind: OwnCall
  /** The source that causes the call: queued with its other calls, and charged for the memory of the answer. */
  readonly charge: Charge
}

/**
 * @throws {KubeCallError} when no endpoint answered in time
 * @throws {AnswerTooLargeError}
 * @throws {NoRoomError} when too much is being read
 * @throws {CallLimitError} when its turn did not come in time: nothing was sent
 */
export async function callAsGateway(gw: Gateway, live: LiveCluster, call: CallAsGateway): Promise<KubeAnswer> {
  const endsAtMs = gw.clock.monotonic() + call.timeoutMs
  if (live.endpoints.unchecked) await firstCheckWithin(gw, live, longestWaitMs(call.timeoutMs))
  const done = await takeTurn(gw, live, call.kind, call.charge, endsAtMs - gw.clock.monotonic())
  const { name, client } = live.compiled
  // A user's credentials already include the gateway's own.
  const token = call.credentials === undefined ? client.bearerToken : ''
  const oneOf: CallOneOf = {
    endpoints: readyEndpoints(gw, live),
    connections: (url) => gw.upstreams.get(name, url),
    random: () => gw.random(),
    timeoutMs: () => endsAtMs - gw.clock.monotonic(),
  }
  try {
    return await callOneOf(oneOf, { ...call, token, payer: call.charge })
  } catch (error) {
    if (error instanceof NoRoomError) gw.events.limited('answer-bytes', call.charge.known)
    throw error
  } finally {
    done()
  }
}

function readyEndpoints(gw: Gateway, { endpoints }: LiveCluster): readonly Endpoint[] {
  const nowMs = gw.clock.monotonic()
  const ready = endpoints.all.filter((_, i) => endpoints.available(i, nowMs))
  // Same as for client requests: an unchecked endpoint is better than none.
  return ready.length > 0 ? ready : endpoints.all.filter(({ enabled, health }) => enabled && health.state === 'unknown')
}

/** Why the answer can't be used, human-readable. */
export function refusalOf({ status }: KubeAnswer): string {
  if (status === 403) return 'the gateway may not (403): see deploy/rbac'
  return `upstream answered with ${status}`
}
