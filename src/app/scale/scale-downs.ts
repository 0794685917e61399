// Wires ScaleDownPolicies: followed here, asked in the gateway threads, and what is left of them taken back by the leader.

import type { ObjectClient } from '../../api/ports/object-client.ts'
import type { Logger } from '../../api/ports/ports.ts'
import type { Leading } from '../../controllers/kernel/leadership.ts'
import { CostSweeper } from '../../controllers/scale-down/cost-sweeper.ts'
import { ScaleDownPolicyController } from '../../controllers/scale-down/policies.ts'
import type { WiredGateway } from '../wiring/wire.ts'

export function startScaleDowns(
  {
    clusters,
    clock,
    clientOf,
    pool,
    log,
  }: Pick<WiredGateway, 'clusters' | 'clock' | 'clientOf' | 'pool'> & {
    readonly log: Logger
  },
  client: ObjectClient,
  replica: string,
  leadership: Leading,
) {
  // The first list comes later.
  let sweeper: CostSweeper | undefined
  const controller = new ScaleDownPolicyController({
    client,
    replica,
    leadership,
    clock,
    random: Math.random,
    log,
    onPolicies: (policies) => {
      pool.scaleDownPolicies(policies)
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
  pool.onScaledDown((report) => controller.report(report))
  return {
    stop: async () => {
      await sweeper?.stop()
      await controller.stop()
    },
  }
}
