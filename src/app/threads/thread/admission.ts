// How the clients of all ports of a gateway thread come in: when their handshakes begin, and how many connections there may be.

import type { Gateway } from '../../../gateway/exchange/gateway.ts'
import { Handshakes } from '../../../io/listener/handshakes/handshakes.ts'
import { OpenConnections } from '../../../io/listener/open-connections.ts'
import { HANDSHAKE_ERRORS, HANDSHAKES, LIMITED } from '../../../io/metrics/descriptors.ts'
import type { MetricsRecorder } from '../../../io/metrics/recorder.ts'
import type { Config } from '../../config/config.ts'
import type { ThreadFailures } from './failures.ts'
import { RareWarnings } from './rare-warnings.ts'

export interface ThreadAdmission {
  readonly handshakes: Handshakes
  readonly open: OpenConnections
  onHandshakeFailed(source: string): void
}

/** @param threads that the limits of the process are divided by */
export function createAdmission(
  config: Config,
  threads: number,
  gateway: Gateway,
  failures: ThreadFailures,
  metrics: MetricsRecorder,
): ThreadAdmission {
  const givenUp = new RareWarnings(gateway)
  const handshakes = new Handshakes({
    timeoutMs: config.handshakeTimeoutMs,
    isBlocked: (source) => failures.isBlocked(source),
    onFailed(source, reason) {
      metrics.add(HANDSHAKE_ERRORS, 1)
      // Silence is not an attempt, and who had to give way did nothing wrong.
      if (reason === 'not-tls' || reason === 'timeout') failures.failed(source)
    },
  })
  const open = new OpenConnections({
    max: Math.ceil(config.maxConnections / threads),
    maxUnauthenticated: Math.ceil(config.maxUnauthenticatedConnections / threads),
    onGivenUp(limit, source) {
      metrics.add(LIMITED, 1, limit, limit === 'connections' ? 'true' : 'false')
      givenUp.warn(
        `connections had to go: as many are open as --max-${limit} allows, and most of them are of one source`,
        {
          source,
        },
      )
    },
  })
  metrics.beforeSnapshot(() => {
    const { hello, queued, inProgress } = handshakes.counts()
    metrics.set(HANDSHAKES, hello, 'hello')
    metrics.set(HANDSHAKES, queued, 'queued')
    metrics.set(HANDSHAKES, inProgress, 'in-progress')
  })
  return { handshakes, open, onHandshakeFailed: (source) => failures.failed(source) }
}
