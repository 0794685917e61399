// Follows the addresses of servers that have `resolve`: looks their names up when the TTL is over, and has their cluster compiled again when
// they are others. What cannot be found out changes nothing. Each replica does this by itself: DNS may answer differently elsewhere.

import type { Clock, Logger } from '../../api/ports/ports.ts'
import { NO_ADDRESSES, type ServerAddresses } from '../../core/cluster/compile-settings.ts'
import type { CompiledCluster, CompiledEndpoint, FollowedServer } from '../../core/cluster/compiled-cluster.ts'
import {
  addressesIn,
  addressesInForce,
  type LookedUp,
  nextLookUpMs,
  type Resolution,
  resolution,
} from '../../core/endpoints/resolution.ts'
import type { ServerFact } from '../../core/status/status-facts.ts'
import type { LiveCluster } from '../../state/clusters.ts'
import { LookUpTurns } from './look-up-turns.ts'

export interface FollowedServersDeps {
  /** Never rejects. */
  lookUp(name: string): Promise<LookedUp>
  readonly clusters: { get(name: string): LiveCluster | undefined }
  readonly clock: Pick<Clock, 'monotonic'>
  readonly log: Logger
  /** The addresses of a server of this cluster are others now. */
  onChange(cluster: string): void
}

/** What came of the look-ups of one server. */
export interface LookUpCounts {
  found: number
  /** Neither an address nor an error. */
  empty: number
  error: number
}

export interface FollowedServerState extends ServerFact {
  readonly cluster: string
  readonly counts: Readonly<LookUpCounts>
}

/** How often it is looked whether a new address is healthy, while those before it serve on ... */
const SETTLE_MS = 250
/** ... and for how long at most. */
const SETTLE_WITHIN_MS = 30_000

export class FollowedServers {
  readonly #deps: FollowedServersDeps
  /** By cluster, then server. */
  readonly #entries = new Map<string, Map<string, Entry>>()
  readonly #turns = new LookUpTurns()

  constructor(deps: FollowedServersDeps) {
    this.#deps = deps
  }

  /** Of the servers of a cluster, as far as they are known. */
  addresses(cluster: string): ServerAddresses {
    const entries = this.#entries.get(cluster)
    if (entries === undefined) return NO_ADDRESSES
    const known = new Map<string, readonly string[]>()
    for (const [server, { inForce }] of entries) if (inForce.length > 0) known.set(server, inForce)
    return known
  }

