// Admission of clients at a group of ports: schedules handshakes, limits connections, and counts failed handshakes against their address.

import type { PortAdmission } from '../../gateway/io/listener/connections.ts'
import { Handshakes } from '../../gateway/io/listener/handshakes/handshakes.ts'
import { OpenConnections, type OpenConnectionsOptions } from '../../gateway/io/listener/open-connections.ts'
import { HANDSHAKE_ERRORS } from '../../gateway/metrics/descriptors.ts'
import type { MetricsRecorder } from '../../gateway/metrics/recorder.ts'

interface AdmitClientsOptions extends OpenConnectionsOptions {
  readonly handshakeTimeoutMs: number
  /** Whether the address is blocked: its handshakes begin after all others. */
  isBlocked(source: string): boolean
  /** A handshake has failed through the client's fault. */
  onHandshakeFailed(source: string): void
  readonly metrics: MetricsRecorder
}

export type ClientAdmission = Pick<PortAdmission, 'onHandshakeFailed'> & {
  readonly handshakes: Handshakes
  readonly open: OpenConnections
}

export function admitClients(options: AdmitClientsOptions): ClientAdmission {
  const { handshakeTimeoutMs: timeoutMs, isBlocked, onHandshakeFailed, metrics } = options
  const handshakes = new Handshakes({
    timeoutMs,
    isBlocked,
    onFailed(source, reason) {
      metrics.add(HANDSHAKE_ERRORS, 1)
      // Silence is not an attempt, and an evicted client did nothing wrong.
      if (reason === 'not-tls' || reason === 'timeout') onHandshakeFailed(source)
    },
  })
  return { handshakes, open: new OpenConnections(options), onHandshakeFailed }
}
