// Pages of consistent lists against callers that a member refuses and members that list what no kube-apiserver does: what a page tells of a refused member,
// and whether clients get to the end of the list.

import assert from 'node:assert/strict'
import type { ClientHttp2Session } from 'node:http2'
import '../harness/property-seed.ts'
import { after, afterEach, before, test } from 'node:test'
import fc from 'fast-check'
import { parseVector } from '../../src/federation/core/vectors.ts'
import { headerValue } from '../../src/gateway/core/request/hop-headers.ts'
import { createCA } from '../../src/pki/io/pki.ts'
import { h2Connect, h2Request } from '../harness/clients/h2-client.ts'
import { shownNames } from '../harness/federation/federated-clusters.ts'
import { ODD, PagedMember, pagedFederation } from '../harness/federation/paged-member.ts'
import { type InProcessGateway, startInProcess } from '../harness/gateways/in-process.ts'
import { clientPair } from '../harness/objects/objects.ts'
import { PATIENT } from '../harness/patience.ts'
import { replyReview } from '../harness/upstreams/stub-upstream.ts'
import { waitFor } from '../harness/wait.ts'

const PODS = '/api/v1/pods'
const clientCA = createCA({ commonName: 'clients of all' })
/** More than a page of these tests may have. */
const MOST_PAGES = 20

let east: PagedMember
let west: PagedMember
let gateway: InProcessGateway
let alice: ClientHttp2Session
/** East refuses this user. */
let bob: ClientHttp2Session
/** Answers of east to questions for bob's right are sent when they are released. */
let held: (() => void)[] | undefined

async function list(session: ClientHttp2Session, query: string) {
  const path = `${PODS}?${query}`
  const { status, head, body } = await h2Request(session, [':method', 'GET', ':path', path, ':authority', 'all'])
  const { items = [], metadata = {}, message } = JSON.parse(body.toString())
  const names = shownNames(items).map((name) => name.replace('--default', ''))
  return { status, names, items, metadata, message, warning: headerValue([...head], 'warning') ?? '' }
}

async function pages(session: ClientHttp2Session, limit: number) {
  const names: string[][] = []
  for (let next = ''; names.length === 0 || next !== ''; ) {
    assert.ok(names.length < MOST_PAGES, 'the pages have no end')
    const page = await list(session, `limit=${limit}${next === '' ? '' : `&continue=${next}`}`)
    assert.equal(page.status, 200, page.message)
    names.push(page.names)
    next = page.metadata.continue ?? ''
  }
  return names
}

before(async () => {
  ;[east, west] = await Promise.all([PagedMember.start(), PagedMember.start()])
  for (const name of ['a', 'b', 'c']) for (const member of [east, west]) member.write(name)
  east.stub.answerAccess = (seen) => {
    const send = (): void => replyReview(seen, { allowed: seen.spec['user'] !== 'bob' })
    if (held !== undefined && seen.spec['user'] === 'bob') held.push(send)
    else send()
  }
  gateway = await startInProcess(pagedFederation([east, west], clientCA, { denied: 'Omit' }), {})
  const connect = (name: string): ClientHttp2Session =>
    h2Connect({ port: gateway.port, serverName: 'all', certificate: clientPair(clientCA, name) })
  alice = connect('alice')
  bob = connect('bob')
  await waitFor('what is kept of both', async () => (await list(alice, '')).names.length === 6)
})
afterEach(() => {
  for (const member of [east, west]) member.change = () => undefined
  held = undefined
})
after(async () => {
  alice?.destroy()
  bob?.destroy()
  await gateway?.stop()
  await east?.stop()
  await west?.stop()
})

test('a right that is asked for a long time does not hold up the lists of others', PATIENT, async () => {
  held = []
  west.lists.length = 0
  const page = list(bob, 'limit=2&labelSelector=odd%3Dtrue,odd%3Dtrue')
  await waitFor('the list of west', () => west.lists.length > 0)
  assert.equal(held.length, 1)
  for (const send of held) send()
  assert.equal((await page).status, 200)
})

test('how many objects a refused member has does not show in the length of pages', async () => {
  const west3 = ['west/a', 'west/b', 'west/c']
  for (const more of [[], ['d', 'e', 'f', 'g']]) {
    for (const name of more) east.write(name)
    await waitFor('all of it', async () => (await list(alice, '')).names.length === 6 + more.length)
    for (const [limit, expected] of [
      [3, [west3]],
      [4, [west3]],
      [2, [west3.slice(0, 2), west3.slice(2)]],
    ] as const) {
      // What is kept of it has not reached the version of its list.
      for (const member of [east, west]) member.pass()
      west.lists.length = 0
      assert.deepEqual(await pages(bob, limit), expected)
      assert.equal(west.lists[0]?.query.get('limit'), String(limit))
      assert.ok(!(await list(bob, `limit=${limit}`)).metadata.resourceVersion.endsWith(`03${east.version}03`))
    }
    for (const name of more) east.remove(name)
  }
  await waitFor('what it was', async () => (await list(alice, '')).names.length === 6)
})

