// Random wins, losses and changes of clusters: what users of the lease did before there were tenants, beside what tenants do.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import fc from 'fast-check'
import { Election } from '../../../test/harness/election.ts'
import type { ClosableClient } from '../../api/ports/object-client.ts'
import type { CompiledAutoscaler } from '../../core/cluster/compiled-cluster.ts'
import type { CompiledScaleDownPolicy } from '../../core/scale/victim-choice/policy.ts'
import { AutoscalerStatuses } from '../autoscaler-status/autoscaler-statuses.ts'
import { CostSweeper } from '../scale-down/cost-sweeper.ts'

const SETTINGS: CompiledAutoscaler = { namespace: 'kube-system', name: 'status', staleAfterMs: 60_000 }
const POLICY = { namespace: 'default', clusters: [], shadow: false } as unknown as CompiledScaleDownPolicy
const clock = { now: () => 0, monotonic: () => 0 }
const log = { debug() {}, info() {}, warn() {}, error() {} }

/** What is followed, and what else was done. */
class Side {
  readonly followed: string[] = []
  readonly events: string[] = []
  readonly clusters = new Set<string>()

  connect(cluster: string): ClosableClient {
    const follow: ClosableClient['follow'] = (kind) => {
      const what = `${kind.plural} of ${cluster}`
      this.followed.push(what)
      return {
        stop: async () => {
          await nextTurn()
          this.followed.splice(this.followed.indexOf(what), 1)
          this.events.push('stopped')
        },
      }
    }
    return { follow, close: async () => undefined } as unknown as ClosableClient
  }

  names(): string[] {
    return [...this.clusters]
  }

  get(name: string) {
    return this.clusters.has(name) ? { compiled: { autoscaler: SETTINGS } } : undefined
  }
}

interface Wired {
  update(changed: ReadonlySet<string>): void
  /** Time has passed. */
  look(): void
  stop(): Promise<void>
}

/** As app/ wired it: each user asks `isLeader` again and again, and is told of changes of it. */
function before(side: Side, election: { leads: boolean }): Wired & { onChange(): void } {
  const isLeader = (): boolean => election.leads
  const connect = (name: string): ClosableClient => side.connect(name)
  const autoscalers = new AutoscalerStatuses({ clusters: side, connect, isLeader, clock })
  const policies = (): CompiledScaleDownPolicy[] => [POLICY]
  const sweeper = new CostSweeper({ clusters: () => side.names(), connect, isLeader, policies, clock, log })
  let wasLeader = false
  return {
    onChange: () => {
      autoscalers.update()
      sweeper.update()
    },
    update: (changed) => {
      autoscalers.update(changed)
      sweeper.update()
    },
    look: () => {
      if (isLeader() && !wasLeader) side.events.push('looks at all')
      wasLeader = isLeader()
    },
    stop: async () => {
      await sweeper.stop()
      await autoscalers.stop()
      side.events.push('released')
    },
  }
}

function after(side: Side, { leadership }: Election): Wired {
  const connect = (name: string): ClosableClient => side.connect(name)
  const policies = (): CompiledScaleDownPolicy[] => [POLICY]
  const autoscalers = leadership.run('autoscalers', (term) => {
    const statuses = new AutoscalerStatuses({ clusters: side, connect, isLeader: () => term.holds(), clock })
    statuses.update()
    return statuses
  })
  const sweeper = leadership.run('sweeper', (term) => {
    const deps = { clusters: () => side.names(), connect, isLeader: () => term.holds(), policies, clock, log }
    const made = new CostSweeper(deps)
    made.update()
    return made
  })
  leadership.run('sweep', () => {
    side.events.push('looks at all')
    return undefined
  })
  return {
    update: (changed) => {
      autoscalers.running?.update(changed)
      sweeper.running?.update()
    },
    look: () => undefined,
    stop: () => leadership.stop(),
  }
}

type Step = 'win' | 'lose' | 'look' | { readonly cluster: string; readonly added: boolean }

const STEP = fc.oneof(
  fc.constantFrom<Step>('win', 'lose', 'look'),
  fc.record({ cluster: fc.constantFrom('a', 'b', 'c'), added: fc.boolean() }),
)

function byText(a: string, b: string): number {
  return a < b ? -1 : 1
}

/** Whatever one had to look at all for, the other one had, too: once for each time that it began to lead and looked. */
function looks({ events }: Side): number {
  return events.filter((event) => event === 'looks at all').length
}

test('what is followed while this replica leads is what was followed before, and nothing is left at the end', async () => {
  await fc.assert(
    fc.asyncProperty(fc.boolean(), fc.array(STEP, { maxLength: 40 }), async (begins, steps) => {
      const [old, now] = [new Side(), new Side()]
      const election = new Election(begins, () => void now.events.push('released'))
      const state = { leads: begins }
      const [was, is] = [before(old, state), after(now, election)]
      was.look()
      for (const step of steps) {
        if (step === 'look') was.look()
        else if (step === 'win' || step === 'lose') {
          if (state.leads === (step === 'win')) continue
          state.leads = step === 'win'
          was.onChange()
          election.leads = state.leads
          // It looked ten times a second: it saw each change.
          was.look()
        } else {
          for (const side of [old, now]) side.clusters[step.added ? 'add' : 'delete'](step.cluster)
          for (const wired of [was, is]) wired.update(new Set([step.cluster]))
        }
        await nextTurn()
        await nextTurn()
        assert.deepEqual(now.followed.toSorted(byText), old.followed.toSorted(byText))
        assert.equal(looks(now), looks(old))
      }
      await Promise.all([was.stop(), is.stop()])
      for (const { followed, events } of [old, now]) {
        assert.deepEqual(followed, [])
        assert.equal(events.at(-1), 'released')
      }
      assert.deepEqual(now.events.toSorted(byText), old.events.toSorted(byText))
    }),
  )
})
