// In a gateway thread: applies the snapshots of the main thread. New requests see them at once. Ends requests that run on
// removed endpoints or clusters, or for a revoked user.

import type { Clock } from '../../kit/api/ports.ts'
import type { Tickable } from '../../kit/io/world/coarse-ticker.ts'
import { type CompiledCluster, handsOver } from '../core/cluster/compiled-cluster.ts'
import type { AccessGrantInForce } from '../core/identity/access-grants.ts'
import type { TlsContexts } from '../io/listener/tls-contexts.ts'
import type { Upstreams } from '../io/upstream/upstreams.ts'
import type { AccessGrants } from '../state/access-grants.ts'
import type { ClusterHandle, ClusterTable } from '../state/clusters.ts'
import type { RunningRequests } from '../state/running.ts'

interface FollowerDeps {
  readonly clusters: ClusterTable
  readonly upstreams: Upstreams
  readonly contexts: TlsContexts
  readonly running: RunningRequests
  readonly clock: Clock
  random(): number
  /** Requests that outlive their endpoint are ended within this time. */
  readonly drainTimeoutMs: number
  /** Number of threads that share limits valid for all of them together. */
  readonly threads: number
}

export interface SnapshotFollower {
  /** A new or changed cluster. */
  stage(handle: ClusterHandle): void
  /** Applies what was staged, and drops `removed`. @returns the clusters that were staged */
  commit(generation: number, removed: readonly string[]): readonly CompiledCluster[]
}

export function createSnapshotFollower(deps: FollowerDeps): SnapshotFollower {
  const { clusters, upstreams, contexts, clock } = deps
  let staged: ClusterHandle[] = []
  return {
    stage: (handle) => void staged.push({ ...handle, compiled: ownPart(handle.compiled, deps.threads) }),
    commit(generation, removed) {
      const changed = staged
      staged = []
      const compiled = changed.map((handle) => handle.compiled)
      const names = [...removed, ...compiled.map(({ name }) => name)]
      const before = endpointsOf(clusters, names)
      clusters.follow(changed, removed, generation, clock.monotonic())
      contexts.change(compiled, removed)
      for (const name of removed) upstreams.remove(name)
      for (const cluster of compiled) upstreams.update(cluster)
      endOrphans(deps, before, endpointsOf(clusters, names))
      endRevoked(deps, compiled)
      endHandedOver(deps, names)
      return compiled
    },
  }
}

/** clientConfig.qps holds for all threads together. They rarely make these calls, so each gets an equal part. */
function ownPart(compiled: CompiledCluster, threads: number): CompiledCluster {
  const { client } = compiled
  if (threads === 1 || client.qps <= 0) return compiled
  const burst = Math.max(1, Math.floor(client.burst / threads))
  return { ...compiled, client: { ...client, qps: client.qps / threads, burst } }
}

/** Endpoints, and whether each is a backup. */
function endpointsOf(clusters: ClusterTable, names: readonly string[]): ReadonlyMap<string, boolean> {
  const all = new Map<string, boolean>()
  for (const name of names) {
    for (const { url, backup = false } of clusters.get(name)?.compiled.endpoints ?? []) {
      all.set(`${name} ${url}`, backup)
    }
  }
  return all
}

/** On every change of the cluster, not only after a revocation: changes are rare, and this only checks running requests. */
function endRevoked({ running }: FollowerDeps, changed: readonly CompiledCluster[]): void {
  for (const { name, authentication } of changed) {
    if (authentication.revoked !== undefined) running.abortRevoked(name, authentication.revoked)
  }
}

/** Sessions in a member that is none any more, or does not trust the users any more; also if the cluster with members is gone. */
function endHandedOver({ running, clusters }: FollowerDeps, changed: readonly string[]): void {
  for (const name of changed) {
    running.abortHandedOver(name, (member) => handsOver(clusters.get(name)?.compiled, member))
  }
}

/**
 * Ends watches and upgraded connections on an endpoint that was removed or has become a backup, spread over the drain time;
 * short requests finish by themselves.
 */
function endOrphans(
  deps: FollowerDeps,
  before: ReadonlyMap<string, boolean>,
  after: ReadonlyMap<string, boolean>,
): void {
  const stays = (endpoint: string, backup: boolean): boolean => backup || after.get(endpoint) === false
  const gone = [...before].filter(([endpoint, backup]) => !after.has(endpoint) || !stays(endpoint, backup))
  const removed = new Set(gone.map(([endpoint]) => endpoint))
  if (removed.size === 0) return
  for (const request of deps.running.longRunning(({ cluster, endpoint }) => removed.has(`${cluster} ${endpoint}`))) {
    setTimeout(() => request.finish(), deps.random() * deps.drainTimeoutMs).unref()
  }
}

// In a gateway thread: applies the access grants that the main thread tells of. A grant ends by the thread's own clock, too, and with it all requests that
// it let in.

interface ThreadGrantsDeps {
  readonly grants: AccessGrants
  readonly running: RunningRequests
  readonly clock: Clock
}

export class ThreadGrants implements Tickable {
  readonly #deps: ThreadGrantsDeps

  constructor(deps: ThreadGrantsDeps) {
    this.#deps = deps
  }

  replace(all: readonly AccessGrantInForce[]): void {
    const { grants, running, clock } = this.#deps
    grants.replace(all, clock.now(), clock.monotonic())
    grants.endExpired(clock.now(), clock.monotonic())
    running.abortGranted()
  }

  /** Once a second. */
  tick(): void {
    const { grants, running, clock } = this.#deps
    if (!grants.isEmpty && grants.endExpired(clock.now(), clock.monotonic())) running.abortGranted()
  }
}
