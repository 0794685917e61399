// Detects changes in statuses that come without an event: endpoints, certificates, shared limits, and dead replicas. Sweeps over
// all clusters continuously, a slice at a time.

import type { Clock } from '../../../kit/api/ports.ts'
import { sameJson } from '../../../kit/core/text/same-json.ts'
import type { Leading } from '../../../kube/controllers/kernel/leadership.ts'
import type { CachedResourceInForce } from '../../api/upstream-cluster/read-cache/read-cache-in-force.ts'
import type { GatewayProtection } from '../../api/upstream-cluster/status.ts'
import type { CellClocks } from '../../core/clocks/cell-clock.ts'
import { shownCache } from '../../core/status/cached-resources.ts'
import type { AutoscalerFact } from '../../core/status/status-facts.ts'
import { type ClusterRights, type LiveClusters, liveSignature } from './facts.ts'
import { type KnownCluster, statusOf } from './known.ts'
import { clientsSeen, refusedDisruptive } from './wanted.ts'

/** The state that a sweep reads. */
interface LiveState {
  readonly clusters: LiveClusters
  readonly clock: Clock
  rights(cluster: string): ClusterRights
  readonly clocks?: CellClocks
  readonly leadership: Pick<Leading, 'isLeader'>
  limitsMessage?(cluster: string): string
  podProtection?(cluster: string): GatewayProtection | undefined
  readCache?(cluster: string): readonly CachedResourceInForce[]
  autoscaler?(cluster: string): AutoscalerFact | undefined
}

interface StatusSweepDeps {
  readonly live: LiveState
  known(): ReadonlyMap<string, KnownCluster>
  /** Duration of a sweep, in which `step` is called SWEEP_SLICES times. */
  readonly roundMs: number
  /** Whether a replica is dead. */
  isGone(replica: string): boolean
  /** The status of this cluster may have changed. */
  onChanged(cluster: string): void
}

/** Each sweep is divided into this many slices, so that thousands of clusters don't block other work. */
export const SWEEP_SLICES = 10

export class StatusSweep {
  readonly #deps: StatusSweepDeps
  /** Position of the current sweep. */
  #swept: Iterator<[string, KnownCluster], undefined> = [].values()
  #nextOwnMs = 0

  constructor(deps: StatusSweepDeps) {
    this.#deps = deps
  }

  /** Processes the next slice. */
  step(): void {
    const { live } = this.#deps
    const known = this.#deps.known()
    this.#lookAtOwn()
    if (!live.leadership.isLeader()) return
    for (let left = Math.ceil(known.size / SWEEP_SLICES); left > 0; left--) {
      const { value, done } = this.#swept.next()
      if (done === true) {
        this.#swept = known.entries()
        return
      }
      this.#look(...value)
    }
  }

  /** Each replica reports in its own entry whether it shares limits, how it protects pods, what it caches, and which clients came through it. */
  #lookAtOwn(): void {
    const { live, known, roundMs } = this.#deps
    const nowMs = live.clock.monotonic()
    if (nowMs < this.#nextOwnMs) return
    this.#nextOwnMs = nowMs + roundMs
    for (const [name, { limitsMessage, podProtection, cache, lastSeen, refused }] of known()) {
      const same =
        (live.limitsMessage?.(name) ?? '') === limitsMessage &&
        sameJson(live.podProtection?.(name), podProtection) &&
        shownCache(live.readCache?.(name) ?? [], cache, nowMs) === cache &&
        sameJson(clientsSeen(live.clusters, name), lastSeen) &&
        refusedDisruptive(live.clusters, name, live.clock.now()) === refused
      if (!same) this.#deps.onChanged(name)
    }
  }

  #look(name: string, known: KnownCluster): void {
    const signature = liveSignature(this.#deps.live, name)
    if (signature === known.signature && !this.#hasGone(known)) return
    known.signature = signature
    this.#deps.onChanged(name)
  }

  #hasGone({ object }: KnownCluster): boolean {
    return statusOf(object)?.gateways?.some(({ name }) => this.#deps.isGone(name)) ?? false
  }
}
