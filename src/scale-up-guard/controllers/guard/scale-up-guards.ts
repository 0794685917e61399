// All ScaleUpGuards: every replica follows the objects and enforces the backoffs in their status; the leader also serves the
// guards. An invalid object, or a cluster that doesn't answer, doesn't affect other guards.

import { conditionsOf, withCondition } from '../../../gateway/core/status/conditions.ts'
import type { JsonObject } from '../../../kit/api/json/json-object.ts'
import { recordOf } from '../../../kit/api/json/object-shape.ts'
import type { Clock, Logger } from '../../../kit/api/ports.ts'
import { sameJson } from '../../../kit/core/text/same-json.ts'
import type { ClosableClient, ObjectClient } from '../../../kube/api/object-client.ts'
import { Informer } from '../../../kube/controllers/kernel/informer.ts'
import type { Leadership, Tenant } from '../../../kube/controllers/kernel/leadership.ts'
import { patchAsSeen } from '../../../kube/controllers/kernel/object-patch.ts'
import { Writes } from '../../../kube/controllers/kernel/writes.ts'
import type { GuardCondition } from '../../api/scale-up-guard.ts'
import { SCALE_UP_GUARDS } from '../../api/scale-up-guard-kind.ts'
import { type CompiledGuard, compileGuard } from '../../core/guard/compile-guard.ts'
import { type GuardInForce, guardInForce } from '../../core/guard/guards-in-force.ts'
import { guardCondition, statusOfGuards } from './guard-conditions.ts'
import { type GuardEvents, GuardTerm } from './guard-term.ts'

export interface ScaleUpGuardsDeps {
  /** API server of the ScaleUpGuards. */
  readonly control: ObjectClient
  /** A client of an UpstreamCluster for one term, as the gateway. Its calls reject while there is no such cluster. */
  clientOf(cluster: string): ClosableClient
  /** Called once, when the first guard appears: joins the election of the replica that serves guards. Stopped here. */
  elect(): Leadership
  /** The guards that back off a group have changed: all of them. */
  onInForce(guards: readonly GuardInForce[]): void
  readonly clock: Clock
  readonly log: Logger
  /** @param object a guard, for Events about it */
  readonly events: GuardEvents & { invalid(object: JsonObject, why: string): void }
}

interface Known {
  object: JsonObject
  /** A string = why it is invalid. */
  guard: CompiledGuard | string
  /** Set while it is served here, with the version it is served for. */
  serving: { readonly made: string; readonly end: () => Promise<void> } | undefined
  /** Last version reported as invalid. */
  toldWrong: string
}

/** Interval of checks for expired backoffs. */
const BEAT_MS = 1_000

export class ScaleUpGuards {
  readonly #deps: ScaleUpGuardsDeps
  readonly #known: Informer<Known>
  #leadership: Leadership | undefined
  #tenant: Tenant | undefined
  #beating: NodeJS.Timeout | undefined
  #inForce = '[]'
  #synced = false
  #stopped = false
  /** Terms that are ending, by guard name: the next term of that name waits for it, even for a recreated object. */
  readonly #endings = new Map<string, Promise<void>>()
  readonly #writes: Writes

