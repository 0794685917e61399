// Answers discovery: what the members say of federated resources, each asked as the identity that the caller has there.

import type { CompiledCluster, CompiledFederation } from '../../gateway/core/cluster/compiled-cluster.ts'
import { callAsGateway } from '../../gateway/request/calls/call-as-gateway.ts'
import type { Decision } from '../../gateway/request/exchange/decision.ts'
import { authenticated } from '../../gateway/request/exchange/identity.ts'
import { respondWith } from '../../gateway/request/exchange/respond.ts'
import { isRefusal, type Refusal, refuse } from '../../kit/core/refusal/refusal.ts'
import { PAGE } from '../../kube/core/answers/answer-limits.ts'
import { discoveryAt, joinedResources } from '../core/discovery.ts'
import { writtenVerbs } from '../core/writes/written-request.ts'
import { admittedUser, MEMBER_MS } from './member-rights.ts'
import { notFederated } from './refusals.ts'

const OK = 200

export async function answerDiscovery(
  decision: Decision,
  cluster: CompiledCluster,
  { members, resources, mode }: CompiledFederation,
): Promise<Refusal | undefined> {
  const { info, exchange } = decision
  const found = info.verb === 'get' ? discoveryAt(info.path, resources) : undefined
  if (found === undefined) return notFederated(cluster, info.path)
  if (found.kind === 'answer') {
    deliver(decision, found.body)
    return undefined
  }
  const answers = await Promise.all(
    members.map(async ({ cluster: name, trustsUsers }) => {
      const live = exchange.gw.clusters.get(name)
      const user = live && admittedUser({ live, trustsUsers, info }, decision)
      const caller = user && authenticated(user, decision.caller.kind)
      if (live === undefined || caller === undefined || isRefusal(caller)) return undefined
      const answer = await callAsGateway(exchange.gw, live, {
        kind: 'pod-read',
        charge: exchange.charge,
        method: 'GET',
        path: info.path,
        timeoutMs: MEMBER_MS,
        limits: PAGE,
        credentials: caller.credentials(live.compiled.client),
      }).catch(() => undefined)
      return answer?.status === OK ? parsed(answer.body) : undefined
    }),
  )
  if (answers.every((answer) => answer === undefined))
    return refuse('member-unavailable', 'no member says which resources it has')
  deliver(
    decision,
    joinedResources(answers, found.groupVersion, found.names, mode === 'merged' ? () => [] : writtenVerbs),
  )
  return undefined
}

function deliver(decision: Decision, body: object): void {
  decision.deliver = ({ exchange, warnings }) => {
    const bytes = Buffer.from(`${JSON.stringify(body)}\n`)
    respondWith(exchange, OK, ['content-type', 'application/json'], bytes, warnings)
    return Promise.resolve(undefined)
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
