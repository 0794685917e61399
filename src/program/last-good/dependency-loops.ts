// Reports at startup which servers the gateway depends on and reaches through itself.

import { lookup } from 'node:dns/promises'
import { networkInterfaces } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import type { CompiledCluster } from '../../gateway/core/cluster/compiled-cluster.ts'
import { parseRedisAddress, textOfNode } from '../../gateway/io/redis/address.ts'
import type { Logger } from '../../kit/api/ports.ts'
import { KubeCredentials } from '../../kube/io/config-access.ts'
import type { Config } from '../../process/config/config.ts'

const LOOKUP_MS = 1_000
const ANY = new Set(['0.0.0.0', '::'])
const NO_CLUSTERS: Iterable<CompiledCluster> = []

export class DependencyLoops {
  readonly #config: Config
  readonly #log: Logger
  readonly #said = new Set<string>()
  #dependencies: Promise<readonly Dependency[]> | undefined

  constructor(config: Config, log: Logger) {
    this.#config = config
    this.#log = log
  }

  /** Logs each new loop in one line. Never rejects. @param clusters in force; may not be known yet */
  async look(clusters: Iterable<CompiledCluster> = NO_CLUSTERS): Promise<void> {
    this.#dependencies ??= dependenciesOf(this.#config)
    const own = ownAddresses(this.#config, clusters)
    for (const dependency of await this.#dependencies) {
      const { what, setting, server } = dependency
      const because = loopOf(dependency, own)
      if (because === '' || this.#said.has(setting)) continue
      this.#said.add(setting)
      this.#log.warn('dependency loop: the gateway reaches a server that it needs through itself', {
        what,
        server,
        because,
        consequence:
          'once both are down, neither can start without the other; the last good state covers only what this replica has seen',
        fix: `let ${setting} name ${what} itself, by an address that no gateway serves`,
      })
    }
  }
}

async function dependenciesOf(config: Config): Promise<readonly Dependency[]> {
  const { source, kubeconfig, context, redisUrl, protection } = config
  const found: [string, string, string][] = []
  if (source === 'kubernetes')
    found.push(['the API server of the objects', '--kubeconfig', serverOf(kubeconfig, context)])
  if (protection.kubeconfig !== '') {
    const server = serverOf(protection.kubeconfig, protection.context)
    found.push(['the API server of the PodProtectors', '--protection-kubeconfig', server])
  }
  if (protection.workloadsKubeconfig !== '') {
    const server = serverOf(protection.workloadsKubeconfig, protection.workloadsContext)
    found.push(['the API server of the workloads', '--protection-workloads-kubeconfig', server])
  }
  const dependencies = found.map(([what, setting, server]) => dependencyOf(what, setting, server))
  return (await Promise.all([...dependencies, ...redisDependencies(redisUrl)])).filter((one) => one !== undefined)
}

async function dependencyOf(what: string, setting: string, server: string): Promise<Dependency | undefined> {
  if (!URL.canParse(server)) return undefined
  const { protocol, hostname, port, pathname, host: shown } = new URL(server)
  const host = hostname.replace(/^\[|\]$/g, '')
  const standard = protocol === 'http:' ? 80 : 443
  return {
    what,
    setting,
    // Without any part that may be secret.
    server: `${protocol}//${shown}${pathname === '/' ? '' : pathname}`,
    host,
    port: port === '' ? standard : Number(port),
    path: pathname,
    addresses: await addressesOf(host),
  }
}

/** One per server, Sentinel or node in the URL. */
function redisDependencies(url: string): readonly Promise<Dependency>[] {
  if (url === '') return []
  return parseRedisAddress(url).nodes.map(async (node) => ({
    what: 'Redis',
    setting: '--redis-url',
    server: textOfNode(node),
    ...node,
    path: '',
    addresses: await addressesOf(node.host),
  }))
}

/** Empty if they are not known in time. */
async function addressesOf(host: string): Promise<readonly string[]> {
  const late = sleep(LOOKUP_MS, [], { ref: false })
  const addresses = await Promise.race([lookup(host, { all: true }).catch(() => []), late])
  return addresses.map(({ address }) => address)
}

/** '' = unreadable, which its user will report. */
function serverOf(kubeconfigFile: string, context: string): string {
  try {
    return new KubeCredentials({ kubeconfigFile, ...(context !== '' && { context }) }).server
  } catch {
    return ''
  }
}

function ownAddresses({ listen }: Config, clusters: Iterable<CompiledCluster>): OwnAddresses {
  const everywhere = listen.some(({ host }) => ANY.has(host))
  const machine = everywhere ? Object.values(networkInterfaces()).flatMap((each) => each ?? []) : []
  const local = listen.flatMap(({ host }) => (host === 'localhost' ? ['127.0.0.1', '::1'] : [host]))
  const claimed = new Map<string, string>()
  const names = new Map<string, string>()
  for (const { name, ips, hosts } of clusters) {
    for (const ip of ips) claimed.set(ip, name)
    for (const host of hosts) names.set(host, name)
  }
  return {
    addresses: new Set([...local, ...machine.map(({ address }) => address)]),
    ports: new Set(listen.map(({ port }) => port).filter((port) => port !== 0)),
    claimed,
    names,
  }
}

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
