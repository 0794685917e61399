// ScaleDownPolicies in the main thread: followed here, evaluated in the gateway threads, leftovers cleaned up by the leader.

import type { Clock, Logger } from '../../kit/api/ports.ts'
import type { TopicChannel } from '../../kit/core/topics/topics.ts'
import type { ClosableClient, ObjectClient } from '../../kube/api/object-client.ts'
import type { Leading } from '../../kube/controllers/kernel/leadership.ts'
import type { Running } from '../../process/components/component.ts'
import { CostSweeper } from '../controllers/cost-sweeper.ts'
import { ScaleDownPolicyController } from '../controllers/policies.ts'
import { POLICIES_IN_FORCE, SCALED_DOWN } from './topics.ts'

export interface ScaleDownDeps {
  /** API server of the objects. */
  readonly client: ObjectClient
  readonly leadership: Leading
  readonly replica: string
  readonly clusters: { names(): Iterable<string> }
  /** Connects as the gateway itself. */
  clientOf(cluster: string): ClosableClient
  readonly topics: TopicChannel
  readonly clock: Clock
  readonly log: Logger
}

export function startScaleDowns({
  client,
  leadership,
  replica,
  clusters,
  clientOf,
  topics,
  clock,
  log,
}: ScaleDownDeps): Running {
  // The first list arrives later.
  let sweeper: CostSweeper | undefined
  const controller = new ScaleDownPolicyController({
    client,
    replica,
    leadership,
    clock,
    random: Math.random,
    log,
    onPolicies: (policies) => {
      topics.publish(POLICIES_IN_FORCE, policies)
      sweeper?.update()
    },
  })
  sweeper = new CostSweeper({
    clusters: () => clusters.names(),
    connect: clientOf,
    leadership,
    policies: () => controller.policies,
    clock,
    log,
  })
  topics.subscribe(SCALED_DOWN, (report) => controller.report(report))
  return {
    stop: async () => {
      await sweeper?.stop()
      await controller.stop()
    },
  }
}
