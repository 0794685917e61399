// Current state of one cluster's endpoints: health, requests in flight, the last check. State stays with the URL
// when the object changes; the objects themselves are the candidates of a pick, so that a request allocates none.

import type { CompiledEndpoint, CompiledHealthCheck, CompiledPolicy } from '../core/cluster/compiled-cluster.ts'
import {
  createEndpointMemory,
  type EndpointHealth,
  type EndpointMemory,
  ejectable,
  type HealthOfOne,
  isEjected,
  isLateOnly,
  onFailure,
  onProbe,
  onSuccess,
  SharedHealth,
} from '../core/endpoints/endpoint-health.ts'
import { type Cursor, createCursor, type EndpointView, endpointHash, PICKERS } from '../core/endpoints/pick-endpoint.ts'
import { ALONE, type ThreadPlace } from './thread-place.ts'

interface LastProbe {
  readonly ok: boolean
  /** Reason for a failure; '' if ok. */
  readonly message: string
  /** Monotonic milliseconds. */
  readonly atMs: number
}

/** The candidates of one policy. */
interface Candidates {
  readonly endpoints: readonly Endpoint[]
  readonly cursor: Cursor
}

interface EndpointDescription {
  readonly url: string
  readonly disabled: boolean
  readonly state: EndpointHealth['state']
  readonly ejected: boolean
  readonly available: boolean
  readonly inFlight: number
  readonly lastProbe: LastProbe | undefined
}

/** How long requests wait for a first check. Then they are sent all the same, as to servers that never answer checks. */
const FIRST_CHECK_MS = 3_000

/** State of one endpoint shared between threads. */
export interface EndpointHandle {
  readonly url: string
  /** Changes when a removed endpoint is added again. */
  readonly id: number
  readonly memory: EndpointMemory
}

/** One endpoint. The caller reports when a request to it starts and ends. */
export class Endpoint implements EndpointView, HealthOfOne {
  readonly url: string
  /** `host:port` of the server, as written: the `:authority` of requests to it. */
  authority: string
  readonly hash: number
  readonly handle: EndpointHandle
  readonly health: SharedHealth
  compiled: CompiledEndpoint
  /** False once the endpoint was removed from the object; running requests still hold it. */
  listed: boolean = true
  /** As of the last `candidates()` call. */
  available: boolean = false
  lastProbe: LastProbe | undefined

  constructor(compiled: CompiledEndpoint, handle: EndpointHandle, thread: number) {
    this.url = compiled.url
    this.authority = authorityOf(compiled)
    this.hash = endpointHash(compiled.url)
    this.handle = handle
    this.health = new SharedHealth(handle.memory, thread)
    this.compiled = compiled
  }

  get weight(): number {
    return this.compiled.weight
  }

  /** Requests in flight, over all threads. */
  get inFlight(): number {
    return this.health.inFlight
  }

  /** A request was sent here; `ended` follows exactly once. */
  started(): void {
    this.health.count(1)
  }

  ended(): void {
    this.health.count(-1)
  }

  /** Whether the object enables it. */
  get enabled(): boolean {
    return this.listed && !this.compiled.disabled && this.compiled.weight > 0
  }
}

export class EndpointSet {
  #all: readonly Endpoint[] = []
  #byUrl: ReadonlyMap<string, Endpoint> = new Map()
  readonly #candidates = new WeakMap<CompiledPolicy, Candidates>()
  /** By policy index, kept when the object changes: otherwise each change would restart the round robin at the first endpoint. */
  readonly #cursors: Cursor[] = []
  readonly #place: ThreadPlace
  #nextId = 0
  /** False once one was found to be checked, or has been waited for in vain; until the object changes. Read with every request. */
  #mayBeUnchecked = false
  /** Requests wait for a first check. */
  #firstCheck: PromiseWithResolvers<void> | undefined

  constructor(place: ThreadPlace = ALONE) {
    this.#place = place
  }

  /** In the order of spec.servers. */
  get all(): readonly Endpoint[] {
    return this.#all
  }

