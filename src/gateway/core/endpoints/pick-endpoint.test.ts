// The four strategies: shares, exactness, and minimal disruption. Randomness is seeded.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { STRATEGIES, type Strategy } from '../../api/upstream-cluster/strategies.ts'
import {
  affinityHash,
  createCursor,
  type EndpointView,
  endpointHash,
  PICKERS,
  type PickContext,
} from './pick-endpoint.ts'

type Mutable = { -readonly [K in keyof EndpointView]: EndpointView[K] }

function endpoint(index: number, weight = 100): Mutable {
  const url = `https://10.0.0.${index}:6443`
  return { url, hash: endpointHash(url), weight, available: true, inFlight: 0 }
}

/** mulberry32 */
function seeded(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32
  }
}

function context(seed = 1): PickContext {
  return { random: seeded(seed), cursor: createCursor(), affinityHash: 0 }
}

function counts(strategy: Strategy, candidates: readonly EndpointView[], picks: number, seed = 1): number[] {
  const ctx = context(seed)
  const sums = candidates.map(() => 0)
  for (let i = 0; i < picks; i++) {
    const at = PICKERS[strategy](candidates, { ...ctx, affinityHash: affinityHash(`user-${i}`, '10.1.2.3') })
    sums[at] = (sums[at] ?? 0) + 1
  }
  return sums
}

describe('every strategy', () => {
  const candidates = fc.array(
    fc.record({ weight: fc.constantFrom(0, 1, 100, 1000), available: fc.boolean(), inFlight: fc.nat({ max: 9 }) }),
    { maxLength: 6 },
  )
  for (const strategy of STRATEGIES) {
    it(`${strategy} picks what is available and has a weight, and -1 only when nothing is`, () => {
      fc.assert(
        fc.property(candidates, fc.integer(), (parts, seed) => {
          const views = parts.map((part, i) => ({ ...endpoint(i), ...part }))
          const usable = views.flatMap((view, i) => (view.available && view.weight > 0 ? [i] : []))
          const ctx = { ...context(seed), affinityHash: seed >>> 0 }
          for (let i = 0; i < 5; i++) {
            const at = PICKERS[strategy](views, ctx)
            assert.ok(usable.length === 0 ? at === -1 : usable.includes(at), `${at} of ${usable}`)
          }
        }),
      )
    })

    it(`${strategy} gives each its share of the weights`, () => {
      const shares = counts(strategy, [endpoint(1, 100), endpoint(2, 300), endpoint(3, 0), endpoint(4, 600)], 20_000)
      assert.equal(shares[2], 0)
      for (const [i, expected] of [2000, 6000, 0, 12_000].entries()) {
        assert.ok(Math.abs((shares[i] ?? 0) - expected) <= 400, `${shares}`)
      }
    })

    it(`${strategy} survives randomness at its ends`, () => {
      for (const random of [0, 1 - 2 ** -53]) {
        const at = PICKERS[strategy]([endpoint(1), endpoint(2)], { ...context(), random: () => random })
        assert.ok(at === 0 || at === 1)
      }
    })
  }
})

describe('RoundRobin', () => {
  const weights = fc.array(fc.integer({ min: 1, max: 1000 }), { minLength: 1, maxLength: 8 })

  it('keeps every endpoint within one request of its exact share, at any moment', () => {
    fc.assert(
      fc.property(weights, (parts) => {
        const views = parts.map((weight, i) => endpoint(i, weight))
        const total = parts.reduce((sum, weight) => sum + weight, 0)
        const sums = parts.map(() => 0)
        const ctx = context()
        for (let n = 1; n <= 500; n++) {
          const at = PICKERS.RoundRobin(views, ctx)
          sums[at] = (sums[at] ?? 0) + 1
          for (const [i, weight] of parts.entries()) {
            // |count - n * weight / total| < 1, in whole numbers.
            const lag = (sums[i] ?? 0) * total - n * weight
            assert.ok(Math.abs(lag) < total, `endpoint ${i} of ${parts} has ${sums[i]} of ${n}`)
          }
        }
      }),
    )
  })

  it('goes round in order when weights are equal', () => {
    const views = [endpoint(1), endpoint(2), endpoint(3)]
    const ctx = context()
    const picks = Array.from({ length: 7 }, () => PICKERS.RoundRobin(views, ctx))
    assert.deepEqual(picks, [0, 1, 2, 0, 1, 2, 0])
  })

  it('spreads evenly among those that are left, in every window, when some come and go', () => {
    fc.assert(
      fc.property(fc.array(fc.nat({ max: 3 }), { maxLength: 30 }), (flips) => {
        const views = [endpoint(0), endpoint(1), endpoint(2), endpoint(3)]
        const ctx = context()
        for (const flip of flips) {
          const view = views[flip]
          if (view !== undefined) view.available = !view.available
          const left = views.filter(({ available }) => available).length
          if (left === 0) {
            assert.equal(PICKERS.RoundRobin(views, ctx), -1)
            continue
          }
          const sums = [0, 0, 0, 0]
          for (let i = 0; i < left * 8; i++) {
            const at = PICKERS.RoundRobin(views, ctx)
            sums[at] = (sums[at] ?? 0) + 1
          }
          for (const [i, { available }] of views.entries()) {
            assert.ok(available ? Math.abs((sums[i] ?? 0) - 8) <= 3 : sums[i] === 0, `${sums}`)
          }
        }
      }),
    )
  })

  it('sends no burst to an endpoint that returns', () => {
    const views = [endpoint(1), endpoint(2)]
    const ctx = context()
    const [first] = views
    if (first !== undefined) first.available = false
    for (let i = 0; i < 1000; i++) PICKERS.RoundRobin(views, ctx)
    if (first !== undefined) first.available = true
    const picks = Array.from({ length: 10 }, () => PICKERS.RoundRobin(views, ctx))
    assert.equal(picks.filter((at) => at === 0).length, 5)
  })

  it('keeps its place whichever part of the list a retry offers', () => {
    const views = [endpoint(1), endpoint(2), endpoint(3)]
    const ctx = context()
    const sums = new Map<EndpointView, number>()
    for (let i = 0; i < 300; i++) {
      for (const list of [views, views.slice(1)]) {
        const picked = list[PICKERS.RoundRobin(list, ctx)]
        if (picked !== undefined) sums.set(picked, (sums.get(picked) ?? 0) + 1)
      }
    }
    assert.deepEqual(
      [...sums.values()].reduce((a, b) => a + b),
      600,
    )
    // 300 requests over three endpoints, then 300 retries over the other two.
    for (const [i, expected] of [100, 250, 250].entries()) {
      assert.ok(Math.abs((sums.get(views[i] ?? endpoint(9)) ?? 0) - expected) <= 2, `${[...sums.values()]}`)
    }
  })
})

