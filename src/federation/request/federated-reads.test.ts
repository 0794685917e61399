import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { FIRST_VERSION, keptPods } from '../../../test/harness/federation/kept-pods.ts'
import { waitFor } from '../../../test/harness/wait.ts'
import type { CachedCollection } from '../../cache/state/cached-collection.ts'
import type { CachedCollections } from '../../cache/state/cached-collections.ts'
import { compileCluster } from '../../gateway/core/cluster/compile-cluster.ts'
import { parseRequestInfo } from '../../gateway/core/request/request-info.ts'
import type { AccessReviewResult } from '../../gateway/io/reviews/access-review.ts'
import type { Decision } from '../../gateway/request/exchange/decision.ts'
import { OwnCallLimits } from '../../gateway/state/clusters.ts'
import { userCharge } from '../../kit/core/shares/charge.ts'
import { federationEpoch } from '../core/federation-epoch.ts'
import { encodeVector } from '../core/vectors.ts'
import { FederatedCollection } from '../state/federated-collection.ts'
import type { FederatedCollections } from '../state/federated-collections.ts'
import { KnownRights } from '../state/known-rights.ts'
import { type FederatedReadsDeps, FederatedReadsFilter } from './federated-reads.ts'
import { MEMBER_MS } from './member-rights.ts'
import { type Awaited, reachInMember } from './reach-versions.ts'

const NAMES = ['east', 'north', 'west']
const USER = { name: 'alice', uid: '', groups: ['dev'], extra: {} }
const TYPE = { apiVersion: 'proxy.kubegateway.io/v1alpha1', kind: 'UpstreamCluster' }
const POLICIES = [{ rules: [{ verbs: ['*'], apiGroups: ['*'], resources: ['*'] }] }]

const compiled = (name: string, servers: readonly { readonly endpoint: string }[], federated = {}) =>
  compileCluster({
    object: { ...TYPE, metadata: { name }, spec: { servers, dispatchPolicies: POLICIES, ...federated } },
    revision: '1',
  })

const federated = (federation: object, resource: object = {}) =>
  compiled('all', [], {
    members: NAMES.map((name) => ({ name, trustUsers: true })),
    federation: { ...federation, resources: [{ version: 'v1', resource: 'pods', ...resource }] },
  })

const ALL = federated({})

interface Proof {
  readonly name: string
  readonly ms: number
}

