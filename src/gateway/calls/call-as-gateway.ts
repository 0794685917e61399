// The gateway's own calls to a cluster, on connections of the clients' requests: to one healthy endpoint after the other until
// one answers.

import type { Charge } from '../../api/ports/stream.ts'
import { AnswerTooLargeError, KubeCallError, NoRoomError } from '../../core/answers/call-errors.ts'
import { type KubeAnswer, type KubeCall, kubeCall } from '../../io/upstream/kube-call.ts'
import type { LiveCluster, OwnCall } from '../../state/clusters.ts'
import type { Endpoint } from '../../state/endpoints.ts'
import type { Gateway } from '../exchange/gateway.ts'
import { takeTurn } from './call-turn.ts'

const MAX_TRIES = 3

export interface CallAsGateway extends Omit<KubeCall, 'authority' | 'token' | 'payer'> {
  readonly kind: OwnCall
  /** Who has it made: takes turns with the others, and pays for the memory of the answer. */
  readonly charge: Charge
}

/**
 * @throws {KubeCallError} when no endpoint answered in time
 * @throws {AnswerTooLargeError}
 * @throws {NoRoomError} when too much is being read
 * @throws {CallLimitError} when its turn did not come in time: nobody was asked
 */
export async function callAsGateway(gw: Gateway, live: LiveCluster, call: CallAsGateway): Promise<KubeAnswer> {
  const endsAtMs = gw.clock.monotonic() + call.timeoutMs
  const done = await takeTurn(gw, live, call.kind, call.charge, call.timeoutMs)
  try {
    return await askOneAfterTheOther(gw, live, call, endsAtMs)
  } finally {
    done()
  }
}

async function askOneAfterTheOther(
  gw: Gateway,
  live: LiveCluster,
  call: CallAsGateway,
  endsAtMs: number,
): Promise<KubeAnswer> {
  const cluster = live.compiled
  let last = 'no endpoint of the cluster is ready'
  for (const { url, authority } of readyEndpoints(gw, live).slice(0, MAX_TRIES)) {
    const connections = gw.upstreams.get(cluster.name, url)
    const timeoutMs = endsAtMs - gw.clock.monotonic()
    if (connections === undefined || timeoutMs <= 0) continue
    try {
      // Those of a user have the gateway's own in front.
      const token = call.credentials === undefined ? cluster.client.bearerToken : ''
      const answer = await kubeCall(connections, { ...call, authority, token, timeoutMs, payer: call.charge })
      // Overloaded or shutting down: another one may answer.
      if (answer.status !== 429 && answer.status < 500) return answer
      last = refusalOf(answer)
    } catch (error) {
      // The others would say the same.
      if (!(error instanceof KubeCallError) || error instanceof AnswerTooLargeError) throw error
      if (error instanceof NoRoomError) {
        gw.events.limited('answer-bytes', call.charge.known)
        throw error
      }
      last = error.message
    }
  }
  throw new KubeCallError(last)
}

function readyEndpoints(gw: Gateway, { endpoints }: LiveCluster): Endpoint[] {
  const nowMs = gw.clock.monotonic()
  const ready = endpoints.all.filter((_, i) => endpoints.available(i, nowMs))
  // As for the clients' requests: one that nobody has checked yet is better than none.
  if (ready.length === 0)
    ready.push(...endpoints.all.filter(({ enabled, health }) => enabled && health.state === 'unknown'))
  const start = Math.floor(gw.random() * ready.length)
  return [...ready.slice(start), ...ready.slice(0, start)]
}

/** Why an answer is none, for people. */
export function refusalOf({ status }: KubeAnswer): string {
  if (status === 403) return 'the gateway may not (403): see deploy/rbac'
  return `upstream answered with ${status}`
}