describe('LeastRequest', () => {
  it('takes the less busy of two', () => {
    const [a, b] = [endpoint(1), endpoint(2)]
    a.inFlight = 5
    for (let seed = 0; seed < 50; seed++) assert.equal(PICKERS.LeastRequest([a, b], context(seed)), 1)
  })

  it('measures load by weight', () => {
    const [a, b] = [endpoint(1, 100), endpoint(2, 300)]
    a.inFlight = 5
    b.inFlight = 14
    for (let seed = 0; seed < 50; seed++) assert.equal(PICKERS.LeastRequest([a, b], context(seed)), 1)
    b.inFlight = 16
    for (let seed = 0; seed < 50; seed++) assert.equal(PICKERS.LeastRequest([a, b], context(seed)), 0)
  })

  it('never takes the busiest of many', () => {
    const views = [endpoint(1), endpoint(2), endpoint(3), endpoint(4)]
    for (const [i, view] of views.entries()) view.inFlight = i
    assert.equal(counts('LeastRequest', views, 2000)[3], 0)
  })

  it('levels the load of endpoints of unequal speed', () => {
    const views = [endpoint(1), endpoint(2)]
    const random = seeded(7)
    const ctx = { ...context(), random }
    for (let i = 0; i < 5000; i++) {
      const picked = views[PICKERS.LeastRequest(views, ctx)]
      if (picked !== undefined) picked.inFlight++
      // The first one finishes four times as often.
      for (const [j, view] of views.entries())
        if (random() < (j === 0 ? 0.8 : 0.2)) view.inFlight = Math.max(0, view.inFlight - 1)
    }
    const [a, b] = views
    assert.ok(Math.abs((a?.inFlight ?? 0) - (b?.inFlight ?? 0)) < 30, `${a?.inFlight} ${b?.inFlight}`)
  })
})

describe('Affinity', () => {
  const pick = (views: readonly EndpointView[], client: number): string | undefined =>
    views[PICKERS.Affinity(views, { ...context(), affinityHash: affinityHash(`user-${client}`, '10.0.0.9') })]?.url

  it('keeps a client where it is, whatever the order of the list', () => {
    const views = [endpoint(1), endpoint(2), endpoint(3)]
    for (let client = 0; client < 200; client++) assert.equal(pick(views, client), pick([...views].reverse(), client))
  })

  it('moves only the clients of an endpoint that goes, and moves them back', () => {
    const views = [endpoint(1), endpoint(2, 300), endpoint(3)]
    const before = Array.from({ length: 1000 }, (_, client) => pick(views, client))
    const [gone] = views
    if (gone !== undefined) gone.available = false
    const moved = new Set<string | undefined>()
    for (const [client, url] of before.entries()) {
      const now = pick(views, client)
      if (url === gone?.url) moved.add(now)
      else assert.equal(now, url)
    }
    assert.equal(moved.size, 2)
    if (gone !== undefined) gone.available = true
    assert.deepEqual(
      Array.from({ length: 1000 }, (_, client) => pick(views, client)),
      before,
    )
  })

  it('takes clients from the others only for itself when an endpoint is added', () => {
    const views = [endpoint(1), endpoint(2), endpoint(3)]
    const more = [...views, endpoint(4)]
    let moved = 0
    for (let client = 0; client < 2000; client++) {
      if (pick(views, client) === pick(more, client)) continue
      assert.equal(pick(more, client), more[3]?.url)
      moved++
    }
    assert.ok(Math.abs(moved - 500) < 100, `${moved}`)
  })

  it('depends on user and address, and knows where one ends', () => {
    const hashes = [
      affinityHash('a', 'b'),
      affinityHash('ab', ''),
      affinityHash('', 'ab'),
      affinityHash('b', 'a'),
      affinityHash('a', 'c'),
    ]
    assert.equal(new Set(hashes).size, hashes.length)
    for (const hash of hashes) assert.ok(Number.isInteger(hash) && hash >= 0 && hash < 2 ** 32)
  })
})
