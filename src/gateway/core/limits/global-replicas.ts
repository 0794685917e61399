// Which replicas share the limits: those that Redis has heard from lately. And which part of a limit belongs to this replica
// while Redis is away.

/**
 * How the limits are kept. `shared`: from one account in Redis. `parted`: each replica keeps to its part. `returning`: from
 * Redis, but no more than this replica's part until the others are known to use Redis again.
 */
export type SharingMode = 'shared' | 'returning' | 'parted'

/** This replica's part of a limit: one of `replicas`, the `rank`th from 0. */
export interface ReplicaPart {
  readonly replicas: number
  readonly rank: number
}

const ALONE: ReplicaPart = { replicas: 1, rank: 0 }

/** A replica and when Redis last heard of it, by the clock of Redis. */
export interface ReplicaMember {
  readonly id: string
  readonly heardMs: number
}

/**
 * How long a replica that has reached Redis again keeps to its part while replicas known before are missing. Then they are
 * considered dead. Longer than the longest pause between two attempts to connect.
 */
const RETURN_MS = 4_000

export class ReplicaView {
  readonly #self: string
  readonly #expected: number
  readonly #expectedRank: number
  #members: readonly string[]
  #mode: SharingMode = 'parted'
  /** When the mode became `returning`: by the clock of this replica, and by that of Redis. */
  #returnedMs = 0
  #returnedRedisMs = 0
  #met = false

  /**
   * @param expected how many replicas to assume before Redis has answered; at least 1
   * @param known this replica's part when Redis answered a process before this one; the larger number of replicas counts
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

  /** Ids of the replicas that are alive or, while Redis is away, were alive last. */
  get members(): readonly string[] {
    return this.#members
  }

  get part(): ReplicaPart {
    const replicas = this.#met ? this.#members.length : Math.max(this.#expected, this.#members.length)
    const rank = this.#met ? this.#members.indexOf(this.#self) : this.#expectedRank
    return { replicas, rank: Math.max(0, rank) }
  }

  /** Redis does not answer. */
  onDisconnect(): void {
    this.#mode = 'parted'
  }

  /** Redis has answered which replicas are alive; this one is among them. */
  onMembers(members: readonly ReplicaMember[], redisMs: number, nowMs: number): void {
    if (this.#mode === 'parted') {
      // `shared` at the first answer: a new replica has taken nothing that is not accounted for.
      this.#mode = this.#met ? 'returning' : 'shared'
      this.#returnedMs = nowMs
      this.#returnedRedisMs = redisMs
    }
    if (this.#mode === 'returning' && !this.#allBack(members) && nowMs - this.#returnedMs < RETURN_MS) return
    this.#mode = 'shared'
    this.#met = true
    this.#members = members.map(({ id }) => id).sort()
  }

  /** Replicas that have reached Redis since this one returned take from the same account again. */
  #allBack(members: readonly ReplicaMember[]): boolean {
    const back = new Set(members.filter(({ heardMs }) => heardMs >= this.#returnedRedisMs).map(({ id }) => id))
    return this.#members.every((id) => id === this.#self || back.has(id))
  }
}

/** This replica's part of `total`, a whole number; the parts of all replicas add up to `total`. */
export function wholePart(total: number, { replicas, rank }: ReplicaPart): number {
  return Math.floor(total / replicas) + (rank < total % replicas ? 1 : 0)
}
