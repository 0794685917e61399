// The endpoints of one cluster as they are now: health, requests in flight, the last check. State stays with the URL
// when the object changes; the objects are the candidates of a pick, so that a request allocates none.

import type { CompiledEndpoint, CompiledHealthCheck, CompiledPolicy } from '../core/compiled-cluster.ts'
import {
  createHealth,
  type EndpointHealth,
  ejectable,
  type HealthOfOne,
  isEjected,
  onFailure,
  onProbe,
  onSuccess,
} from '../core/endpoint-health.ts'
import { type Cursor, createCursor, type EndpointView, endpointHash } from '../core/pick-endpoint.ts'

export interface LastProbe {
  readonly ok: boolean
  /** Why not; '' when ok. */
  readonly message: string
  /** Monotonic milliseconds. */
  readonly atMs: number
}

/** The candidates of one policy. */
export interface Candidates {
  readonly endpoints: readonly Endpoint[]
  readonly cursor: Cursor
}

export interface EndpointDescription {
  readonly url: string
  readonly disabled: boolean
  readonly state: EndpointHealth['state']
  readonly ejected: boolean
  readonly available: boolean
  readonly inFlight: number
  readonly lastProbe: LastProbe | undefined
}

/** One endpoint. Who forwards a request tells when it starts and ends. */
export class Endpoint implements EndpointView, HealthOfOne {
  readonly url: string
  readonly hash: number
  readonly health: EndpointHealth = createHealth()
  compiled: CompiledEndpoint
  /** False once the endpoint has left the object; running requests still hold it. */
  listed: boolean = true
  /** As of the last `candidates()` call. */
  available: boolean = false
  inFlight = 0
  lastProbe: LastProbe | undefined

  constructor(compiled: CompiledEndpoint) {
    this.url = compiled.url
    this.hash = endpointHash(compiled.url)
    this.compiled = compiled
  }

  get weight(): number {
    return this.compiled.weight
  }

  /** A request was sent here; `ended` follows once. */
  started(): void {
    this.inFlight++
  }

  ended(): void {
    this.inFlight--
  }

  /** Takes requests as far as the object goes. */
  get enabled(): boolean {
    return this.listed && !this.compiled.disabled && this.compiled.weight > 0
  }
}

export class EndpointSet {
  #all: readonly Endpoint[] = []
  #byUrl: ReadonlyMap<string, Endpoint> = new Map()
  readonly #candidates = new WeakMap<CompiledPolicy, Candidates>()
  /** By the policy's index, over changes of the object: otherwise each change would begin a new round at the first endpoint. */
  readonly #cursors: Cursor[] = []

  /** In the order of spec.servers. */
  get all(): readonly Endpoint[] {
    return this.#all
  }

  /** Takes over the servers of a new snapshot. New ones begin unknown: no requests until the first check. */
  update(endpoints: readonly CompiledEndpoint[]): void {
    const before = this.#byUrl
    const after = new Map<string, Endpoint>()
    for (const compiled of endpoints) {
      const endpoint = before.get(compiled.url) ?? new Endpoint(compiled)
      endpoint.compiled = compiled
      after.set(compiled.url, endpoint)
    }
    for (const [url, endpoint] of before) if (!after.has(url)) endpoint.listed = false
    this.#all = [...after.values()]
    this.#byUrl = after
  }

  byUrl(url: string): Endpoint | undefined {
    return this.#byUrl.get(url)
  }

  /** The endpoint at `index` of spec.servers. */
  view(index: number): Endpoint | undefined {
    return this.#all[index]
  }

  /** Whether the endpoint at `index` may take requests, among all endpoints of the cluster. */
  available(index: number, nowMs: number): boolean {
    return isAvailable(this.#all, index, nowMs)
  }

  /**
   * The candidates of a policy, with `available` as of `nowMs` and among themselves: the last one of a subset is not
   * ejected either. `endpoints` is of the same snapshot as `policy`, which may be older than this set.
   */
  candidates(endpoints: readonly CompiledEndpoint[], policy: CompiledPolicy, nowMs: number): Candidates {
    let found = this.#candidates.get(policy)
    if (found === undefined) {
      const listed = policy.endpoints.map((index) => this.#byUrl.get(endpoints[index]?.url ?? ''))
      found = { endpoints: listed.filter((endpoint) => endpoint !== undefined), cursor: this.#cursorOf(policy.index) }
      this.#candidates.set(policy, found)
    }
    for (let i = 0; i < found.endpoints.length; i++) {
      const endpoint = found.endpoints[i]
      if (endpoint !== undefined) endpoint.available = isAvailable(found.endpoints, i, nowMs)
    }
    return found
  }

  #cursorOf(policy: number): Cursor {
    const known = this.#cursors[policy]
    if (known !== undefined) return known
    const cursor = createCursor()
    this.#cursors[policy] = cursor
    return cursor
  }

  onProbe(endpoint: Endpoint, ok: boolean, message: string, check: CompiledHealthCheck, nowMs: number): void {
    endpoint.lastProbe = { ok, message, atMs: nowMs }
    onProbe(endpoint.health, ok, check, nowMs)
  }

  /** A request failed for the endpoint's sake. */
  onFailure(endpoint: Endpoint, nowMs: number): void {
    onFailure(endpoint.health, nowMs)
  }

  /** A request got a response head from the endpoint. */
  onSuccess(endpoint: Endpoint, nowMs: number): void {
    onSuccess(endpoint.health, nowMs)
  }

  describe(nowMs: number): readonly EndpointDescription[] {
    return this.#all.map((endpoint, index) => ({
      url: endpoint.url,
      disabled: endpoint.compiled.disabled,
      state: endpoint.health.state,
      ejected: isEjected(endpoint.health, nowMs) && ejectable(this.#all, index, nowMs),
      available: isAvailable(this.#all, index, nowMs),
      inFlight: endpoint.inFlight,
      lastProbe: endpoint.lastProbe,
    }))
  }
}

function isAvailable(all: readonly Endpoint[], index: number, nowMs: number): boolean {
  const endpoint = all[index]
  if (endpoint === undefined || !endpoint.enabled || endpoint.health.state !== 'healthy') return false
  return !isEjected(endpoint.health, nowMs) || !ejectable(all, index, nowMs)
}
