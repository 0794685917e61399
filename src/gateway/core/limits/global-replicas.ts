// Which replicas share the limits (those that Redis has heard from recently), and which part of a limit belongs to this replica while Redis
// is unavailable.

/**
 * How limits are enforced. `shared`: from one account in Redis. `parted`: each replica keeps to its part. `returning`: from Redis, but at
 * most this replica's part until the others are known to use Redis again.
 */
export type SharingMode = 'shared' | 'returning' | 'parted'

/** This replica's part of a limit: one of `replicas`, with this rank, counted from 0. */
export interface ReplicaPart {
  readonly replicas: number
  readonly rank: number
}

const ALONE: ReplicaPart = { replicas: 1, rank: 0 }

/** A replica, and when Redis last heard from it, by Redis's clock. */
export interface ReplicaMember {
  readonly id: string
  readonly heardMs: number
}

/**
 * How long a replica that has reached Redis again keeps to its part while known replicas are missing; after that they are considered dead.
 * Longer than the longest pause between two connection attempts.
 */
const RETURN_MS = 4_000

export class ReplicaView {
  readonly #self: string
  readonly #expected: number
  readonly #expectedRank: number
  #members: readonly string[]
  #mode: SharingMode = 'parted'
  /** When the mode became `returning`: by this replica's clock, and by Redis's. */
  #returnedMs = 0
  #returnedRedisMs = 0
  #met = false

  /**
   * @param expected number of replicas to assume until Redis has answered; at least 1
   * @param known this replica's part when Redis last answered an earlier process; the larger number of replicas counts
   */
  constructor(self: string, expected: number, known: ReplicaPart = ALONE) {
    this.#self = self
    this.#expected = Math.max(1, expected, known.replicas)
    this.#expectedRank = Math.min(known.rank, this.#expected - 1)
    this.#members = [self]
  }

  get mode(): SharingMode {
    return this.#mode
  }

  /** Ids of the live replicas or, while Redis is unavailable, of those last seen alive. */
  get members(): readonly string[] {
    return this.#members
  }

  get part(): ReplicaPart {
    const replicas = this.#met ? this.#members.length : Math.max(this.#expected, this.#members.length)
    const rank = this.#met ? this.#members.indexOf(this.#self) : this.#expectedRank
    return { replicas, rank: Math.max(0, rank) }
  }

  /** Redis stopped answering. */
  onDisconnect(): void {
    this.#mode = 'parted'
  }

  /** Redis has returned the live replicas, including this one. */
  onMembers(members: readonly ReplicaMember[], redisMs: number, nowMs: number): void {
    if (this.#mode === 'parted') {
      // `shared` on the first answer: a new replica has taken nothing unaccounted for.
      this.#mode = this.#met ? 'returning' : 'shared'
      this.#returnedMs = nowMs
      this.#returnedRedisMs = redisMs
    }
    if (this.#mode === 'returning' && !this.#allBack(members) && nowMs - this.#returnedMs < RETURN_MS) return
    this.#mode = 'shared'
    this.#met = true
    this.#members = members.map(({ id }) => id).sort()
  }

  /** Replicas that have reached Redis since this one returned take from the shared account again. */
  #allBack(members: readonly ReplicaMember[]): boolean {
    const back = new Set(members.filter(({ heardMs }) => heardMs >= this.#returnedRedisMs).map(({ id }) => id))
    return this.#members.every((id) => id === this.#self || back.has(id))
  }
}

/** This replica's part of `total`, a whole number; the parts of all replicas add up to `total`. */
export function wholePart(total: number, { replicas, rank }: ReplicaPart): number {
  return Math.floor(total / replicas) + (rank < total % replicas ? 1 : 0)
}
