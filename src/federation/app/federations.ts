// Tells the gateway threads which clusters have members, whenever that changes.

import type { CompiledCluster } from '../../gateway/core/cluster/compiled-cluster.ts'
import type { TopicChannel } from '../../kit/core/topics/topics.ts'
import { Started } from '../../process/components/component.ts'
import type { FederatedCluster } from '../state/federated-collections.ts'
import { FEDERATIONS, RIGHT_ANSWERED, RIGHT_KNOWN } from './topics.ts'

interface FederationDeps {
  readonly clusters: { values(): Iterable<{ readonly compiled: CompiledCluster }> }
  readonly onApplied: (listener: () => void) => () => void
  readonly topics: TopicChannel
}

interface RunningFederations {
  describe(): object
  stop(): Promise<void>
}

export function createFederations(deps: FederationDeps): FederationsComponent {
  return new FederationsComponent(deps)
}

class FederationsComponent extends Started<RunningFederations> {
  readonly state = 'federations'

  constructor(deps: FederationDeps) {
    super('federated-reads', () => startFederations(deps))
  }

  describe(): object | null {
    return this.running?.describe() ?? null
  }
}

function startFederations({ clusters, onApplied, topics }: FederationDeps): RunningFederations {
  let told = ''
  const all = (): readonly FederatedCluster[] =>
    Array.from(clusters.values()).flatMap(({ compiled: { name: cluster, federation } }) =>
      federation === undefined ? [] : [{ cluster, federation }],
    )
  const tell = (): void => {
    const federations = all()
    const text = JSON.stringify(federations)
    if (text === told) return
    told = text
    topics.publish(FEDERATIONS, federations)
  }
  topics.subscribe(RIGHT_ANSWERED, (news) => topics.publish(RIGHT_KNOWN, news))
  const leave = onApplied(tell)
  tell()
  return {
    describe: all,
    stop: () => {
      leave()
      return Promise.resolve()
    },
  }
}
