// ObjectClient of an UpstreamCluster: uses its clientConfig and a healthy endpoint. Both are looked up for each request, so that changes of the
// object or of endpoint health take effect at once.

import { isIP } from 'node:net'
import { type Logger, logWith } from '../../../kit/api/ports.ts'
import type { Charge } from '../../../kit/api/stream.ts'
import { clusterCharge } from '../../../kit/core/shares/charge.ts'
import type { DialGuard } from '../../../kit/io/dial/dial-guard.ts'
import { systemClock } from '../../../kit/io/world/clock.ts'
import { clientOf, type KubeClient, type KubeClientOptions } from '../../../kube/io/client.ts'
import type { KubeAccessSource } from '../../../kube/io/client-http.ts'
import type { KubeAccess } from '../../../kube/io/config-access.ts'
import type { CompiledClient } from '../../core/cluster/compiled-cluster.ts'

/** The needed part of a LiveCluster (src/gateway/state/clusters.ts). */
interface UpstreamView {
  readonly compiled: { readonly name: string; readonly client: CompiledClient }
  readonly endpoints: {
    readonly all: readonly UpstreamEndpointView[]
    /** Whether the endpoint at this index of `all` may take requests. */
    available(index: number, nowMs: number): boolean
  }
}

interface UpstreamEndpointView {
  readonly url: string
  readonly enabled: boolean
  readonly health: { readonly state: 'unknown' | 'healthy' | 'unhealthy' }
  /** `of`: the server that this address belongs to, which its certificate names. Default: it is the server itself. */
  readonly compiled?: { readonly of?: { readonly name: string } }
}

/** How a client calls, other than as the gateway at each endpoint in turn. */
export interface CallsAs {
  /** Impersonated: a user of the gateway's own, with rights of its own. */
  readonly user: string
  /** Stays with an endpoint as long as that is available. Default: each call goes to the next. */
  readonly stays?: boolean
  /** The Warning header fields of each response with code 200. */
  readonly onWarnings?: (values: readonly string[]) => void
}

interface UpstreamKubeClientOptions extends Pick<KubeClientOptions, 'timing' | 'timeoutMs' | 'calls'> {
  /** The current cluster; undefined = it does not exist. */
  cluster(): UpstreamView | undefined
  /** undefined = the operator, not an object, names the server. */
  readonly guard: DialGuard | undefined
  /** For the message if it does not exist. Default: not named. */
  readonly name?: string
  readonly as?: CallsAs
  readonly log: Logger
}

/** Its calls reject with a plain Error while no endpoint of the cluster may take requests. */
export function createUpstreamKubeClient({
  cluster,
  guard,
  name = '',
  as,
  log,
  ...options
}: UpstreamKubeClientOptions): KubeClient {
  const named = name === '' ? log : logWith(log, { cluster: name })
  return clientOf(new UpstreamAccess(cluster, guard, name, as), { ...options, log: named })
}

class UpstreamAccess implements KubeAccessSource {
  readonly #cluster: () => UpstreamView | undefined
  readonly #guard: DialGuard | undefined
  readonly #name: string
  /** Replaced when the object changes. */
  #client: CompiledClient | undefined
  /** Keyed by the name to verify; '' = the host. */
  readonly #tls = new Map<string, KubeAccess['tls']>()
  readonly #as: CallsAs | undefined
  /** Round-robin position among the endpoints. */
  #nextEndpoint = 0
  /** URL of the last one. */
  #endpoint = ''

  constructor(
    cluster: () => UpstreamView | undefined,
    guard: DialGuard | undefined,
    name: string,
    as: CallsAs | undefined,
  ) {
    this.#as = as
    this.#cluster = cluster
    this.#guard = guard
    this.#name = name
  }

  get server(): string {
    return this.#cluster()?.compiled.name ?? ''
  }

  get charge(): Charge {
    return clusterCharge(this.#cluster()?.compiled.name ?? this.#name)
  }

  async access(): Promise<KubeAccess> {
    const live = this.#cluster()
    if (live === undefined) throw new Error(`there is no UpstreamCluster ${this.#name || 'of this name'}`)
    const available = availableOf(live)
    const same = this.#as?.stays === true ? available.find(({ url }) => url === this.#endpoint) : undefined
    const endpoint = same ?? available[this.#nextEndpoint++ % Math.max(available.length, 1)]
    this.#endpoint = endpoint?.url ?? ''
    if (endpoint === undefined) throw new Error(`cluster ${live.compiled.name} ${whyUnavailable(live)}`)
    const { client } = live.compiled
    const { bearerToken } = client
    return {
      server: endpoint.url,
      proxyUrl: '',
      tls: this.#tlsOf(client, endpoint),
      ...(this.#guard !== undefined && { guard: this.#guard }),
      headers: {
        ...(bearerToken !== '' && { authorization: `Bearer ${bearerToken}` }),
        ...(this.#as !== undefined && { 'impersonate-user': this.#as.user }),
      },
    }
  }

  /** Credentials change only with the object. */
  renew(): boolean {
    return false
  }

  warned(values: readonly string[]): void {
    this.#as?.onWarnings?.(values)
  }

  /** A watch moves if its endpoint was removed, another one is better, or the credentials have changed. */
  stillGood(access: KubeAccess): boolean {
    const live = this.#cluster()
    if (live === undefined) return false
    const { client } = live.compiled
    const authorization = client.bearerToken === '' ? undefined : `Bearer ${client.bearerToken}`
    if (access.headers['authorization'] !== authorization) return false
    const endpoint = live.endpoints.all.find(({ url }) => url === access.server)
    if (endpoint === undefined || !endpoint.enabled) return false
    if (!sameTls(access.tls, this.#tlsOf(client, endpoint))) return false
    const available = availableOf(live)
    return available.length === 0 || available.includes(endpoint)
  }

  #tlsOf(client: CompiledClient, { compiled }: UpstreamEndpointView): KubeAccess['tls'] {
    if (this.#client !== client) this.#tls.clear()
    this.#client = client
    const of = compiled?.of?.name ?? ''
    // An address has no name of its own (RFC 6066 section 3).
    const serverName = client.serverName === '' && isIP(of) === 0 ? of : client.serverName
    let tls = this.#tls.get(serverName)
    if (tls === undefined) {
      const { ca, cert, key, insecure } = client
      tls = { ca, cert, key, serverName, insecure }
      this.#tls.set(serverName, tls)
    }
    return tls
  }
}

/** An unchecked endpoint is not unhealthy. */
function whyUnavailable({ endpoints }: UpstreamView): string {
  const enabled = endpoints.all.filter((endpoint) => endpoint.enabled)
  if (enabled.length === 0) return 'has no enabled endpoint'
  const unchecked = enabled.some(({ health }) => health.state === 'unknown')
  return unchecked ? 'has no endpoint that has been checked yet' : 'has no healthy endpoint'
}

function availableOf({ endpoints }: UpstreamView): readonly UpstreamEndpointView[] {
  const now = systemClock.monotonic()
  return endpoints.all.filter((_, index) => endpoints.available(index, now))
}

function sameTls(a: KubeAccess['tls'], b: KubeAccess['tls']): boolean {
  if (a === b) return true
  return (
    a.ca === b.ca && a.cert === b.cert && a.key === b.key && a.serverName === b.serverName && a.insecure === b.insecure
  )
}
