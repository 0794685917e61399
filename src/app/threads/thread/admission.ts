// How the clients of all ports of a gateway thread come in: when their handshakes begin.

import { Handshakes } from '../../../io/listener/handshakes/handshakes.ts'
import { HANDSHAKE_ERRORS, HANDSHAKES } from '../../../io/metrics/descriptors.ts'
import type { MetricsRecorder } from '../../../io/metrics/recorder.ts'
import type { Config } from '../../config/config.ts'

export interface ThreadAdmission {
  readonly handshakes: Handshakes
}

export function createAdmission({ handshakeTimeoutMs }: Config, metrics: MetricsRecorder): ThreadAdmission {
  const handshakes = new Handshakes({
    timeoutMs: handshakeTimeoutMs,
    onFailed: () => metrics.add(HANDSHAKE_ERRORS, 1),
  })
  metrics.beforeSnapshot(() => {
    const { hello, queued, inProgress } = handshakes.counts()
    metrics.set(HANDSHAKES, hello, 'hello')
    metrics.set(HANDSHAKES, queued, 'queued')
    metrics.set(HANDSHAKES, inProgress, 'in-progress')
  })
  return { handshakes }
}
