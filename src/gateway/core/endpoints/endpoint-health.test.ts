import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import type { CompiledHealthCheck } from '../cluster/compiled-cluster.ts'
import {
  createEndpointMemory,
  type EndpointHealth,
  ejectable,
  type HealthOfOne,
  isEjected,
  isLateOnly,
  LATE_TRUST_MS,
  onFailure,
  onProbe,
  onSuccess,
  SharedHealth,
} from './endpoint-health.ts'

function createHealth(): EndpointHealth {
  return new SharedHealth(createEndpointMemory(1), 0)
}

const CHECK: CompiledHealthCheck = {
  path: '/readyz',
  intervalMs: 5000,
  timeoutMs: 3000,
  healthyThreshold: 2,
  unhealthyThreshold: 3,
}

function states(probes: string, check = CHECK): string {
  const health = createHealth()
  let seen = ''
  for (const probe of probes) {
    onProbe(health, probe === '+', check)
    seen += health.state.charAt(0)
  }
  return seen
}

function fail(health: EndpointHealth, times: number, nowMs: number): void {
  for (let i = 0; i < times; i++) onFailure(health, nowMs)
}

/** Fails until it is ejected; returns how long the ejection lasts. */
function ejectionLength(health: EndpointHealth, nowMs: number): number {
  while (!isEjected(health, nowMs)) onFailure(health, nowMs)
  return health.ejectedUntilMs - nowMs
}

describe('active checks', () => {
  const rows: [string, string, string][] = [
    ['the first answer decides: healthy', '+', 'h'],
    ['the first answer decides: unhealthy', '-', 'u'],
    ['failures below the threshold change nothing', '+--+--+', 'hhhhhhh'],
    ['failures in a row up to the threshold', '+---', 'hhhu'],
    ['successes below the threshold change nothing', '-+-+-', 'uuuuu'],
    ['successes in a row up to the threshold', '-++', 'uuh'],
    ['there and back', '+---+-++---', 'hhhuuuuhhhu'],
  ]
  for (const [name, probes, want] of rows) it(name, () => assert.equal(states(probes), want))

  it('is unknown before the first', () => assert.equal(createHealth().state, 'unknown'))
  it('follows thresholds of 1 at once', () => {
    assert.equal(states('+-+-', { ...CHECK, healthyThreshold: 1, unhealthyThreshold: 1 }), 'huhu')
  })
})

describe('a check that is late', () => {
  const late = (health: EndpointHealth, sentMs: number): boolean => onProbe(health, false, CHECK, sentMs)

  it('does not count if a request was answered since it was sent', () => {
    const health = createHealth()
    onProbe(health, true, CHECK)
    for (let sentMs = 1000; sentMs < 20_000; sentMs += 1000) {
      onSuccess(health, sentMs + 500, 200)
      assert.equal(late(health, sentMs), false)
    }
    assert.equal(health.state, 'healthy')
    assert.equal(late(health, 30_000), true)
  })

  it('counts if what was answered came before it, or from a proxy', () => {
    const health = createHealth()
    onProbe(health, true, CHECK)
    onSuccess(health, 900, 200)
    for (const sentMs of [1000, 2000, 3000]) {
      onSuccess(health, sentMs + 500, 502)
      assert.equal(late(health, sentMs), true)
    }
    assert.equal(health.state, 'unhealthy')
  })

  it('a wrong answer counts, whatever else is answered', () => {
    const health = createHealth()
    onProbe(health, true, CHECK)
    onSuccess(health, 900, 200)
    for (let i = 0; i < 3; i++) onProbe(health, false, CHECK)
    assert.equal(health.state, 'unhealthy')
  })

  it('only late: for a while after the last answer, and not while ejected', () => {
    const health = createHealth()
    onProbe(health, true, CHECK)
    onSuccess(health, 900, 200)
    for (const sentMs of [1000, 2000, 3000]) late(health, sentMs)
    assert.equal(isLateOnly(health, 4000), true)
    assert.equal(isLateOnly(health, 900 + LATE_TRUST_MS), false)
    fail(health, 3, 4000)
    assert.equal(isLateOnly(health, 4001), false)
  })

  for (const wrong of [0, 1, 2]) {
    it(`one of three checks was not late but wrong (${wrong}): no longer only late`, () => {
      const health = createHealth()
      onProbe(health, true, CHECK)
      onSuccess(health, 900, 200)
      for (let i = 0; i < 3; i++) onProbe(health, false, CHECK, i === wrong ? undefined : 1000)
      assert.equal(isLateOnly(health, 2000), false)
    })
  }

  it('an endpoint that never answered is not only late', () => {
    const health = createHealth()
    late(health, 0)
    assert.equal(isLateOnly(health, 100), false)
  })
})

