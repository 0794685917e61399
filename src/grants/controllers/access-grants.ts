// Follows the AccessGrants: tells the gateway threads which are in force, brings what their time makes of them into their status, and tells of beginnings and
// ends.

import type { AccessGrantInForce } from '../../gateway/core/identity/access-grants.ts'
import { type JsonObject, nameOf } from '../../kit/api/json/json-object.ts'
import type { Clock, Logger } from '../../kit/api/ports.ts'
import type { Tickable } from '../../kit/io/world/coarse-ticker.ts'
import type { ObjectClient } from '../../kube/api/object-client.ts'
import { Informer } from '../../kube/controllers/kernel/informer.ts'
import { afterFailedWrite, patchAsSeen } from '../../kube/controllers/kernel/object-patch.ts'
import { type ReconcileOutcome, WorkQueue } from '../../kube/controllers/kernel/work-queue.ts'
import type { AccessGrantPhase } from '../api/access-grant.ts'
import { ACCESS_GRANTS } from '../core/access-grant-kind.ts'
import { dueStatus, inForceOf, isPastKeeping, readGrant } from '../core/read-grant.ts'

interface AccessGrantDeps {
  /** The embedded API server. */
  readonly client: ObjectClient
  /** All that are in force, or will be at their time; when others are than before. */
  onInForce(grants: readonly AccessGrantInForce[]): void
  /** A grant came into force, or one that was in force has ended. */
  onChange(change: 'begun' | 'ended', object: JsonObject): void
  readonly clock: Clock
  /** In [0, 1). */
  random(): number
  readonly log: Logger
}

interface Known {
  readonly object: JsonObject
  /** Monotonic; NEVER = it has no end yet. A clock that is set back does not make a grant last longer. */
  readonly endsMs: number
}

const FIELD_MANAGER = 'portcullis'
const NEVER = Number.POSITIVE_INFINITY
/** Concurrent writes. */
const WRITES = 4

export class AccessGrantController implements Tickable {
  readonly #deps: AccessGrantDeps
  readonly #known: Informer<Known>
  readonly #queue: WorkQueue
  /** Those whose beginning was told, by uid. */
  readonly #begun = new Map<string, JsonObject>()
  /** The uids of those that `onInForce` was told of; undefined = it has not been called. */
  #inForce: string | undefined
  #stopped = false

  constructor(deps: AccessGrantDeps) {
    this.#deps = deps
    const { client, clock, log } = deps
    this.#queue = new WorkQueue({
      reconcile: (key) => this.#reconcile(key),
      clock,
      random: () => deps.random(),
      limit: WRITES,
    })
    this.#known = new Informer<Known>({
      client,
      kind: ACCESS_GRANTS,
      keep: (object, before, key) => this.#keep(object, before, key),
      onGone: (_, key) => this.#queue.forget(key),
      onChange: () => this.#publish(),
      onState: (current, message) => {
        if (current) this.#queue.retry()
        else log.warn('AccessGrants cannot be followed', { why: message })
      },
    })
  }

  /** How many there are that have not ended, by phase. */
  get counts(): ReadonlyMap<AccessGrantPhase, number> {
    const counts = new Map<AccessGrantPhase, number>([
      ['Pending', 0],
      ['Approved', 0],
      ['Active', 0],
    ])
    for (const { object } of this.#known.objects.values()) {
      const { phase } = readGrant(object)
      if (phase !== 'Ended') counts.set(phase, (counts.get(phase) ?? 0) + 1)
    }
    return counts
  }

  /** Once a second. */
  tick(): void {
    if (this.#stopped) return
    let due = false
    for (const [key, known] of this.#known.objects) {
      if (!this.#isDue(known)) continue
      due = true
      this.#queue.add(key)
    }
    // Also if the store cannot be written.
    if (due) this.#publish()
  }

  async stop(): Promise<void> {
    this.#stopped = true
    await this.#known.stop()
    await this.#queue.stop()
  }

  #keep(object: JsonObject, before: Known | undefined, key: string): Known {
    const { clock } = this.#deps
    const inForce = inForceOf(object)
    const fresh = inForce === undefined ? NEVER : clock.monotonic() + inForce.untilMs - clock.now()
    const known = { object, endsMs: Math.min(before?.endsMs ?? NEVER, fresh) }
    if (this.#isDue(known)) this.#queue.add(key)
    return known
  }

  #isDue(known: Known): boolean {
    const nowMs = this.#deps.clock.now()
    return dueStatus(known.object, nowMs, this.#isOver(known)) !== undefined || isPastKeeping(known.object, nowMs)
  }

  #isOver({ endsMs }: Known): boolean {
    return this.#deps.clock.monotonic() >= endsMs
  }

  #publish(): void {
    if (this.#stopped) return
    const nowMs = this.#deps.clock.now()
    const inForce: AccessGrantInForce[] = []
    const active = new Map<string, JsonObject>()
    for (const known of this.#known.objects.values()) {
      const grant = inForceOf(known.object)
      if (grant === undefined || this.#isOver(known) || nowMs >= grant.untilMs) continue
      inForce.push(grant)
      if (nowMs >= grant.fromMs) active.set(grant.uid, known.object)
    }
    // Nothing about them changes. Each thread looks at all of its requests when it is told.
    const uids = inForce.map(({ uid }) => uid).join(' ')
    if (uids !== this.#inForce) this.#deps.onInForce(inForce)
    this.#inForce = uids
    this.#tell(active)
  }

  #tell(active: ReadonlyMap<string, JsonObject>): void {
    for (const [uid, object] of this.#begun) {
      if (active.has(uid)) continue
      this.#begun.delete(uid)
      const now = this.#known.objects.get(nameOf(object))?.object ?? object
      this.#deps.onChange('ended', readGrant(now).uid === uid ? now : object)
    }
    for (const [uid, object] of active) {
      if (!this.#begun.has(uid)) this.#deps.onChange('begun', object)
      this.#begun.set(uid, object)
    }
  }

  async #reconcile(key: string): Promise<ReconcileOutcome> {
    const known = this.#known.objects.get(key)
    if (known === undefined || this.#stopped) return 'done'
    const { client, clock, log } = this.#deps
    const { object } = known
    const target = { client, kind: ACCESS_GRANTS, fieldManager: FIELD_MANAGER } as const
    try {
      const status = dueStatus(object, clock.now(), this.#isOver(known))
      if (status !== undefined) await patchAsSeen({ ...target, subresource: 'status' }, object, { status })
      else if (isPastKeeping(object, clock.now())) await client.delete(ACCESS_GRANTS, { namespace: '', name: key })
      else return 'done'
      return 'written'
    } catch (error) {
      const { outcome, current } = await afterFailedWrite(target, object, error)
      if (current !== undefined && this.#known.objects.get(key) === known) this.#known.learn(current)
      if (outcome === 'failed') log.warn('an AccessGrant cannot be written', { grant: key, error })
      return outcome
    }
  }
}
