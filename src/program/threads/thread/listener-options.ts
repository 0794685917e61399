// Options for a gateway thread's ports.

import { clusterForAddress, clusterForServerName } from '../../../gateway/core/cluster/lookup-cluster.ts'
import type { ListenerOptions } from '../../../gateway/io/listener/listener-socket.ts'
import type { TlsContexts } from '../../../gateway/io/listener/tls-contexts.ts'
import {
  CLIENT_CONNECTIONS,
  CLIENTS_DRAINED,
  CLIENTS_REFUSED,
  HANDSHAKE_ERRORS,
} from '../../../gateway/metrics/descriptors.ts'
import type { MetricsRecorder } from '../../../gateway/metrics/recorder.ts'
import type { Filters } from '../../../gateway/request/exchange/decision.ts'
import type { Gateway } from '../../../gateway/request/exchange/gateway.ts'
import { createRequestHandler, createUpgradeHandler } from '../../../gateway/request/serve.ts'
import { OpenHeads } from '../../../kit/core/shares/open-heads.ts'
import { refuseShare } from '../../../kit/core/shares/refuse-share.ts'
import { RareWarnings } from '../../../kit/io/logs/rare-warnings.ts'
import type { Config } from '../../../process/config/config.ts'

export function listenerOptions(
  config: Config,
  gateway: Gateway,
  filters: Filters,
  contexts: TlsContexts,
  metrics: MetricsRecorder,
): Omit<ListenerOptions, 'host' | 'port'> {
  const { clusters } = gateway
  const { shares, events, random } = gateway
  const [abuse, refused] = [new RareWarnings(gateway), new RareWarnings(gateway)]
  return {
    maxHeaderBytes: config.maxHeaderBytes,
    maxConcurrentStreams: config.maxConcurrentStreams,
    headerTimeoutMs: config.headerTimeoutMs,
    idleTimeoutMs: config.idleTimeoutMs,
    firstRequestTimeoutMs: config.firstRequestTimeoutMs,
    maxConnectionsPerAddress: config.maxConnectionsPerAddress,
    heads: new OpenHeads({
      shared: shares.buffered,
      refuse(charge) {
        const { buffered } = shares
        events.limited(buffered.limit, charge.known)
        return refuseShare(buffered.limit, buffered.of(charge), charge, random())
      },
    }),
    lateBodies: shares.lateBodies,
    contexts,
    counters: metrics.http2Clients,
    clusterForServerName: (name) => clusterForServerName(clusters.index, name),
    clusterForAddress: (address, port) => clusterForAddress(clusters.index, address, port),
    handler: createRequestHandler(gateway, filters),
    onUpgrade: createUpgradeHandler(gateway, filters),
    goawayChance: config.goawayChance,
    onGoaway: () => metrics.add(CLIENTS_DRAINED, 1, 'chance'),
    onConnection: (protocol, by) => metrics.add(CLIENT_CONNECTIONS, by, protocol),
    onHandshakeError: () => metrics.add(HANDSHAKE_ERRORS, 1),
    onAbuse: (address, kind) =>
      abuse.warn('HTTP/2 connection ended: its client exceeded a protocol limit', { address, kind }),
    onRefused(address) {
      metrics.add(CLIENTS_REFUSED, 1)
      refused.warn('connections refused: the address has as many as --max-connections-per-address allows', { address })
    },
  }
}
