// The state of an endpoint stays with its URL; which endpoints may serve is decided for every request.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { CompiledEndpoint, CompiledHealthCheck, CompiledPolicy } from '../core/cluster/compiled-cluster.ts'
import { PICKERS } from '../core/endpoints/pick-endpoint.ts'
import { EndpointSet } from './endpoints.ts'

const CHECK: CompiledHealthCheck = {
  path: '/readyz',
  intervalMs: 5000,
  timeoutMs: 3000,
  healthyThreshold: 1,
  unhealthyThreshold: 1,
}

function compiled(host: string, part: Partial<CompiledEndpoint> = {}): CompiledEndpoint {
  return { url: `https://${host}:6443`, scheme: 'https', host, port: 6443, disabled: false, weight: 100, ...part }
}

function policy(...endpoints: number[]): CompiledPolicy {
  return {
    index: 0,
    rules: [],
    strategy: 'RoundRobin',
    endpoints,
    schema: -1,
    logMode: '',
    deny: false,
    shadow: false,
  }
}

/** A set whose endpoints have all answered their first check. */
function healthySet(...endpoints: CompiledEndpoint[]): EndpointSet {
  const set = new EndpointSet()
  set.update(endpoints)
  for (const endpoint of set.all) set.onProbe(endpoint, true, '', CHECK, 0)
  return set
}

function available(set: EndpointSet, nowMs = 0): string {
  return set.all.map((endpoint, i) => (set.available(i, nowMs) ? endpoint.compiled.host : '-')).join(' ')
}

function eject(set: EndpointSet, index: number, nowMs: number): void {
  const endpoint = set.view(index)
  for (let i = 0; i < 3 && endpoint !== undefined; i++) set.onFailure(endpoint, nowMs)
}

describe('availability', () => {
  it('begins with the first check', () => {
    const set = new EndpointSet()
    set.update([compiled('a'), compiled('b')])
    assert.equal(available(set), '- -')
    const [a, b] = set.all
    if (a !== undefined) set.onProbe(a, true, '', CHECK, 0)
    if (b !== undefined) set.onProbe(b, false, 'connection refused', CHECK, 0)
    assert.equal(available(set), 'a -')
  })

  it('ends with disabled, weight 0, a failed check', () => {
    const set = healthySet(compiled('a'), compiled('b'), compiled('c'))
    set.update([compiled('a', { disabled: true }), compiled('b', { weight: 0 }), compiled('c')])
    assert.equal(available(set), '- - c')
    const c = set.view(2)
    if (c !== undefined) set.onProbe(c, false, 'timeout', CHECK, 0)
    assert.equal(available(set), '- - -')
  })

  it('ends with an ejection for a while, never for the last one', () => {
    const set = healthySet(compiled('a'), compiled('b'))
    eject(set, 0, 100)
    assert.equal(available(set, 100), '- b')
    eject(set, 1, 200)
    assert.equal(available(set, 200), '- b')
    assert.equal(available(set, 1100), 'a -')
    assert.equal(available(set, 1200), 'a b')
    const b = set.view(1)
    eject(set, 0, 2000)
    if (b !== undefined) set.onProbe(b, false, '', CHECK, 2000)
    assert.equal(available(set, 2000), 'a -')
  })

  it('goes only to endpoints whose checks are late when all are unhealthy', () => {
    const set = healthySet(compiled('a'), compiled('b'), compiled('c'))
    const [a, b, c] = set.all
    assert.ok(a !== undefined && b !== undefined && c !== undefined)
    for (const endpoint of [a, c]) set.onSuccess(endpoint, 50, 200)
    for (const endpoint of [a, b]) set.onProbe(endpoint, false, 'late', CHECK, 100, 60)
    assert.equal(available(set, 100), '- - c')
    set.onProbe(c, false, 'connection refused', CHECK, 100)
    assert.equal(available(set, 100), 'a - -')
    assert.equal(available(set, 100_000), '- - -')
    set.onProbe(b, true, '', CHECK, 200)
    assert.equal(available(set, 200), '- b -')
  })

  it('is none outside the list', () => assert.equal(healthySet(compiled('a')).available(7, 0), false))
})

