import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { FIRST_VERSION, keptPods, type Pod, writePod } from '../../../test/harness/federation/kept-pods.ts'
import { compareKeys, objectKey } from '../../cache/core/keys/object-key.ts'
import { memoryFor } from '../../cache/request/delivery-limits.ts'
import type { CachedCollection } from '../../cache/state/cached-collection.ts'
import type { CachedObject } from '../../cache/state/cached-object.ts'
import type { CompiledFederation } from '../../gateway/core/cluster/compiled-cluster.ts'
import { userCharge } from '../../kit/core/shares/charge.ts'
import { type FederatedRead, federatedReadOf } from '../core/federated-read.ts'
import { federationEpoch } from '../core/federation-epoch.ts'
import { FederatedCollection } from '../state/federated-collection.ts'
import { continuedAfter, endOfKept, pageOf } from './list-pages.ts'
import { awaitedBy } from './reach-versions.ts'
import { type SelectedPart, selectObjects } from './select-objects.ts'

const CLOCK = { monotonic: () => 0 }

class World {
  readonly members: readonly CachedCollection[]
  readonly all: FederatedCollection
  looked = 0
  held = 0
  readonly #federation: CompiledFederation
  readonly #namespace: string
  readonly #team: string

  /** @param namespace '' = all @param team '' = no selectors */
  constructor(pods: readonly (readonly Pod[])[], namespace = '', team = '') {
    this.members = pods.map((pods) => keptPods(pods))
    this.all = new FederatedCollection(pods.length, CLOCK)
    for (const [slot, member] of this.members.entries()) this.all.follow(slot, member)
    const members = pods.map((_, slot) => ({ name: `m${slot}`, cluster: `m${slot}` }))
    this.#federation = { members } as unknown as CompiledFederation
    this.#namespace = namespace
    this.#team = team
  }

