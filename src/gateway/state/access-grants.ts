// The access grants of a gateway thread, by the users and groups that they are for. A grant that has once ended stays ended, whatever the clock says
// later.

import type { UserInfo } from '../../kube/api/user.ts'
import type { AccessGrantInForce } from '../core/identity/access-grants.ts'

/** A grant, as requests that it let in refer to it. */
export interface HeldGrant {
  readonly grant: AccessGrantInForce
  /** Monotonic milliseconds: a wall clock that is set back does not make it last longer. */
  readonly endsMs: number
  ended: boolean
  /** Its requests have been ended, too. */
  told: boolean
}

interface ClusterGrants {
  readonly users: Map<string, HeldGrant[]>
  readonly groups: Map<string, HeldGrant[]>
}

export class AccessGrants {
  #held: ReadonlyMap<string, HeldGrant> = new Map()
  #clusters: ReadonlyMap<string, ClusterGrants> = new Map()

  get isEmpty(): boolean {
    return this.#clusters.size === 0
  }

  /** All there are now; those that are not among them have ended. */
  replace(grants: readonly AccessGrantInForce[], nowMs: number, monotonicMs: number): void {
    const held = new Map<string, HeldGrant>()
    for (const grant of grants) {
      const known = this.#held.get(grant.uid)
      // Nothing about a grant changes once it is approved, and a later look at the clock must not move its end.
      held.set(grant.uid, known ?? { grant, endsMs: monotonicMs + grant.untilMs - nowMs, ended: false, told: false })
    }
    for (const [uid, gone] of this.#held) if (!held.has(uid)) gone.ended = true
    this.#held = held
    this.#clusters = byCluster(held.values())
  }

  /** Those that are in force for requests of the user; undefined = none. */
  of(cluster: string, user: UserInfo, nowMs: number, monotonicMs: number): readonly HeldGrant[] | undefined {
    const there = this.#clusters.get(cluster)
    if (there === undefined) return undefined
    // A set: a user may have the same group twice.
    let found: Set<HeldGrant> | undefined
    for (const one of there.users.get(user.name) ?? NONE) {
      if (isInForce(one, nowMs, monotonicMs)) found = (found ?? new Set()).add(one)
    }
    for (const group of there.groups.size === 0 ? NO_NAMES : user.groups) {
      for (const one of there.groups.get(group) ?? NONE) {
        if (isInForce(one, nowMs, monotonicMs)) found = (found ?? new Set()).add(one)
      }
    }
    return found && [...found]
  }

  /** Ends those whose time is over. @returns whether there are any whose requests are to be ended now; a request may have seen it before */
  endExpired(nowMs: number, monotonicMs: number): boolean {
    let some = false
    for (const one of this.#held.values()) {
      if (one.told || !(one.ended || isOver(one, nowMs, monotonicMs))) continue
      one.ended = true
      one.told = true
      some = true
    }
    return some
  }
}

const NONE: readonly HeldGrant[] = []
const NO_NAMES: readonly string[] = []

export function isInForce(one: HeldGrant, nowMs: number, monotonicMs: number): boolean {
  if (one.ended || nowMs < one.grant.fromMs) return false
  if (!isOver(one, nowMs, monotonicMs)) return true
  one.ended = true
  return false
}

function isOver({ grant, endsMs }: HeldGrant, nowMs: number, monotonicMs: number): boolean {
  return nowMs >= grant.untilMs || monotonicMs >= endsMs
}

function byCluster(all: Iterable<HeldGrant>): ReadonlyMap<string, ClusterGrants> {
  const clusters = new Map<string, ClusterGrants>()
  for (const one of all) {
    const { subject } = one.grant
    for (const name of one.grant.clusters) {
      const there = clusters.get(name) ?? { users: new Map(), groups: new Map() }
      clusters.set(name, there)
      const part = subject.kind === 'User' ? there.users : there.groups
      const same = part.get(subject.name) ?? []
      part.set(subject.name, same)
      same.push(one)
    }
  }
  return clusters
}
