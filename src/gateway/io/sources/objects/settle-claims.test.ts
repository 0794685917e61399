import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { ResolvedCluster } from '../../../api/resource-source.ts'
import { type ClusterConflict, findConflicts, heldClaims } from '../../../api/upstream-cluster/cluster-conflicts.ts'
import type { UpstreamCluster } from '../../../api/upstream-cluster/upstream-cluster.ts'
import { settleClaims } from './settle-claims.ts'

let looks = 0

function version(name: string, serverNames: readonly string[], revision: string): ResolvedCluster {
  const spec = { servers: [], dispatchPolicies: [], secureServing: { serverNames } }
  const object: UpstreamCluster = {
    apiVersion: '',
    kind: '',
    metadata: { name },
    get spec() {
      looks++
      return spec
    },
  }
  return { object, revision }
}

/** The rule implemented literally: compares all with all until there are no conflicts. */
function settleByAll(
  wanted: Map<string, ResolvedCluster>,
  inForce: ReadonlyMap<string, ResolvedCluster>,
  onLoss: (conflict: ClusterConflict, fallsBack: boolean) => void,
): void {
  const holds = heldClaims([...inForce.values()].map(({ object }) => object))
  for (;;) {
    const all = [...wanted.values()].map(({ object }) => object)
    const conflicts = findConflicts(all, holds)
    if (conflicts.length === 0) return
    const before = new Map(wanted)
    for (const conflict of conflicts) {
      const last = inForce.get(conflict.loser)
      const fallsBack = last !== undefined && before.get(conflict.loser) !== last
      if (fallsBack) wanted.set(conflict.loser, last)
      else wanted.delete(conflict.loser)
      onLoss(conflict, fallsBack)
    }
  }
}

test('the same as when all are compared with all', () => {
  const names = ['a', 'b', 'c', 'd', 'e']
  const hosts = fc.subarray(['p', 'q', 'r', 's', 't'], { maxLength: 3 })
  const wishes = fc.array(fc.tuple(fc.constantFrom(...names), hosts), { maxLength: 8 })
  fc.assert(
    fc.property(
      fc.uniqueArray(fc.tuple(fc.constantFrom(...names), hosts), { selector: ([name]) => name }),
      wishes,
      (old, given) => {
        // What is in force has no conflicts.
        const taken = new Set<string>()
        const inForce = new Map<string, ResolvedCluster>()
        for (const [name, served] of old) {
          const free = served.filter((host) => !taken.has(host))
          for (const host of free) taken.add(host)
          inForce.set(name, version(name, free, 'old'))
        }
        const wanted = new Map(inForce)
        for (const [name, served] of given) wanted.set(name, version(name, served, 'new'))
        const [one, other] = [new Map(wanted), new Map(wanted)]
        const [told, expected]: [unknown[], unknown[]] = [[], []]
        settleClaims(one, inForce, (conflict, _holder, fallsBack) => told.push([conflict, fallsBack]))
        settleByAll(other, inForce, (conflict, fallsBack) => expected.push([conflict, fallsBack]))
        assert.deepEqual([...one], [...other])
        assert.deepEqual(told, expected)
      },
    ),
    { numRuns: 2000 },
  )
})

test('a chain of clusters that each make the next fall back costs linear time', () => {
  const settle = (length: number): number => {
    const names = Array.from({ length }, (_, at) => `c${at}`)
    const inForce = new Map(names.map((name, at) => [name, version(name, [`h${at}`], 'old')]))
    // Each wants what the next one gave up; the last one wants what it cannot have.
    const wanted = new Map(names.map((name, at) => [name, version(name, [`h${at + 1}`], 'new')]))
    const other = version('other', [`h${length}`], 'old')
    inForce.set('other', other)
    wanted.set('other', other)
    looks = 0
    let losses = 0
    settleClaims(wanted, inForce, () => losses++)
    assert.equal(losses, length)
    return looks
  }
  const [short, long] = [settle(200), settle(800)]
  assert.ok(long < short * 6, `${short} looks for 200, ${long} for 800`)
})