  async page(limit: number, token: string) {
    const read = listOf(`limit=${limit}&continue=${token}`)
    const after = continuedAfter(read)
    assert.ok(after === undefined || !('refused' in after))
    const awaited = awaitedBy(read, after, this.#federation)
    assert.equal(awaited.kind, token === '' ? 'proof' : 'versions')
    const at = awaited.kind === 'versions' && awaited.isExact ? awaited.versions : undefined
    const selected = await this.select({ at, after, limit })
    assert.ok(typeof selected !== 'string', String(selected))
    const epoch = federationEpoch(this.#federation.members)
    const vectorOf = (versions: readonly string[]) => ({ epoch, versions })
    return { ...selected, ...pageOf(selected, this.#team !== '', endOfKept(selected), vectorOf) }
  }

  select(part: SelectedPart) {
    const exchange = {
      charge: userCharge('c', 'alice', 1),
      gone: false,
      takeMemory: (bytes: number) => {
        this.held += bytes
        return true
      },
      giveMemory: (bytes: number) => {
        this.held -= bytes
      },
    }
    const members = this.members.map((one, slot) => {
      return { slot, kept: one, scope: { namespace: this.#namespace, name: '', fieldSelector: '' } }
    })
    const selects = (object: CachedObject): boolean => {
      this.looked++
      return this.#team === '' || object.facts.labels['team'] === this.#team
    }
    const bySlot = members.map(() => selects)
    return selectObjects(exchange, this.all, members, bySlot, part)
  }
}

function listOf(query: string): FederatedRead {
  const read = federatedReadOf('list', query)
  assert.ok(!('invalid' in read))
  return read
}

const POD: fc.Arbitrary<Pod> = fc.record({
  namespace: fc.constantFrom('a', 'a-b', 'b'),
  name: fc.integer({ min: 0, max: 30 }).map((at) => `p${at}`),
  team: fc.constantFrom('red', 'blue'),
})
const keyOf = ({ namespace, name }: Pod): string => objectKey(namespace, name)
const PODS = fc.uniqueArray(POD, { selector: keyOf, maxLength: 40 })
const WRITE = fc.record({ slot: fc.nat(2), pod: POD, isDeletion: fc.boolean() })

test('pages are one list, that of the first page, whatever is written in between', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(PODS, { minLength: 1, maxLength: 3 }),
      fc.constantFrom('', 'a', 'a-b'),
      fc.constantFrom('', 'red'),
      fc.integer({ min: 1, max: 12 }),
      fc.array(fc.array(WRITE, { maxLength: 4 }), { minLength: 1, maxLength: 4 }),
      async (pods, namespace, team, limit, writes) => {
        const world = new World(pods, namespace, team)
        const expected = pods.flatMap((some, slot) =>
          some
            .filter((pod) => (namespace === '' || pod.namespace === namespace) && (team === '' || pod.team === team))
            .sort((a, b) => compareKeys(keyOf(a), keyOf(b)))
            .map((pod) => `${slot} ${keyOf(pod)} ${pod.team} ${FIRST_VERSION}`),
        )
        const listed: string[] = []
        for (let token = '', at = 0; at === 0 || token !== ''; at++) {
          const page = await world.page(limit, token)
          for (const { slot, object } of page.objects) {
            const { labels, resourceVersion } = object.facts
            listed.push(`${slot} ${object.key} ${labels['team']} ${resourceVersion}`)
          }
          token = page.continue
          const isMore = token !== ''
          if (isMore) assert.equal(page.objects.length, limit)
          if (team === '') assert.equal(isMore, listed.length < expected.length)
          const left = isMore && team === '' ? expected.length - listed.length : undefined
          assert.equal(page.remaining, left)
          assert.equal(world.held, memoryFor(listed.length), 'what is not sent is given back')
          for (const { slot, pod, isDeletion } of writes[at % writes.length] ?? []) {
            const member = world.members[slot]
            if (member !== undefined) writePod(member, pod, isDeletion)
          }
        }
        assert.deepEqual(listed, expected)
      },
    ),
  )
})

const many = (count: number, team = (_: number) => 'red'): Pod[] =>
  Array.from({ length: count }, (_, at) => ({
    namespace: 'a',
    name: `p${String(at).padStart(5, '0')}`,
    team: team(at),
  }))

test('a page looks at no more objects than it has, also of an earlier state', async () => {
  const world = new World([many(3000), many(3000)])
  let token = ''
  for (let pages = 0; pages < 3; pages++) {
    const before = world.looked
    const page = await world.page(7, token)
    assert.equal(world.looked - before, 7)
    assert.equal(page.remaining, 6000 - 7 * (pages + 1))
    token = page.continue
    for (const pod of many(20)) for (const member of world.members) writePod(member, pod, pages === 1)
  }
  const before = world.looked
  const last = await world.page(5000, token)
  assert.equal(world.looked - before, 5000)
  assert.equal(last.remaining, 6000 - 21 - 5000)
})

test('with selectors a page looks at the objects up to its last one', async () => {
  const world = new World([many(3000, (at) => (at % 10 === 9 ? 'red' : 'blue')), many(3000)], '', 'red')
  const first = await world.page(5, '')
  assert.equal(world.looked, 50)
  assert.equal(first.remaining, undefined)
  const second = await world.page(1, first.continue)
  assert.equal(world.looked, 60)
  assert.notEqual(second.continue, '')
})

test('a page from before what is remembered is expired, and one of other members is refused', async () => {
  const world = new World([many(3)])
  assert.equal(await world.select({ at: ['99'], limit: 1 }), 'expired')
  assert.equal(await world.select({ at: ['101'], limit: 1 }), 'expired')
  assert.equal(world.held, 0)
  const { continue: token } = await world.page(1, '')
  const others = { members: [{ name: 'other', cluster: 'other' }] } as unknown as CompiledFederation
  const read = listOf(`continue=${token}`)
  const after = continuedAfter(read)
  assert.ok(after !== undefined && !('refused' in after))
  assert.deepEqual(awaitedBy(read, after, others), { kind: 'expired' })
  const refused = continuedAfter(listOf('continue=x'))
  assert.ok(refused !== undefined && 'refused' in refused)
})
