// What changes in statuses without a word from anybody: endpoints, certificates, shared limits, replicas that go, and who leads.
// It is looked at again and again, a part of the clusters at a time.

import type { Clock } from '../../api/ports/ports.ts'
import type { GatewayProtection } from '../../api/upstream-cluster/status.ts'
import type { CellClocks } from '../../core/protection/clocks/cell-clock.ts'
import { sameJson } from '../../core/text/same-json.ts'
import { type ClusterRights, type LiveClusters, liveSignature } from './facts.ts'
import type { KnownCluster, KnownClusters } from './known.ts'
import { statusOf } from './objects.ts'

/** What is looked at. */
export interface LiveState {
  readonly clusters: LiveClusters
  readonly clock: Clock
  rights(cluster: string): ClusterRights
  readonly clocks?: CellClocks
  isLeader(): boolean
  limitsMessage?(cluster: string): string
  podProtection?(cluster: string): GatewayProtection | undefined
}

export interface StatusSweepDeps {
  readonly live: LiveState
  readonly known: KnownClusters
  /** In which `step` is called SWEEP_SLICES times. */
  readonly roundMs: number
  /** Whether a replica is. */
  isGone(replica: string): boolean
  /** There may be something else to say of this cluster. */
  onChanged(cluster: string): void
}

/** A round is made in so many pieces, so that thousands of clusters hold up nothing else. */
export const SWEEP_SLICES = 10

export class StatusSweep {
  readonly #deps: StatusSweepDeps
  #wasLeader = false
  /** The round that is being made. */
  #swept: MapIterator<[string, KnownCluster]>
  #nextOwnMs = 0

  constructor(deps: StatusSweepDeps) {
    this.#deps = deps
    this.#swept = deps.known.entries()
  }

  /** The next piece of the round. */
  step(): void {
    const { live, known } = this.#deps
    const leads = live.isLeader()
    const everything = leads && !this.#wasLeader
    this.#wasLeader = leads
    this.#lookAtOwn()
    if (!leads) return
    if (everything) for (const name of known.names()) this.#deps.onChanged(name)
    for (let left = Math.ceil(known.size / SWEEP_SLICES); left > 0; left--) {
      const { value, done } = this.#swept.next()
      if (done === true) {
        this.#swept = known.entries()
        return
      }
      this.#look(...value)
    }
  }

  /** Each replica says of itself when it keeps limits alone, and what it does to protect pods. */
  #lookAtOwn(): void {
    const { live, known, roundMs } = this.#deps
    const nowMs = live.clock.monotonic()
    if (nowMs < this.#nextOwnMs) return
    this.#nextOwnMs = nowMs + roundMs
    for (const [name, { limitsMessage, podProtection }] of known.entries()) {
      const same =
        (live.limitsMessage?.(name) ?? '') === limitsMessage && sameJson(live.podProtection?.(name), podProtection)
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
