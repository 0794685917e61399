// Three replicas that share slots, on a fake clock: the limit is never exceeded, and slots move to where the demand is.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { wholePart } from './global-replicas.ts'
import { LEASE_MS, SlotLease } from './global-slots.ts'

const REPLICAS = 3
const EVERY_MS = 25

/** The same rules as the script in Redis. */
class Leases {
  readonly #max: number
  readonly #leases = new Map<number, { slots: number; lacks: boolean }>()

  constructor(max: number) {
    this.#max = max
  }

  ask(who: number, used: number, wanted: number, lacks: boolean): { slots: number; others: number; lacking: number } {
    let others = 0
    let lacking = 0
    for (const [id, lease] of this.#leases) {
      if (id === who) continue
      others += lease.slots
      if (lease.lacks && lease.slots < wholePart(this.#max, { replicas: REPLICAS, rank: 0 })) lacking++
    }
    const slots = Math.max(used, Math.min(wanted, this.#max - others), 0)
    this.#leases.set(who, { slots, lacks })
    return { slots, others, lacking }
  }
}

class Replica {
  running = 0
  slots = 0
  #missed = 0
  readonly #rank: number
  readonly #lease: SlotLease

  constructor(rank: number, max: number) {
    this.#rank = rank
    this.#lease = new SlotLease(max, 0)
  }

  /** Starts and ends requests until `wanted` are running. */
  serve(wanted: number): void {
    this.running = Math.min(this.running, wanted)
    if (wanted > this.slots) this.#missed++
    this.running = Math.max(this.running, Math.min(wanted, this.slots))
  }

  look(leases: Leases, nowMs: number): void {
    const part = { replicas: REPLICAS, rank: this.#rank }
    const lease = this.#lease
    lease.observe(this.#missed, nowMs)
    const target = lease.target(this.running, 'shared', part, nowMs)
    if (!lease.isDue(target, part, nowMs)) return
    const answer = leases.ask(this.#rank, this.running, target, lease.lacks(nowMs))
    lease.answered(answer, nowMs)
    this.slots = Math.min(answer.slots, target)
  }
}

/** How many run on each replica in the end; fails if the total ever exceeds `max`. */
function run(max: number, steps: number, wanted: (step: number) => readonly number[]): readonly number[] {
  const leases = new Leases(max)
  const replicas = [0, 1, 2].map((rank) => new Replica(rank, max))
  for (let step = 0; step < steps; step++) {
    for (const [i, replica] of replicas.entries()) {
      replica.serve(wanted(step)[i] ?? 0)
      replica.look(leases, (step + i / REPLICAS) * EVERY_MS)
      const running = replicas.reduce((sum, each) => sum + each.running, 0)
      assert.ok(running <= max, `${running} run, step ${step}`)
    }
  }
  return replicas.map(({ running }) => running)
}

describe('slots that three replicas share', () => {
  it('are never more than the limit, whatever is wanted', () => {
    const count = fc.integer({ min: 0, max: 60 })
    const plan = fc.array(fc.tuple(count, count, count), { minLength: 5, maxLength: 5 })
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 40 }), plan, (max, phases) => {
        run(max, 200, (step) => phases[Math.floor(step / 40)] ?? [0, 0, 0])
      }),
    )
  })

  it('go to the replica that wants them', () => {
    assert.deepEqual(
      run(30, 200, () => [30, 0, 0]),
      [30, 0, 0],
    )
    assert.deepEqual(
      run(30, 400, (step) => (step < 200 ? [30, 0, 0] : [0, 30, 0])),
      [0, 30, 0],
    )
    assert.deepEqual(
      run(1, 200, () => [0, 0, 1]),
      [0, 0, 1],
    )
  })

  it('are at hand before requests come, at every replica', () => {
    assert.deepEqual(
      run(30, 200, (step) => (step < 199 ? [0, 0, 0] : [5, 5, 5])),
      [5, 5, 5],
    )
  })
})

describe('with Redis away', () => {
  it('a replica has its part, and no more than its lease while others may count on that', () => {
    const lease = new SlotLease(30, 0)
    const part = { replicas: 3, rank: 0 }
    assert.equal(lease.parted(part, 0), 10)
    lease.answered({ slots: 4, others: 26, lacking: 0 }, 1000)
    assert.equal(lease.parted(part, 1000 + LEASE_MS - 1), 4)
    assert.equal(lease.parted(part, 1000 + LEASE_MS), 10)
    lease.answered({ slots: 25, others: 5, lacking: 0 }, 9000)
    assert.equal(lease.parted(part, 9001), 10)
  })
})
