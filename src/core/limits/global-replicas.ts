// Who shares the limits: the replicas that Redis has heard of lately, and what part of a limit is this one's when Redis
// is away.

/** How the limits are kept: out of one account in Redis; the same, but no more than this replica's part, until the others are known to take theirs from Redis too; by parts alone. */
export type SharingMode = 'shared' | 'returning' | 'parted'

/** This replica's part of a limit: one of `replicas`, the `rank`th from 0. */
export interface ReplicaPart {
  readonly replicas: number
  readonly rank: number
}

/** A replica and when Redis last heard of it, by the clock of Redis. */
export interface ReplicaMember {
  readonly id: string
  readonly heardMs: number
}

/**
 * How long a replica that has found Redis again keeps to its part while others of before are missing. After that they are
 * taken for dead. Longer than the longest pause between two attempts to connect.
 */
const RETURN_MS = 4_000

export class ReplicaView {
  readonly #self: string
  readonly #expected: number
  #members: readonly string[]
  #mode: SharingMode = 'parted'
  /** When it began to return: by the clock of this replica, and by that of Redis. */
  #returnedMs = 0
  #returnedRedisMs = 0
  #met = false

  /** @param expected how many replicas there are, as far as nobody has heard of any; at least 1 */
  constructor(self: string, expected: number) {
    this.#self = self
    this.#expected = Math.max(1, expected)
    this.#members = [self]
  }

  get mode(): SharingMode {
    return this.#mode
  }

  /** Ids of those alive, or, with Redis away, of those who were. */
  get members(): readonly string[] {
    return this.#members
  }

  get part(): ReplicaPart {
    const replicas = this.#met ? this.#members.length : Math.max(this.#expected, this.#members.length)
    return { replicas, rank: Math.max(0, this.#members.indexOf(this.#self)) }
  }

  /** Redis does not answer. */
  onDisconnect(): void {
    this.#mode = 'parted'
  }

  /** Redis has answered who is there; this replica is among them. */
  onMembers(members: readonly ReplicaMember[], redisMs: number, nowMs: number): void {
    if (this.#mode === 'parted') {
      // Nobody to wait for: whoever comes new takes nothing that is not accounted for.
      this.#mode = this.#met ? 'returning' : 'shared'
      this.#returnedMs = nowMs
      this.#returnedRedisMs = redisMs
    }
    if (this.#mode === 'returning' && !this.#allBack(members) && nowMs - this.#returnedMs < RETURN_MS) return
    this.#mode = 'shared'
    this.#met = true
    this.#members = members.map(({ id }) => id).sort()
  }

  /** Whoever has spoken to Redis since this one is back takes from the same account again. */
  #allBack(members: readonly ReplicaMember[]): boolean {
    const back = new Set(members.filter(({ heardMs }) => heardMs >= this.#returnedRedisMs).map(({ id }) => id))
    return this.#members.every((id) => id === this.#self || back.has(id))
  }
}

/** A whole part of `total`; the parts of all replicas sum up to it. */
export function wholePart(total: number, { replicas, rank }: ReplicaPart): number {
  return Math.floor(total / replicas) + (rank < total % replicas ? 1 : 0)
}
