// Who is charged for work: an authenticated user of a cluster; an unauthenticated client by address.

import type { Charge } from '../../api/stream.ts'
import { addressSource, userSource } from './call-source.ts'

export function addressCharge(remoteAddress: string): Charge {
  return { source: addressSource(remoteAddress), weight: 1, known: false }
}

export function userCharge(cluster: string, name: string, weight: number): Charge {
  return { source: userSource(cluster, name), weight, known: true }
}

/** A user of the control plane. */
export function ownUserCharge(name: string): Charge {
  return { source: `user ${JSON.stringify(name)} of the control plane`, weight: 1, known: true }
}

/** The gateway itself, for what it watches in one cluster: no user waits for it. */
export function clusterCharge(cluster: string): Charge {
  return { source: `the gateway itself, of cluster "${cluster}"`, weight: 1, known: true }
}

/** The other replicas of the gateway, all as one source. */
export const REPLICAS_CHARGE: Charge = { source: 'the other replicas of the gateway', weight: 1, known: true }

/** The gateway itself, for a server named by a process setting: all clusters depend on it. */
export function serverCharge(server: string): Charge {
  return { source: `the gateway itself, of ${server}`, weight: 8, known: true }
}
