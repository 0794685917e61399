// Detects servers that the gateway needs and reaches only through a gateway: after both went down, neither could start without the other.
// Compares them with what the gateway listens on and what its clusters claim.

/** A server that the gateway needs. */
export interface Dependency {
  /** `the API server of the objects` */
  readonly what: string
  /** The setting that names it. */
  readonly setting: string
  readonly server: string
  /** Host without brackets, as written. */
  readonly host: string
  readonly port: number
  /** Path of its URL; '' or '/' = none. */
  readonly path: string
  /** What the host resolves to; empty = unknown. */
  readonly addresses: readonly string[]
}

/** Addresses at which clients reach the gateway. */
export interface OwnAddresses {
  /** Its listeners' addresses; this machine's, if they listen on every address. */
  readonly addresses: ReadonlySet<string>
  readonly ports: ReadonlySet<number>
  /** spec.addresses.ips of the clusters in force -> cluster. */
  readonly claimed: ReadonlyMap<string, string>
  /** Host names of the clusters in force -> cluster. Lower-case, wildcards as `*.example.com`. */
  readonly names: ReadonlyMap<string, string>
}

const CLUSTER_PATH = /^\/clusters\/([^/]+)/

/** Why a server is behind the gateway itself; '' = it is not, as far as can be told. */
export function loopOf({ host, port, path, addresses }: Dependency, own: OwnAddresses): string {
  const name = clusterOf(host.toLowerCase().replace(/\.$/, ''), own.names)
  if (name !== undefined) return `${host} is a host name of UpstreamCluster ${name}`
  for (const address of [host, ...addresses]) {
    const cluster = own.claimed.get(address)
    if (cluster !== undefined) return `${address} is in spec.addresses.ips of UpstreamCluster ${cluster}`
    if (own.addresses.has(address) && own.ports.has(port)) return `${address}:${port} is an address of --listen`
  }
  const prefix = CLUSTER_PATH.exec(path)?.[1]
  return prefix === undefined ? '' : `its path ${path} is how a gateway names UpstreamCluster ${prefix}`
}

/** A name without a dot proves nothing: other servers have such names too. */
function clusterOf(host: string, names: ReadonlyMap<string, string>): string | undefined {
  const dot = host.indexOf('.')
  return dot < 0 ? undefined : (names.get(host) ?? names.get(`*${host.slice(dot)}`))
}