describe('the first check', () => {
  /** Whether the wait is over, after everything that is under way. */
  const over = async (wait: Promise<void>): Promise<boolean> => {
    // Atomics.waitAsync resolves in a task of its own, and keeps no process alive.
    const later = new Promise<false>((resolve) => setTimeout(resolve, 50, false))
    return Promise.race([wait.then(() => true), later])
  }
  const begun: string[] = []
  const waitFor = (set: EndpointSet): Promise<void> => set.firstCheck(() => begun.push('begun'))

  it('is waited for until one of the enabled ones has been checked, good or bad', async () => {
    const set = new EndpointSet()
    assert.equal(set.unchecked, false, 'it has none')
    set.update([compiled('a'), compiled('b'), compiled('off', { disabled: true })])
    const [, b, off] = set.all
    assert.ok(b !== undefined && off !== undefined)
    begun.length = 0
    const waits = [waitFor(set), waitFor(set)]
    set.onProbe(off, true, '', CHECK, 0)
    assert.equal(set.unchecked, true)
    assert.equal(await over(Promise.race(waits)), false)
    set.onProbe(b, false, 'refused', CHECK, 0)
    assert.equal(set.unchecked, false)
    for (const wait of waits) assert.equal(await over(wait), true)
    assert.deepEqual(begun, ['begun'])
    set.update([compiled('a'), compiled('b')])
    assert.equal(set.unchecked, false)
  })

  it('may be that of one which came meanwhile, in another thread', async () => {
    const set = new EndpointSet({ thread: 0, threads: 1, seed: [0, 0] })
    const main = new EndpointSet({ thread: 1, threads: 1, seed: [0, 0] })
    main.update([compiled('a')])
    set.update([compiled('a')], main.handles())
    const wait = waitFor(set)
    main.update([compiled('b')])
    set.update([compiled('b')], main.handles())
    assert.equal(await over(wait), false)
    const [b] = main.all
    if (b !== undefined) main.onProbe(b, true, '', CHECK, 0)
    assert.equal(await over(wait), true)
  })

  it('is not waited for again once that was in vain', async () => {
    const set = new EndpointSet()
    set.update([compiled('a')])
    const alive = setInterval(() => undefined, 1_000)
    await waitFor(set)
    clearInterval(alive)
    assert.equal(set.unchecked, false)
    set.update([compiled('b')])
    assert.equal(set.unchecked, true)
  })

  it('is none where nothing is enabled', () => {
    const set = new EndpointSet()
    set.update([compiled('a', { weight: 0 })])
    assert.equal(set.unchecked, false)
  })
})

describe('a change of the object', () => {
  it('keeps the state of those that stay', () => {
    const set = healthySet(compiled('a'), compiled('b'))
    const [a, b] = set.all
    for (let i = 0; i < 3; i++) b?.started()
    set.update([compiled('c'), compiled('b', { weight: 7 })])
    assert.equal(set.byUrl('https://b:6443'), b)
    assert.equal(set.view(1), b)
    assert.equal(b?.weight, 7)
    assert.equal(b?.inFlight, 3)
    assert.equal(available(set), '- b')
    assert.equal(a?.listed, false)
    assert.equal(set.byUrl('https://a:6443'), undefined)
  })

  it('forgets those that went: they begin unknown when they return', () => {
    const set = healthySet(compiled('a'), compiled('b'))
    set.update([compiled('b')])
    set.update([compiled('a'), compiled('b')])
    assert.equal(available(set), '- b')
  })

  it('reaches a request that holds an older snapshot', () => {
    const before = [compiled('a'), compiled('b'), compiled('c')]
    const set = healthySet(...before)
    const known = policy(0, 1)
    assert.equal(set.candidates(before, known, 0).endpoints.length, 2)
    set.update([compiled('c'), compiled('b', { disabled: true })])
    const names = (used: CompiledPolicy): string[] =>
      set.candidates(before, used, 0).endpoints.map((one) => `${one.compiled.host} ${one.available}`)
    assert.deepEqual(names(known), ['a false', 'b false'])
    // Indexes are those of the older list, although this policy was not used before.
    assert.deepEqual(names(policy(2, 1, 0)), ['c true', 'b false'])
  })
})

