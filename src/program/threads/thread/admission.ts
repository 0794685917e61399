// Admission of clients at all ports of a gateway thread: handshake scheduling, and connection limits.

import { HANDSHAKES, LIMITED } from '../../../gateway/metrics/descriptors.ts'
import type { MetricsRecorder } from '../../../gateway/metrics/recorder.ts'
import type { Gateway } from '../../../gateway/request/exchange/gateway.ts'
import { RareWarnings } from '../../../kit/io/logs/rare-warnings.ts'
import type { Config } from '../../../process/config/config.ts'
import { admitClients, type ClientAdmission } from '../../connections/admit-clients.ts'
import type { ThreadFailures } from './failures.ts'

/** @param threads that share the limits of the process */
export function createAdmission(
  config: Config,
  threads: number,
  gateway: Gateway,
  failures: ThreadFailures,
  metrics: MetricsRecorder,
): ClientAdmission {
  const givenUp = new RareWarnings(gateway)
  const admission = admitClients({
    handshakeTimeoutMs: config.handshakeTimeoutMs,
    max: Math.ceil(config.maxConnections / threads),
    maxUnauthenticated: Math.ceil(config.maxUnauthenticatedConnections / threads),
    isBlocked: (source) => failures.isBlocked(source),
    onHandshakeFailed: (source) => failures.failed(source),
    onGivenUp(limit, source) {
      metrics.add(LIMITED, 1, limit, limit === 'connections' ? 'true' : 'false')
      givenUp.warn(`a connection is closed: --max-${limit} is reached, and its source has most of them`, { source })
    },
    metrics,
  })
  metrics.beforeSnapshot(() => {
    const { hello, queued, inProgress } = admission.handshakes.counts()
    metrics.set(HANDSHAKES, hello, 'hello')
    metrics.set(HANDSHAKES, queued, 'queued')
    metrics.set(HANDSHAKES, inProgress, 'in-progress')
  })
  return admission
}