  constructor(deps: ScaleUpGuardsDeps) {
    this.#deps = deps
    this.#writes = new Writes((guard, why) =>
      deps.log.warn('the status of a ScaleUpGuard cannot be written', { guard, why }),
    )
    this.#known = new Informer<Known>({
      client: deps.control,
      kind: SCALE_UP_GUARDS,
      keep: (object, before) => this.#keep(object, before),
      onGone: (known, name) => {
        this.#writes.forget(name)
        this.#end(name, known)
      },
      onChange: () => {
        this.#synced = true
        this.#settle()
      },
      onState: (current, message) => {
        // Also if the CustomResourceDefinition is not installed: there is nothing to wait for then.
        this.#synced = true
        if (!current) deps.log.debug('ScaleUpGuards cannot be followed', { why: message })
      },
    })
  }

  /** The objects were listed once, or can't be. */
  get synced(): boolean {
    return this.#synced
  }

  /** For /debug/config. */
  describe(): object {
    const guards = [...this.#known.objects].map(([name, { guard, serving }]) => {
      return { name, served: serving !== undefined, problem: typeof guard === 'string' ? guard : '' }
    })
    return { leader: this.#leadership?.isLeader() ?? false, guards, enforced: JSON.parse(this.#inForce) }
  }

  async stop(): Promise<void> {
    this.#stopped = true
    clearInterval(this.#beating)
    await this.#known.stop()
    for (const [name, known] of this.#known.objects) this.#end(name, known)
    await Promise.all([...this.#endings.values(), this.#writes.ended()])
    await this.#leadership?.stop()
  }

  #keep(object: JsonObject, known: Known | undefined): Known {
    const guard = compileGuard(object)
    if (known !== undefined) return Object.assign(known, { object, guard })
    this.#begin()
    return { object, guard, serving: undefined, toldWrong: '' }
  }

  /** No term and no Lease unless there is a guard. */
  #begin(): void {
    if (this.#leadership !== undefined || this.#stopped) return
    this.#leadership = this.#deps.elect()
    const ended = (): Promise<unknown> => Promise.all(this.#endings.values())
    this.#tenant = this.#leadership.settle('the scale-up guards', () => this.#settle(), ended)
    this.#beating = setInterval(() => this.#settle(), BEAT_MS)
    this.#beating.unref()
  }

  #settle(): void {
    if (this.#stopped) return
    this.#enforce()
    const leads = this.#tenant?.holds() === true
    for (const [name, known] of this.#known.objects) {
      const { guard } = known
      const wanted = leads && typeof guard !== 'string' ? `${guard.uid} ${guard.generation}` : ''
      if (known.serving !== undefined && known.serving.made !== wanted) this.#end(name, known)
      if (wanted !== '' && known.serving === undefined && !this.#endings.has(name)) this.#serve(known, wanted)
      if (leads && typeof guard === 'string') this.#tellWrong(name, known, guard)
    }
  }

  #enforce(): void {
    const nowMs = this.#deps.clock.now()
    const inForce = [...this.#known.objects.values()].flatMap(({ guard, object }): GuardInForce[] => {
      if (typeof guard === 'string') return []
      const one = guardInForce(guard, object, nowMs)
      return one === undefined ? [] : [one]
    })
    const text = JSON.stringify(inForce)
    if (text === this.#inForce) return
    this.#inForce = text
    this.#deps.onInForce(inForce)
  }

  #serve(known: Known, made: string): void {
    const { guard, object } = known
    if (typeof guard === 'string') return
    const { control, clientOf, clock, log, events } = this.#deps
    const management = clientOf(guard.management)
    const workload = guard.workload === guard.management ? management : clientOf(guard.workload)
    const isLeader = (): boolean => !this.#stopped && this.#tenant?.holds() === true
    const term = new GuardTerm({ control, management, workload, isLeader, clock, log, events }, guard, object)
    const end = async (): Promise<void> => {
      await term.stop()
      await Promise.all([...new Set([management, workload])].map((client) => client.close()))
    }
    known.serving = { made, end }
  }

  #end(name: string, known: Known): void {
    if (known.serving === undefined) return
    const ending = known.serving.end().finally(() => {
      this.#endings.delete(name)
      this.#settle()
    })
    known.serving = undefined
    this.#endings.set(name, ending)
  }

  #tellWrong(name: string, known: Known, why: string): void {
    const { object } = known
    const { generation = 0, uid = '' } = (object['metadata'] ?? {}) as { generation?: number; uid?: string }
    const version = `${uid} ${generation}`
    const { control, clock, log, events } = this.#deps
    if (known.toldWrong !== version) {
      known.toldWrong = version
      log.warn('a ScaleUpGuard cannot be used', { guard: name, why })
      events.invalid(object, why)
    }
    const wanted = guardCondition('Ready', why, 'Invalid', generation)
    const conditions = withCondition(conditionsOf<GuardCondition>(object), wanted, clock.now())
    const status = { observedGeneration: generation, conditions }
    const before = recordOf(object['status'])
    if (this.#writes.has(name) || sameJson({ ...before, ...status }, before)) return
    this.#writes.add(name, patchAsSeen(statusOfGuards(control), object, { status }))
  }
}