describe('candidates', () => {
  it('are the same objects for every request of a policy', () => {
    const list = [compiled('a'), compiled('b'), compiled('c')]
    const set = healthySet(...list)
    const used = policy(2, 0)
    const first = set.candidates(list, used, 0)
    assert.deepEqual(
      first.endpoints.map(({ compiled: { host } }) => host),
      ['c', 'a'],
    )
    assert.equal(set.candidates(list, used, 5), first)
    const ofNextObject = policy(2, 0)
    assert.equal(
      set.candidates(list, ofNextObject, 5).cursor,
      first.cursor,
      'a change of the object goes on with the round',
    )
    const other = { ...policy(2, 0), index: used.index + 1 }
    assert.notEqual(set.candidates(list, other, 5).cursor, first.cursor)
  })

  it('are evaluated among themselves: the last one of a subset is not ejected', () => {
    const list = [compiled('a'), compiled('b'), compiled('c')]
    const set = healthySet(...list)
    eject(set, 0, 100)
    assert.equal(set.available(0, 100), false)
    assert.deepEqual(
      set.candidates(list, policy(0), 100).endpoints.map((one) => one.available),
      [true],
    )
    assert.deepEqual(
      set.candidates(list, policy(0, 1), 100).endpoints.map((one) => one.available),
      [false, true],
    )
    assert.deepEqual(
      set.candidates(list, policy(0, 1), 1100).endpoints.map((one) => one.available),
      [true, true],
    )
  })
})

describe('threads', () => {
  const SEED = [1, 2] as const

  it('see one health and one load, and give back the load of one that died', () => {
    const list = [compiled('a'), compiled('b')]
    const main = new EndpointSet({ thread: 2, threads: 2, seed: SEED })
    main.update(list)
    const threads = [0, 1].map((thread) => {
      const set = new EndpointSet({ thread, threads: 2, seed: SEED })
      set.update(list, main.handles())
      return set
    })
    for (const endpoint of main.all) main.onProbe(endpoint, true, '', CHECK, 0)
    assert.deepEqual(
      threads.map((set) => available(set)),
      ['a b', 'a b'],
    )
    for (const set of [...threads, ...threads, ...threads]) {
      const endpoint = set.view(0)
      endpoint?.started()
      if (endpoint !== undefined) set.onFailure(endpoint, 100)
    }
    assert.equal(main.view(0)?.inFlight, 6)
    assert.equal(main.view(0)?.health.ejections, 1)
    assert.deepEqual(
      [main, ...threads].map((set) => available(set, 100)),
      ['- b', '- b', '- b'],
    )
    main.releaseThread(0)
    assert.deepEqual(
      threads.map((set) => set.view(0)?.inFlight),
      [3, 3],
    )
  })

  it('begin their rounds at different endpoints', () => {
    const list = [compiled('a'), compiled('b'), compiled('c')]
    const main = new EndpointSet({ thread: 3, threads: 3, seed: SEED })
    main.update(list)
    for (const endpoint of main.all) main.onProbe(endpoint, true, '', CHECK, 0)
    const used = policy(0, 1, 2)
    const firsts = [0, 1, 2].map((thread) => {
      const set = new EndpointSet({ thread, threads: 3, seed: SEED })
      set.update(list, main.handles())
      const { endpoints, cursor } = set.candidates(list, used, 0)
      return PICKERS.RoundRobin(endpoints, { random: () => 0, cursor, affinityHash: 0 })
    })
    assert.deepEqual(firsts, [0, 1, 2])
  })

  it('treat an endpoint that is added again as a new one', () => {
    const main = new EndpointSet({ thread: 1, threads: 1, seed: SEED })
    const thread = new EndpointSet({ thread: 0, threads: 1, seed: SEED })
    const follow = (...list: CompiledEndpoint[]): void => {
      main.update(list)
      thread.update(list, main.handles())
    }
    follow(compiled('a'), compiled('b'))
    for (const endpoint of main.all) main.onProbe(endpoint, true, '', CHECK, 0)
    const b = thread.view(1)
    follow(compiled('b'))
    follow(compiled('a'), compiled('b'))
    assert.equal(thread.view(1), b)
    assert.equal(available(thread), '- b')
  })
})

describe('description', () => {
  it('shows state, ejection and the last check', () => {
    const set = healthySet(compiled('a'), compiled('b'))
    const b = set.view(1)
    if (b !== undefined) set.onProbe(b, false, 'answered with 500', CHECK, 50)
    assert.deepEqual(set.describe(100), [
      {
        url: 'https://a:6443',
        disabled: false,
        state: 'healthy',
        ejected: false,
        available: true,
        inFlight: 0,
        lastProbe: { ok: true, message: '', atMs: 0 },
      },
      {
        url: 'https://b:6443',
        disabled: false,
        state: 'unhealthy',
        ejected: false,
        available: false,
        inFlight: 0,
        lastProbe: { ok: false, message: 'answered with 500', atMs: 50 },
      },
    ])
    const c = healthySet(compiled('a'), compiled('b'))
    eject(c, 1, 100)
    assert.deepEqual(
      c.describe(100).map(({ ejected }) => ejected),
      [false, true],
    )
  })
})