  /** Follows a change of the cluster table: new servers are looked up at once. */
  change(changed: readonly CompiledCluster[], removed: readonly string[]): void {
    for (const name of removed) this.#keepOnly(name, new Map())
    for (const { name, endpoints } of changed) {
      const before = this.#entries.get(name)
      const after = new Map<string, Entry>()
      for (const of of endpoints.flatMap(serversOf)) {
        if (after.has(of.url)) continue
        after.set(of.url, before?.get(of.url) ?? new Entry(name, of, this.#deps, this.#turns))
      }
      this.#keepOnly(name, after)
    }
  }

  #keepOnly(cluster: string, after: Map<string, Entry>): void {
    const before = this.#entries.get(cluster)
    if (after.size === 0) this.#entries.delete(cluster)
    else this.#entries.set(cluster, after)
    for (const [server, entry] of before ?? []) if (!after.has(server)) entry.stop()
    for (const entry of after.values()) entry.start()
  }

  /** In the order of their endpoints; undefined = the cluster has none that is followed. */
  ofCluster(cluster: string): readonly ServerFact[] | undefined {
    const entries = this.#entries.get(cluster)
    return entries && [...entries.values()].map((entry) => entry.state)
  }

  all(): readonly FollowedServerState[] {
    return [...this.#entries.values()].flatMap((entries) => [...entries.values()].map((entry) => entry.state))
  }

  stop(): void {
    for (const name of [...this.#entries.keys()]) this.#keepOnly(name, new Map())
  }
}

/** Those of which the endpoint is an address. */
function serversOf({ of, also = [] }: CompiledEndpoint): readonly FollowedServer[] {
  return of === undefined ? also : [of, ...also]
}

class Entry {
  readonly #cluster: string
  readonly #server: FollowedServer
  readonly #deps: FollowedServersDeps
  readonly #turns: LookUpTurns
  readonly #counts: LookUpCounts = { found: 0, empty: 0, error: 0 }
  /** What serves: addresses, and the name itself where it still serves as written. Empty = nothing is known. */
  inForce: readonly string[] = []
  #known: Resolution | undefined
  #failures = 0
  #message = ''
  #started = false
  #stopped = false
  #lookUpTimer: NodeJS.Timeout | undefined
  #settleTimer: NodeJS.Timeout | undefined
  /** What served before the addresses that are not healthy yet, and how long it may; undefined = nothing of it serves. */
  #leaving: { readonly before: readonly string[]; readonly untilMs: number } | undefined

  constructor(cluster: string, server: FollowedServer, deps: FollowedServersDeps, turns: LookUpTurns) {
    this.#turns = turns
    this.#cluster = cluster
    this.#server = server
    this.#deps = deps
  }

  get state(): FollowedServerState {
    const addresses = this.#known === undefined ? [] : addressesIn(this.#known)
    const { v4 = [], v6 = [] } = this.#known ?? {}
    return {
      cluster: this.#cluster,
      server: this.#server.url,
      addresses,
      omitted: v4.length + v6.length - addresses.length,
      message: this.#message,
      counts: this.#counts,
    }
  }

  start(): void {
    if (this.#started) return
    this.#started = true
    void this.#lookUp()
  }

  stop(): void {
    this.#stopped = true
    clearTimeout(this.#lookUpTimer)
    clearTimeout(this.#settleTimer)
  }

  async #lookUp(): Promise<void> {
    await this.#turns.begin()
    const found = this.#stopped ? undefined : await this.#deps.lookUp(this.#server.name)
    this.#turns.end()
    if (found === undefined || this.#stopped) return
    this.#count(found)
    const before = this.#known
    this.#known = resolution(before, found)
    this.#lookUpTimer = setTimeout(() => void this.#lookUp(), nextLookUpMs(found, this.#failures))
    this.#lookUpTimer.unref()
    if (this.#known === undefined) return
    this.#settle(addressesIn(this.#known))
  }

  #count({ v4, v6, message }: LookedUp): void {
    const { log } = this.#deps
    const empty = message === '' && (v4?.length ?? 0) + (v6?.length ?? 0) === 0
    if (message !== '') this.#counts.error++
    else if (empty) this.#counts.empty++
    else this.#counts.found++
    this.#message = empty ? 'the name has no address' : message
    const fields = { cluster: this.#cluster, server: this.#server.url }
    if (this.#message !== '' && this.#failures === 0) {
      log.warn('a server cannot be looked up; the addresses known stay in use', { ...fields, reason: this.#message })
    }
    if (this.#message === '' && this.#failures > 0) log.info('a server can be looked up again', fields)
    this.#failures = this.#message === '' ? 0 : this.#failures + 1
  }

  /** Puts the addresses in force, or for now together with those before. */
  #settle(wanted: readonly string[]): void {
    clearTimeout(this.#settleTimer)
    const { clock, log, onChange } = this.#deps
    const nowMs = clock.monotonic()
    // One time for all changes meanwhile: a name that changes at each look-up would otherwise keep all that it ever was.
    this.#leaving ??= {
      before: this.inForce.length === 0 ? [this.#server.name] : this.inForce,
      untilMs: nowMs + SETTLE_WITHIN_MS,
    }
    const { before, untilMs } = this.#leaving
    const late = nowMs >= untilMs
    const next = late ? wanted : addressesInForce(before, wanted, (address) => this.#isHealthy(address))
    if (next.length === wanted.length) this.#leaving = undefined
    else {
      this.#settleTimer = setTimeout(() => this.#settle(wanted), SETTLE_MS)
      this.#settleTimer.unref()
    }
    if (next.join() === this.inForce.join()) return
    this.inForce = next
    const server = this.#server.url
    log.info('the addresses of a server have changed', { cluster: this.#cluster, server, addresses: next })
    onChange(this.#cluster)
  }

  #isHealthy(address: string): boolean {
    const all = this.#deps.clusters.get(this.#cluster)?.endpoints.all ?? []
    return all.some(({ compiled, health, enabled }) => {
      const isOurs = serversOf(compiled).some(({ url }) => url === this.#server.url) && compiled.host === address
      return isOurs && (health.state === 'healthy' || !enabled)
    })
  }
}
