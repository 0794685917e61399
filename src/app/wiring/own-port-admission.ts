// How clients come in at the ports that the main thread serves: the embedded API server or the webhook for CRDs, and the webhook of pod
// protection. Together they are one more listener beside those of the gateway's threads, with the same rules.

import type { Clock, Logger } from '../../api/ports/ports.ts'
import { HANDSHAKE_TIMEOUT_MS, type PortAdmission } from '../../io/listener/connections.ts'
import { Handshakes } from '../../io/listener/handshakes/handshakes.ts'
import { OpenConnections } from '../../io/listener/open-connections.ts'
import { HANDSHAKE_ERRORS, LIMITED } from '../../io/metrics/descriptors.ts'
import type { MetricsRecorder } from '../../io/metrics/recorder.ts'
import type { Config } from '../config/config.ts'
import type { OwnPortFailures } from '../failures/own-ports.ts'
import { RareWarnings } from '../threads/thread/rare-warnings.ts'

/** Of the connections: one in this many may be of those who have not sent a request with a valid credential. */
const STRANGERS_PART = 4

export function createOwnPortAdmission(
  { maxControlConnections }: Config,
  failures: OwnPortFailures,
  recorder: MetricsRecorder,
  clock: Clock,
  log: Logger,
): PortAdmission {
  const givenUp = new RareWarnings({ clock, log })
  const abuse = new RareWarnings({ clock, log })
  const handshakes = new Handshakes({
    timeoutMs: HANDSHAKE_TIMEOUT_MS,
    isBlocked: (source) => failures.isBlocked(source),
    onFailed(source, reason) {
      recorder.add(HANDSHAKE_ERRORS, 1)
      // As at the ports of the gateway.
      if (reason === 'not-tls' || reason === 'timeout') failures.handshakeFailed(source)
    },
  })
  const open = new OpenConnections({
    max: maxControlConnections,
    maxUnauthenticated: Math.ceil(maxControlConnections / STRANGERS_PART),
    onGivenUp(limit, source) {
      recorder.add(LIMITED, 1, 'control-connections', limit === 'connections' ? 'true' : 'false')
      const message = 'connections to the ports of control plane and webhooks had to go: as many are open as'
      givenUp.warn(`${message} --max-control-connections allows, and most of them are of one source`, { source })
    },
  })
  return {
    handshakes,
    open,
    counters: recorder.http2Clients,
    onAbuse(address, kind) {
      abuse.warn('connection to a port of control plane or webhooks ended: its client did too much', { address, kind })
    },
    onHandshakeError: () => recorder.add(HANDSHAKE_ERRORS, 1),
    onHandshakeFailed: (source) => failures.handshakeFailed(source),
  }
}
