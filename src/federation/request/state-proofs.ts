// A watch that asks for the state and for the mark of its end begins before all that is kept is proved to be current: as soon as each member has named the
// version of the moment, so that one that does not answer is known by then. The mark is what says that a client has all of the state as of its request
// (meta/v1 ListOptions.sendInitialEvents: "the bookmark event is send when the state is synced at least to the moment when request started being
// processed"), and waits for the proof. What changes until then is told in front of it.

import type { CachedCollection } from '../../cache/state/cached-collection.ts'
import type { CachedCollections } from '../../cache/state/cached-collections.ts'
import type { Decision } from '../../gateway/request/exchange/decision.ts'
import type { AskedMember, ReachedMember } from './asked-members.ts'
import { LISTED_MS, listedPage } from './listed-pages.ts'
import { AT_ANY_RATE, reachInMember } from './reach-versions.ts'

/** A list that names the version of the moment. */
const SMALLEST = { version: '', next: '', limit: 1 }

const PROOF = { kind: 'proof' } as const

/** How long a mark waits for the proof, and after how long that is tried again. */
const LATE_MS = 10_000
const AGAIN_MS = 250

/** By what is kept of it: members of which the last proof did not come in time. Watches do not begin before it. */
const UNPROVED = new WeakSet<object>()

export class StateProofs {
  readonly #decision: Decision
  readonly #caches: Pick<CachedCollections, 'currentVersion'>
  readonly #late: Promise<boolean>[] = []

  constructor(decision: Decision, caches: Pick<CachedCollections, 'currentVersion'>) {
    this.#decision = decision
    this.#caches = caches
  }

  /** Whether all that was awaited after `reach` is proved now; undefined = nothing was. */
  get late(): Promise<boolean> | undefined {
    if (this.#late.length === 0) return undefined
    return Promise.all(this.#late).then((proved) => proved.every((one) => one))
  }

  /** As `reachInMember`, or until the member has named a version. */
  async reach(member: AskedMember, ms: number): Promise<ReachedMember> {
    const { gw, monotonicMs } = this.#decision.exchange
    const endsMs = gw.clock.monotonic() + ms
    const mayBegin = !UNPROVED.has(member.kept) && member.kept.awayFor(monotonicMs) === 0
    const page = mayBegin ? await listedPage(this.#decision, member, SMALLEST, Math.min(ms, LISTED_MS)) : undefined
    if (page === undefined) return await this.#reached(member, Math.max(0, endsMs - gw.clock.monotonic()))
    this.#late.push(this.#provedLate(member.kept))
    return 'reached'
  }

  async #reached(member: AskedMember, ms: number): Promise<ReachedMember> {
    const reached = await reachInMember(this.#caches, member, PROOF, ms, this.#decision.exchange.monotonicMs)
    if (reached === 'reached') UNPROVED.delete(member.kept)
    return reached
  }

  /** The client has begun to get the state: it takes less of everyone to wait than to begin again. */
  async #provedLate(kept: CachedCollection): Promise<boolean> {
    const { exchange } = this.#decision
    const { clock } = exchange.gw
    const endsMs = clock.monotonic() + LATE_MS
    for (let leftMs = LATE_MS; leftMs > 0 && kept.awayFor(clock.monotonic()) === 0; ) {
      const proved = await this.#caches.currentVersion(kept, leftMs, AT_ANY_RATE).catch(() => undefined)
      if (proved !== undefined) return true
      if (kept.isGone || exchange.gone) return false
      await new Promise((resolve) => setTimeout(resolve, AGAIN_MS))
      leftMs = endsMs - clock.monotonic()
    }
    UNPROVED.add(kept)
    return false
  }
}