describe('passive ejection', () => {
  it('comes with the third failure in a row', () => {
    const health = createHealth()
    fail(health, 2, 0)
    onSuccess(health, 0, 200)
    fail(health, 2, 0)
    assert.ok(!isEjected(health, 0))
    fail(health, 1, 0)
    assert.ok(isEjected(health, 0))
    assert.ok(isEjected(health, 999.9))
    assert.ok(!isEjected(health, 1000))
  })

  it('doubles from 1 s to 60 s', () => {
    const health = createHealth()
    const lengths: number[] = []
    for (let now = 0; lengths.length < 9; now += 60_000) lengths.push(ejectionLength(health, now))
    assert.deepEqual(
      lengths,
      [1, 2, 4, 8, 16, 32, 60, 60, 60].map((seconds) => seconds * 1000),
    )
  })

  it('is one ejection, however many were in flight', () => {
    const health = createHealth()
    fail(health, 500, 0)
    assert.equal(health.ejectedUntilMs, 1000)
    assert.equal(ejectionLength(health, 1000), 2000)
  })

  it('comes again with the first failure after it, unless a request succeeded', () => {
    const health = createHealth()
    fail(health, 3, 0)
    fail(health, 1, 1500)
    assert.ok(isEjected(health, 1500))
    onSuccess(health, 5000, 200)
    fail(health, 2, 5000)
    assert.ok(!isEjected(health, 5000))
  })

  it('is forgotten 10 minutes after the last failure, not after the last ejection', () => {
    const health = createHealth()
    for (let now = 0; now < 300_000; now += 60_000) ejectionLength(health, now)
    onSuccess(health, 350_000, 200)
    onFailure(health, 400_000)
    assert.equal(ejectionLength(health, 1_000_000), 32_000)
    onSuccess(health, 1_100_000, 200)
    assert.equal(ejectionLength(health, 1_600_001), 1000)
  })

  it('is not ended by a success that was under way', () => {
    const health = createHealth()
    fail(health, 3, 0)
    onSuccess(health, 10, 200)
    onProbe(health, true, CHECK)
    assert.ok(isEjected(health, 10))
  })
})

describe('which ejections hold', () => {
  interface Part {
    readonly enabled?: boolean
    readonly state?: EndpointHealth['state']
    readonly ejectedAt?: number
  }
  function all(parts: readonly Part[]): HealthOfOne[] {
    return parts.map(({ enabled = true, state = 'healthy', ejectedAt }) => {
      const health = createHealth()
      health.state = state
      if (ejectedAt !== undefined) {
        health.ejectedAtMs = ejectedAt
        health.ejectedUntilMs = 10_000
      }
      return { health, enabled }
    })
  }

  const rows: [string, readonly Part[], number, boolean][] = [
    ['one of two', [{ ejectedAt: 0 }, {}], 0, true],
    ['never the only one', [{ ejectedAt: 0 }], 0, false],
    ['never the only enabled one', [{ ejectedAt: 0 }, { enabled: false }], 0, false],
    ['never the last healthy one', [{ ejectedAt: 0 }, { state: 'unhealthy' }, { state: 'unknown' }], 0, false],
    ['the second of two: no', [{ ejectedAt: 0 }, { ejectedAt: 1 }], 1, false],
    ['the first of two ejected: yes, the second serves', [{ ejectedAt: 0 }, { ejectedAt: 1 }], 0, true],
    ['at the same moment the first of the list', [{ ejectedAt: 5 }, { ejectedAt: 5 }], 0, true],
    ['one of three', [{}, { ejectedAt: 0 }, {}], 1, true],
    ['two of three are more than half', [{ ejectedAt: 0 }, { ejectedAt: 1 }, {}], 1, false],
    ['two of four', [{ ejectedAt: 0 }, { ejectedAt: 1 }, {}, {}], 1, true],
    ['disabled ones do not count for the half', [{ ejectedAt: 0 }, { ejectedAt: 1 }, {}, { enabled: false }], 1, false],
    ['the other of two is ejected and unhealthy', [{ ejectedAt: 1 }, { ejectedAt: 0, state: 'unhealthy' }], 0, false],
  ]
  for (const [name, parts, index, want] of rows) it(name, () => assert.equal(ejectable(all(parts), index, 100), want))

  it('leaves one that serves, and at least half, whenever one is healthy', () => {
    const part = fc.record({
      enabled: fc.boolean(),
      state: fc.constantFrom<EndpointHealth['state']>('unknown', 'healthy', 'unhealthy'),
      ejectedAt: fc.option(fc.nat({ max: 3 }), { nil: undefined }),
    })
    fc.assert(
      fc.property(fc.array(part, { maxLength: 7 }), (parts) => {
        const list = all(
          parts.map(({ ejectedAt, ...rest }) => (ejectedAt === undefined ? rest : { ...rest, ejectedAt })),
        )
        const out = list.map((one, i) => one.enabled && isEjected(one.health, 100) && ejectable(list, i, 100))
        const enabled = list.filter((one) => one.enabled).length
        assert.ok(out.filter(Boolean).length <= enabled / 2)
        const healthy = list.filter((one) => one.enabled && one.health.state === 'healthy')
        const serving = list.filter((one, i) => one.enabled && one.health.state === 'healthy' && !out[i])
        assert.ok(serving.length > 0 || healthy.length === 0)
      }),
    )
  })
})