  /**
   * Applies the servers of a new snapshot. New ones start as unknown: no requests until the first check.
   * @param handles from another thread; otherwise this set creates them
   */
  update(endpoints: readonly CompiledEndpoint[], handles?: readonly EndpointHandle[]): void {
    const before = this.#byUrl
    const after = new Map<string, Endpoint>()
    this.#mayBeUnchecked = true
    for (const compiled of endpoints) {
      const known = before.get(compiled.url)
      const handle =
        handles?.find(({ url }) => url === compiled.url) ?? known?.handle ?? this.#createShare(compiled.url)
      const endpoint = known?.handle.id === handle.id ? known : new Endpoint(compiled, handle, this.#place.thread)
      endpoint.compiled = compiled
      endpoint.authority = authorityOf(compiled)
      after.set(compiled.url, endpoint)
    }
    for (const [url, endpoint] of before) if (after.get(url) !== endpoint) endpoint.listed = false
    this.#all = [...after.values()]
    this.#byUrl = after
    this.#awaitChecks()
  }

  #createShare(url: string): EndpointHandle {
    return { url, id: this.#nextId++, memory: createEndpointMemory(this.#place.threads) }
  }

  /** None of the enabled ones has been checked: requests wait for `firstCheck`, because it is soon known which of them serve. */
  get unchecked(): boolean {
    if (this.#mayBeUnchecked) this.#mayBeUnchecked = this.#isUnchecked()
    return this.#mayBeUnchecked
  }

  #isUnchecked(): boolean {
    let some = false
    for (const { enabled, health } of this.#all) {
      if (!enabled) continue
      if (health.state !== 'unknown') return false
      some = true
    }
    return some
  }

  /**
   * Resolves when one of them has been checked, or 3 s after the first call; then nothing is `unchecked` any more.
   * @param begun called if no request has waited before
   */
  firstCheck(begun: () => void): Promise<void> {
    if (this.#firstCheck === undefined) {
      this.#firstCheck = Promise.withResolvers()
      this.#awaitChecks()
      begun()
    }
    return this.#firstCheck.promise
  }

  /** Those of the object as it is now: it may change while requests wait. */
  #awaitChecks(): void {
    const waiting = this.#firstCheck
    if (waiting === undefined) return
    for (const { enabled, health } of this.#all) {
      if (enabled) void health.checked(FIRST_CHECK_MS).then(() => this.#onFirstCheck(waiting))
    }
  }

  #onFirstCheck(waiting: PromiseWithResolvers<void>): void {
    if (this.#firstCheck !== waiting) return
    this.#firstCheck = undefined
    this.#mayBeUnchecked = false
    waiting.resolve()
  }

  /** For threads that share this set's state. */
  handles(): readonly EndpointHandle[] {
    return this.#all.map(({ handle }) => handle)
  }

  /** A thread has died: its requests no longer count. */
  releaseThread(thread: number): void {
    for (const endpoint of this.#all) endpoint.health.releaseThread(thread)
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
   * The candidates of a policy, with `available` at `nowMs` and relative to each other: the last one of a subset is never
   * ejected. `endpoints` is from the same snapshot as `policy`, which may be older than this set.
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
    if (found.cursor.total === 0 && this.#place.thread > 0) this.#beginElsewhere(found)
    return found
  }

  /** Threads start their round robin at different endpoints; otherwise the first one would get the first request of each. */
  #beginElsewhere({ endpoints, cursor }: Candidates): void {
    const context = { random: () => 0, cursor, affinityHash: 0 }
    for (let i = this.#place.thread % Math.max(endpoints.length, 1); i > 0; i--) PICKERS.RoundRobin(endpoints, context)
  }

  #cursorOf(policy: number): Cursor {
    const known = this.#cursors[policy]
    if (known !== undefined) return known
    const cursor = createCursor()
    this.#cursors[policy] = cursor
    return cursor
  }

  /** @returns whether it counts: a late probe (sent at `lateSinceMs`) doesn't if requests were answered meanwhile */
  onProbe(
    endpoint: Endpoint,
    ok: boolean,
    message: string,
    check: CompiledHealthCheck,
    nowMs: number,
    lateSinceMs?: number,
  ): boolean {
    const counts = onProbe(endpoint.health, ok, check, lateSinceMs)
    endpoint.lastProbe = { ok, message: counts ? message : `${message}, but requests are answered`, atMs: nowMs }
    return counts
  }

  /** A request failed because of the endpoint. */
  onFailure(endpoint: Endpoint, nowMs: number): void {
    // Two threads may see the same apiserver die.
    endpoint.health.lock()
    onFailure(endpoint.health, nowMs)
    endpoint.health.unlock()
  }

  /** A request got a response head from the endpoint. */
  onSuccess(endpoint: Endpoint, nowMs: number, code: number): void {
    onSuccess(endpoint.health, nowMs, code)
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

function authorityOf({ url, of }: CompiledEndpoint): string {
  const server = of?.url ?? url
  return server.slice(server.indexOf('//') + 2)
}

function isAvailable(all: readonly Endpoint[], index: number, nowMs: number): boolean {
  if (!takesRequests(all, index, nowMs)) return isLastResort(all, index, nowMs)
  if (all[index]?.compiled.backup !== true) return true
  for (let i = 0; i < all.length; i++) {
    if (all[i]?.compiled.backup !== true && takesRequests(all, i, nowMs)) return false
  }
  return true
}

/** No endpoint takes requests, and this one is merely late. */
function isLastResort(all: readonly Endpoint[], index: number, nowMs: number): boolean {
  const endpoint = all[index]
  if (endpoint === undefined || !endpoint.enabled || !isLateOnly(endpoint.health, nowMs)) return false
  for (let i = 0; i < all.length; i++) if (takesRequests(all, i, nowMs)) return false
  return true
}

function takesRequests(all: readonly Endpoint[], index: number, nowMs: number): boolean {
  const endpoint = all[index]
  if (endpoint === undefined || !endpoint.enabled || endpoint.health.state !== 'healthy') return false
  return !isEjected(endpoint.health, nowMs) || !ejectable(all, index, nowMs)
}
