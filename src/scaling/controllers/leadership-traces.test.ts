// Random wins, losses and changes: how users of a lease behaved before there were tenants, compared with tenants. Each kind of use is kept
// in
// short: following objects while this replica leads, checking everything when it begins to lead, and deciding periodically.

import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { setImmediate as yieldToEventLoop } from 'node:timers/promises'
import fc from 'fast-check'
import { Election } from '../../../test/harness/election.ts'
import { AutoscalerStatuses } from '../../gateway/controllers/autoscaler-status/autoscaler-statuses.ts'
import type { CompiledAutoscaler } from '../../gateway/core/cluster/compiled-cluster.ts'
import { nameOf } from '../../kit/api/json/json-object.ts'
import { CONFIG_MAPS, PODS } from '../../kube/api/kinds/foreign-kinds.ts'
import type { ClosableClient, FollowEvents } from '../../kube/api/object-client.ts'
import { Controller } from '../../kube/controllers/kernel/controller.ts'
import type { CompiledScaleDownPolicy } from '../core/victim-choice/policy.ts'
import { CostSweeper } from './cost-sweeper.ts'

const SETTINGS: CompiledAutoscaler = { namespace: 'kube-system', name: 'status', staleAfterMs: 60_000 }
const POLICY = { namespace: 'default', clusters: [], shadow: false } as unknown as CompiledScaleDownPolicy
const OBJECTS = ['x', 'y'].map((name) => ({ metadata: { name, uid: name } }))
const LOOK_MS = 1_000
const clock = { now: () => 0, monotonic: () => 0 }
const log = { debug() {}, info() {}, warn() {}, error() {} }

/** What each of the two follows, and what else it did. */
class Side {
  readonly followed: string[] = []
  readonly events: string[] = []
  readonly clusters = new Set<string>()
  /** Objects that it decides about. */
  readonly decides = new Set<string>()

  connect(cluster: string): ClosableClient {
    const follow: ClosableClient['follow'] = (kind) => this.follow(`${kind.plural} of ${cluster}`)
    return { follow, close: async () => undefined } as unknown as ClosableClient
  }

  follow(what: string): { stop(): Promise<void> } {
    this.followed.push(what)
    return {
      stop: async () => {
        await yieldToEventLoop()
        this.followed.splice(this.followed.indexOf(what), 1)
        this.events.push('stopped')
      },
    }
  }

  names(): string[] {
    return [...this.clusters]
  }

  get(name: string): { readonly compiled: { readonly autoscaler: CompiledAutoscaler } } | undefined {
    return this.clusters.has(name) ? { compiled: { autoscaler: SETTINGS } } : undefined
  }

  /** How often it has checked everything. */
  get looks(): number {
    return this.events.filter((event) => event === 'looks at all').length
  }
}

interface Wired {
  /** Clusters have changed. */
  update(): void
  /** The objects are current, or not. */
  current(current: boolean): void
  stop(): Promise<void>
}

/** Each checked `isLeader`, and was notified of changes. */
class Before implements Wired {
  readonly #side: Side
  readonly #isLeader: () => boolean
  readonly #following = new Map<string, { stop(): Promise<void> }>()
  readonly #ending = new Set<Promise<void>>()
  #wasLeader = false
  #current = false
  #stopped = false

  constructor(side: Side, isLeader: () => boolean) {
    this.#side = side
    this.#isLeader = isLeader
  }