test('the token of another user shows nothing of a member that refuses the caller, not even its version', async () => {
  for (const limit of [1, 2, 4]) {
    for (const member of [east, west]) member.pass()
    const { metadata } = await list(alice, `limit=${limit}`)
    const page = await list(bob, `limit=5&continue=${metadata.continue}`)
    assert.equal(page.status, 200, page.message)
    assert.ok(page.names.length > 0 && page.names.every((name) => name.startsWith('west/')))
    assert.equal(parseVector(page.metadata.resourceVersion)?.versions[0], '')
    assert.match(page.warning, /east is left out/)
  }
})

/** What is kept has not reached the versions of the members' lists. */
function passBoth(): void {
  for (const member of [east, west]) member.pass()
}

test(
  'pages of a member that does not keep to the limit go on, and miss nothing that is not kept yet',
  PATIENT,
  async () => {
    const all = ['east/a', 'east/b', 'east/c', 'west/a', 'west/b', 'west/c']
    east.change = (now) => Object.assign(now, east.listAll())
    for (const limit of [1, 2, 3]) {
      passBoth()
      const found = await pages(alice, limit)
      assert.deepEqual(found.flat(), all)
      assert.ok(found.every((names) => names.length > 0))
    }
  },
)

test('a member whose pages are empty and have no end does not keep clients asking for ever', async () => {
  passBoth()
  east.change = (now) =>
    Object.assign(now, { items: [], metadata: { resourceVersion: east.version, continue: 'more' } })
  assert.equal((await pages(alice, 2)).flat().length, 6)
})

test('a token of a member that would not fit into ours is not taken', async () => {
  for (const next of ['\u0001'.repeat(2000), 'é'.repeat(2000)]) {
    passBoth()
    east.change = (now) => Object.assign(now.metadata, { continue: next })
    const { metadata } = await list(alice, 'limit=2')
    east.change = () => undefined
    const second = await list(alice, `limit=2&continue=${metadata.continue}`)
    assert.deepEqual([second.status, second.names], [200, ['east/c', 'west/a']], second.message)
  }
})

const WRITE = fc.record({
  isEast: fc.boolean(),
  kind: fc.constantFrom('write', 'remove', 'pass'),
  name: fc.constantFrom(...'abcdef'),
})

test(
  'pages of what a selector names, and of those that a caller may read, are the state of their versions',
  PATIENT,
  async () => {
    const between = fc.array(fc.array(WRITE, { maxLength: 4 }), { minLength: 1, maxLength: 5 })
    const given = [fc.boolean(), fc.boolean(), fc.integer({ min: 1, max: 5 }), fc.nat(3), between] as const
    const property = fc.asyncProperty(...given, async (isRefused, isSelected, limit, delayMs, writes) => {
      east.delayMs = delayMs
      west.delayMs = 3 - delayMs
      const write = (at: number): void => {
        for (const { isEast, kind, name } of writes[at % writes.length] ?? []) {
          const member = isEast ? east : west
          if (kind === 'pass') member.pass()
          else if (kind === 'write') member.write(name)
          else if (member.podsAt(member.version).some((pod) => pod.startsWith(`${name} `))) member.remove(name)
        }
      }
      const selector = isSelected ? `&labelSelector=${encodeURIComponent(ODD)}` : ''
      const found: string[] = []
      let versions: readonly string[] = []
      for (let next = '', at = 0; at === 0 || next !== ''; at++) {
        write(2 * at)
        const asked = list(
          isRefused ? bob : alice,
          `limit=${limit}${selector}${next === '' ? '' : `&continue=${next}`}`,
        )
        write(2 * at + 1)
        const { status, items, metadata, message } = await asked
        assert.equal(status, 200, message)
        assert.ok(at < 50 && items.length <= limit)
        const named = parseVector(metadata.resourceVersion)?.versions ?? []
        assert.deepEqual(at === 0 ? named : versions, named)
        versions = named
        for (const { metadata: one } of items) {
          const isEast = one.namespace.startsWith('east')
          const own = parseVector(one.resourceVersion)?.versions[isEast ? 0 : 1]
          found.push(`${isEast ? 'east' : 'west'}/${one.name} ${own}`)
        }
        next = metadata.continue ?? ''
      }
      const expected = [east, west].flatMap((member, slot) =>
        isRefused && slot === 0
          ? []
          : member.podsAt(versions[slot] ?? '').map((pod) => `${slot === 0 ? 'east' : 'west'}/${pod}`),
      )
      assert.equal(versions[0] === '', isRefused)
      assert.deepEqual(found, isSelected ? expected.filter((pod) => /[13579]$/.test(pod)) : expected)
    })
    try {
      await fc.assert(property, { numRuns: 100 })
    } finally {
      for (const member of [east, west]) member.delayMs = 0
    }
  },
)