/** Three members, of which north is frozen as soon as `frozen` is set: then the time of its review is over when `over` is called. */
class World {
  readonly proofs: Proof[] = []
  readonly #collections: readonly CachedCollection[]
  readonly #live = NAMES.map((name) => ({
    compiled: compiled(name, [{ endpoint: 'https://10.0.0.1:6443' }]),
    identityEpoch: 1,
    flows: {},
    turns: new OwnCallLimits(),
    // They answer reviews, and no other call.
    endpoints: { all: [], available: () => false },
  }))
  readonly #filter: FederatedReadsFilter
  #nowMs = 1_000_000
  #frozen: PromiseWithResolvers<AccessReviewResult> | undefined
  readonly #cluster: typeof ALL

  /** @param namespaces of the pod of each member */
  constructor(cluster = ALL, namespaces: readonly string[] = ['a', 'a', 'a']) {
    this.#cluster = cluster
    this.#collections = namespaces.map((namespace) => keptPods([{ namespace, name: 'web', team: 'red' }]))
    const clock = { monotonic: () => this.#nowMs }
    const all = new FederatedCollection(NAMES.length, clock)
    for (const [slot, one] of this.#collections.entries()) all.follow(slot, one)
    const kept = {
      currentVersion: (one: CachedCollection, ms: number) => {
        this.proofs.push({ name: NAMES[this.#collections.indexOf(one)] ?? '', ms })
        return Promise.resolve(one.version)
      },
      // Nothing was told before.
      reachTold: () => Promise.resolve(),
    } as unknown as CachedCollections
    const collections = { of: () => all } as unknown as FederatedCollections
    const deps = { kept, collections, watches: {}, known: new KnownRights(() => undefined) }
    this.#filter = new FederatedReadsFilter(deps as unknown as FederatedReadsDeps)
  }

  freeze(): void {
    this.#frozen = Promise.withResolvers()
  }

  /** Only while it is frozen. */
  deny(): void {
    this.#frozen?.resolve({ kind: 'denied', reason: '' })
  }

  /** So many milliseconds later, the review for north has failed. @param retryAfterSeconds above 0 = it was never sent */
  fail(ms: number, retryAfterSeconds = 0): void {
    this.#nowMs += ms
    this.#frozen?.resolve({ kind: 'unavailable', message: 'no answer', retryAfterSeconds })
  }

  read(target: string) {
    const info = parseRequestInfo('GET', target)
    assert.ok(!('failure' in info))
    const review = ({ cluster }: { readonly cluster: string }): Promise<AccessReviewResult> =>
      cluster === 'north' && this.#frozen !== undefined ? this.#frozen.promise : Promise.resolve({ kind: 'allowed' })
    const exchange = {
      gw: {
        clock: { monotonic: () => this.#nowMs },
        clusters: { get: (name: string) => this.#live[NAMES.indexOf(name)] },
        access: { review },
        upstreams: { get: () => undefined },
        random: () => 0,
      },
      record: { method: 'GET' },
      requestEnded: true,
      body: undefined,
      target,
      list: [],
      charge: userCharge('all', 'alice', 1),
      gone: false,
      monotonicMs: this.#nowMs,
      nowMs: 0,
      takeMemory: () => true,
      giveMemory: () => undefined,
    }
    const decision = {
      exchange,
      cluster: this.#cluster,
      info,
      caller: { user: USER, kind: 'certificate' },
      user: USER,
      requester: { user: USER },
      userAgent: 'kubectl',
      remoteAddress: '10.0.0.9',
      isWatch: target.includes('watch='),
      isUpgrade: false,
      moment: { nowMs: 0, monotonicMs: this.#nowMs },
      warnings: [],
      filters: { skipRest: () => undefined },
      handOver: undefined,
      deliver: undefined,
    } as unknown as Decision
    return { decision, answer: Promise.resolve(this.#filter.check(decision)) }
  }
}

const LIST = '/api/v1/pods'
const AHEAD = encodeVector({ epoch: federationEpoch(ALL.federation?.members ?? []), versions: ['100', '101', '100'] })

for (const target of [LIST, `${LIST}?limit=1`, `${LIST}?watch=1`, '/api/v1/namespaces/north--a/pods/web']) {
  test(`${target}: a frozen member costs the time for one question, and no other waits for it`, async () => {
    const world = new World()
    const before = world.read(target)
    assert.equal(await before.answer, undefined)
    assert.deepEqual(before.decision.warnings, [])
    const asked = NAMES.filter((name) => !target.includes('north') || name === 'north')
    assert.deepEqual(
      world.proofs.map(({ name }) => name),
      asked,
    )
    world.proofs.length = 0
    world.freeze()
    const { decision, answer } = world.read(target)
    const others = asked.filter((name) => name !== 'north').map((name) => ({ name, ms: MEMBER_MS }))
    await waitFor('the proofs of the others', () => world.proofs.length >= others.length)
    assert.deepEqual(world.proofs, others)
    world.fail(MEMBER_MS)
    assert.equal(await answer, undefined)
    assert.deepEqual(world.proofs, others, 'no time is left to ask north for a proof')
    assert.deepEqual(decision.warnings, ['north could not be proved to be current'])
    assert.ok(decision.deliver !== undefined)
  })
}

test('an object that is not known of a member that could not be proved to be current is not said to be missing', async () => {
  const world = new World()
  const target = '/api/v1/namespaces/north--a/pods/none'
  assert.equal((await world.read(target).answer)?.refused, 'federated-object-missing')
  world.freeze()
  const { answer } = world.read(target)
  await nextTurn()
  world.fail(MEMBER_MS)
  const refusal = await answer
  assert.equal(refusal?.refused, 'member-unavailable')
  assert.match(refusal.message, /whether pods "none" exists is not known: north could not be proved to be current/)
})

test('a slow right leaves the rest of the time for the proof', async () => {
  const world = new World()
  await world.read(LIST).answer
  world.proofs.length = 0
  world.freeze()
  const { decision, answer } = world.read(LIST)
  await nextTurn()
  world.fail(MEMBER_MS - 500)
  assert.equal(await answer, undefined)
  assert.deepEqual(world.proofs.at(-1), { name: 'north', ms: 500 })
  assert.deepEqual(decision.warnings, [])
})

test('a member that has not allowed it before is not read while it is frozen', async () => {
  const world = new World()
  world.freeze()
  const { answer } = world.read(LIST)
  await nextTurn()
  world.fail(MEMBER_MS)
  assert.equal((await answer)?.refused, 'member-unavailable')
  assert.ok(world.proofs.every(({ name }) => name !== 'north'))
})

test('a caller cannot keep a right by asking so much that the member is not asked', async () => {
  const world = new World()
  await world.read(LIST).answer
  world.freeze()
  const { answer } = world.read(LIST)
  await nextTurn()
  world.fail(10, 1)
  assert.equal((await answer)?.refused, 'member-unavailable')
})

test('how far back the history of a member goes is not told to a caller who may not read it', async () => {
  const world = new World(federated({ denied: 'Omit' }))
  await world.read(LIST).answer
  const early = encodeVector({ epoch: federationEpoch(ALL.federation?.members ?? []), versions: ['100', '1', '100'] })
  const exact = `${LIST}?resourceVersion=${early}&resourceVersionMatch=Exact`
  assert.equal((await world.read(exact).answer)?.refused, 'federated-version-gone')
  world.freeze()
  world.deny()
  const { decision, answer } = world.read(exact)
  assert.equal(await answer, undefined)
  assert.ok(decision.deliver !== undefined)
})

test('with merged names, a log is not handed over while a member that may have such a pod does not answer, unless names are unique', async () => {
  for (const [resource, refused] of [
    [{}, 'member-unavailable'],
    [{ uniqueNames: true }, undefined],
  ] as const) {
    const world = new World(federated({ mode: 'merged', partial: 'Omit' }, resource), ['a', 'b', 'b'])
    world.freeze()
    const { decision, answer } = world.read('/api/v1/namespaces/a/pods/web/log')
    await nextTurn()
    world.fail(MEMBER_MS)
    assert.equal((await answer)?.refused, refused)
    assert.equal(decision.handOver?.member, refused === undefined ? 'east' : undefined)
  }
})

test('a watch that goes on asks for versions that are not known here, until the same moment', async () => {
  const world = new World()
  await world.read(`${LIST}?watch=1`).answer
  world.proofs.length = 0
  world.freeze()
  const { decision, answer } = world.read(`${LIST}?watch=1&resourceVersion=${AHEAD}`)
  await nextTurn()
  world.fail(MEMBER_MS)
  assert.equal(await answer, undefined)
  assert.deepEqual(world.proofs, [])
  assert.ok(decision.deliver !== undefined)
})

const RESUME: Awaited = { kind: 'resume', versions: ['110'] }
const EXACT: Awaited = { kind: 'versions', versions: ['110'], isExact: true }
const PROOF: Awaited = { kind: 'proof' }

/** @param reaches whether version 110 comes @param proved undefined = that is not proved */
const reached = async (awaited: Awaited, reaches: boolean, proved: string | undefined, awayMs = 0) => {
  const collection = {
    isAtLeast: (version: string) => Number(version) <= FIRST_VERSION,
    reaches: () => Promise.resolve(reaches),
    awayFor: () => awayMs,
    isGone: false,
  } as unknown as CachedCollection
  const kept = { currentVersion: () => Promise.resolve(proved) }
  return await reachInMember(kept, { slot: 0, kept: collection }, awaited, 2_000, 0)
}

test('what is awaited of a member', async () => {
  assert.equal(await reached({ kind: 'nothing' }, false, undefined), 'reached')
  assert.equal(await reached(PROOF, false, '100'), 'reached')
  assert.equal(await reached(PROOF, false, undefined), 'unproved')
  assert.equal(await reached(PROOF, false, undefined, 5), 'reached', 'that it is away is said')
  assert.equal(await reached(EXACT, true, undefined), 'reached')
  assert.equal(await reached(EXACT, false, undefined), 'ahead')
  assert.equal(await reached({ kind: 'versions', versions: [''], isExact: false }, false, undefined), 'reached')
  assert.equal(await reached(RESUME, true, '100'), 'reached', 'another replica knew it first')
  assert.equal(await reached(RESUME, false, undefined), 'reached', 'it may come later')
  assert.equal(await reached(RESUME, false, '120'), 'reached')
  assert.equal(await reached(RESUME, false, '105'), 'expired', 'it was restored from a backup')
})