  update(): void {
    const leads = !this.#stopped && this.#isLeader()
    const names = leads ? this.#side.names() : []
    const wanted = new Set([CONFIG_MAPS, PODS].flatMap(({ plural }) => names.map((name) => `${plural} of ${name}`)))
    for (const [what, following] of this.#following) {
      // Leftover costs would be removed first: there are none here.
      if (wanted.has(what)) continue
      this.#following.delete(what)
      const ending = following.stop()
      this.#ending.add(ending)
      void ending.finally(() => this.#ending.delete(ending))
    }
    for (const what of wanted) if (!this.#following.has(what)) this.#following.set(what, this.#side.follow(what))
  }

  current(current: boolean): void {
    this.#current = current
  }

  /** Several times a second. */
  look(): void {
    const leads = this.#isLeader()
    if (leads && !this.#wasLeader) this.#side.events.push('looks at all')
    this.#wasLeader = leads
    for (const object of OBJECTS) {
      if (leads && this.#current && !this.#stopped) this.#side.decides.add(nameOf(object))
      else this.#side.decides.delete(nameOf(object))
    }
  }

  async stop(): Promise<void> {
    this.#stopped = true
    this.update()
    await Promise.all(this.#ending)
    this.#side.events.push('released')
  }
}

function after(side: Side, { leadership }: Election): Wired {
  const connect = (name: string): ClosableClient => side.connect(name)
  const policies = (): CompiledScaleDownPolicy[] => [POLICY]
  const autoscalers = new AutoscalerStatuses({ clusters: side, connect, leadership, clock })
  const sweeper = new CostSweeper({ clusters: () => side.names(), connect, leadership, policies, clock, log })
  leadership.run('a sweep', () => {
    side.events.push('looks at all')
    return undefined
  })
  let informer: FollowEvents | undefined
  const controller = new Controller<string>({
    name: 'a controller',
    leadership,
    client: {
      follow: (_kind, _namespace, events) => {
        informer = events
        return { stop: async () => undefined }
      },
    },
    kind: PODS,
    keep: nameOf,
    everyMs: LOOK_MS,
    reconcile: (key) => void side.decides.add(key),
    pause: (key) => void side.decides.delete(key),
    onFault: () => assert.fail(),
  })
  informer?.onReplace(OBJECTS)
  return {
    update: () => {
      autoscalers.update()
      sweeper.update()
    },
    current: (current) => informer?.onState(current, ''),
    stop: async () => {
      await Promise.all([controller.stop(), sweeper.stop()])
      await leadership.stop()
    },
  }
}

type Step = 'win' | 'lose' | 'current' | 'away' | 'look' | { readonly cluster: string; readonly added: boolean }

const STEP = fc.oneof(
  fc.constantFrom<Step>('win', 'lose', 'current', 'away', 'look'),
  fc.record({ cluster: fc.constantFrom('a', 'b', 'c'), added: fc.boolean() }),
)

function byText(a: string, b: string): number {
  return a < b ? -1 : 1
}

async function compare(t: TestContext, begins: boolean, steps: readonly Step[]): Promise<void> {
  const [old, now] = [new Side(), new Side()]
  const election = new Election(begins, () => void now.events.push('released'))
  const [was, is] = [new Before(old, () => election.leads), after(now, election)]
  was.look()
  await yieldToEventLoop()
  for (const step of steps) {
    if (step === 'win' || step === 'lose') {
      election.leads = step === 'win'
      was.update()
    } else if (step === 'current' || step === 'away') {
      for (const wired of [was, is]) wired.current(step === 'current')
    } else if (step !== 'look') {
      for (const side of [old, now]) side.clusters[step.added ? 'add' : 'delete'](step.cluster)
      for (const wired of [was, is]) wired.update()
    }
    t.mock.timers.tick(LOOK_MS)
    was.look()
    await yieldToEventLoop()
    await yieldToEventLoop()
    assert.deepEqual(now.followed.toSorted(byText), old.followed.toSorted(byText))
    assert.deepEqual([now.looks, now.decides], [old.looks, old.decides])
  }
  await Promise.all([was.stop(), is.stop()])
  for (const { followed, events } of [old, now]) {
    assert.deepEqual(followed, [])
    assert.equal(events.at(-1), 'released')
  }
  assert.deepEqual(now.events.toSorted(byText), old.events.toSorted(byText))
}

test('whatever is won and lost, the same is followed, looked at and decided as before, and nothing is left at the end', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] })
  await fc.assert(
    fc.asyncProperty(fc.boolean(), fc.array(STEP, { maxLength: 40 }), (begins, steps) => compare(t, begins, steps)),
  )
})
