// Joins the logouts at OpenID providers with the threads and the objects.

import { Logouts } from '../../gateway/controllers/logouts/logouts.ts'
import type { CompiledCluster } from '../../gateway/core/cluster/compiled-cluster.ts'
import { END_SESSIONS } from '../../gateway/core/logout/ended-session.ts'
import type { Logger } from '../../kit/api/ports.ts'
import { addTickable, removeTickable } from '../../kit/io/world/coarse-ticker.ts'
import type { ObjectClient } from '../../kube/api/object-client.ts'
import type { Running } from '../../process/components/component.ts'
import type { WiredGateway } from './wire.ts'

interface LogoutDeps extends Pick<WiredGateway, 'clusters' | 'changes' | 'pool' | 'clock'> {
  /** undefined = objects are files. */
  readonly client: ObjectClient | undefined
  readonly log: Logger
}

interface RunningLogouts extends Running {
  /** Whether the logouts that other replicas were told of are known. */
  readonly known: boolean
}

export function startLogouts({ clusters, changes, pool, clock, client, log }: LogoutDeps): RunningLogouts {
  const logouts = new Logouts({
    client,
    clock,
    random: Math.random,
    log,
    publish: (change) => pool.endedSession(change),
  })
  pool.questions.answer(END_SESSIONS, (ended) => logouts.end(ended))
  const look = (names: Iterable<string>): void => {
    for (const name of names) if (tellsOfLogouts(clusters.get(name)?.compiled)) logouts.follow()
  }
  look(clusters.names())
  const leave = changes.onApplied((_, changed) => look(changed ?? clusters.names()))
  addTickable(logouts)
  return {
    get known() {
      return logouts.known
    },
    stop() {
      removeTickable(logouts)
      leave()
      return logouts.stop()
    },
  }
}

function tellsOfLogouts(cluster: CompiledCluster | undefined): boolean {
  return cluster?.authentication.issuers.some(({ endsSessions }) => endsSessions === true) ?? false
}
