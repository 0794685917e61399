// How clients come in at the ports that the main thread serves: the embedded API server or the webhook for CRDs, and the webhook of pod
// protection. Together they are one more listener beside those of the gateway's threads, with the same rules.

import type { Clock, Logger } from '../../api/ports/ports.ts'
import { refuse } from '../../core/refusal/refusal.ts'
import { OpenHeads } from '../../core/shares/open-heads.ts'
import { SharedResource } from '../../core/shares/shared-resource.ts'
import { HANDSHAKE_TIMEOUT_MS, type PortAdmission } from '../../io/listener/connections.ts'
import { RareWarnings } from '../../io/logs/rare-warnings.ts'
import { HANDSHAKE_ERRORS, LIMITED } from '../../io/metrics/descriptors.ts'
import type { MetricsRecorder } from '../../io/metrics/recorder.ts'
import { LATE_BODIES_BYTES } from '../../state/thread-shares.ts'
import type { Config } from '../config/config.ts'
import { admitClients } from '../connections/admit-clients.ts'
import type { OwnPortFailures } from '../failures/own-ports.ts'

/** What heads may take that have no end yet, of those who are known, on all of these ports; others have a part of their own on top. */
const OPEN_HEAD_BYTES = 4 * 1024 * 1024
const RETRY_SECONDS = 1
/** One in this many connections may be of clients that have not sent a request with a valid credential. */
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
  const admission = admitClients({
    handshakeTimeoutMs: HANDSHAKE_TIMEOUT_MS,
    max: maxControlConnections,
    maxUnauthenticated: Math.ceil(maxControlConnections / STRANGERS_PART),
    isBlocked: (source) => failures.isBlocked(source),
    onHandshakeFailed: (source) => failures.handshakeFailed(source),
    onGivenUp(limit, source) {
      const isKnown = limit === 'connections'
      recorder.add(LIMITED, 1, 'control-connections', isKnown ? 'true' : 'false')
      const full = isKnown ? '' : `1/${STRANGERS_PART} of `
      const message = `a connection to a port of control plane or webhooks is closed: ${full}--max-control-connections is reached`
      givenUp.warn(`${message}, and its source has most of them`, { source })
    },
    metrics: recorder,
  })
  const shared = new SharedResource('buffered-bytes', OPEN_HEAD_BYTES)
  const heads = new OpenHeads({
    shared,
    refuse(charge) {
      recorder.add(LIMITED, 1, 'control-heads', charge.known ? 'true' : 'false')
      const shares = shared.of(charge)
      const message =
        `${charge.source} is sending ${shares.heldBy(charge.source)} of ${shares.capacity} bytes that heads of requests to control plane ` +
        `and webhooks may take at the same time; retry in ${RETRY_SECONDS} s`
      return refuse('share-exceeded', message, { retryAfterSeconds: RETRY_SECONDS })
    },
  })
  return {
    ...admission,
    heads,
    lateBodies: new SharedResource('late-bodies', LATE_BODIES_BYTES),
    counters: recorder.http2Clients,
    onAbuse(address, kind) {
      abuse.warn('connection to a port of control plane or webhooks ended: its client did too much', { address, kind })
    },
    onHandshakeError: () => recorder.add(HANDSHAKE_ERRORS, 1),
  }
}
