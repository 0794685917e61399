// Finds the cluster of a request, and checks whether the connection may be used for it.

import { type Refusal, refuse } from '../../kit/core/refusal/refusal.ts'
import { lookupCluster } from '../core/cluster/lookup-cluster.ts'
import { unknownClusterMessage } from '../core/policy/policy-messages.ts'
import { misdirectedMessage } from '../core/policy/traffic-messages.ts'
import type { LiveCluster } from '../state/clusters.ts'
import type { Exchange } from './exchange/exchange.ts'

/** Returns the cluster; stores the target, without the `/clusters/<name>` prefix, in the exchange. */
export function lookup(exchange: Exchange): LiveCluster | Refusal {
  const { gw, peer, head } = exchange
  const { localAddress, localPort } = peer
  const found = lookupCluster(gw.clusters.index, { authority: head.host, target: head.target, localAddress, localPort })
  if ('unknown' in found) return refuse('unknown-cluster', unknownClusterMessage(found.unknown))
  // A connection whose TLS was set up for one cluster does not serve another (RFC 9110 section 15.5.20): its client
  // certificate was verified, and its server certificate shown, for the one named by SNI.
  if (peer.serverName !== '' && peer.tlsCluster !== '' && peer.tlsCluster !== found.cluster.name) {
    return refuse('misdirected', misdirectedMessage(peer.serverName, found.cluster.name))
  }
  const live = gw.clusters.get(found.cluster.name)
  if (live === undefined) return refuse('unknown-cluster', unknownClusterMessage(found.cluster.name))
  exchange.target = found.target
  return live
}
