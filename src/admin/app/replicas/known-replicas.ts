// The other replicas, and this one's credential for them: those whose Leases contain an admin listener address, or those of --admin-peers.

import type { AdminCredential } from '../../../cli/io/admin-request.ts'
import { REPLICA_LABEL_SELECTOR, REPLICA_NAMESPACES, readReplicaLease } from '../../../gateway/core/status/gateways.ts'
import type { Logger } from '../../../kit/api/ports.ts'
import {
  formatListenAddress,
  isLoopback,
  type ListenAddress,
  parseListenAddress,
} from '../../../kit/core/listen-address.ts'
import { LEASES } from '../../../kube/api/kinds/lease-kind.ts'
import type { ObjectClient } from '../../../kube/api/object-client.ts'
import type { KubeAccess } from '../../../kube/io/config-access.ts'
import { readNamedFile } from '../../../pki/io/pki-files.ts'
import type { PortFiles } from '../../../process/certificates/port-files.ts'
import type { Config } from '../../../process/config/config.ts'
import type { ReplicaAddress, Replicas } from './replicas.ts'

/** Leases not renewed for longer belong to dead replicas: if killed, they leave theirs behind. */
const GONE_MS = 120_000
/** How long a list of the Leases is reused. */
const FRESH_MS = 5_000
/** Each request goes to all of them; more Leases than this cannot be replicas. */
const MAX_REPLICAS = 256

interface KnownReplicasDeps {
  readonly config: Config
  /** Client for the API server that holds Leases; undefined = none does. */
  readonly client: ObjectClient | undefined
  /** This replica's credential at that API server; undefined = it has none. */
  readonly access: (() => Promise<KubeAccess>) | undefined
  /** Files of the admin listener. */
  readonly files: Pick<PortFiles, 'token' | 'serving'>
  readonly log: Logger
}

export class KnownReplicas implements Replicas {
  readonly ownName: string
  readonly log: Logger
  readonly #deps: KnownReplicasDeps
  #listed: Promise<readonly ReplicaAddress[]> | undefined
  #listedAt = 0

  constructor(deps: KnownReplicasDeps) {
    this.#deps = deps
    this.ownName = deps.config.replicaName
    this.log = deps.log
  }

  others(): Promise<readonly ReplicaAddress[]> {
    const { adminPeers } = this.#deps.config
    if (adminPeers.length > 0) {
      const of = (address: ListenAddress): ReplicaAddress =>
        this.#at(formatListenAddress(address), formatListenAddress(address))
      return Promise.resolve(adminPeers.map(of))
    }
    const now = Date.now()
    if (this.#listed === undefined || now - this.#listedAt > FRESH_MS) {
      this.#listedAt = now
      const listed = this.#list(now)
      this.#listed = listed
      listed.catch(() => {
        if (this.#listed === listed) this.#listed = undefined
      })
    }
    return this.#listed
  }

  async credential(): Promise<AdminCredential> {
    const { config, access, files } = this.#deps
    const { token } = files
    const pinned = files.serving?.cert ?? ''
    const ca = config.adminCaFile === '' ? '' : readNamedFile('--admin-ca-file', config.adminCaFile)
    const own = {
      headers: {},
      ca,
      pinned: ca === '' ? pinned : '',
      publicCAs: false,
      cert: '',
      key: '',
      serverName: '',
    }
    if (token !== '') return { ...own, headers: { authorization: `Bearer ${token}` } }
    // A credential for the API server is never sent without TLS.
    if (access === undefined || pinned === '') return own
    const { headers, tls } = await access()
    const { authorization } = headers
    return { ...own, headers: authorization === undefined ? {} : { authorization }, cert: tls.cert, key: tls.key }
  }

  async #list(nowMs: number): Promise<readonly ReplicaAddress[]> {
    const { client, config, log } = this.#deps
    // Without TLS a replica named in a Lease cannot prove its identity, and anyone with write access to Leases would receive the token.
    if (client === undefined || config.adminTlsCertFile === '') return []
    const lists = REPLICA_NAMESPACES.map((namespace) => client.list(LEASES, namespace, REPLICA_LABEL_SELECTOR))
    const leases = (await Promise.all(lists)).flatMap(({ items }) => items.map(readReplicaLease))
    const others = leases.flatMap((lease) => {
      if (lease === undefined || lease.replica === this.ownName || lease.adminAddress === '') return []
      const alive = nowMs - Date.parse(lease.renewTime) < GONE_MS
      return alive && isReachable(lease.adminAddress) ? [this.#at(lease.replica, lease.adminAddress)] : []
    })
    if (others.length > MAX_REPLICAS) {
      log.warn('more Leases of replicas than are asked', { leases: others.length, asked: MAX_REPLICAS })
    }
    return others.slice(0, MAX_REPLICAS)
  }

  #at(name: string, address: string): ReplicaAddress {
    const scheme = this.#deps.config.adminTlsCertFile === '' ? 'http' : 'https'
    return { name: name.slice(0, 256), url: new URL(`${scheme}://${address}`) }
  }
}

/** Not every valid listening host is valid in a URL: 1.2.3.999. */
function isReachable(address: string): boolean {
  return !('error' in parseListenAddress(address)) && URL.canParse(`https://${address}`)
}

/** The admin listener address for this replica's Lease: '' = not reachable from outside. @param port in use */
export function advertisedAddress({ adminAdvertise, adminListen }: Config, port: number): string {
  if (adminAdvertise !== undefined) return formatListenAddress(adminAdvertise)
  const address = parseListenAddress(adminListen)
  if ('error' in address || isLoopback(address.host) || address.host === '0.0.0.0' || address.host === '::') return ''
  return formatListenAddress({ host: address.host, port })
}
