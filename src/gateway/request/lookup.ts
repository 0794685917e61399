// Finds the cluster of a request, or that it asks for the list of clusters, and checks whether the connection may be used for it.

import { type Refusal, refuse } from '../../kit/core/refusal/refusal.ts'
import { asksForClusters, lookupCluster, tellsOfLogout } from '../core/cluster/lookup-cluster.ts'
import { unknownClusterMessage } from '../core/policy/policy-messages.ts'
import { misdirectedListMessage, misdirectedMessage } from '../core/policy/traffic-messages.ts'
import { originForm } from '../core/request/request-target.ts'
import type { LiveCluster } from '../state/clusters.ts'
import type { Exchange } from './exchange/exchange.ts'

/** Returns the cluster, or what the gateway is asked itself: which clusters there are, or to end the sessions of a logout. Stores the target, without the `/clusters/<name>` prefix, in the exchange. */
export function lookup(exchange: Exchange): LiveCluster | Refusal | 'list' | 'logout' {
  const { gw, peer, head } = exchange
  const { localAddress, localPort } = peer
  const found = lookupCluster(gw.clusters.index, { authority: head.host, target: head.target, localAddress, localPort })
  if (exchange.upgrade === undefined && asksForClusters(head.method, head.target, found)) return lookupList(exchange)
  if ('unknown' in found && exchange.upgrade === undefined && tellsOfLogout(head.method, head.target)) {
    exchange.target = originForm(head.target)
    return 'logout'
  }
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

/** The client certificates of a cluster's own host name are verified by the CAs of that cluster alone. */
function lookupList(exchange: Exchange): Refusal | 'list' {
  const { peer, head } = exchange
  if (peer.serverName !== '' && peer.tlsCluster !== '') {
    return refuse('misdirected', misdirectedListMessage(peer.serverName))
  }
  exchange.target = originForm(head.target)
  return 'list'
}
